// Package document reads a YAML file strictly. It is the ground of package spec, which reads the
// user's files with it. It collects all mistakes of a file, each with its line, the allowed values
// and a hint (Errors). It knows scalars, lists, ranges and mappings. It does not know the meaning of
// any field.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"tuner/internal/words"
)

// maxNodes is the largest number of values in a document after its aliases are expanded. More is a
// mistake or an attack.
const maxNodes = 100_000

// Document is a YAML file that is being read. It collects all mistakes.
type Document struct {
	file string
	// isRecorded: the text is from a journal, so fields that are no longer allowed are accepted
	isRecorded bool
	without    string // how to do without the file, or to get one; "" if there is no such way
	errors     Errors
}

// New returns the document of a file, for errors and for the file names in it. without is the hint
// for a file that is empty or no text: how to do without it, or to get one.
func New(file, without string) *Document { return &Document{file: file, without: without} }

// NewRecorded is New for text from a journal.
func NewRecorded(file string) *Document { return &Document{file: file, isRecorded: true} }

// Open parses text into its root value. ok is false if nothing more can be read.
func (d *Document) Open(text []byte) (root Value, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node yaml.Node
	if err := decoder.Decode(&node); err != nil {
		d.unreadable(text, err)
		return Value{}, false
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		d.addError(Error{Line: max(second.Line, 1), Problem: "a second YAML document begins here", Allowed: "one document per file",
			Hint: "remove the line ---, or split the file"})
		return Value{}, false
	} else if !errors.Is(err, io.EOF) {
		d.unreadable(text, err)
		return Value{}, false
	}
	budget := maxNodes
	if countNodes(&node, &budget); budget < 0 {
		d.addError(Error{Line: 1, Problem: fmt.Sprintf("the file has more than %d values once its aliases (*name) are expanded", maxNodes),
			Hint: "write the values without aliases"})
		return Value{}, false
	}
	return Value{doc: d, Node: node.Content[0]}.resolved(), true
}

