//go:build conformance

package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"tuner/lab/peers"
)

// TestTables reads points and trials with pyarrow and pandas, and compares them with result.json
// (testdata/tables.py).
func TestTables(t *testing.T) {
	for _, journal := range []string{"minilm", "guided"} {
		t.Run(journal, func(t *testing.T) {
			t.Parallel()
			runTool(t, ".", python(t), filepath.Join("testdata", "tables.py"), analyzed(t, journal))
		})
	}
}

// python returns the interpreter of scripts/tables.sh.
func python(t *testing.T) string {
	t.Helper()
	dir, err := peers.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "tables", "bin", "python")
}

// analyzed analyzes a recorded campaign, and returns its output folder.
func analyzed(t *testing.T, journal string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "journals", journal, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "journal.jsonl"), text)
	write(t, filepath.Join(dir, "analyze.yaml"), []byte("input: .\nformats: [data]\n"))
	runTool(t, dir, environment(t, "TUNER_BINARY"), "analyze", "-f", "analyze.yaml")
	return dir
}
