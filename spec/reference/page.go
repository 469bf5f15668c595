package reference

import (
	"bytes"
	"fmt"
	"strings"
)

// Generated begins every page that a test generates.
const Generated = "<!-- Generated from the code: `make golden` writes this page. -->\n"

// base returns the common part of the file's schema name and page name.
func (f File) base() string { return strings.TrimSuffix(f.Name, ".yaml") }

// PageName returns the name of the file's page in docs/reference.
func (f File) PageName() string { return f.base() + "-fields.md" }

// SchemaName returns the name of the file's JSON Schema in docs/reference.
func (f File) SchemaName() string { return f.base() + ".schema.json" }

// Page returns the file's page: a list of all fields, then a section for each.
func (f File) Page() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s# %s: fields\n\n%s\n", Generated, f.Name, fold(f.Intro))
	fmt.Fprintf(&b, "[%s](%s) is the same for editors, see [Check your files while you write](../how-to/editor.md).\n", f.SchemaName(), f.SchemaName())
	Each(f.Fields, func(path []string, field Field) {
		fmt.Fprintf(&b, "\n%s `%s`\n", strings.Repeat("#", min(len(path)+1, 4)), strings.Join(path, "."))
		field.section(&b)
	})
	return b.Bytes()
}

// section writes the description of a field.
func (f Field) section(b *bytes.Buffer) {
	kind := f.Type.Name
	switch {
	case f.IsNamed:
		kind = "mapping: a name of your own to the fields below"
	case f.SameAs != "":
		kind = fmt.Sprintf("section with the fields of [%s](#%s)", f.SameAs, strings.ReplaceAll(f.SameAs, ".", ""))
	case f.Type.isZero():
		kind = "section"
	case len(f.Fields) > 0:
		kind += "; or a section"
	}
	item(b, "Type", kind)
	if f.Unit != "" {
		item(b, "Unit", f.Unit)
	}
	switch {
	case f.Required && f.Instead != "":
		item(b, "Required", "this, or `"+strings.Join(strings.Fields(f.Instead+" "+f.Or), "` or `")+"`")
	case f.Required && f.Unless != "":
		item(b, "Required", "except beside `"+f.Unless+"`")
	case f.Required:
		item(b, "Required", "")
	case f.Default != "":
		item(b, "Default", "`"+f.Default+"`")
	case f.Without != "":
		item(b, "Default", f.Without)
	}
	if f.Meaning != "" {
		fmt.Fprintf(b, "\n%s\n", fold(f.Meaning))
	}
}

// item writes an item of a list, folded.
func item(b *bytes.Buffer, name, text string) {
	if text != "" {
		name += ": "
	}
	fmt.Fprintf(b, "- %s\n", strings.ReplaceAll(fold(name+text), "\n", "\n  "))
}

// pageWidth is the largest width of a line on a page, in columns.
const pageWidth = 100

// fold breaks text into lines. Code spans are not broken.
func fold(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range spans(text) {
		width := len([]rune(word))
		switch {
		case column == 0:
		case column+1+width > pageWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
}

// spans splits text at spaces outside of code spans.
func spans(text string) []string {
	var list []string
	begin, inCode := 0, false
	for i, c := range text {
		switch {
		case c == '`':
			inCode = !inCode
		case c == ' ' && !inCode:
			list = append(list, text[begin:i])
			begin = i + 1
		}
	}
	return append(list, text[begin:])
}
