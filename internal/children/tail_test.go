package children

import (
	"fmt"
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
	if len(lines) != tailLines+1 || lines[0] != "line 90" || lines[19] != "part of a line" || len(lines[20]) != longestLine {
		t.Errorf("kept %q", lines)
	}
}

// After a crash the tail keeps the reason and the lines before it, but not the stacks after it.
func TestTailKeepsTheReasonOfACrash(t *testing.T) {
	t.Parallel()
	var last Tail
	fmt.Fprint(&last, "terminate called after throwing an instance of 'std::bad_alloc'\nSIGABRT: abort\nPC=0x1 m=0 sigcode=0\nsignal arrived during cgo execution\n\n")
	for i := range 100 {
		fmt.Fprintf(&last, "goroutine %d\n", i)
	}
	want := "terminate called after throwing an instance of 'std::bad_alloc'\nSIGABRT: abort\nPC=0x1 m=0 sigcode=0\nsignal arrived during cgo execution"
	if got := last.String(); got != want {
		t.Errorf("kept %q", got)
	}
}
