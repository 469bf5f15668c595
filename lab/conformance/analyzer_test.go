//go:build conformance

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/programtest"
	"tuner/lab/peers"
)

// analyzerProfile is a small search of the real Model Analyzer: two instance counts and two batch
// sizes at two loads. Model Analyzer itself reads the repository, and writes its variants to the
// output repository.
const analyzerProfile = `model_repository: %[1]s
output_model_repository_path: %[2]s/variants
export_path: %[2]s
override_output_model_repository: true
perf_analyzer_path: %[3]s
perf_analyzer_timeout: 60
perf_output: true
perf_analyzer_cpu_util: 100000
run_config_search_mode: %[4]s
run_config_search_max_instance_count: 2
run_config_search_min_model_batch_size: 2
run_config_search_max_model_batch_size: 4
run_config_search_min_concurrency: 2
run_config_search_max_concurrency: %[9]d
client_protocol: %[5]s
checkpoint_directory: %[2]s/checkpoints
always_report_gpu_metrics: false
skip_detailed_reports: true
monitoring_interval: 0.4
%[6]s
profile_models:
  %[7]s:
    cpu_only: true
    perf_analyzer_flags:
      %[8]s
      measurement-mode: time_windows
      measurement-interval: 400
      stability-percentage: 999
      max-trials: 10
`

// The perf_analyzer flags of the profiled models.
const (
	zeroFlags   = "input-data: zero"
	minilmFlags = zeroFlags + "\n      shape:\n      - input_ids:32\n      - attention_mask:32\n      - token_type_ids:32"
)

// TestModelAnalyzer runs the real, unchanged Model Analyzer with our engine in place of Triton.
func TestModelAnalyzer(t *testing.T) {
	for _, tc := range []struct {
		name, launch, search, protocol, model, flags string
		concurrency                                  int // highest
	}{
		{"local, brute search", "local", "brute", "grpc", "simple", zeroFlags, 2},
		{"local, quick search of MiniLM", "local", "quick", "grpc", "minilm", minilmFlags, 4},
		{"remote, brute search", "remote", "brute", "http", "simple", zeroFlags, 2},
		{"remote, quick search", "remote", "quick", "grpc", "simple", zeroFlags, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, dir := find(t), t.TempDir()
			repository, place := newRepository(t, "analyzer"), ""
			if tc.launch == "local" {
				place = local(t, p, dir)
			} else {
				place = remote(t, p, repository)
			}
			profile := filepath.Join(dir, "profile.yaml")
			text := fmt.Sprintf(analyzerProfile, repository, dir, p.PerfAnalyzer, tc.search, tc.protocol, place, tc.model, tc.flags, tc.concurrency)
			if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			output := runTool(t, dir, p.ModelAnalyzer, "profile", "-f", profile)
			results := filepath.Join(dir, "results", "metrics-model-inference.csv")
			data, err := os.ReadFile(results)
			if err != nil {
				t.Fatalf("no results: %v\n%s", err, output)
			}
			if lines := bytes.Count(data, []byte("\n")); lines < 4 {
				t.Errorf("only %d lines of results:\n%s\n%s", lines, data, output)
			}
			checkImport(t, dir, tc.model, data)
			for _, bad := range []string{"Perf Analyzer did not produce any output", "failed with exit status", "ERROR"} {
				if strings.Contains(output, bad) {
					t.Errorf("the output says %q:\n%s", bad, output)
				}
			}
		})
	}
}

// checkImport ranks the checkpoint of Model Analyzer: it has as many configurations as Model
// Analyzer's own table.
func checkImport(t *testing.T, dir, model string, table []byte) {
	t.Helper()
	runTool(t, dir, environment(t, "TUNER_BINARY"), "analyze", "--import", filepath.Join(dir, "checkpoints"), "--export-path", filepath.Join(dir, "imported"))
	data, err := os.ReadFile(filepath.Join(dir, "imported", "results", "metrics-model-inference.csv"))
	if err != nil {
		t.Fatal(err)
	}
	row := []byte("\n" + model + ",")
	if got, want := bytes.Count(data, row), bytes.Count(table, row); got != want || got == 0 {
		t.Errorf("%d rows of the checkpoint, and %d in Model Analyzer's own table:\n%s\n%s", got, want, data, table)
	}
}

