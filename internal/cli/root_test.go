package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// The help of every verb fits on a terminal.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, v := range append(verbs(console{}), newRoot(console{})) {
		var out bytes.Buffer
		root := newRoot(console{out: &out, err: &out})
		args := []string{v.Name(), "--help"}
		if v.Name() == root.Name() {
			args = args[1:]
		}
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			isUnbroken := strings.HasPrefix(line, "      --with ") // its usage begins with a word that cannot be folded
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > helpWidth && !isUnbroken {
				t.Errorf("%s: too long: %s", v.Name(), line)
			}
		}
	}
}
