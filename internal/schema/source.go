package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// source has the comments and constants in a package's files.
type source struct {
	types     map[string]string // doc comments by type
	fields    map[string]string // comments by Type.Field
	constants map[string][]any  // values of constants by type, in order
}

// source reads the files of the package that declares a type. It is empty for packages of other
// modules.
func (g *generator) source(t reflect.Type) source {
	path := t.PkgPath()
	if known, ok := g.sources[path]; ok {
		return known
	}
	s := source{map[string]string{}, map[string]string{}, map[string][]any{}}
	g.sources[path] = s
	folder, isOurs := strings.CutPrefix(path, g.ModulePath+"/")
	if !isOurs {
		return s
	}
	files, err := filepath.Glob(filepath.Join(g.Module, folder, "*.go"))
	if err != nil || len(files) == 0 {
		g.fail("cannot find the source of package %s below %q", path, g.Module)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			g.fail("cannot read source: %w", err)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			g.fail("cannot parse source: %w", err)
			continue
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				s.read(d)
			}
		}
	}
	return s
}

// read reads types and constants from a declaration.
func (s source) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil && len(d.Specs) == 1 {
				doc = d.Doc
			}
			s.types[spec.Name.Name] = oneLine(doc)
			if fields, ok := spec.Type.(*ast.StructType); ok {
				s.readFields(spec.Name.Name, fields)
			}
		case *ast.ValueSpec:
			name, isNamed := spec.Type.(*ast.Ident)
			for _, value := range spec.Values {
				literal, isLiteral := value.(*ast.BasicLit)
				if d.Tok != token.CONST || !isNamed || !isLiteral || literal.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil {
					s.constants[name.Name] = append(s.constants[name.Name], text)
				}
			}
		}
	}
}

// readFields reads the comments of a struct's fields, above or beside them.
func (s source) readFields(name string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		doc := f.Doc
		if doc == nil {
			doc = f.Comment
		}
		for _, n := range f.Names {
			s.fields[name+"."+n.Name] = oneLine(doc)
		}
	}
}

// oneLine returns a comment's text without line breaks.
func oneLine(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}
