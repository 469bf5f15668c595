//go:build conformance

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/engine/api"
)

// runnerProfile is a campaign of a few seconds on a sample model.
const runnerProfile = `model: %[1]q
name: %[2]s
output: %[3]q
%[4]s
search: {strategy: grid, budget: {time: 2m, trials: %[5]d}, window: 200ms}
space: {precision: [%[6]s], execution_provider: [cpu, openvino], instance_count: [1, 2]}
load: {concurrency: [1, 2]}
constraints: {latency_p99: {max: 10s}, accuracy: {metric: cosine, min: 0.5}%[7]s}
`

// profiled runs a campaign and its analysis, and returns its folder and output.
func profiled(t *testing.T, name, runner, precisions, constraints string, trials int) (dir, output string) {
	t.Helper()
	dir = t.TempDir()
	text := fmt.Sprintf(runnerProfile, filepath.Join(environment(t, "TUNER_MODELS"), "mlp.onnx"), name, filepath.Join(dir, "out"), runner, trials, precisions, constraints)
	if err := os.WriteFile(filepath.Join(dir, "profile.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "analyze.yaml"), []byte("input: out\nformats: [table, config]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TUNER_ORT_LIBRARY", find(t).ORTLibrary)
	output = runTool(t, dir, environment(t, "TUNER_BINARY"), "profile", "-f", "profile.yaml")
	return dir, output + runTool(t, dir, environment(t, "TUNER_BINARY"), "analyze", "-f", "analyze.yaml")
}

// contains fails the test if a text lacks one of the parts, or reports failed trials.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range append(parts, "(0 failed)") {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// TestRunnerLocal searches two precisions of the model on a real Triton that tuner launches.
func TestRunnerLocal(t *testing.T) {
	runner := fmt.Sprintf("runner: {mode: local, server: %q, args: [--log-verbose=0]}", find(t).Triton)
	dir, output := profiled(t, "mlp", runner, "fp32, int8", ", memory: {max: 8GB}", 12)
	contains(t, output, "mlp on triton 2.", "mlp: 12 trials", "Measured on triton 2.")
	report, err := os.ReadFile(filepath.Join(dir, "out", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "does not load the model: load failed for model 'mlp'"; !strings.Contains(string(report), want) {
		t.Errorf("the fold of the provider that this Triton does not have has no %q:\n%s", want, report)
	}
	journal, err := os.ReadFile(filepath.Join(dir, "out", "journal.jsonl"))
	if err != nil || !strings.Contains(string(journal), `"value":"int8"`) || strings.Contains(string(journal), `"memory":0,`) {
		t.Errorf("int8 was not measured, or the memory is not known: %v", err)
	}
}

// TestRunnerRemote searches on a real Triton that already runs. The cases are its own model with
// another precision that is sent, an unknown model, and files that are put into its repository.
// Afterwards its models are unchanged.
func TestRunnerRemote(t *testing.T) {
	repository := t.TempDir()
	models := []Model{{Name: "mlp", File: "mlp", Versions: []string{"1"}}, {Name: "simple", File: "simple", Versions: []string{"1"}}}
	if err := WriteRepository(models, repository, environment(t, "TUNER_MODELS")); err != nil {
		t.Fatal(err)
	}
	server, err := find(t).StartTriton(t.Context(), repository, "--model-control-mode=explicit", "--load-model=mlp", "--load-model=simple")
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, server)
	client, err := api.NewGRPC(server.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before, err := client.ModelConfig(t.Context(), "mlp")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, runner, precisions string }{
		{"mlp", fmt.Sprintf("runner: {mode: remote, url: %q, metrics_url: %q}", server.GRPC, "http://"+server.Metrics+"/metrics"), "fp32, int8"},
		{"mlp", fmt.Sprintf("runner: {mode: remote, url: %q}", "http://"+server.HTTP), "int8, fp32"},
		{"unheard_of", fmt.Sprintf("runner: {mode: remote, url: %q}", server.GRPC), "fp32, int8"},
		{"placed", fmt.Sprintf("runner: {mode: remote, url: %q, model_repository: %q}", server.GRPC, repository), "fp32, int8"},
	} {
		t.Run(c.name+" "+c.precisions, func(t *testing.T) {
			_, output := profiled(t, c.name, c.runner, c.precisions, "", 8)
			contains(t, output, c.name+": 8 trials", "Measured on triton 2.")
			after, err := client.ModelConfig(t.Context(), "mlp")
			if err != nil || after.String() != before.String() {
				t.Errorf("the model was served with\n%v\nand is now with\n%v, %v", before, after, err)
			}
			for model, want := range map[string]bool{"simple": true, "unheard_of": false, "placed": false} {
				if isReady, err := client.ModelReady(t.Context(), model); err != nil || isReady != want {
					t.Errorf("model %s is ready: %t, %v, want %t", model, isReady, err, want)
				}
			}
			if left, err := os.ReadDir(repository); err != nil || len(left) != 2 {
				t.Errorf("the server's repository holds %v, %v", left, err)
			}
		})
	}
}

// TestRunnerFinals searches on the bundled engine and confirms on a real Triton.
func TestRunnerFinals(t *testing.T) {
	runner := fmt.Sprintf("finals: {runner: {mode: local, server: %q}}", find(t).Triton)
	dir, output := profiled(t, "mlp", runner, "fp32, int8", "", 14)
	contains(t, output, "finals on triton 2.", "mlp: 14 trials", "The search was measured on the bundled engine, and the finals on triton 2.", "measured again on")
	config, err := os.ReadFile(filepath.Join(dir, "out", "optimal", "config.pbtxt"))
	if err != nil || !strings.Contains(string(config), "seed 1, triton 2.") {
		t.Errorf("the optimal configuration does not say where it was measured: %v\n%s", err, config)
	}
}
