//go:build conformance

package conformance

import (
	"path/filepath"
	"testing"
)

// TestLoad loads every model of a repository, good and bad, and compares the answer and what both servers then say of it.
func TestLoad(t *testing.T) {
	models, err := ReadModels(filepath.Join("testdata", "repositories", "load.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPair(t, newRepository(t, "load"), "--model-control-mode=explicit")
	for _, c := range LoadCases(models) {
		if !p.ended {
			t.Run(c.Name, func(t *testing.T) { differences.compare(t, p, c) })
		}
	}
}
