// Package snippet writes a session's settings as programs to paste: Python, C++ and Go, each with
// ONNX Runtime's own interface and without tuner. Each program creates the session and runs it once
// on zeros. The output depends only on the values, not on a clock, a file or ONNX Runtime.
package snippet

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/sessionoption"
)

// Session is the session that a program creates.
type Session struct {
	About     []string // comment lines on top
	Model     string   // path of the ONNX file
	Operators []string // paths of libraries with operators
	Runtime   string   // measured build, flavour@version
	Options   modelconfig.Options
	Providers []modelconfig.Provider // in order of preference; the CPU's comes last automatically
	Inputs    []Input                // of one request
	Outputs   []string               // names
	// Scalars has the types of the outputs without dimensions, by name
	Scalars map[string]onnx.DataType
}

// Input is one input of a request.
type Input struct {
	Name  string
	Type  onnx.DataType
	Shape []int64 // including the batch dimension
}

// elements returns the number of the input's elements.
func (in Input) elements() int64 {
	n := int64(1)
	for _, d := range in.Shape {
		n *= d
	}
	return n
}

// setting is a session configuration entry or a provider's option.
type setting struct{ key, value string }

func sorted(m map[string]string) []setting {
	var list []setting
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, setting{key, m[key]})
	}
	return list
}

// writer collects lines of a program, and keeps the first write error.
type writer struct{ strings.Builder }

func (w *writer) linef(format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

// comments writes comment lines with a prefix. Line breaks in a line cannot end the comment.
func (w *writer) comments(prefix string, lines []string) {
	for _, line := range lines {
		w.linef("%s %s", prefix, strings.NewReplacer("\n", " ", "\r", " ").Replace(line))
	}
}

func (w *writer) flush(to io.Writer, what string) error {
	if _, err := io.WriteString(to, w.String()); err != nil {
		return fmt.Errorf("cannot write the %s program: %w", what, err)
	}
	return nil
}

// quote returns a string literal that is valid in Python, C++ and Go. Go's escapes for text outside
// of ASCII (\u00e9) mean the same in all three.
func quote(text string) string { return strconv.QuoteToASCII(text) }

// shape returns a list of numbers: 1, 32.
func shape(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(parts, ", ")
}

// options writes the lines that set the session options. It omits options that have ONNX Runtime's
// default or no effect. entry is the format of a line for a session entry: key, value.
func (w *writer) options(s Session, indent string, lineOf func(sessionoption.Option) sessionoption.Line, entry string) {
	settings := s.Options.Settings
	for _, o := range sessionoption.All() {
		value := settings.Value(o.Name)
		if value == o.Default || !settings.Meets(o.Needs) {
			continue
		}
		text := fmt.Sprintf(entry, quote(o.Entry), quote(o.Code(value)))
		if line := lineOf(o); line != nil {
			text = line(value)
		}
		w.linef("%s%s", indent, text)
	}
	for _, e := range sorted(s.Options.Session) {
		w.linef("%s"+entry, indent, quote(e.key), quote(e.value))
	}
}
