package schema

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Chapter is a part of a page: a type that a file holds, under a title.
type Chapter struct {
	Title string
	Text  string // what the type is; "" for its doc comment
	Type  reflect.Type
}

// Tables returns a Markdown page with o.Title, o.Description and a chapter for each type, and a
// section for each struct that they use: a table of fields with type and meaning. o.Types has texts
// for types that encode themselves. Every field needs a name in JSON and a comment. The error lists
// the fields without them.
func Tables(o Options, chapters ...Chapter) ([]byte, error) {
	t := tables{generator: generator{Options: o, sources: map[string]source{}}, titles: map[reflect.Type]string{}}
	fmt.Fprintf(&t.b, "# %s\n\n%s\n", o.Title, o.Description)
	return t.page(chapters...)
}

// page writes the chapters.
func (t *tables) page(chapters ...Chapter) ([]byte, error) {
	for _, c := range chapters {
		t.titles[c.Type] = c.Title
	}
	for _, c := range chapters {
		t.section("## "+c.Title, c.Text, c.Type)
		for len(t.queue) > 0 {
			next := t.queue[0]
			t.queue = t.queue[1:]
			t.section("### "+plainName(next), "", next)
		}
	}
	return []byte(t.b.String()), errors.Join(t.errs...)
}

type tables struct {
	generator
	b      strings.Builder
	titles map[reflect.Type]string // titles of the sections of types
	queue  []reflect.Type          // types that need a section in this chapter
}

// section writes the table of a struct.
func (t *tables) section(title, text string, of reflect.Type) {
	if text == "" {
		text = sentence(withoutName(t.source(of).types[of.Name()], of.Name()))
	}
	fmt.Fprintf(&t.b, "\n%s\n\n", title)
	if text != "" {
		fmt.Fprintf(&t.b, "%s\n\n", text)
	}
	t.b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	t.rows(of)
}

// rows writes a row for each field, including those of embedded structs.
func (t *tables) rows(of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, flags, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			t.rows(f.Type)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			t.fail("cannot describe the field %s of %s: it has no name in JSON", f.Name, of)
		}
		meaning := t.source(of).fields[of.Name()+"."+f.Name]
		if meaning == "" {
			t.fail("cannot describe the field %s of %s: it has no comment", f.Name, of)
		}
		kind := t.kind(f)
		switch isOptional := strings.Contains(flags, "omit"); {
		case isOptional:
			kind += ", optional"
		case f.Type.Kind() == reflect.Pointer:
			kind += " or `null`"
		}
		fmt.Fprintf(&t.b, "| `%s` | %s | %s |\n", name, kind, strings.ReplaceAll(sentence(withoutName(meaning, f.Name)), "|", `\|`))
	}
}

// kind names the type of a field, with its allowed words if it has some.
func (t *tables) kind(f reflect.StructField) string {
	var list []string
	for _, part := range strings.Split(f.Tag.Get("jsonschema"), ",") {
		if word, ok := strings.CutPrefix(part, "enum="); ok {
			list = append(list, "`"+word+"`")
		} else if part == "enum" {
			list = append(list, t.words(f.Type))
		}
	}
	if len(list) > 0 {
		return strings.Join(list, ", ")
	}
	return t.name(f.Type)
}

// name names a type. A struct gets a section.
func (t *tables) name(of reflect.Type) string {
	if text, ok := t.Types[of]; ok {
		return text
	}
	switch of {
	case reflect.TypeFor[time.Time]():
		return "time"
	case reflect.TypeFor[time.Duration]():
		return "nanoseconds"
	}
	switch of.Kind() {
	case reflect.Pointer:
		return t.name(of.Elem())
	case reflect.Struct:
		if t.titles[of] == "" {
			t.titles[of] = plainName(of)
			t.queue = append(t.queue, of)
		}
		return fmt.Sprintf("[%s](#%s)", plainName(of), anchor(t.titles[of]))
	case reflect.Slice, reflect.Array:
		if of.Elem().Kind() == reflect.Uint8 {
			return "JSON"
		}
		return "list: " + t.name(of.Elem())
	case reflect.Map:
		return fmt.Sprintf("mapping: %s to %s", t.name(of.Key()), t.name(of.Elem()))
	case reflect.String:
		return t.words(of)
	case reflect.Bool:
		return "`true` or `false`"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "whole number"
}

// words lists the constants of a type of text.
func (t *tables) words(of reflect.Type) string {
	var list []string
	if of.PkgPath() != "" {
		for _, value := range t.source(of).constants[of.Name()] {
			if value != "" {
				list = append(list, fmt.Sprintf("`%s`", value))
			}
		}
	}
	if len(list) == 0 {
		return "text"
	}
	return strings.Join(list, ", ")
}

// anchor returns the anchor that GitHub gives to a title.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// plainName turns "jsonGPUWindow" and "GPUWindow" into "GPU window".
func plainName(of reflect.Type) string {
	letters := []rune(strings.TrimPrefix(of.Name(), "json"))
	var words []string
	begin := 0
	for i := 1; i <= len(letters); i++ {
		isEnd := i == len(letters) || unicode.IsUpper(letters[i]) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if !isEnd {
			continue
		}
		word := string(letters[begin:i])
		if i-begin == 1 || word != strings.ToUpper(word) { // an abbreviation keeps its capitals
			word = strings.ToLower(word)
		}
		words, begin = append(words, word), i
	}
	return strings.Join(words, " ")
}

// withoutName removes the name of a type or field from the beginning of its comment.
func withoutName(doc, name string) string {
	for _, begin := range []string{name + " is ", name + " are ", name + " has ", name + " means that ", name + " "} {
		if rest, ok := strings.CutPrefix(doc, begin); ok {
			return rest
		}
	}
	return doc
}

// absent is the word for a missing value in comments of the code.
var absent = regexp.MustCompile(`\b[nN]il\b`)

// sentence begins a text with a capital letter, and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	letters := []rune(text)
	letters[0] = unicode.ToUpper(letters[0])
	return strings.TrimSuffix(absent.ReplaceAllString(string(letters), "absent"), ".") + "."
}
