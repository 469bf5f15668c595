// Package schema generates a JSON Schema (draft 2020-12) from Go types. So a file format is
// described once, by the types that write and read it. Names and required fields come from json
// tags, descriptions from doc comments, enumerations from constants, and bounds from jsonschema
// tags. Only tests use it: they compare a committed schema with the generated one.
//
// A jsonschema tag is a list of KEYWORD=VALUE, separated by commas: minimum=0, pattern=^a$,
// enum=one,enum=two. The word enum without a value stands for the constants of the field's type.
// items.KEYWORD=VALUE applies to the elements of a list.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Options have information that the Go types lack.
type Options struct {
	Title, Description string
	Module             string // folder with go.mod
	ModulePath         string // module path in go.mod
	// Types has the schemas of types that encode themselves.
	Types map[reflect.Type]string
	// Keywords has additional keywords for the schemas of structs, such as "oneOf": […].
	Keywords map[reflect.Type]string
}

// Generate returns the schema of a type as JSON text. The error names a type that it cannot
// describe.
func Generate(root reflect.Type, o Options) ([]byte, error) {
	g := generator{Options: o, defs: map[string]reflect.Type{}, sources: map[string]source{}}
	top := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", o.Title}, {"description", o.Description}}
	top = append(top, g.structure(root)...)
	var defs object
	for i := 0; i < len(g.order); i++ { // describing one type may add others
		name := g.order[i]
		defs = append(defs, member{name, g.definition(g.defs[name])})
	}
	top = append(top, member{"$defs", defs})
	if err := errors.Join(g.errs...); err != nil {
		return nil, err
	}
	text, err := top.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot encode schema: %w", err)
	}
	laid, err := lay(text, "", 0)
	if err != nil {
		return nil, fmt.Errorf("cannot lay out schema: %w", err)
	}
	return []byte(laid + "\n"), nil
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encoder.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type generator struct {
	Options
	defs    map[string]reflect.Type // by the definition's name
	order   []string                // names of definitions, in order of first use
	sources map[string]source       // by import path
	errs    []error
}

func (g *generator) fail(format string, args ...any) {
	g.errs = append(g.errs, fmt.Errorf(format, args...))
}

// define returns a reference to a type's definition.
func (g *generator) define(t reflect.Type) object {
	name := definitionName(t.Name())
	switch known, ok := g.defs[name]; {
	case !ok:
		g.defs[name] = t
		g.order = append(g.order, name)
	case known != t:
		g.fail("cannot name the definition of %s: %s has the same name", t, known)
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// definitionName turns "GPUWindow" into "gpuWindow".
func definitionName(name string) string {
	letters := []rune(name)
	for i := range letters {
		if i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(letters[i])
	}
	return string(letters)
}

// definition describes a named type.
func (g *generator) definition(t reflect.Type) object {
	var described object
	if text := g.source(t).types[t.Name()]; text != "" {
		described = append(described, member{"description", text})
	}
	if raw, ok := g.Types[t]; ok {
		return append(described, g.keywords(raw)...)
	}
	return append(described, g.structure(t)...)
}

// keywords reads the members of a JSON object in their order.
func (g *generator) keywords(raw string) object {
	decoder := json.NewDecoder(strings.NewReader(raw))
	var o object
	if _, err := decoder.Token(); err != nil {
		g.fail("cannot read keywords %q: %w", raw, err)
		return nil
	}
	for decoder.More() {
		key, _ := decoder.Token()
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			g.fail("cannot read keywords %q: %w", raw, err)
			return nil
		}
		o = append(o, member{fmt.Sprint(key), value})
	}
	return o
}

// structure describes a struct.
func (g *generator) structure(t reflect.Type) object {
	properties, required, keywords := g.fields(t)
	o := object{{"type", "object"}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return append(append(o, keywords...), member{"properties", properties})
}

// fields describes the fields of a struct, including those of embedded structs.
func (g *generator) fields(t reflect.Type) (properties object, required []string, keywords object) {
	if raw, ok := g.Keywords[t]; ok {
		keywords = g.keywords(raw)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, flags, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner, more, others := g.fields(f.Type)
			properties, required, keywords = append(properties, inner...), append(required, more...), append(keywords, others...)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			g.fail("cannot describe %s.%s: it has no json tag", t, f.Name)
		}
		if !strings.Contains(flags, "omitempty") && !strings.Contains(flags, "omitzero") {
			required = append(required, name)
		}
		var property object
		if text := g.source(t).fields[t.Name()+"."+f.Name]; text != "" {
			property = append(property, member{"description", text})
		}
		properties = append(properties, member{name, append(property, g.tagged(f)...)})
	}
	return properties, required, keywords
}

// tagged describes a field's type with what its tag adds.
func (g *generator) tagged(f reflect.StructField) object {
	described := g.value(f.Type)
	var enum []any
	for _, part := range strings.Split(f.Tag.Get("jsonschema"), ",") {
		keyword, value, isSet := strings.Cut(part, "=")
		switch inner, isInner := strings.CutPrefix(keyword, "items."); {
		case part == "":
		case keyword == "enum" && !isSet:
			enum = append(enum, g.constants(f)...)
		case keyword == "enum":
			enum = append(enum, value)
		case isInner:
			described = set(described, "items", set(described.get("items").(object), inner, literal(inner, value)))
		default:
			described = set(described, keyword, literal(keyword, value))
		}
	}
	if enum != nil {
		return object{{"enum", enum}}
	}
	return described
}

// literal returns a keyword's value: text for pattern, format and type, and JSON for others.
func literal(keyword, value string) any {
	switch keyword {
	case "pattern", "format", "type":
		return value
	}
	return json.RawMessage(value)
}

func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return object{}
}

// set adds a member, or replaces it.
func set(o object, key string, value any) object {
	for i := range o {
		if o[i].key == key {
			o[i].value = value
			return o
		}
	}
	return append(o, member{key, value})
}

// constants returns the values of the constants of a field's type.
func (g *generator) constants(f reflect.StructField) []any {
	t := f.Type
	list := g.source(t).constants[t.Name()]
	if len(list) == 0 {
		g.fail("cannot enumerate the values of %s: %s has no constants", f.Name, t)
	}
	return list
}

// value describes a value of a type.
func (g *generator) value(t reflect.Type) object {
	if _, ok := g.Types[t]; ok {
		return g.define(t)
	}
	if t == reflect.TypeFor[time.Time]() {
		return object{{"type", "string"}, {"format", "date-time"}}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 { // raw JSON
		return nil
	}
	if t.Kind() != reflect.Pointer && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)) {
		g.fail("cannot describe %s: it encodes itself, and Options.Types has no schema of it", t)
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.value(t.Elem())
	case reflect.Struct:
		return g.define(t)
	case reflect.Slice, reflect.Array:
		return object{{"type", "array"}, {"items", g.value(t.Elem())}}
	case reflect.Map:
		o := object{{"type", "object"}}
		if _, ok := g.Types[t.Key()]; ok {
			o = append(o, member{"propertyNames", g.define(t.Key())})
		}
		return append(o, member{"additionalProperties", g.value(t.Elem())})
	case reflect.String:
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}
	}
	g.fail("cannot describe %s", t)
	return nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()
