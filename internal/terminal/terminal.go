// Package terminal detects which output is a terminal, and formats text for it: tables, and lines
// that fit the terminal's width.
package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"golang.org/x/term"
)

// Width is the largest width of a table's row, in columns. ProseWidth is that of sentences, which
// fit the narrowest usual terminal.
const (
	Width      = 120
	ProseWidth = 80
)

// File returns the file behind an output, and whether it is a terminal.
func File(out io.Writer) (*os.File, bool) {
	f, ok := out.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// ProseColumns returns the width of sentences on an output: ProseWidth, or less on a narrower
// terminal.
func ProseColumns(out io.Writer) int {
	const least = 20 // of a terminal's: below it nothing can be read in any case
	if f, ok := File(out); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return max(least, min(columns, ProseWidth))
		}
	}
	return ProseWidth
}

// Fold breaks lines that are longer than width at spaces, and removes trailing spaces. Continuation
// lines are indented.
func Fold(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(foldLine(strings.TrimRight(line, " \n"), width, "  ") + "\n")
	}
	return b.String()
}

// Fill joins and breaks the lines of paragraphs so that no line is longer than width. Empty lines
// separate paragraphs.
func Fill(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = foldLine(strings.Join(strings.Fields(p), " "), width, "")
	}
	return strings.Join(paragraphs, "\n\n")
}

// foldLine breaks a line at its spaces.
func foldLine(line string, width int, indent string) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > width {
		head := len(string([]rune(line)[:width+1]))
		cut := breakBefore(line, head)
		if cut <= len(indent) {
			cut = strings.LastIndexByte(line[:head], ' ')
		}
		if cut <= len(indent) {
			break
		}
		fmt.Fprintln(&b, line[:cut])
		line = indent + line[cut+1:]
	}
	return b.String() + line
}

// units stay on the same line as their number.
var units = []string{"%", "×", "s", "ms", "µs", "infer/s", "MB", "GB", "MiB", "GiB", "MHz"}

// breakBefore returns the last space before end at which a line may break, or -1. A line does not
// break between a number and its unit, or after a comparison sign.
func breakBefore(line string, end int) int {
	for cut := strings.LastIndexByte(line[:end], ' '); cut >= 0; cut = strings.LastIndexByte(line[:cut], ' ') {
		before, after := line[:cut], line[cut+1:]
		word, _, _ := strings.Cut(after, " ")
		isUnit := slices.Contains(units, strings.TrimRight(word, ".,;:)]?"))
		isNumber := before != "" && before[len(before)-1] >= '0' && before[len(before)-1] <= '9'
		isCompared := strings.HasSuffix(before, "≤") || strings.HasSuffix(before, "≥")
		if !(isUnit && isNumber) && !isCompared {
			return cut
		}
	}
	return -1
}

// Plain replaces characters with which foreign text could control a terminal: control characters
// except line breaks, and characters that change the direction of writing.
func Plain(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n':
			return c
		case c == '\t':
			return ' '
		case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c):
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// Limits of Bounded: the longest line in bytes, and the number of lines.
const (
	maxLine  = 2000
	maxLines = 200
)

// Bounded shortens a message that a foreign file made long: with a name of megabytes, or with
// endless mistakes.
func Bounded(text string) string {
	lines := strings.Split(text, "\n")
	more := len(lines) - maxLines
	lines = lines[:min(len(lines), maxLines)]
	for i, line := range lines {
		if len(line) <= maxLine {
			continue
		}
		cut := maxLine
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		lines[i] = fmt.Sprintf("%s … (%d bytes more)", line[:cut], len(line)-cut)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("… (%d lines more)", more))
	}
	return strings.Join(lines, "\n")
}

// Color highlights text on a terminal.
type Color string

// The colours, as parameters of ECMA-48's SGR.
const (
	BoldGreen Color = "1;32"
	Red       Color = "31"
)

// Text returns text in the colour.
func (c Color) Text(text string) string { return "\x1b[" + string(c) + "m" + text + "\x1b[0m" }

// ShowsColors reports whether text for an output may have colours: on a terminal, unless the user's
// environment forbids them (NO_COLOR, as on no-color.org, or TERM=dumb).
func ShowsColors(isTerminal bool, env func(string) string) bool {
	return isTerminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// Column is the head of a table's column.
type Column struct {
	Title string
	Right bool // right-aligned
}

// WritePlainTable is WriteTable for rows in which foreign text may stand. It makes every cell Plain.
func WritePlainTable(w io.Writer, columns []Column, rows [][]string) error {
	plain := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			plain[i] = append(plain[i], Plain(cell))
		}
	}
	return WriteTable(w, columns, plain)
}

// WriteTable writes columns separated by spaces, with one line under the header.
func WriteTable(w io.Writer, columns []Column, rows [][]string) error {
	padding := tw.CellPadding{PerColumn: slices.Repeat([]tw.Padding{{Right: "  ", Overwrite: true}}, len(columns))}
	padding.PerColumn[len(columns)-1] = tw.Padding{Overwrite: true}
	titles := make([]string, len(columns))
	alignment := tw.CellAlignment{PerColumn: make([]tw.Align, len(columns))}
	for i, c := range columns {
		titles[i], alignment.PerColumn[i] = c.Title, tw.AlignLeft
		if c.Right {
			alignment.PerColumn[i] = tw.AlignRight
		}
	}
	asIs := tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone}
	table := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone, Symbols: tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{
				Separators: tw.Separators{ShowHeader: tw.On, BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.On},
			},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{Formatting: asIs, Padding: padding, Alignment: alignment},
			Row:    tw.CellConfig{Formatting: asIs, Padding: padding, Alignment: alignment},
		}))
	table.Header(titles)
	if err := table.Bulk(rows); err != nil {
		return fmt.Errorf("cannot build table: %w", err)
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("cannot write table: %w", err)
	}
	return nil
}
