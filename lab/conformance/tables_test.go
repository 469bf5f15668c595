//go:build conformance

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// TestTrackers runs the programs of docs/how-to/mlflow-and-wandb.md as they stand there, with the real
// packages and without a network. Each makes a run of every configuration.
func TestTrackers(t *testing.T) {
	t.Setenv("WANDB_MODE", "offline")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "mlflow-and-wandb.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(page, -1)
	if len(programs) != 2 {
		t.Fatalf("the page has %d programs, want those for MLflow and Weights & Biases", len(programs))
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(analyzed(t, "guided"), filepath.Join(dir, "out", "minilm")); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		runTool(t, dir, python(t), "-c", string(p[1]))
	}
	const configurations = 8 // of the recorded campaign that have figures
	runTool(t, dir, python(t), "-c", fmt.Sprintf(`import mlflow
runs = mlflow.search_runs(experiment_names=["minilm"])
assert len(runs) == %d, runs
assert runs["metrics.throughput"].notna().all(), runs`, configurations))
	if runs, err := filepath.Glob(filepath.Join(dir, "wandb", "offline-run-*")); err != nil || len(runs) != configurations {
		t.Errorf("Weights & Biases has the runs %v, %v; want %d", runs, err, configurations)
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
