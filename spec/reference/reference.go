// Package reference describes every field of the user's YAML files: type, unit, default, allowed
// values, meaning. It is the only source of the pages docs/reference/*-fields.md and of the JSON
// Schemas beside them, with which editors check and complete these files.
//
// It stands beside package spec, which reads the files. It reads nothing itself, and only tests use
// it. They write pages and schemas, and compare each field's names, defaults, good and bad values
// with the reader. They fail if a field of the reader is missing in a table here.
package reference

import "strings"

// File describes one kind of YAML file.
type File struct {
	Name   string // file name, such as profile.yaml
	Intro  string // the reader of the file, in one or two sentences of Markdown
	Fields []Field
}

// Field describes one field. It has a Type, or its own Fields, or allows both forms.
type Field struct {
	Name    string // key in its mapping
	Type    Type   // of the value; zero for a mapping with only Fields
	Unit    string // of the value
	Default string // default as YAML; "": see Without
	// Without: effect of omitting the field, in words; "" with a Default or IsRequired
	Without string
	Meaning string // sentences of Markdown
	// Beside: required fields of the same mapping, as YAML, such as mode: local
	Beside   string
	With     string // required lines of the file, as YAML
	Fields   []Field
	Required bool
	// Instead is the field of the same mapping that takes the place of a required one; "" if none does.
	Instead string
	// Or is a further field that may stand for Instead, or beside it.
	Or string
	// Unless is a field of the file beside which a required one may be missing. A schema of the mapping cannot
	// say that, so it does not require the field.
	Unless string
	// SameAs is the path of a field with the same Fields. Pages describe them there.
	SameAs string
	// IsNamed means that the user names the entries of this mapping. Fields[0] stands for each
	// entry, and its Name for the user's name.
	IsNamed bool
	// Others allows additional names in the mapping.
	Others []Others
}

// Others are additional names in a mapping.
type Others struct {
	Pattern string // regular expression
	Type    Type
}

// Type describes the values of a field.
type Type struct {
	Name   string   // in words
	Schema string   // JSON Schema
	Good   []string // values, as YAML, that reader and schema accept
	Bad    []string // values that both refuse
}

// Each calls visit for every field of a list and all fields below, with its path. It visits no
// field twice.
func Each(fields []Field, visit func(path []string, f Field)) { each(nil, fields, visit) }

func each(above []string, fields []Field, visit func(path []string, f Field)) {
	for _, f := range fields {
		path := append(above[:len(above):len(above)], f.Name)
		visit(path, f)
		if f.SameAs == "" {
			each(path, f.Fields, visit)
		}
	}
}

// isZero reports whether a field has no type, only fields.
func (t Type) isZero() bool { return t.Name == "" }

// quoted puts every word into a code span.
func quoted(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
