// Package reference describes every field of the YAML files that a user writes: type, unit, default,
// allowed values, meaning. It is the one source of the pages docs/reference/*-fields.md and of the
// JSON Schemas beside them, with which editors check and complete these files.
//
// It stands beside package spec, which reads the files. It reads nothing itself, and only tests use
// it: they write pages and schemas, and hold each field's names, defaults, good and bad values
// against the reader. A field that the reader has and a table here lacks fails them.
package reference

import "strings"

// File describes one kind of YAML file.
type File struct {
	Name   string // profile.yaml
	Intro  string // what reads the file, in one or two sentences of Markdown
	Fields []Field
}

// Field describes one field. It has a Type, or Fields of its own, or the choice of both.
type Field struct {
	Name     string // key in its mapping
	Type     Type   // of the value; zero for a mapping of Fields alone
	Unit     string // of the value
	Default  string // as YAML; "": see Without
	Without  string // what holds without the field, in words; "" with a Default or IsRequired
	Meaning  string // sentences of Markdown
	Beside   string // fields of the same mapping that this one needs, as YAML: mode: local
	With     string // lines of the file that this one needs, as YAML
	Fields   []Field
	Required bool
	// SameAs is the path of a field with the same Fields, which pages describe there.
	SameAs string
	// IsNamed says that the user names the entries of this mapping: Fields[0] stands for each, and
	// its Name stands for the user's.
	IsNamed bool
	// Others allows further names in the mapping.
	Others []Others
}

// Others are names that a mapping may have beside those of its fields.
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

// Each calls visit for every field of a list and all below, with its path. It describes no field
// twice.
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
