package report

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/spec"
)

// The names of the CSV files are the analysis's, and what nothing tells is empty.
func TestCSVFiles(t *testing.T) {
	t.Parallel()
	r := ranked(t, typical(t), analyze.Options{CSV: spec.CSVFiles{
		Inference: spec.CSVFile{Name: "own.csv", Columns: []string{"model_config_path", "request_rate", "perf_latency_p90", "perf_client_send_recv", "backend_parameter/nosuch"}}}})
	dir := t.TempDir()
	if _, err := WriteAll(dir, r, []string{spec.FormatCSV}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results", "own.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if want := "Model Config Path,Request Rate,p90 Latency (ms),Client Send/Recv (ms),backend_parameter/nosuch"; lines[0] != want {
		t.Errorf("header %q, want %q", lines[0], want)
	}
	cells := strings.Split(lines[1], ",")
	if len(cells) != 5 || cells[0] == "" || cells[1] != "" || cells[2] == "" || cells[3] != "" || cells[4] != "" {
		t.Errorf("first row %q: want a name and a p90, and nothing of a rate, the client and a parameter that is not set", lines[1])
	}
	if _, err := os.Stat(filepath.Join(dir, "results", "metrics-model-gpu.csv")); err != nil {
		t.Error(err)
	}
}

// Every field that a file may ask for has a title of its own.
func TestEveryColumnHasATitle(t *testing.T) {
	t.Parallel()
	for _, field := range slices.Concat(spec.InferenceFields(), spec.GPUFields(), spec.ServerFields()) {
		if header(field) == field {
			t.Errorf("column %s has no title", field)
		}
	}
}

func TestSharedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"config.yml", "results/metrics-model-inference.csv"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("theirs"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r := ranked(t, typical(t), analyze.Options{})
	for range 2 { // the second time over its own
		if _, err := WriteShared(dir, r, []string{spec.FormatCSV, spec.FormatConfig}); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "config.yml")); err != nil || string(text) != "theirs" {
		t.Errorf("the user's file is %q, %v", text, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "report.md"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *InputError
	if _, err := WriteShared(other, r, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), `it holds "report.md", which is not tuner's`) {
		t.Errorf("error is %v, want an InputError", err)
	}
}

func TestJoinCSV(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(part, text string) string {
		path := filepath.Join(makeFolder(t, dir, part+"/results"), "metrics-model-inference.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, part)
	}
	parts := []string{write("a", "Model,X\na,1\n"), filepath.Join(dir, "none"), write("b", "Model,X\nb,2\nb,3\n"), write("c", "Model,Y\nc,4\n")}
	written, err := JoinCSV(dir, parts, spec.CSVFiles{})
	if err != nil || len(written) != 1 {
		t.Fatalf("written %v, %v", written, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results", "metrics-model-inference.csv"))
	if diff := cmp.Diff("Model,X\na,1\nb,2\nb,3\n", string(text)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
