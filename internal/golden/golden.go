// Package golden compares the results of tests with committed files. With -update the test writes
// these files instead, and the author reviews their diff (`make golden`). Only tests use it.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files from the present output")

// Updates reports whether the test was started with -update.
func Updates() bool { return *update }

// Check compares a text with the file at path, relative to the test's package. With -update it
// writes the file.
func Check[T string | []byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := write(path, string(got)); err != nil {
			t.Fatalf("cannot update: %v", err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update makes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; -update rewrites it (-committed +got):\n%s", path, diff)
	}
}

// CheckTree compares texts, by their paths with slashes, with all files below a folder. With
// -update it replaces the folder.
func CheckTree(t testing.TB, folder string, got map[string]string) {
	t.Helper()
	if *update {
		if err := replace(folder, got); err != nil {
			t.Fatalf("cannot update: %v", err)
		}
	}
	want, err := tree(folder)
	if err != nil {
		t.Fatalf("%v; -update makes it", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs; -update rewrites it (-committed +got):\n%s", folder, diff)
	}
}

// tree returns the texts of all files below a folder, by their paths with slashes.
func tree(folder string) (map[string]string, error) {
	texts := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		texts[filepath.ToSlash(name)] = string(text)
		return err
	})
	return texts, err
}

// replace makes a folder contain exactly these texts.
func replace(folder string, texts map[string]string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	var errs []error
	for name, text := range texts {
		errs = append(errs, write(filepath.Join(folder, filepath.FromSlash(name)), text))
	}
	return errors.Join(errs...)
}

// write makes a file, and its folder if needed.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
