package golden

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder keeps the failures of a check.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Fatalf ends the check like testing's Fatalf. checked recovers.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// checked runs a check and returns its failures.
func checked(check func(t testing.TB)) (failures []string) {
	r := &recorder{}
	defer func() {
		if stopped := recover(); stopped != nil && stopped != any(r) {
			panic(stopped)
		}
		failures = r.failures
	}()
	check(r)
	return nil
}

// updating turns -update on until the test ends. Tests that use it must not be parallel.
func updating(t *testing.T) {
	before := *update
	*update = true
	t.Cleanup(func() { *update = before })
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "text")
	check := func(got string) string {
		return strings.Join(checked(func(t testing.TB) { Check(t, path, got) }), "\n")
	}
	if failure := check("a"); !strings.Contains(failure, "-update makes it") {
		t.Errorf("without the file: %q", failure)
	}
	t.Run("update", func(t *testing.T) {
		updating(t)
		if failure := check("a"); failure != "" {
			t.Error(failure)
		}
	})
	if failure := check("a"); failure != "" {
		t.Errorf("equal texts: %q", failure)
	}
	if failure := check("b"); !strings.Contains(failure, "-update rewrites it") || !strings.Contains(failure, `"b"`) {
		t.Errorf("the failure shows no difference: %q", failure)
	}
}

func TestCheckTree(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tree")
	check := func(got map[string]string) string {
		return strings.Join(checked(func(t testing.TB) { CheckTree(t, folder, got) }), "\n")
	}
	texts := map[string]string{"a": "1", "b/c": "2"}
	if failure := check(texts); !strings.Contains(failure, "-update makes it") {
		t.Errorf("without the folder: %q", failure)
	}
	t.Run("update", func(t *testing.T) {
		updating(t)
		if failure := check(map[string]string{"gone": "0"}) + check(texts); failure != "" {
			t.Error(failure)
		}
	})
	if _, err := os.Stat(filepath.Join(folder, "gone")); err == nil {
		t.Error("-update keeps a file that is made no more")
	}
	if failure := check(texts); failure != "" {
		t.Errorf("equal trees: %q", failure)
	}
	more := maps.Clone(texts)
	more["d"] = "3"
	if failure := check(more); !strings.Contains(failure, "-update rewrites it") {
		t.Errorf("a missing file: %q", failure)
	}
}
