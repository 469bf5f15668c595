// Package perfdata reads the input data of Triton's perf_analyzer (`--input-data FILE.json`). The
// file has streams of steps. A step has one request's inputs, and maybe the expected outputs. Users
// bring their own data in this format, for load generation and accuracy checks.
//
// The package refuses data that does not match the model, and names the place. It accepts
// everything that perf_analyzer accepts. In addition it accepts integers for floating-point inputs,
// numbers for half precision, and a missing shape if only one is possible.
package perfdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Spec describes the accepted values of an input or output.
type Spec struct {
	Name string
	Type onnx.DataType
	Dims []int64 // of one step, without the batch dimension; -1 is any size, nil any shape
}

// Step has the tensors of one step by name, without the batch dimension. Tensors that the file
// omits are absent.
type Step map[string]inputs.Tensor

// File is the content of a file.
type File struct {
	Streams  [][]Step // plain entries are one stream
	Expected [][]Step // expected outputs of each step in each stream; nil without any
}

// Parse reads a file's text. The error names the place, such as data[3].input_ids.
func Parse(text []byte, in, out []Spec) (File, error) {
	var file File
	err := members(quoteNonFinite(text), "", func(key string, value json.RawMessage) (err error) {
		switch key {
		case "data":
			file.Streams, err = parseStreams(value, key, in)
		case "validation_data":
			file.Expected, err = parseStreams(value, key, out)
		default:
			err = fmt.Errorf("%q is unknown; allowed are data and validation_data", key)
		}
		return err
	})
	if err == nil && len(file.Streams) == 0 {
		err = errors.New(`it has no "data", or an empty one; write {"data": [{"NAME": [1, 2, 3]}]}`)
	}
	if err == nil && file.Expected != nil {
		err = sameSteps(file)
	}
	if err != nil {
		return File{}, fmt.Errorf("cannot read the perf_analyzer data: %w", err)
	}
	return file, nil
}

// sameSteps checks that the number of expected outputs equals the number of steps.
func sameSteps(file File) error {
	if len(file.Expected) != len(file.Streams) {
		return fmt.Errorf("validation_data has %d streams, data has %d", len(file.Expected), len(file.Streams))
	}
	for i, stream := range file.Streams {
		if len(file.Expected[i]) != len(stream) {
			return fmt.Errorf("validation_data has %d steps in stream %d, data has %d", len(file.Expected[i]), i, len(stream))
		}
	}
	return nil
}

// parseStreams reads a list of steps, which is one stream, or a list of streams.
func parseStreams(value json.RawMessage, path string, specs []Spec) ([][]Step, error) {
	entries, err := list(value, path)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	if entries[0][0] != '[' {
		stream, err := parseSteps(entries, path, specs)
		return [][]Step{stream}, err
	}
	streams := make([][]Step, 0, len(entries))
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		if entry[0] != '[' {
			return nil, fmt.Errorf("%s: streams (lists of steps) and plain steps are mixed", at)
		}
		steps, err := list(entry, at)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%s: the stream has no steps", at)
		}
		stream, err := parseSteps(steps, at, specs)
		if err != nil {
			return nil, err
		}
		streams = append(streams, stream)
	}
	return streams, nil
}

func parseSteps(entries []json.RawMessage, path string, specs []Spec) ([]Step, error) {
	stream := make([]Step, 0, len(entries))
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		if entry[0] == '[' {
			return nil, fmt.Errorf("%s: streams (lists of steps) and plain steps are mixed", at)
		}
		step, err := parseStep(entry, at, specs)
		if err != nil {
			return nil, err
		}
		stream = append(stream, step)
	}
	return stream, nil
}

// parseStep reads the tensors of a step. The key "model" is perf_analyzer's own and has no tensors.
func parseStep(entry json.RawMessage, path string, specs []Spec) (Step, error) {
	step := Step{}
	err := members(entry, path, func(key string, value json.RawMessage) error {
		i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == key })
		switch {
		case i < 0 && key == "model":
			return nil
		case i < 0:
			return fmt.Errorf("%s: the model has no %q; it has %s", path, key, names(specs))
		}
		t, err := parseTensor(value, specs[i])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", path, key, err)
		}
		step[key] = t
		return nil
	})
	return step, err
}

func names(specs []Spec) string {
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return fmt.Sprintf("%q", list)
}

// members calls visit for each member of a JSON object, in order. A repeated name is an error.
func members(value json.RawMessage, path string, visit func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(value))
	if t, err := d.Token(); err != nil {
		return syntax(path, err)
	} else if t != json.Delim('{') {
		return fmt.Errorf("%sit is %s; write an object {…}", at(path), shorten(value))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return syntax(path, err)
		}
		key, _ := t.(string) // a member begins with a string, or Token fails
		if seen[key] {
			return fmt.Errorf("%s%q is given twice", at(path), key)
		}
		seen[key] = true
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return syntax(path, err)
		}
		if err := visit(key, member); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return syntax(path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%sit has text after its end", at(path))
	}
	return nil
}

// list splits a JSON array.
func list(value json.RawMessage, path string) ([]json.RawMessage, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(value, &entries); err != nil || value[0] != '[' {
		return nil, fmt.Errorf("%sit is %s; write a list […]", at(path), shorten(value))
	}
	return entries, nil
}

func syntax(path string, err error) error { return fmt.Errorf("%sit is not JSON: %w", at(path), err) }

func at(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func shorten(value json.RawMessage) string {
	if len(value) > 40 {
		return string(value[:40]) + "…"
	}
	return string(value)
}

// quoteNonFinite puts quotes around NaN, Inf and Infinity, which JSON lacks but perf_analyzer
// accepts. number then reads them.
func quoteNonFinite(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Inf")) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
		case c == '"':
			inString = !inString
		case !inString:
			if word := nonFinite(text[i:]); word != "" {
				out = append(append(append(out, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// nonFiniteWords are the accepted words for non-finite numbers, longer ones first.
var nonFiniteWords = []string{"-Infinity", "-Inf", "Infinity", "Inf", "NaN"}

func nonFinite(text []byte) string {
	for _, word := range nonFiniteWords {
		if bytes.HasPrefix(text, []byte(word)) {
			return word
		}
	}
	return ""
}
