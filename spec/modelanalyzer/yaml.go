package modelanalyzer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/internal/words"
	"tuner/spec/document"
)

// maxNodes is the largest number of values in a file after its aliases are expanded. More is a
// mistake or an attack.
const maxNodes = 100_000

// value is a place in the file: a node without aliases, with its path.
type value struct {
	node *yaml.Node
	path string
}

// entry is a key of a mapping with its value.
type entry struct {
	name string
	key  value // its node is the key's; its path is the value's
	value
}

// open parses text into its root value.
func open(text []byte) (value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node, second yaml.Node
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF):
		return value{}, errors.New("the file is empty")
	case err != nil:
		return value{}, fmt.Errorf("the file is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return value{}, errors.New("the file has a second YAML document, or text that is not YAML behind its first")
	}
	budget := maxNodes
	root := expand(node.Content[0], &budget)
	if budget < 0 {
		return value{}, fmt.Errorf("the file has more than %d values once its aliases (*name) are expanded", maxNodes)
	}
	return value{node: root}, nil
}

// expand copies a node with expanded aliases and merge keys. It subtracts each node from the
// budget. An alias that contains itself uses it up.
func expand(n *yaml.Node, budget *int) *yaml.Node {
	for n.Alias != nil && *budget >= 0 {
		n = n.Alias
		*budget--
	}
	if *budget--; *budget < 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}
	}
	copied := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style, Line: n.Line, Column: n.Column}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			copied.Content = append(copied.Content, expand(c, budget))
		}
		return copied
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, child := expand(n.Content[i], budget), expand(n.Content[i+1], budget)
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, child)
			continue
		}
		copied.Content = append(copied.Content, key, child)
	}
	for _, m := range merged {
		merge(copied, m)
	}
	return copied
}

