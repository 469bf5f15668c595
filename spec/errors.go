package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tuner/internal/problems"
)

// Error is one mistake in a YAML file, with all that is needed to mend it.
type Error struct {
	File    string
	Line    int    // from 1; 0 where no file of lines was read
	Path    string // "space.max_batch_size[2]"; "" for the file as a whole
	Value   string // what the file says there, shortened; "" when there is nothing to show
	Problem string // what is wrong, without the value
	Allowed string // what may stand there; "" when the problem says it
	Hint    string // what to do; "" when the rest says it
}

// Error is "file:line: path: problem (value "x"); allowed: …", and the hint on a line of its own.
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Problem)
	if e.Value != "" {
		fmt.Fprintf(&b, " (value %q)", e.Value)
	}
	if e.Allowed != "" {
		b.WriteString("; allowed: " + e.Allowed)
	}
	if e.Hint != "" {
		b.WriteString("\n    hint: " + e.Hint)
	}
	return b.String()
}

// Errors is every mistake of a file, by line.
type Errors []Error

// Error is one mistake per line, the first where there are many; several are announced by their number.
func (es Errors) Error() string {
	lines := make([]string, 0, len(es)+1)
	if len(es) > 1 {
		lines = append(lines, fmt.Sprintf("%d mistakes in %s", len(es), es[0].File))
	}
	for _, e := range es[:min(len(es), problems.Most)] {
		lines = append(lines, e.Error())
	}
	if more := len(es) - problems.Most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// sorted returns the mistakes by line; those of one line keep their order.
func (es Errors) sorted() Errors {
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return sorted
}
