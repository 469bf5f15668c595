package words_test

import (
	"testing"

	"tuner/internal/words"
)

func TestShellWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"out/minilm-2.0": "out/minilm-2.0", "": "''", "a b": "'a b'", "$HOME": "'$HOME'", "it's": `'it'\''s'`, "größe": "'größe'"} {
		if got := words.ShellWord(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
