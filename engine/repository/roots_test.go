package repository

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/fault"
)

// A folder has the name that a repository was registered with, and not its own any more.
func TestRoots(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for _, folder := range []string{filepath.Join(a, "m"), filepath.Join(b, "model"), filepath.Join(b, "part")} {
		if err := os.MkdirAll(filepath.Join(folder, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first := &Roots{Paths: []string{a}}
	both, err := first.With(b, map[string]string{"x": "model"})
	if err != nil {
		t.Fatal(err)
	}
	found := func(r *Roots, name string) string {
		m, err := r.Find(r.Paths, name)
		if err != nil {
			return ""
		}
		if m.Name != name {
			t.Errorf("%s is found as %s", name, m.Name)
		}
		return m.Dir
	}
	for name, want := range map[string]string{"m": filepath.Join(a, "m"), "x": filepath.Join(b, "model"), "part": filepath.Join(b, "part"), "model": ""} {
		if got := found(both, name); got != want || both.Has(a, name) != (want != "" && filepath.Dir(want) == a) || both.Has(b, name) != (want != "" && filepath.Dir(want) == b) {
			t.Errorf("%s: found in %q, want %q; in the first %t, in the second %t", name, got, want, both.Has(a, name), both.Has(b, name))
		}
	}
	if names, err := both.List(b); err != nil || !cmp.Equal(names, []string{"x", "part"}) {
		t.Errorf("the second has %v, %v", names, err)
	}
	if got := found(first, "x"); got != "" {
		t.Errorf("the repositories from before have x in %s", got)
	}
	alone, err := both.Without(a)
	if err != nil || found(alone, "m") != "" || found(alone, "x") == "" {
		t.Errorf("without the first: m in %q, x in %q, %v", found(alone, "m"), found(alone, "x"), err)
	}
	less, err := both.Without(b)
	if err != nil || found(less, "x") != "" || found(less, "m") == "" {
		t.Errorf("without the second: x in %q, m in %q, %v", found(less, "x"), found(less, "m"), err)
	}
	if _, err := less.With(b, map[string]string{"x": "model"}); err != nil {
		t.Errorf("it cannot come back: %v", err)
	}
	refuse := func(r *Roots, err error, code fault.Code) {
		t.Helper()
		if r != nil || fault.CodeOf(err) != code {
			t.Errorf("got %v, %v; want an error of class %v", r, err, code)
		}
	}
	r, err := both.With(b, nil)
	refuse(r, err, fault.AlreadyExists)
	r, err = both.With(t.TempDir(), map[string]string{"x": "other"})
	refuse(r, err, fault.AlreadyExists)
	r, err = both.With(filepath.Join(a, "none"), nil)
	refuse(r, err, fault.InvalidArgument)
	r, err = first.With(b, map[string]string{"a/b": "model"})
	refuse(r, err, fault.InvalidArgument)
	r, err = first.Without(b)
	refuse(r, err, fault.InvalidArgument)
}
