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

// Answer is a server's answer in a normal form: equivalent answers are equal.
type Answer struct {
	Status  string   // HTTP status code or name of the gRPC code
	Headers []string // of HTTP, those of the protocol
	Text    string   // JSON with sorted keys, one value a line; text that is not JSON is unchanged
	Binary  []byte   // tensors after the JSON
}

// String returns the answer for people and diffs.
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

// Summary returns the answer on one line. A long one is cut.
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
	// nameList matches a list of tensors in an error text. Triton's are in the order of a hash map.
	nameList = regexp.MustCompile(`\['[^\]]*'\]`)
	// ownFolder matches a server's folder for the files of a load request, which error texts show.
	ownFolder = regexp.MustCompile(`/tmp/(folder\w{6}|tuner-models-\d+/\d+/\w+)/`)
)

// cleanText removes the parts of an error text without meaning.
func cleanText(text string) string {
	text = nameList.ReplaceAllStringFunc(text, func(list string) string {
		names := strings.Split(strings.Trim(list, "[]"), ",")
		slices.Sort(names)
		return "[" + strings.Join(names, ",") + "]"
	})
	// text: some messages of ONNX Runtime end in a line break
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\n;", ";"), "\n")
	return ownFolder.ReplaceAllString(text, "<folder>/")
}

// normalize writes JSON so that equal values have equal text. Of values that differ between runs,
// such as durations and times of statistics, it keeps only whether they are zero. Text that is not
// JSON stays unchanged, and bytes that are not text are quoted.
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

// place is the position of a value in an answer. The allowed cleaning depends on it.
type place struct {
	message    bool // in an error text
	statistics bool // in a model's statistics
}

// in returns the place of an object's field.
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

// isDescription reports whether an object is a model's metadata or configuration.
func isDescription(object map[string]any) bool { return object["platform"] != nil }

func nameOf(value any) string {
	object, _ := value.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// number writes a number so that equal ones have equal text: 1, 1.0 and 1e0. Whole numbers keep all
// their digits.
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
