package modelrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Libraries are carried into a folder, with their paths on a server. Another folder with the same files
// names them elsewhere.
func TestCarryOperators(t *testing.T) {
	t.Parallel()
	library := filepath.Join(t.TempDir(), "a.so")
	if err := os.WriteFile(library, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, other := filepath.Join(t.TempDir(), "r"), t.TempDir()
	if err := Write(dir, source(t), config(t, `name: "m" model_operations { op_library_filename: "`+library+`" }`)); err != nil {
		t.Fatal(err)
	}
	size, err := CarryOperators(filepath.Join(dir, "m"), "/models/m")
	if err != nil || size != int64(len("code")) {
		t.Fatalf("%d bytes, %v", size, err)
	}
	got := tree(t, dir)
	if got["m/operators/a.so"] != "code" || !strings.Contains(got["m/config.pbtxt"], `op_library_filename: ["/models/m/operators/a.so"]`) {
		t.Errorf("the folder has %v", got)
	}
	if err := LinkWith(other, filepath.Join(dir, "m"), []string{library}); err != nil {
		t.Fatal(err)
	}
	linked := tree(t, other)
	if !strings.Contains(linked["m/config.pbtxt"], `op_library_filename: ["`+library+`"]`) {
		t.Errorf("the copy's configuration is %s", linked["m/config.pbtxt"])
	}
	delete(linked, "m/config.pbtxt")
	delete(got, "m/config.pbtxt")
	delete(got, "m/.tuner.json")
	if diff := cmp.Diff(got, linked); diff != "" {
		t.Errorf("the copy has other files: %s", diff)
	}
	checkSameFile(t, filepath.Join(dir, "m", "operators", "a.so"), filepath.Join(other, "m", "operators", "a.so"))
}

// The folder of an ensemble keeps its version, which has no file.
func TestLinkEnsemble(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "e"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(from, "3"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, configName), []byte(`name: "e" platform: "ensemble"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := LinkWith(to, from, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "e", "3")); err != nil || !info.IsDir() {
		t.Errorf("the version is gone: %v", err)
	}
}

// Libraries of several folders may have the same name. All are carried, and the configuration names each.
func TestCarryOperatorsOfOneName(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "r")
	var libraries []string
	for _, folder := range []string{"v1", "v2"} {
		library := filepath.Join(from, folder, "ops.so")
		if err := os.Mkdir(filepath.Dir(library), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(library, []byte(folder), 0o600); err != nil {
			t.Fatal(err)
		}
		libraries = append(libraries, library)
	}
	if err := Write(dir, source(t), config(t, `name: "m" model_operations { op_library_filename: ["`+strings.Join(libraries, `", "`)+`"] }`)); err != nil {
		t.Fatal(err)
	}
	if size, err := CarryOperators(filepath.Join(dir, "m"), "/models/m"); err != nil || size != int64(len("v1v2")) {
		t.Fatalf("%d bytes, %v", size, err)
	}
	got := tree(t, dir)
	want := `op_library_filename: ["/models/m/operators/ops.so", "/models/m/operators/ops-2.so"]`
	if text := strings.Join(strings.Fields(got["m/config.pbtxt"]), " "); !strings.Contains(text, want) {
		t.Errorf("the configuration lacks %s:\n%s", want, text)
	}
	if got["m/operators/ops.so"] != "v1" || got["m/operators/ops-2.so"] != "v2" {
		t.Errorf("the folder has %v", got)
	}
	names := OperatorNames([]string{"/a/x.so", "/b/x.so", "/c/x-2.so", "/d/y", "/e/y"})
	if diff := cmp.Diff([]string{"x.so", "x-2.so", "x-2-2.so", "y", "y-2"}, names); diff != "" {
		t.Error(diff)
	}
}

// A library must be there, and a model without libraries stays as it is.
func TestCarryOperatorsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, source(t), config(t, `name: "plain"`)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if size, err := CarryOperators(filepath.Join(dir, "plain"), "/models/plain"); size != 0 || err != nil {
		t.Errorf("without libraries: %d bytes, %v", size, err)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("without libraries: %s", diff)
	}
	if err := Write(dir, source(t), config(t, `name: "gone" model_operations { op_library_filename: "/nowhere/a.so" }`)); err != nil {
		t.Fatal(err)
	}
	if _, err := CarryOperators(filepath.Join(dir, "gone"), "/models/gone"); err == nil || !strings.Contains(err.Error(), `"/nowhere/a.so"`) {
		t.Errorf("a library that is gone: %v", err)
	}
}
