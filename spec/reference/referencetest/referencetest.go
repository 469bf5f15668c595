// Package referencetest compares pages of docs/reference with what their types say. Only tests use
// it.
package referencetest

import (
	"os"
	"path/filepath"
	"testing"

	"tuner/internal/golden"
	"tuner/internal/schema"
	"tuner/spec/reference"
)

// CheckFields compares a page of fields, such as "run-fields.md", with the one that schema.Tables
// makes. With -update it writes the page. o needs no module.
func CheckFields(t *testing.T, page string, o schema.Options, chapters ...schema.Chapter) {
	t.Helper()
	o.Module, o.ModulePath = root(t), "tuner"
	text, err := schema.Tables(o, chapters...)
	if err != nil {
		t.Error(err)
	}
	golden.Check(t, filepath.Join(o.Module, "docs", "reference", page), reference.Generated+string(text))
}

// root returns the module's folder, relative to the test's package.
func root(t *testing.T) string {
	t.Helper()
	for dir := "."; len(dir) < 100; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above the test's package")
	return ""
}
