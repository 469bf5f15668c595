//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/lab/peers"
)

// exportProfile is a short campaign of MiniLM. Its result does not matter, only that the deployment
// equals the measured configuration.
const exportProfile = `model: %q
name: minilm
output: %q
search: {strategy: quick, budget: 45s, window: 1s}
space: {intra_op_threads: [1], instance_count: [1, 2], max_batch_size: [8, 16]}
load: {concurrency: [16], inputs: {shape: {input_ids: [32], attention_mask: [32], token_type_ids: [32]}}}
`

// exportRounds is the number of turns of both servers. exportShare is the least share of the
// engine's throughput that Triton must reach.
const (
	exportRounds = 3
	exportShare  = 0.9
)

// exported is the part of export.json that the test reads.
type exported struct {
	Repository string   `json:"repository"`
	Arguments  []string `json:"arguments"`
	Models     []struct {
		Load struct {
			Concurrency int `json:"concurrency"`
		} `json:"load"`
		Throughput struct {
			Value float64 `json:"value"`
		} `json:"throughput"`
	} `json:"models"`
}

// TestExport has a real Triton serve an exported repository with the exported arguments. It loads,
// and its throughput is that of the engine within 10 %. Both are measured in turn on this machine,
// so that its drift affects both.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	out, deploy := filepath.Join(dir, "out"), filepath.Join(dir, "deploy")
	program := environment(t, "TUNER_BINARY")
	profile := fmt.Sprintf(exportProfile, filepath.Join(environment(t, "TUNER_MODELS"), "minilm.onnx"), out)
	write(t, filepath.Join(dir, "profile.yaml"), []byte(profile))
	write(t, filepath.Join(dir, "analyze.yaml"), fmt.Appendf(nil, "input: %q\nformats: [table, config, repository]\n", out))
	runTool(t, dir, program, "profile", "-f", "profile.yaml", "--quiet", "--ort-library", find(t).ORTLibrary)
	runTool(t, dir, program, "analyze", "-f", "analyze.yaml")
	runTool(t, dir, program, "export", "triton", "--input", out, "-o", deploy)

	text, err := os.ReadFile(filepath.Join(deploy, "export.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e exported
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join(deploy, e.Repository)
	var triton, engine []float64
	for range exportRounds {
		triton = append(triton, served(t, e, func() (*peers.Server, error) {
			return find(t).StartTriton(t.Context(), repository, e.Arguments...)
		}))
		engine = append(engine, served(t, e, func() (*peers.Server, error) {
			return find(t).StartTuner(t.Context(), program, repository, e.Arguments...)
		}))
	}
	ratio := middle(triton) / middle(engine)
	t.Logf("reported %.1f infer/s; Triton %.1f, engine %.1f: ratio %.3f", e.Models[0].Throughput.Value, triton, engine, ratio)
	if ratio < exportShare {
		t.Errorf("a real Triton serves %.3f of the engine's throughput, less than %.2f", ratio, exportShare)
	}
}

// served starts a server, measures its throughput at the reported load, in infer/s, and stops it.
func served(t *testing.T, e exported, start func() (*peers.Server, error)) float64 {
	t.Helper()
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"perf", "-m", "minilm", "-i", "grpc", "-u", server.GRPC, "--output", "json", "--concurrency-range",
		fmt.Sprint(e.Models[0].Load.Concurrency)}, strings.Fields(tokens)...)
	report := runTool(t, "", environment(t, "TUNER_BINARY"), args...)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	var perf struct {
		Levels []struct {
			Throughput struct {
				Value float64 `json:"value"`
			} `json:"throughput"`
		} `json:"levels"`
	}
	if err := json.Unmarshal([]byte(report[strings.Index(report, "{"):]), &perf); err != nil || len(perf.Levels) != 1 {
		t.Fatalf("no report of one level: %v\n%s", err, report)
	}
	return perf.Levels[0].Throughput.Value
}

// middle returns the median of an odd number of values.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
