package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The next process removes what a killed one left. Folders in use and those with other names stay,
// for every age that the clock gives them.
func TestScratch(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{-1000 * time.Hour, 0, 1000 * time.Hour} {
		dir, outside := filepath.Join(t.TempDir(), "a[b]*"), t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "kind-1000000", "deep"), 0o755), os.Mkdir(filepath.Join(dir, "kind-name"), 0o755),
			os.Mkdir(filepath.Join(dir, "kind-2024-05-01"), 0o755),
			os.WriteFile(filepath.Join(dir, "kind-2000000"), nil, 0o600), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600),
			os.Symlink(outside, filepath.Join(dir, "kind-3000000"))); err != nil {
			t.Fatal(err)
		}
		used, err := NewScratch(dir, "used-")
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		for _, path := range []string{filepath.Join(dir, "kind-1000000"), used.Dir} {
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
		made, err := NewScratch(dir, "kind-")
		if err != nil {
			t.Fatal(err)
		}
		SweepScratch(dir, "used-")
		for path, isThere := range map[string]bool{
			filepath.Join(dir, "kind-1000000"): false, filepath.Join(dir, "kind-2000000"): true, filepath.Join(dir, "kind-name"): true, filepath.Join(dir, "kind-2024-05-01"): true,
			filepath.Join(outside, "file"): true, used.Dir: true, made.Dir: true,
		} {
			if _, err := os.Stat(path); (err == nil) != isThere {
				t.Errorf("%s, age %v: %v, want it there: %v", path, age, err, isThere)
			}
		}
		if err := errors.Join(made.Close(), made.Close(), used.Close()); err != nil {
			t.Error(err)
		}
		for _, s := range []*Scratch{made, used} {
			if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there: %v", s.Dir, err)
			}
		}
	}
}

// Writing a folder removes what a killed process left beside it.
func TestInFolderRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".tuner-1234567", "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := InFolder(dir, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	checkNames(t, dir)
}
