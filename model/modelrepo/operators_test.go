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

// Two libraries of the same name cannot lie in one folder, and a model without libraries stays as it is.
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
