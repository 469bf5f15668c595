package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tuner/internal/problems"
)

// Error is one mistake in a YAML file, with everything that is needed to fix it.
type Error struct {
	File    string
	Line    int    // from 1; 0 if the text has no lines that users can look up
	Path    string // "space.max_batch_size[2]"; "" for the file as a whole
	IsFlag  bool   // Path is a flag, and stands for itself: the file was made from flags
	Value   string // the value in the file, shortened; "" without one
	Problem string // the mistake, without the value
	Allowed string // allowed values; "" if the problem names them
	Hint    string // the remedy; "" if the rest names it
}

// Error returns "file:line: path: problem (value "x"); allowed: …", or "--flag: problem …". A hint is
// on a line of its own.
func (e Error) Error() string {
	var b strings.Builder
	if !e.IsFlag {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
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

// Errors has all mistakes of a file, by line.
type Errors []Error

// Error returns one mistake per line, the first ones if there are many. Several mistakes begin with
// their number.
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

// sorted returns the mistakes by line. Those of one line keep their order.
func (es Errors) sorted() Errors {
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return sorted
}
