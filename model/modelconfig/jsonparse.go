package modelconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/internal/problems"
)

// overridePrefix begins every error of ParseJSON, as in Triton.
const overridePrefix = "Invalid config override: "

// maxJSONDepth limits the nesting of an override. The schema needs less than ten levels.
const maxJSONDepth = 100

// MaxText is the largest size of a configuration in bytes, in either form. A real one has a few
// thousand.
const MaxText = 4 << 20

// ParseJSON reads a configuration in the JSON of a load request. Field names are in snake_case or
// camelCase, 64-bit integers are numbers or strings, and enum names are in upper or lower case. The
// error names all unknown fields, with Triton's prefix "Invalid config override: ".
func ParseJSON(text []byte) (*Config, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%s%d bytes are more than the %d that are allowed", overridePrefix, len(text), MaxText)
	}
	r := jsonReader{in: json.NewDecoder(bytes.NewReader(text))}
	r.in.UseNumber()
	err := r.value("", (&Config{}).ProtoReflect().Descriptor(), nil, maxJSONDepth)
	if err == nil {
		if _, end := r.in.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("unexpected text after the configuration")
		}
	}
	if err == nil {
		err = r.unknown.Err()
	}
	c := &Config{}
	if err == nil {
		err = withoutPosition(protojson.Unmarshal(r.out.Bytes(), c))
	}
	if err != nil {
		return nil, fmt.Errorf("%s%w", overridePrefix, err)
	}
	return c, nil
}

// withoutPosition removes the position from protojson's error. It refers to the copy, not to the
// user's text.
func withoutPosition(err error) error {
	if err == nil {
		return nil
	}
	if m := syntaxPattern.FindStringSubmatch(err.Error()); m != nil {
		return errors.New(m[3])
	}
	return err
}

// jsonReader copies JSON token by token and follows the schema, so that enum names get the schema's
// spelling and unknown fields are found.
type jsonReader struct {
	in      *json.Decoder
	out     bytes.Buffer
	unknown problems.List
}

// value copies the next value. Its type is the message md; if that is nil, the enum ed; if both are
// nil, a scalar.
func (r *jsonReader) value(path string, md protoreflect.MessageDescriptor, ed protoreflect.EnumDescriptor, depth int) error {
	if depth == 0 {
		return fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
	}
	token, err := r.in.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			return r.list(path, md, ed, depth-1)
		}
		return r.object(path, md, depth-1)
	case string:
		if ed != nil {
			t = enumName(t, ed)
		}
		return r.write(t)
	default:
		return r.write(t)
	}
}

func (r *jsonReader) list(path string, md protoreflect.MessageDescriptor, ed protoreflect.EnumDescriptor, depth int) error {
	r.out.WriteByte('[')
	for i := 0; r.in.More(); i++ {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if err := r.value(path+"["+strconv.Itoa(i)+"]", md, ed, depth); err != nil {
			return err
		}
	}
	return r.end(']')
}

func (r *jsonReader) object(path string, md protoreflect.MessageDescriptor, depth int) error {
	r.out.WriteByte('{')
	for i := 0; r.in.More(); i++ {
		key, err := r.in.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("unexpected %v where %s needs a key", key, place(path))
		}
		if i > 0 {
			r.out.WriteByte(',')
		}
		if err := r.write(name); err != nil {
			return err
		}
		r.out.WriteByte(':')
		message, enum := r.member(path, name, md)
		if err := r.value(path+"."+name, message, enum, depth); err != nil {
			return err
		}
	}
	return r.end('}')
}

// member returns the type of the value under name in a message or a map. It records a name that the
// message does not have.
func (r *jsonReader) member(path, name string, md protoreflect.MessageDescriptor) (protoreflect.MessageDescriptor, protoreflect.EnumDescriptor) {
	if md == nil {
		return nil, nil // protojson reports that a scalar was expected
	}
	if md.IsMapEntry() {
		value := md.Fields().ByNumber(2)
		return value.Message(), value.Enum()
	}
	fd := md.Fields().ByJSONName(name)
	if fd == nil {
		fd = md.Fields().ByTextName(name)
	}
	if fd == nil {
		r.unknown.AddFunc(func() error {
			return fmt.Errorf("unknown field %q in %s%s", name, place(path), hint(name, fieldNames(md)))
		})
		return nil, nil
	}
	return fd.Message(), fd.Enum()
}

// end copies a closing bracket, which must follow if there are no more elements.
func (r *jsonReader) end(bracket json.Delim) error {
	token, err := r.in.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if token != bracket {
		return fmt.Errorf("unexpected %v", token)
	}
	r.out.WriteRune(rune(bracket))
	return nil
}

// write copies a scalar: string, json.Number, bool or nil.
func (r *jsonReader) write(scalar any) error {
	text, err := json.Marshal(scalar)
	if err != nil {
		return err
	}
	r.out.Write(text)
	return nil
}

// enumName returns the schema's spelling of an enum value.
func enumName(name string, ed protoreflect.EnumDescriptor) string {
	upper := strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	if ed.Values().ByName(protoreflect.Name(upper)) != nil {
		return upper
	}
	return name
}

// place formats a path for people.
func place(path string) string {
	if path == "" {
		return "the configuration"
	}
	return strings.TrimPrefix(path, ".")
}
