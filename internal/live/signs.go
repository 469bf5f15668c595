package live

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"tuner/internal/terminal"
)

// signs are the characters of drawings.
type signs struct {
	done, rest          string // of the bar
	kept, missed, best  rune   // marks of the chart
	limit, frame, floor rune   // lines of the chart
	corner              rune
	heights             []rune // of small bars, ascending
	alarm, tail         string
}

func signsOf(isASCII bool) signs {
	if isASCII {
		return signs{"=", "-", 'o', 'x', '@', '.', '|', '-', '+', []rune("_.:-=+*#"), "!", "~"}
	}
	return signs{"━", "─", '●', '×', '◆', '┄', '│', '─', '└', []rune("▁▂▃▄▅▆▇█"), "▲", "…"}
}

// shorten cuts a text to a width in columns.
func (s signs) shorten(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return displaywidth.TruncateString(text, columns, s.tail)
}

// levels draws shares as small bars. The largest one stands for fullShare and above.
func (s signs) levels(shares []float64) string {
	const fullShare = 0.5 // half of the machine is another's
	var b strings.Builder
	for _, x := range shares {
		i := int(x / fullShare * float64(len(s.heights)))
		b.WriteRune(s.heights[max(0, min(i, len(s.heights)-1))])
	}
	return b.String()
}

// spelled returns the frame with its texts spelled for the terminal. Texts of others, such as names
// of models, must not control it.
func (f Frame) spelled(isASCII bool) Frame {
	spell := terminal.Plain
	if isASCII {
		spell = func(text string) string { return terminal.ASCII(terminal.Plain(text)) }
	}
	all := func(texts []string) []string {
		list := make([]string, len(texts))
		for i, t := range texts {
			list[i] = spell(t)
		}
		return list
	}
	f.Title, f.Now, f.Note = spell(f.Title), spell(f.Now), spell(f.Note)
	f.Answer, f.Noise.Spoilt = all(f.Answer), all(f.Noise.Spoilt)
	f.Recent = slices.Clone(f.Recent)
	for i, e := range f.Recent {
		f.Recent[i].Head, f.Recent[i].Text, f.Recent[i].Outcome = spell(e.Head), spell(e.Text), spell(e.Outcome)
	}
	f.Chart.spell = spell
	return f
}
