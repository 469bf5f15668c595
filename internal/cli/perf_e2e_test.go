//go:build linux && !noengine

package cli

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tuner/engine/api"
	"tuner/internal/exit"
)

// serveModel serves a sample model under its name.
func (w workplace) serveModel(name string) api.Announcement {
	w.t.Helper()
	folder := filepath.Join(w.dir, "repo", name, "1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	model, err := os.ReadFile(filepath.Join(os.Getenv("TUNER_MODELS"), name+".onnx"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join("repo", name, "1", "model.onnx"), string(model))
	server, at := w.serve(filepath.Join(w.dir, "repo"))
	w.t.Cleanup(func() { _ = server.cmd.Process.Kill() }) // it may have ended
	return at
}

// The commands in Triton's optimization guide work with the engine, over both protocols and
// streams, and with inputs from metadata and from the model's file.
func TestPerfMeasuresTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	at := w.serveModel("mlp")
	short := []string{"perf", "-m", "mlp", "--percentile=95", "--concurrency-range", "1:2", "-p", "300", "-r", "2"}
	for name, options := range map[string][]string{
		"http":        {"-u", at.HTTP, "-f", "http.csv", "--verbose-csv"},
		"grpc":        {"-u", at.GRPC, "-i", "grpc"},
		"stream":      {"-u", at.GRPC, "-i", "grpc", "--streaming"},
		"json":        {"-u", at.HTTP, "--input-tensor-format", "json", "--output-tensor-format", "json"},
		"graph":       {"-u", at.HTTP, "--model-file", filepath.Join(os.Getenv("TUNER_MODELS"), "mlp.onnx")},
		"async":       {"-u", at.HTTP, "--async"},
		"GPU figures": {"-u", at.HTTP, "--collect-metrics", "--metrics-url", at.Metrics + "/metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w
			w.t = t
			p := w.run(exit.OK, append(short[:len(short):len(short)], options...)...)
			for _, line := range []string{`(?m)^Request concurrency: 2$`, `(?m)^    p95 latency: \d+ usec$`, `(?m)^    Throughput: [\d.e+]+ infer/sec$`,
				`(?m)^    Execution count: [1-9]`, `(?m)^Concurrency: 2, throughput: [\d.e+]+ infer/sec, latency \d+ usec$`} {
				if !regexp.MustCompile(line).Match(p.stdout.Bytes()) {
					t.Errorf("no %s in\n%s", line, p.stdout.String())
				}
			}
		})
	}
	f, err := os.Open(filepath.Join(w.dir, "http.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][0] != "Concurrency" {
		t.Errorf("CSV %q, %v", rows, err)
	}
}

// One SIGINT ends a run cleanly and prints the finished measurements.
func TestInterruptedPerfPrintsWhatItKnows(t *testing.T) {
	t.Parallel()
	at := lawServer(t)
	tuner, err := exec.LookPath("tuner")
	if err != nil {
		t.Fatal(err)
	}
	export := filepath.Join(t.TempDir(), "export.json")
	cmd := exec.CommandContext(t.Context(), tuner, "perf", "-m", "law", "-u", at.HTTP, "--concurrency-range", "1:1000",
		"-p", "300", "-r", "2", "--profile-export-file", export)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	for line := ""; !strings.HasPrefix(line, "Request concurrency: 1"); {
		if line, err = out.ReadString('\n'); err != nil {
			t.Fatalf("%v; stderr:\n%s", err, stderr.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Interrupted {
		t.Errorf("got %v, want exit code %d; stderr:\n%s", err, exit.Interrupted, stderr.String())
	}
	if !strings.Contains(string(rest), "\nConcurrency: 1, throughput: ") || !strings.Contains(stderr.String(), "tuner: interrupted; levels measured until then: ") {
		t.Errorf("stdout ends with\n%s\nstderr:\n%s", rest, stderr.String())
	}
	text, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Experiments []struct{ Requests []any }
	}
	if err := json.Unmarshal(text, &whole); err != nil || len(whole.Experiments) == 0 || len(whole.Experiments[0].Requests) == 0 {
		t.Errorf("the export holds %d experiments, %v", len(whole.Experiments), err)
	}
}
