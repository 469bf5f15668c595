package modelconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/protocolbuffers/txtpbfmt/ast"
	"github.com/protocolbuffers/txtpbfmt/parser"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Parse reads config.pbtxt. It is as strict as Triton: an unknown field, an
// unknown enum value or a repeated scalar is an error. Errors begin with
// file:line:column, one line each, with a hint where there is one; file is used
// for nothing else.
func Parse(file string, text []byte) (*Config, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d that are allowed", file, len(text), MaxText)
	}
	c := &Config{}
	err := prototext.Unmarshal(text, c)
	if err == nil {
		return c, nil
	}
	if named := unknownNames(file, text); named != nil {
		return nil, named
	}
	return nil, syntaxError(file, err)
}

// syntaxPattern takes prototext's message apart. The position stands nowhere
// else than in the text; it is missing where the text ends too early.
var syntaxPattern = regexp.MustCompile(`^proto:[\s\x{a0}]*(?:syntax error[\s\x{a0}]*)?(?:\(line (\d+):(\d+)\):[\s\x{a0}]*)?(.*)$`)

func syntaxError(file string, err error) error {
	m := syntaxPattern.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return fmt.Errorf("%s: %w", file, err)
	case m[1] == "":
		return fmt.Errorf("%s: %s", file, m[3])
	default:
		return fmt.Errorf("%s:%s:%s: %s", file, m[1], m[2], m[3])
	}
}

// Format prints c as canonical config.pbtxt: the same bytes for equal
// configurations, fields in the schema's order, enums by name, lists of numbers
// on one line. Any Triton reads it.
func Format(c *Config) ([]byte, error) {
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot print configuration of %q: %w", c.GetName(), err)
	}
	// prototext varies its spacing on purpose; printing the syntax tree removes that.
	nodes, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot print configuration of %q: %w", c.GetName(), err)
	}
	return parser.PrettyBytes(tidy(nodes, c.ProtoReflect().Descriptor()), 0), nil
}

// tidy gives the tree the look of Triton's own examples, at every depth: no
// colon before a brace, and the scalars of a repeated field, which prototext
// prints one by one, as a list.
func tidy(nodes []*ast.Node, md protoreflect.MessageDescriptor) []*ast.Node {
	var tidied []*ast.Node
	for _, n := range nodes {
		fd := md.Fields().ByTextName(n.Name)
		if fd.Message() != nil {
			n.SkipColon = true
			if len(n.Children) > 0 { // an empty list would lose its braces
				n.Children = tidy(n.Children, fd.Message())
			}
		} else if fd.IsList() {
			if last := len(tidied) - 1; last >= 0 && tidied[last].Name == n.Name {
				tidied[last].Values = append(tidied[last].Values, n.Values...)
				continue
			}
			n.ValuesAsList, n.ChildrenSameLine = true, true
		}
		tidied = append(tidied, n)
	}
	return tidied
}

// A finding is something wrong at a byte offset of a text.
type finding struct {
	offset int
	text   string
}

// joinFindings makes one error of all findings, nil if there is none.
func joinFindings(file string, text []byte, found []finding) error {
	var errs []error
	for _, f := range found {
		before := string(text[:f.offset])
		line := 1 + strings.Count(before, "\n")
		column := f.offset - strings.LastIndexByte(before, '\n')
		errs = append(errs, fmt.Errorf("%s:%d:%d: %s", file, line, column, f.text))
	}
	return errors.Join(errs...)
}
