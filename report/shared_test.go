package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/report"
	"tuner/report/formats"
	"tuner/report/reporttest"
	"tuner/spec"
	"tuner/spec/csvfiles"
)

// The analysis sets the names of the CSV files. Unknown cells are empty.
func TestCSVFiles(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{CSV: csvfiles.Files{
		Inference: csvfiles.File{Name: "own.csv", Columns: []string{"model_config_path", "request_rate", "perf_latency_p90", "perf_client_send_recv", "backend_parameter/nosuch"}}}})
	dir := t.TempDir()
	if _, err := formats.All().WriteAll(dir, r, []string{"csv"}); err != nil {
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

func TestSharedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"config.yml", "results/metrics-model-inference.csv"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("theirs"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	for range 2 { // the second pass replaces the first files
		if _, err := formats.All().WriteShared(dir, r, []string{"csv", spec.FormatConfig}); err != nil {
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
	var refused *report.InputError
	if _, err := formats.All().WriteShared(other, r, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), `it holds "report.md", which is not tuner's`) {
		t.Errorf("error is %v, want an InputError", err)
	}
}
