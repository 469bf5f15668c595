//go:build linux && !noengine

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// pipelineProfile is a profile of the ensemble "search" in a repository: three stages, of which the second
// computes most.
const pipelineProfile = `pipeline: repository/search
output: out
search: {budget: {time: 3m, trials: 8}, window: 100ms}
models:
  encoder: {space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 4]}}
load: {concurrency: [2, 8]}
`

// newPipeline writes an ensemble of a model that returns its input, a heavy product of matrices, and a light
// one.
func newPipeline(t *testing.T, profile string) workplace {
	t.Helper()
	if os.Getenv("TUNER_ORT_LIBRARY") == "" {
		t.Skip("needs ONNX Runtime: run 'make test', which sets TUNER_ORT_LIBRARY")
	}
	w := workplace{t: t, dir: t.TempDir()}
	w.output = filepath.Join(w.dir, "out")
	w.put("tokenizer/config.pbtxt", `backend: "identity" max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: 64 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 64 }
instance_group { count: 1 kind: KIND_CPU }`)
	w.put("tokenizer/1/.keep", "")
	w.put("search/config.pbtxt", `platform: "ensemble" max_batch_size: 8
input { name: "TEXT" data_type: TYPE_FP32 dims: 64 } output { name: "SCORE" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step { model_name: "tokenizer" model_version: -1 input_map { key: "INPUT0" value: "TEXT" } output_map { key: "OUTPUT0" value: "tokens" } }
  step { model_name: "encoder" model_version: -1 input_map { key: "x" value: "tokens" } output_map { key: "y" value: "vector" } }
  step { model_name: "head" model_version: -1 input_map { key: "x" value: "vector" } output_map { key: "y" value: "SCORE" } }
}`)
	w.put("search/1/.keep", "")
	w.putProducts("encoder", 64, 64, 256, 12)
	w.putProducts("head", 64, 4, 8, 1)
	w.write("profile.yaml", profile)
	return w
}

// put writes a file of the repository.
func (w workplace) put(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.dir, "repository", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// putModel writes a model of the repository with its configuration.
func (w workplace) putModel(name string, m *onnx.Model, config string) {
	w.t.Helper()
	w.put(name+"/config.pbtxt", config)
	w.put(name+"/1/.keep", "")
	if err := m.Write(filepath.Join(w.dir, "repository", name, "1", "model.onnx"), 1<<30); err != nil {
		w.t.Fatal(err)
	}
}

// putProducts writes a model that multiplies matrices.
func (w workplace) putProducts(name string, in, out, width int64, layers int) {
	w.t.Helper()
	w.putModel(name, products(in, out, width, layers), fmt.Sprintf(`platform: "onnxruntime_onnx" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: %d } output { name: "y" data_type: TYPE_FP32 dims: %d }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching {}`, in, out))
}

// products multiplies its input, FLOAT[batch, in], with matrices of a width, and gives y FLOAT[batch, out].
func products(in, out, width int64, layers int) *onnx.Model {
	g := build.NewGraph("products")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(in))
	for i := range layers + 1 {
		rows, columns := width, width
		if i == 0 {
			rows = in
		}
		if i == layers {
			columns = out
		}
		values := make([]float32, rows*columns)
		for k := range values {
			values[k] = float32(k%7-3) / float32(rows)
		}
		x = g.Node("MatMul", []string{x, g.Floats(fmt.Sprintf("w%d", i), values, rows, columns)})
	}
	g.OutputAs("y", x, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(out))
	return g.Model()
}

// A campaign of a pipeline finds its stages, measures it through the ensemble, names the bottleneck and
// writes a repository with all models. The same command resumes it.
func TestPipeline(t *testing.T) {
	t.Parallel()
	w := newPipeline(t, pipelineProfile)
	p := w.start("profile", "profile.yaml", "-q")
	if code := p.exit(); code != 0 {
		t.Fatalf("profile exits with %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
	p = w.start("analyze", "--input", "out", "--explain")
	if code := p.exit(); code != 0 {
		t.Fatalf("analyze exits with %d: %s", code, p.stderr.String())
	}
	text := p.stdout.String()
	for _, want := range []string{"ottleneck is encoder", "tokenizer", "head", "infer/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, text)
		}
	}
	for _, file := range []string{"search/config.pbtxt", "search/1", "tokenizer/config.pbtxt", "encoder/1/model.onnx", "encoder/config.pbtxt", "head/1/model.onnx"} {
		if _, err := os.Stat(filepath.Join(w.output, "repository", file)); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(w.output, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Explanation struct {
			Subjects []struct {
				BottleneckStage string `json:"bottleneck_stage"`
			} `json:"subjects"`
		} `json:"explanation"`
	}
	if err := json.Unmarshal(data, &result); err != nil || len(result.Explanation.Subjects) == 0 || result.Explanation.Subjects[0].BottleneckStage != "encoder" {
		t.Errorf("result.json: %v, %+v", err, result)
	}
	p = w.start("profile", "profile.yaml", "-q") // nothing is left to do
	if code := p.exit(); code != 0 {
		t.Errorf("the second run exits with %d: %s", code, p.stderr.String())
	}
}

// Mistakes that only the files show are told with their place, before anything is measured.
func TestPipelineMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, replaced, want string }{
		{"models:\n", "models:\n  other: {model: repository/head/1/model.onnx}\n", `has no step that calls "other"`},
		{"models:\n", "models:\n  tokenizer: {space: {intra_op_threads: [1, 2]}}\n", "so only"},
		{"repository/search", "repository/nowhere", "cannot open model folder"},
	} {
		w := newPipeline(t, strings.Replace(pipelineProfile, c.old, c.replaced, 1))
		p := w.start("profile", "profile.yaml", "-q")
		if code := p.exit(); code != 2 || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("%s: exits with %d: %s, want %q", c.replaced, code, p.stderr.String(), c.want)
		}
	}
}
