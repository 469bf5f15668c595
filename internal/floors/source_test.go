package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Packages that decide and compute have no goroutines. So campaigns can be replayed, and their
// tests need no race detector (SIMULATED in the Makefile).
func TestNoGoroutines(t *testing.T) {
	t.Parallel()
	files := 0
	for _, root := range []string{"capacity/replica", "fleet/results", "gate/decide", "ortsweep/race", "search", "measure/arrivals", "measure/stats"} {
		err := filepath.WalkDir(filepath.Join("..", "..", root), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !strings.HasSuffix(path, ".go"):
				return nil
			}
			files++
			checkNoGoroutine(t, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files == 0 {
		t.Fatal("no file was found")
	}
}

// No file has an init function. gRPC's table of compressors may be written only in one (STYLE.md).
func TestNoInit(t *testing.T) {
	t.Parallel()
	const exception = "engine/grpcapi/compression.go"
	found := false
	for name, text := range texts(t, "*.go") {
		if strings.HasSuffix(name, ".pb.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || f.Recv != nil || f.Name.Name != "init" {
				continue
			}
			if found = found || name == exception; name != exception {
				t.Errorf("%s has an init function: call it by name where it is needed", name)
			}
		}
	}
	if !found {
		t.Errorf("%s has no init function: the exception is no longer needed", exception)
	}
}

func checkNoGoroutine(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			t.Errorf("%s starts a goroutine", set.Position(g.Pos()))
		}
		return true
	})
}