// unreadable reports text that is not YAML.
func (d *Document) unreadable(text []byte, err error) {
	if errors.Is(err, io.EOF) {
		d.addError(Error{Line: 1, Problem: "the file is empty", Hint: d.without})
		return
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		d.addError(Error{Line: 1, Problem: "the file is not YAML but binary data", Hint: d.without})
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

func (d *Document) addError(e Error) {
	e.File = d.file
	d.errors = append(d.errors, e)
}

// Err returns the collected mistakes, and nil without any.
func (d *Document) Err() error {
	if len(d.errors) == 0 {
		return nil
	}
	return d.errors.sorted()
}

// Value is a place in the document: a node with its path.
type Value struct {
	doc  *Document
	Node *yaml.Node
	path string
}

// resolved follows an alias to its value.
func (v Value) resolved() Value {
	for v.Node.Alias != nil {
		v.Node = v.Node.Alias
	}
	return v
}

// Fail reports a mistake at this place. It fills in file, line, path and value. For a key it omits
// the value, since the path ends with it.
func (v Value) Fail(e Error) {
	e.Line, e.Path = max(v.Node.Line, 1), v.path
	if v.Node.Kind != yaml.ScalarNode || !strings.HasSuffix(v.path, v.Node.Value) {
		e.Value = v.show()
	}
	v.doc.addError(e)
}

// Require reports that a mapping does not have a field.
func (v Value) Require(name, allowed, hint string) {
	v.doc.addError(Error{Line: max(v.Node.Line, 1), Path: Join(v.path, name), Problem: "is required", Allowed: allowed, Hint: hint})
}

// Mistakes returns the number of mistakes in the document up to now.
func (v Value) Mistakes() int { return len(v.doc.errors) }

// IsRecorded reports whether the text is from a journal: fields that are no longer allowed are then
// accepted.
func (v Value) IsRecorded() bool { return v.doc.isRecorded }

// show prints the value on one line, shortened. It prints the first entries of a mapping or list.
func (v Value) show() string {
	if v.Node.Kind == yaml.ScalarNode {
		return words.Shorten(v.Node.Value, longestValue)
	}
	flow := *v.Node
	flow.Style, flow.HeadComment, flow.LineComment, flow.FootComment = yaml.FlowStyle, "", "", ""
	text, err := yaml.Marshal(&flow)
	if err != nil {
		return ""
	}
	return words.Shorten(strings.Join(strings.Fields(string(text)), " "), longestValue)
}

// longestValue is the number of characters of a value in a mistake.
const longestValue = 60

// Field is an allowed key of a mapping, with the reader of its value.
type Field struct {
	Name string
	Read func(Value)
}

// Mapping reads the fields of a mapping and returns the given ones. Other keys are mistakes, unless
// other accepts them (other may be nil).
func (v Value) Mapping(fields []Field, other func(key, v Value) bool) map[string]Value {
	given := map[string]Value{}
	if v.Node.Kind != yaml.MappingNode {
		v.Fail(Error{Problem: "must be a mapping (field: value)", Allowed: fieldNames(fields)})
		return given
	}
	for i := 0; i+1 < len(v.Node.Content); i += 2 {
		key := Value{v.doc, v.Node.Content[i], ""}.resolved()
		name := key.Node.Value
		key.path = Join(v.path, name)
		child := Value{v.doc, v.Node.Content[i+1], key.path}.resolved()
		if _, twice := given[name]; twice {
			key.Fail(Error{Problem: "is given twice", Hint: "keep one of the two"})
			continue
		}
		given[name] = child
		v.entry(key, child, fields, other)
	}
	return given
}

// entry reads one key and its value.
func (v Value) entry(key, child Value, fields []Field, other func(key, v Value) bool) {
	name := key.Node.Value
	for _, f := range fields {
		if f.Name == name {
			if !child.IsNull() {
				f.Read(child)
				return
			}
			child.Fail(Error{Problem: "has no value", Hint: "write a value, or remove the line"})
			return
		}
	}
	if other != nil && other(key, child) {
		return
	}
	e := Error{Problem: "unknown field", Allowed: fieldNames(fields)}
	if near := words.Nearest(name, Names(fields)); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	key.Fail(e)
}

// IsNull reports whether the value is absent: the key stands alone, or with null.
func (v Value) IsNull() bool {
	return v.Node.Kind == yaml.ScalarNode && v.Node.ShortTag() == "!!null"
}

// Elements returns the entries of a list, or the value itself as the only one.
func (v Value) Elements() []Value {
	if v.Node.Kind != yaml.SequenceNode {
		return []Value{v}
	}
	list := make([]Value, len(v.Node.Content))
	for i, n := range v.Node.Content {
		list[i] = Value{v.doc, n, fmt.Sprintf("%s[%d]", v.path, i)}.resolved()
	}
	return list
}

// Join returns the path of a key below a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Names returns the names of fields.
func Names(fields []Field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return list
}

func fieldNames(fields []Field) string { return strings.Join(Names(fields), ", ") }

// Keys returns the keys of a mapping. Other values have none.
func (v Value) Keys() []Value {
	if v.Node.Kind != yaml.MappingNode {
		return nil
	}
	var keys []Value
	for i := 0; i+1 < len(v.Node.Content); i += 2 {
		name := v.Node.Content[i]
		keys = append(keys, Value{v.doc, name, Join(v.path, name.Value)})
	}
	return keys
}

// Child returns the value of a key, and the mapping itself if the key is missing.
func (v Value) Child(key string) Value {
	for i := 0; i+1 < len(v.Node.Content); i += 2 {
		if v.Node.Content[i].Value == key {
			return Value{v.doc, v.Node.Content[i+1], Join(v.path, key)}.resolved()
		}
	}
	return v
}

// RelativeTo converts a name in the file at path into one relative to the working folder.
func RelativeTo(path, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(path), name)
}
