package modelconfig

import (
	"bytes"
	"fmt"
	"regexp"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Parse reads config.pbtxt. It is as strict as Triton: an unknown field, an unknown enum value or a
// repeated scalar is an error. Errors begin with file:line:column, one line each, with a hint if
// there is one. file is used only for errors.
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

// syntaxPattern splits prototext's message, since the position is only in its text. It is missing
// if the text ends too early.
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

// Format prints c as canonical config.pbtxt, with the same bytes for equal configurations. Fields
// are in the schema's order, enums are names, and a list of numbers is on one line. Every Triton
// can read it.
func Format(c *Config) ([]byte, error) {
	text, err := prototext.MarshalOptions{Indent: "  "}.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot print configuration of %q: %w", c.GetName(), err)
	}
	return tidy(text, c.ProtoReflect().Descriptor()), nil
}

// tidy changes prototext's lines, each a field or the end of a message, to the form of Triton's own
// examples. It removes the colon before a brace, and joins the scalars of a repeated field, which
// prototext prints one by one, into a list. It also removes the space after some colons, which
// prototext varies on purpose between builds.
func tidy(text []byte, md protoreflect.MessageDescriptor) []byte {
	tidied := make([]byte, 0, len(text))
	add := func(parts ...[]byte) {
		for _, part := range parts {
			tidied = append(tidied, part...)
		}
	}
	messages := []protoreflect.MessageDescriptor{md} // the line is in the last one
	var before protoreflect.FieldDescriptor          // field of the previous line
	for line := range bytes.Lines(text) {
		name, value, isField := bytes.Cut(line, []byte(":"))
		if !isField {
			messages, before = messages[:len(messages)-1], nil
			add(line)
			continue
		}
		value = bytes.TrimSpace(value)
		fd := messages[len(messages)-1].Fields().ByTextName(string(bytes.TrimSpace(name)))
		switch {
		case fd.Message() != nil:
			add(name, []byte(" "), value, []byte("\n"))
			if string(value) == "{" { // an empty message ends on the same line
				messages = append(messages, fd.Message())
			}
		case fd.IsList() && fd == before:
			tidied = bytes.TrimSuffix(tidied, []byte("]\n"))
			add([]byte(", "), value, []byte("]\n"))
		case fd.IsList():
			add(name, []byte(": ["), value, []byte("]\n"))
		default:
			add(name, []byte(": "), value, []byte("\n"))
		}
		before = fd
	}
	return tidied
}
