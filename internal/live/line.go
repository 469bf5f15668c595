package live

import (
	"strings"

	"github.com/clipperhouse/displaywidth"

	"tuner/internal/terminal"
)

// Line is a line of the screen.
type Line []Span

// Span is a text in one style.
type Span struct {
	Text  string
	Style Style
}

// Style is the emphasis of a text, with the parameters of ECMA-48's SGR.
type Style string

// The styles.
const (
	Normal Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Good   Style = "32"
	Bad    Style = "1;31"
)

// Text returns the line for a terminal, without trailing spaces.
func (l Line) Text(hasColors bool) string {
	var b strings.Builder
	for _, s := range l {
		if s.Style == Normal || !hasColors {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString(terminal.Color(s.Style).Text(s.Text))
	}
	return strings.TrimRight(b.String(), " ")
}

func (l Line) width() int {
	n := 0
	for _, s := range l {
		n += width(s.Text)
	}
	return n
}

// width returns the number of a text's columns: characters of East Asia have two.
func width(text string) int { return displaywidth.String(text) }

func repeat(text string, n int) string { return strings.Repeat(text, max(0, n)) }

// fold breaks a text into lines of the page's width.
func (p page) fold(text string) []string {
	return strings.Split(terminal.Fill(text, p.columns), "\n")
}
