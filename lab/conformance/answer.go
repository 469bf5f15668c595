package conformance

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Answer is what a server answered, in a form in which answers that mean the same are equal.
type Answer struct {
	Status  string   // HTTP status code or name of the gRPC code
	Headers []string // of HTTP, those that the protocol is about
	Text    string   // JSON with sorted keys, one value a line; or the text itself where it is no JSON
	Binary  []byte   // tensors behind the JSON
}

// String is the answer as people read and diffs show it.
func (a Answer) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.Status)
	for _, h := range a.Headers {
		fmt.Fprintln(&b, h)
	}
	fmt.Fprintln(&b, a.Text)
	b.WriteString(hex.Dump(a.Binary))
	return b.String()
}

// Summary is the answer on one line, cut where it gets long.
func (a Answer) Summary() string {
	const enough = 800
	text := strings.Join(append([]string{a.Status}, a.Headers...), ", ") + " " + a.Text
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(a.Text)) == nil {
		text = strings.TrimSuffix(text, a.Text) + compact.String()
	}
	if len(a.Binary) > 0 {
		text += " " + hex.EncodeToString(a.Binary)
	}
	if len(text) > enough {
		text = text[:enough] + " …"
	}
	return text
}

var (
	// nameList is a list of tensors in an error text; Triton's are in the order of a hash map.
	nameList = regexp.MustCompile(`\['[^\]]*'\]`)
	// ownFolder is where a server keeps the files of a load request, which error texts show.
	ownFolder = regexp.MustCompile(`/tmp/(folder\w{6}|tuner-models-\d+/\d+/\w+)/`)
)

// cleanText takes out of an error text what means nothing.
func cleanText(text string) string {
	text = nameList.ReplaceAllStringFunc(text, func(list string) string {
		names := strings.Split(strings.Trim(list, "[]"), ",")
		slices.Sort(names)
		return "[" + strings.Join(names, ",") + "]"
	})
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\n;", ";"), "\n") // some messages of ONNX Runtime end in a line break
	return ownFolder.ReplaceAllString(text, "<folder>/")
}

// normalize writes JSON so that equal values are equal text, without what differs from run to run:
// the durations and times of statistics are only zero or not. Text that is no JSON stays as it is,
// bytes that are no text are quoted.
func normalize(text []byte) string {
	if !utf8.Valid(text) {
		return strconv.Quote(string(text))
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return string(text)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return string(text)
	}
	clean, err := indent(place{}.clean(value))
	if err != nil {
		return string(text)
	}
	return clean
}

// indent writes a value as JSON with sorted keys, one value a line.
func indent(value any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// place is where in an answer a value stands: what may be cleaned depends on it.
type place struct {
	message    bool // in an error text
	statistics bool // in a model's statistics
}

// in is the place of an object's field.
func (p place) in(key string) place {
	return place{
		message:    key == "error" || key == "error_message" || key == "reason",
		statistics: p.statistics || key == "model_stats",
	}
}

func (p place) clean(value any) any {
	switch v := value.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = p.clean(v[i])
		}
	case string:
		if p.message {
			return cleanText(v)
		}
	case map[string]any:
		for key := range v {
			v[key] = p.cleanField(v, key)
		}
	}
	return value
}

// cleanField is clean for the field of an object.
func (p place) cleanField(object map[string]any, key string) any {
	value := p.in(key).clean(object[key])
	switch key {
	case "ns", "last_inference":
		if text := fmt.Sprint(value); p.statistics && text != "0" {
			return "some"
		}
	case "inputs", "outputs", "input", "output":
		// The real backend completes a configuration in the order of a hash map. The tensors of an
		// inference are in a defined order, which is compared.
		if list, ok := value.([]any); ok && isDescription(object) {
			slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(nameOf(a), nameOf(b)) })
		}
	}
	return value
}

// without is the answer without one field of its JSON.
func (a Answer) without(field string) Answer {
	var object map[string]any
	if json.Unmarshal([]byte(a.Text), &object) != nil {
		return a
	}
	delete(object, field)
	if text, err := indent(object); err == nil {
		a.Text = text
	}
	return a
}

// isDescription reports whether an object is a model's metadata or configuration.
func isDescription(object map[string]any) bool { return object["platform"] != nil }

func nameOf(value any) string {
	object, _ := value.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// number writes a number so that equal ones are equal: 1, 1.0 and 1e0. Whole numbers keep all their
// digits.
func number(n json.Number) any {
	text := n.String()
	if !strings.ContainsAny(text, ".eE") {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}
