package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tuner/internal/words"
	"tuner/model/modelconfig"
)

// maxNodes is the largest number of values in a document after its aliases are expanded. More is a
// mistake or an attack.
const maxNodes = 100_000

// document is a YAML file that is being read. It collects all mistakes.
type document struct {
	file string
	// isRecorded: the text is from a journal, so fields that are no longer allowed are accepted
	isRecorded bool
	errors     Errors
}

// open parses text into its root value. ok is false if nothing more can be read.
func (d *document) open(text []byte) (root value, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node yaml.Node
	if err := decoder.Decode(&node); err != nil {
		d.unreadable(text, err)
		return value{}, false
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		d.addError(Error{Line: max(second.Line, 1), Problem: "a second YAML document begins here", Allowed: "one document per file",
			Hint: "remove the line ---, or split the file"})
		return value{}, false
	} else if !errors.Is(err, io.EOF) {
		d.unreadable(text, err)
		return value{}, false
	}
	budget := maxNodes
	if countNodes(&node, &budget); budget < 0 {
		d.addError(Error{Line: 1, Problem: fmt.Sprintf("the file has more than %d values once its aliases (*name) are expanded", maxNodes),
			Hint: "write the values without aliases"})
		return value{}, false
	}
	return value{doc: d, node: node.Content[0]}.resolved(), true
}

// unreadable reports text that is not YAML.
func (d *document) unreadable(text []byte, err error) {
	if errors.Is(err, io.EOF) {
		d.addError(Error{Line: 1, Problem: "the file is empty", Hint: "`tuner init MODEL` writes a complete file with explanations"})
		return
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		d.addError(Error{Line: 1, Problem: "the file is not YAML but binary data",
			Hint: "`tuner run MODEL` tunes a model without a file, and `tuner init MODEL` writes a file for it"})
		return
	}
	line, problem := syntaxError(err)
	d.addError(Error{Line: line, Problem: "the file is not valid YAML: " + problem})
}

// syntaxPattern splits the YAML library's message, since the line is only in the text.
var syntaxPattern = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

func syntaxError(err error) (line int, problem string) {
	m := syntaxPattern.FindStringSubmatch(err.Error())
	if m == nil {
		return 1, err.Error()
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		line = 1
	}
	return max(line, 1), m[2]
}

// countNodes subtracts the node and all nodes below it from the budget. An alias that contains
// itself uses it up.
func countNodes(n *yaml.Node, budget *int) {
	if *budget--; *budget < 0 {
		return
	}
	if n.Alias != nil {
		countNodes(n.Alias, budget)
	}
	for _, c := range n.Content {
		countNodes(c, budget)
	}
}

func (d *document) addError(e Error) {
	e.File = d.file
	d.errors = append(d.errors, e)
}

// err returns the collected mistakes, and nil without any.
func (d *document) err() error {
	if len(d.errors) == 0 {
		return nil
	}
	return d.errors.sorted()
}

// value is a place in the document: a node with its path.
type value struct {
	doc  *document
	node *yaml.Node
	path string
}

// resolved follows an alias to its value.
func (v value) resolved() value {
	for v.node.Alias != nil {
		v.node = v.node.Alias
	}
	return v
}

// fail reports a mistake at this place. It fills in file, line, path and value. For a key it omits
// the value, since the path ends with it.
func (v value) fail(e Error) {
	e.Line, e.Path = max(v.node.Line, 1), v.path
	if v.node.Kind != yaml.ScalarNode || !strings.HasSuffix(v.path, v.node.Value) {
		e.Value = v.show()
	}
	v.doc.addError(e)
}

// show prints the value on one line, shortened. It prints the first entries of a mapping or list.
func (v value) show() string {
	if v.node.Kind == yaml.ScalarNode {
		return words.Shorten(v.node.Value, longestValue)
	}
	flow := *v.node
	flow.Style, flow.HeadComment, flow.LineComment, flow.FootComment = yaml.FlowStyle, "", "", ""
	text, err := yaml.Marshal(&flow)
	if err != nil {
		return ""
	}
	return words.Shorten(strings.Join(strings.Fields(string(text)), " "), longestValue)
}

// longestValue is the number of characters of a value in a mistake.
const longestValue = 60

// field is an allowed key of a mapping, with the reader of its value.
type field struct {
	name string
	read func(value)
}

// mapping reads the fields of a mapping and returns the given ones. Other keys are mistakes, unless
// other accepts them (other may be nil).
func (v value) mapping(fields []field, other func(key, v value) bool) map[string]value {
	given := map[string]value{}
	if v.node.Kind != yaml.MappingNode {
		v.fail(Error{Problem: "must be a mapping (field: value)", Allowed: fieldNames(fields)})
		return given
	}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := value{v.doc, v.node.Content[i], ""}.resolved()
		name := key.node.Value
		key.path = join(v.path, name)
		child := value{v.doc, v.node.Content[i+1], key.path}.resolved()
		if _, twice := given[name]; twice {
			key.fail(Error{Problem: "is given twice", Hint: "keep one of the two"})
			continue
		}
		given[name] = child
		v.entry(key, child, fields, other)
	}
	return given
}

// entry reads one key and its value.
func (v value) entry(key, child value, fields []field, other func(key, v value) bool) {
	name := key.node.Value
	for _, f := range fields {
		if f.name == name {
			if !child.isNull() {
				f.read(child)
				return
			}
			child.fail(Error{Problem: "has no value", Hint: "write a value, or remove the line"})
			return
		}
	}
	if other != nil && other(key, child) {
		return
	}
	e := Error{Problem: "unknown field", Allowed: fieldNames(fields)}
	if near := modelconfig.Nearest(name, names(fields)); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	key.fail(e)
}

func (v value) isNull() bool {
	return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

// elements returns the entries of a list, or the value itself as the only one.
func (v value) elements() []value {
	if v.node.Kind != yaml.SequenceNode {
		return []value{v}
	}
	list := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		list[i] = value{v.doc, n, fmt.Sprintf("%s[%d]", v.path, i)}.resolved()
	}
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func names(fields []field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

func fieldNames(fields []field) string { return strings.Join(names(fields), ", ") }

// child returns the value of a key, and the mapping itself if the key is missing.
func (v value) child(key string) value {
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		if v.node.Content[i].Value == key {
			return value{v.doc, v.node.Content[i+1], join(v.path, key)}.resolved()
		}
	}
	return v
}
