package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Packages that decide and compute have no goroutines, so that campaigns can be replayed.
func TestNoGoroutines(t *testing.T) {
	t.Parallel()
	for _, tree := range []string{"capacity/replica", "fleet/results", "gate/decide", "measure/arrivals", "measure/stats", "ortsweep/race", "search"} {
		files := walk(t, tree, true)
		for _, path := range files {
			if _, goroutine := functions(t, path); goroutine != "" && !strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s starts a goroutine", goroutine)
			}
		}
		if len(files) == 0 {
			t.Errorf("no file is in %s", tree)
		}
	}
}

// Packages that compute for long run without the race detector (COMPUTED in the Makefile). Each of them has a test in
// RACED that runs with it too.
func TestRacedComputations(t *testing.T) {
	t.Parallel()
	lists := variables(t)
	raced := map[string]bool{}
	for name := range strings.SplitSeq(lists["RACED"], "|") {
		raced[name] = false
	}
	for _, dir := range strings.Fields(lists["COMPUTED"]) {
		hasRaced := false
		for _, path := range walk(t, dir, false) {
			names, _ := functions(t, path)
			for _, name := range names {
				if _, isRaced := raced[name]; isRaced {
					raced[name], hasRaced = true, true
				}
			}
		}
		if !hasRaced {
			t.Errorf("RACED of the Makefile has no test of %s", dir)
		}
	}
	for name, isFound := range raced {
		if !isFound {
			t.Errorf("RACED of the Makefile has %s, which is no test of these packages", name)
		}
	}
}

// variables returns the Makefile's variables with simple values.
func variables(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(read(t, "Makefile"), "\\\n", " ")) {
		if name, value, isSimple := strings.Cut(line, ":="); isSimple {
			found[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return found
}

// walk lists the Go files of a folder of the project, and of those below it.
func walk(t *testing.T, dir string, isTree bool) (files []string) {
	t.Helper()
	top := filepath.Join(root, dir)
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != top && !isTree:
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// No file has an init function. gRPC's table of compressors may be written only in one (STYLE.md).
func TestNoInit(t *testing.T) {
	t.Parallel()
	const exception = "engine/grpcapi/compression/compression.go"
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

// Tests write programs by programtest, since a file that another child still has open cannot be executed.
func TestProgramsOfTests(t *testing.T) {
	t.Parallel()
	executable := regexp.MustCompile(`os\.WriteFile\((?:[^0\n]|0[^o\n])*, 0o7[0-7]{2}\)`)
	for name, text := range texts(t, "*_test.go") {
		if found := executable.Find(text); found != nil {
			t.Errorf("%s writes a program without programtest: %s", name, found)
		}
	}
}

// functions lists the functions of a file. It also returns the last place where the file starts a
// goroutine: a go statement, WaitGroup.Go or the package of parallel loops.
func functions(t *testing.T, path string) (names []string, goroutine string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name.Name)
		case *ast.GoStmt:
			goroutine = set.Position(n.Pos()).String()
		case *ast.SelectorExpr:
			if from, isName := n.X.(*ast.Ident); n.Sel.Name == "Go" || isName && from.Name == "parallel" {
				goroutine = set.Position(n.Pos()).String()
			}
		}
		return true
	})
	return names, goroutine
}
