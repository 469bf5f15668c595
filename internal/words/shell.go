package words

import (
	"strings"
	"unicode/utf8"
)

// ShellWord writes a text as one word of a command line. It adds quotes if a shell would interpret
// the text.
func ShellWord(text string) string {
	plain := func(c rune) bool {
		return c < utf8.RuneSelf && (c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == ',' || c == ':' || c == '@' ||
			'0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	}
	if text != "" && strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
