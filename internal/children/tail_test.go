package children

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTailKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	var last Tail
	for i := range 100 {
		fmt.Fprintf(&last, "line %d\npart", i)
		fmt.Fprintf(&last, " of a line\n")
	}
	fmt.Fprint(&last, strings.Repeat("x", 10*longestLine))
	lines := strings.Split(last.String(), "\n")
	if len(lines) != tailLines+1 || lines[0] != "line 90" || lines[19] != "part of a line" || len(lines[20]) != longestLine+len(gap) {
		t.Errorf("kept %q", lines)
	}
}

// After a crash the tail keeps the reason and the lines before it, but not the stacks after it.
func TestTailKeepsTheReasonOfACrash(t *testing.T) {
	t.Parallel()
	last := Tail{IsGo: true}
	fmt.Fprint(&last, "terminate called after throwing an instance of 'std::bad_alloc'\nSIGABRT: abort\nPC=0x1 m=0 sigcode=0\nsignal arrived during cgo execution\n\n")
	for i := range 100 {
		fmt.Fprintf(&last, "goroutine %d\n", i)
	}
	want := "terminate called after throwing an instance of 'std::bad_alloc'\nSIGABRT: abort\nPC=0x1 m=0 sigcode=0\nsignal arrived during cgo execution"
	if got := last.String(); got != want {
		t.Errorf("kept %q", got)
	}
}

// What follows such a line in the output of another program is no stack of Go's.
func TestTailKeepsWhatOthersSay(t *testing.T) {
	t.Parallel()
	want := "fatal error: cudnn.h: No such file\nTraceback (most recent call last):\n  File \"x.py\", line 1\n    f()\nRuntimeError: no"
	var last Tail
	fmt.Fprint(&last, want)
	if got := last.String(); got != want {
		t.Errorf("kept %q", got)
	}
}

// A long line keeps its beginning and its end, and a line that is written over keeps its last text,
// in whatever parts they come.
func TestTailShortensLines(t *testing.T) {
	t.Parallel()
	half := longestLine / 2
	for text, want := range map[string]string{
		"begin" + strings.Repeat("x", longestLine) + "end\nnext": "begin" + strings.Repeat("x", half-5) + gap + strings.Repeat("x", half-3) + "end\nnext",
		strings.Repeat("x", longestLine) + "\n":                  strings.Repeat("x", longestLine),
		strings.Repeat("x", 2*longestLine) + "\rdone\nnext\n":    "done\nnext",
		"\r 10 %\r 20 %\r100 %\nKeyError: 'a'":                   "100 %\nKeyError: 'a'",
		"of DOS\r\nof DOS too\r\n\r\n":                           "of DOS\nof DOS too\n",
		"half\r":                                                 "half",
	} {
		for _, step := range []int{1, 2, 7, 1 << 20} {
			var last Tail
			for part := range slices.Chunk([]byte(text), step) {
				if n, err := last.Write(part); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := last.String(); got != want {
				t.Errorf("%q in steps of %d: kept %q", text, step, got)
			}
		}
	}
}