// checkServes has a real Triton serve MiniLM from a repository.
func checkServes(t *testing.T, p *peers.Peers, repository string) {
	t.Helper()
	server, err := p.StartTriton(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	args := append([]string{"perf", "-m", "minilm", "-i", "grpc", "-u", server.GRPC, "--concurrency-range", "2", "--request-count", "200"}, strings.Fields(tokens)...)
	if output := runTool(t, "", environment(t, "TUNER_BINARY"), args...); !strings.Contains(output, "infer/sec") {
		t.Errorf("nothing was served:\n%s", output)
	}
}

// TestModelAnalyzersFile has tuner profile MiniLM with the same file on a real Triton that it
// starts, or that already runs. A Triton then serves the chosen configuration.
func TestModelAnalyzersFile(t *testing.T) {
	for _, launch := range []string{"local", "remote"} {
		t.Run(launch, func(t *testing.T) {
			p, dir := find(t), t.TempDir()
			repository := newRepository(t, "analyzer")
			place := "triton_launch_mode: local\ntriton_server_path: " + p.Triton
			if launch == "remote" {
				server, err := p.StartTriton(t.Context(), repository, "--model-control-mode=explicit")
				if err != nil {
					t.Fatal(err)
				}
				stopAtEnd(t, server)
				place = fmt.Sprintf("triton_launch_mode: remote\ntriton_http_endpoint: %s\ntriton_grpc_endpoint: %s", server.HTTP, server.GRPC)
			}
			profile := filepath.Join(dir, "profile.yaml")
			text := fmt.Sprintf(analyzerProfile, repository, dir, p.PerfAnalyzer, "quick", "grpc", place, "minilm", minilmFlags+"\n      percentile: 95", 4)
			if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			output := runTool(t, dir, environment(t, "TUNER_BINARY"), "profile", "-f", profile)
			data, err := os.ReadFile(filepath.Join(dir, "results", "metrics-model-inference.csv"))
			if err != nil || !strings.Contains(string(data), "minilm_config_default") || !strings.Contains(string(data), "minilm_config_1") {
				t.Errorf("results %q, %v\n%s", data, err, output)
			}
			if !strings.Contains(output, "on triton 2.") || strings.Contains(output, "failed (") {
				t.Errorf("not measured on the real Triton, or with failures:\n%s", output)
			}
			checkServes(t, p, filepath.Join(dir, "repository"))
		})
	}
}

// local makes a program that Model Analyzer starts as tritonserver, and returns the profile's lines
// for it.
func local(t *testing.T, p *peers.Peers, dir string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nexec %s serve --ort-library=%s \"$@\"\n", environment(t, "TUNER_BINARY"), p.ORTLibrary)
	wrapper := programtest.Write(t, filepath.Join(dir, "tritonserver"), script)
	ports, err := peers.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("triton_launch_mode: local\ntriton_server_path: %s\ntriton_http_endpoint: %s\ntriton_grpc_endpoint: %s\ntriton_metrics_url: http://%s/metrics",
		wrapper, ports[0], ports[1], ports[2])
}

// remote starts our engine and returns the profile's lines for it.
func remote(t *testing.T, p *peers.Peers, repository string) string {
	t.Helper()
	server, err := p.StartTuner(t.Context(), environment(t, "TUNER_BINARY"), repository, "--model-control-mode=explicit")
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	return fmt.Sprintf("triton_launch_mode: remote\ntriton_http_endpoint: %s\ntriton_grpc_endpoint: %s\ntriton_metrics_url: http://%s/metrics",
		server.HTTP, server.GRPC, server.Metrics)
}
