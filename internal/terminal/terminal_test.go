package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"short  ":                    "short\n",
		"ten column":                 "ten column\n",
		"a line of many words\nnext": "a line of\n  many\n  words\nnext\n",
		"ümlaute ≤ 10":               "ümlaute ≤\n  10\n",
		"/a/path/without/spaces x":   "/a/path/without/spaces x\n", // there is nowhere to break it
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
