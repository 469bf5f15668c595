package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Schema returns the file's JSON Schema, draft 7, which all editors support.
func (f File) Schema() ([]byte, error) {
	o := section(f.Fields, nil)
	o["$schema"] = "http://json-schema.org/draft-07/schema#"
	o["title"] = f.Name + " of tuner"
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(o); err != nil {
		return nil, fmt.Errorf("cannot encode the schema of %s: %w", f.Name, err)
	}
	return b.Bytes(), nil
}

type object map[string]any

// section returns the schema of a mapping of fields.
func section(fields []Field, others []Others) object {
	properties, required, either := object{}, []string{}, []any{}
	for _, f := range fields {
		properties[f.Name] = f.schema()
		switch {
		case f.Required && f.Instead != "":
			instead := object{"required": []string{f.Instead}}
			if f.Or != "" {
				instead = object{"anyOf": []any{instead, object{"required": []string{f.Or}}}}
			}
			either = append(either, object{"required": []string{f.Name}}, instead)
		case f.Required && f.Unless == "":
			required = append(required, f.Name)
		}
	}
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if len(either) > 0 {
		o["oneOf"] = either
	}
	patterns := object{}
	for _, other := range others {
		patterns[other.Pattern] = json.RawMessage(other.Type.Schema)
	}
	if len(patterns) > 0 {
		o["patternProperties"] = patterns
	}
	return o
}

// schema returns the schema of a field's value, with its meaning and its default.
func (f Field) schema() object {
	o := object{}
	switch {
	case f.IsNamed:
		o["type"], o["additionalProperties"] = "object", f.Fields[0].schema()
	case len(f.Fields) == 0:
		if err := json.Unmarshal([]byte(f.Type.Schema), &o); err != nil {
			panic(err) // a mistake in the tables
		}
	case f.Type.isZero():
		o = section(f.Fields, f.Others)
	default:
		o["anyOf"] = []any{json.RawMessage(f.Type.Schema), section(f.Fields, f.Others)}
	}
	if f.Meaning != "" {
		o["description"] = f.Meaning
	}
	if f.Default != "" {
		o["default"] = f.Default
	}
	return o
}
