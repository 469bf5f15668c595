package modelconfig

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/protocolbuffers/txtpbfmt/ast"
	"github.com/protocolbuffers/txtpbfmt/parser"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/internal/problems"
	"tuner/internal/words"
)

// maxExplained is the size in bytes up to which a rejected text is examined for misspelt names. The
// syntax tree is built recursively, so a large hostile text gets prototext's plain error instead.
const maxExplained = 256 << 10

// unknownNames finds every field and enum value of text that the schema does not have, so that the
// user sees all of them together. It returns nil if the schema has all of them, or if the text
// cannot be read at all.
func unknownNames(file string, text []byte) error {
	if len(text) > maxExplained {
		return nil
	}
	nodes, err := parser.Parse(text)
	if err != nil {
		return nil
	}
	e := explainer{file: file, text: text}
	e.message(nodes, (&Config{}).ProtoReflect().Descriptor())
	return e.found.Err()
}

// explainer walks a syntax tree and follows the schema.
type explainer struct {
	file  string
	text  []byte
	found problems.List
}

func (e *explainer) message(nodes []*ast.Node, md protoreflect.MessageDescriptor) {
	for _, n := range nodes {
		if n.Name == "" {
			e.message(n.Children, md) // an element of a list, or a comment
			continue
		}
		fd := md.Fields().ByTextName(n.Name)
		switch {
		case fd == nil:
			e.add(n, func() string {
				return fmt.Sprintf("unknown field %q in %s%s", n.Name, md.Name(), hint(n.Name, fieldNames(md)))
			})
		case fd.Message() != nil:
			e.message(n.Children, fd.Message())
		case fd.Enum() != nil:
			e.enum(n, fd.Enum())
		}
	}
}

func (e *explainer) enum(n *ast.Node, ed protoreflect.EnumDescriptor) {
	for _, v := range n.Values {
		if v.Value == "" || strings.ContainsAny(v.Value[:1], `-0123456789"'`) ||
			ed.Values().ByName(protoreflect.Name(v.Value)) != nil {
			continue // prototext reports numbers and quoted names
		}
		e.add(n, func() string {
			allowed := valueNames(ed)
			return fmt.Sprintf("unknown value %q of field %q%s (allowed: %s)", v.Value, n.Name, hint(v.Value, allowed), strings.Join(allowed, ", "))
		})
	}
}

// add records a mistake in a node. text is only called if the mistake is reported.
func (e *explainer) add(n *ast.Node, text func() string) {
	e.found.AddFunc(func() error {
		before := e.text[:e.name(n)]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - bytes.LastIndexByte(before, '\n')
		return fmt.Errorf("%s:%d:%d: %s", e.file, line, column, text())
	})
}

// name returns the offset of a node's name. Its Start may be before it, at white space or comments.
func (e *explainer) name(n *ast.Node) int {
	offset := min(int(n.Start.Byte), len(e.text))
	for offset < len(e.text) {
		switch e.text[offset] {
		case '#':
			for offset < len(e.text) && e.text[offset] != '\n' {
				offset++
			}
		case ' ', '\t', '\r', '\n', ',', ';':
			offset++
		default:
			return offset
		}
	}
	return offset
}

func fieldNames(md protoreflect.MessageDescriptor) []string {
	names := make([]string, md.Fields().Len())
	for i := range names {
		names[i] = md.Fields().Get(i).TextName()
	}
	return names
}

func valueNames(ed protoreflect.EnumDescriptor) []string {
	names := make([]string, ed.Values().Len())
	for i := range names {
		names[i] = string(ed.Values().Get(i).Name())
	}
	return names
}

// hint suggests the known name that the user probably meant, if one is similar.
func hint(name string, known []string) string {
	if best := words.Nearest(name, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
