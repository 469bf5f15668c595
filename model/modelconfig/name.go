package modelconfig

import "strings"

// ServableName makes a model name from any text. Characters other than letters, digits and _ . -
// become _. The first is never a dot or dash. "" becomes "model".
func ServableName(text string) string {
	name := strings.Map(func(c rune) rune {
		if c < 128 && (c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= c|32 && c|32 <= 'z') {
			return c
		}
		return '_'
	}, text)
	name = strings.TrimLeft(name, ".-")
	if name == "" {
		return "model"
	}
	return name
}
