package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Neither a buffer nor a file on disk is a terminal.
func TestFile(t *testing.T) {
	t.Parallel()
	if f, ok := File(&strings.Builder{}); f != nil || ok {
		t.Errorf("a buffer: %v, %t", f, ok)
	}
	onDisk, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	if f, ok := File(onDisk); f != onDisk || ok {
		t.Errorf("a file: %v, %t", f, ok)
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"short  ":                    "short\n",
		"ten column":                 "ten column\n",
		"a line of many words\nnext": "a line of\n  many\n  words\nnext\n",
		"ümlaute ist":                "ümlaute\n  ist\n",
		"kept ≤ 50 ms":               "kept\n  ≤ 50 ms\n",
		"holds >99 %.":               "holds\n  >99 %.\n",
		"123456789 ms":               "123456789\n  ms\n",          // there is no other space
		"/a/path/without/spaces x":   "/a/path/without/spaces x\n", // it cannot be broken
	} {
		if diff := cmp.Diff(want, Fold(text, 10)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	const text, want = "one two\nthree four  five\n\nsix", "one two\nthree four\nfive\n\nsix"
	if got := Fill(text, 10); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\tb\x07\r\nc\u202ed ≤ ü"
	if got, want := Plain(hostile), "a\ufffd[2J b\ufffd\ufffd\nc\ufffdd ≤ ü"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShowsColors(t *testing.T) {
	t.Parallel()
	check := func(want, isTerminal bool, variables map[string]string) {
		t.Helper()
		if got := ShowsColors(isTerminal, func(name string) string { return variables[name] }); got != want {
			t.Errorf("terminal %t, %v: %t", isTerminal, variables, got)
		}
	}
	check(true, true, map[string]string{"TERM": "xterm"})
	check(false, false, map[string]string{"TERM": "xterm"})
	check(false, true, map[string]string{"TERM": "xterm", "NO_COLOR": "1"})
	check(false, true, map[string]string{"TERM": "dumb"})
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := WriteTable(&b, []Column{{"name", false}, {"p99 ms", true}, {"OK", false}}, [][]string{{"a", "1.5", "yes"}, {"long name", "20", ""}}); err != nil {
		t.Fatal(err)
	}
	const want = `name       p99 ms  OK
──────────────────────
a             1.5  yes
long name      20
`
	if diff := cmp.Diff(want, Fold(b.String(), Width)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	const short = "one\ntwo"
	if got := Bounded(short); got != short {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("ü", maxLine)
	got := Bounded("a\n" + long + "\nb")
	if want := "a\n" + strings.Repeat("ü", maxLine/2) + " … (2000 bytes more)\nb"; got != want {
		t.Errorf("got %d bytes that end with %q", len(got), got[max(0, len(got)-60):])
	}
	if got, want := Bounded(strings.Repeat("x\n", maxLines+7)), strings.Repeat("x\n", maxLines)+"… (8 lines more)"; got != want {
		t.Errorf("many lines end with %q", got[len(got)-40:])
	}
}