// merge adds entries of a merge key that a mapping does not have.
func merge(into, from *yaml.Node) {
	if from.Kind == yaml.SequenceNode {
		for _, c := range from.Content {
			merge(into, c)
		}
		return
	}
	for i := 0; i+1 < len(from.Content) && from.Kind == yaml.MappingNode; i += 2 {
		isThere := false
		for j := 0; j < len(into.Content); j += 2 {
			isThere = isThere || into.Content[j].Value == from.Content[i].Value
		}
		if !isThere {
			into.Content = append(into.Content, from.Content[i], from.Content[i+1])
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (v value) isMapping() bool  { return v.node.Kind == yaml.MappingNode }
func (v value) isSequence() bool { return v.node.Kind == yaml.SequenceNode }
func (v value) isNull() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

// isSaid reports whether a value counts as given. Model Analyzer treats values that are false in
// Python (0, false, empty, null) as not given.
func (v value) isSaid() bool {
	if v.node.Kind != yaml.ScalarNode {
		return len(v.node.Content) > 0
	}
	if on, ok := v.flag(); ok {
		return on
	}
	x, err := strconv.ParseFloat(v.node.Value, 64)
	return !v.isNull() && v.node.Value != "" && (err != nil || x != 0)
}

// flag reads a YAML 1.1 boolean, like PyYAML.
func (v value) flag() (on, ok bool) {
	if v.node.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(v.node.Value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// whole reads a whole number, also a quoted one.
func (v value) whole() (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(v.node.Value), 10, 64)
	return n, err == nil && v.node.Kind == yaml.ScalarNode
}

// elements returns the entries of a list, or the value itself as the only one.
func (v value) elements() []value {
	if !v.isSequence() {
		return []value{v}
	}
	list := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		list[i] = value{n, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return list
}

// entries returns a mapping's keys in their order, and none for other values.
func (v value) entries() []entry {
	var list []entry
	for i := 0; i+1 < len(v.node.Content) && v.isMapping(); i += 2 {
		path := join(v.path, v.node.Content[i].Value)
		list = append(list, entry{v.node.Content[i].Value, value{v.node.Content[i], path}, value{v.node.Content[i+1], path}})
	}
	return list
}

// words splits "a, b", and a list of texts.
func (v value) words() []value {
	var list []value
	for _, e := range v.elements() {
		for part := range strings.SplitSeq(e.node.Value, ",") {
			if part = strings.TrimSpace(part); part != "" || e.node.Kind != yaml.ScalarNode {
				list = append(list, value{&yaml.Node{Kind: e.node.Kind, Tag: e.node.Tag, Value: part, Line: e.node.Line, Content: e.node.Content}, e.path})
			}
		}
	}
	return list
}

// show prints the value on one line, shortened.
func (v value) show() string {
	text := v.node.Value
	if v.node.Kind != yaml.ScalarNode {
		flow := *v.node
		flow.Style = yaml.FlowStyle
		encoded, err := yaml.Marshal(&flow)
		if err != nil {
			return ""
		}
		text = strings.Join(strings.Fields(string(encoded)), " ")
	}
	const longest = 60
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}

// fail reports a mistake at a place. It fills in file, line, path and value.
func (r *reader) fail(v value, e document.Error) {
	e.File, e.Line, e.Path = r.path, max(v.node.Line, 1), v.path
	if v.node.Kind != yaml.ScalarNode || !strings.HasSuffix(v.path, v.node.Value) {
		e.Value = v.show()
	}
	r.addError(e)
}

// addError records a mistake once. A field that applies to several models gives its mistakes once
// for each.
func (r *reader) addError(e document.Error) {
	if !slices.Contains(r.errors, e) {
		r.errors = append(r.errors, e)
	}
}

// warn reports a setting that does not apply.
func (r *reader) warn(v value, format string, args ...any) {
	w := Warning{File: r.path, Line: max(v.node.Line, 1), Path: v.path, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(r.warnings, w) {
		r.warnings = append(r.warnings, w)
	}
}

// isText reports whether a value is one text or number. Other values are a mistake, which it
// reports.
func (r *reader) isText(v value) bool {
	if v.node.Kind == yaml.ScalarNode && !v.isNull() {
		return true
	}
	r.fail(v, document.Error{Problem: "must be one value"})
	return false
}

// texts returns the entries of a mapping from names to texts, and reports other values.
func (r *reader) texts(v value) []entry {
	if !v.isMapping() {
		r.fail(v, document.Error{Problem: "must be a mapping (name: value)"})
	}
	return slices.DeleteFunc(v.entries(), func(e entry) bool { return !r.isText(e.value) })
}

// mapping checks a mapping's fields against the table of a section. If a key is given twice, the
// last one counts, as in PyYAML.
func (r *reader) mapping(v value, section Section) map[string]value {
	given := map[string]value{}
	if v.isNull() {
		return given
	}
	if !v.isMapping() {
		r.fail(v, document.Error{Problem: "must be a mapping (field: value)"})
		return given
	}
	for _, e := range v.entries() {
		f, known := find(section, e.name)
		if !known {
			unknown := document.Error{Problem: "unknown field"}
			if near := words.Nearest(e.name, names(section)); near != "" {
				unknown.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.fail(e.key, unknown)
			continue
		}
		if _, twice := given[e.name]; twice {
			r.warn(e.key, "is given twice: the last one counts, as in Model Analyzer")
		}
		given[e.name] = e.value
		switch {
		case !e.isSaid():
		case f.Effect == Refused:
			r.fail(e.value, document.Error{Problem: f.Text, Hint: f.Hint})
		case f.Effect == Unused:
			r.warn(e.value, "%s", f.Text)
		}
	}
	return given
}

// scalar makes a node of a native file in place of v. text is quoted if YAML would read it as
// another type.
func scalar(v value, text string, isText bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: v.node.Line}
	if isText {
		n.Tag = "!!str"
	}
	return n
}

func sequence(v value, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Line: v.node.Line, Content: content}
}

func mapping(v value, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Line: v.node.Line, Content: content}
}
