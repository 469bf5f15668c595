package terminal

import (
	"io"
	"strings"
)

// spelled has the spelling in ASCII of the characters that our texts use.
var spelled = strings.NewReplacer("×", "x", "≤", "<=", "≥", ">=", "µ", "u", "·", "-", "→", "->", "…", "...", "−", "-", "–", "-", "±", "+/-")

// ASCII spells a text for terminals that show no other characters.
func ASCII(text string) string {
	return strings.Map(func(c rune) rune {
		if c > '~' {
			return '?'
		}
		return c
	}, spelled.Replace(text))
}

// IsASCII reports whether a terminal shows no characters beyond ASCII: its locale names another
// encoding than UTF-8 (POSIX: the first variable that is set counts), or it is a dumb one. Without a
// locale, as in most containers, nothing is known, and terminals of today show UTF-8.
func IsASCII(env func(string) string) bool {
	if env("TERM") == "dumb" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(env(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}

// Spelling returns an output for people that spells in ASCII if it is a terminal that needs it.
func Spelling(out io.Writer, env func(string) string) io.Writer {
	if _, ok := File(out); ok && IsASCII(env) {
		return speller{out}
	}
	return out
}

// speller writes texts in ASCII. Each text must have whole characters.
type speller struct{ out io.Writer }

func (s speller) Write(text []byte) (int, error) {
	_, err := io.WriteString(s.out, ASCII(string(text)))
	return len(text), err
}
