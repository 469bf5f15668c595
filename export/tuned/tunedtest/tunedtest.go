// Package tunedtest makes folders of analyzed campaigns from package report's golden results, for tests.
package tunedtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/export/tuned"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/report/result"
	"tuner/search"
)

// Package report's golden results of one model, and of two on one server.
const (
	One = "found.json"
	Two = "two.json"
)

// Divided are replacements in Two: the best configuration gives each model a core of its own.
func Divided() []string {
	return []string{`"name": "encoder+ranker_config_3",`, `"name": "encoder+ranker_config_3", "host_policies": ["cores_0-0,cpu-cores=0-0", "cores_1-1,cpu-cores=1-1"],`,
		`name: \"encoder\"\n  kind`, `name: \"encoder\"\n  host_policy: \"cores_0-0\"\n  kind`,
		`name: \"ranker\"\n  kind`, `name: \"ranker\"\n  host_policy: \"cores_1-1\"\n  kind`}
}

// Text returns a golden result with texts replaced. root is the module's folder, relative to the test.
func Text(t testing.TB, root, name string, replace ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "report", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(replace...).Replace(string(text)))
}

// Analyzed makes an output folder of `tuner analyze` from such a result, with a repository of its models. It makes
// none for a broken result.
func Analyzed(t testing.TB, root, name string, replace ...string) string {
	t.Helper()
	return analyzed(t, root, Text(t, root, name, replace...))
}

// AnalyzedPipeline is Analyzed for PipelineText.
func AnalyzedPipeline(t testing.TB, root string) string {
	t.Helper()
	return analyzed(t, root, PipelineText(t, root))
}

// Configurations of the pipeline's tokenizer, and of itself.
const (
	tokenizerConfig = `name: "tokenizer" backend: "identity" max_batch_size: 8 input { name: "INPUT0" data_type: TYPE_INT64 dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_INT64 dims: -1 } instance_group { count: 2 kind: KIND_CPU }`
	pipelineConfig = `name: "search" platform: "ensemble" max_batch_size: 8 input { name: "TEXT" data_type: TYPE_INT64 dims: -1 }
output { name: "VECTOR" data_type: TYPE_FP32 dims: 384 } ensemble_scheduling {
step { model_name: "tokenizer" model_version: -1 input_map { key: "INPUT0" value: "TEXT" } output_map { key: "OUTPUT0" value: "tokens" } }
step { model_name: "minilm" model_version: -1 input_map { key: "input_ids" value: "tokens" } output_map { key: "embedding" value: "VECTOR" } } }`
)

// PipelineText returns the golden result of one model as that of a pipeline, which calls a tokenizer of another
// backend and then the model. A request waits for 1 ms in the tokenizer's queue, and for 4 ms in the model's.
func PipelineText(t testing.TB, root string) []byte {
	t.Helper()
	d, err := result.Parse(One, Text(t, root, One))
	if err != nil {
		t.Fatal(err)
	}
	const pipeline, tokenizer = "search", "tokenizer"
	model := d.Model
	d.Model, d.Stages = pipeline, []string{tokenizer, model}
	two, none := 2, 1
	for i := range d.Configurations {
		c := &d.Configurations[i]
		c.Models = []result.Configured{
			{Model: tokenizer, Setup: result.Setup{Provider: "cpu", Precision: "fp32", Runtime: c.Setup.Runtime, Instances: &two}, Config: tokenizerConfig},
			{Model: model, Setup: c.Setup, Config: c.Config},
			{Model: pipeline, Setup: result.Setup{Provider: "cpu", Precision: "fp32", Runtime: c.Setup.Runtime, Instances: &none}, Config: pipelineConfig},
		}
		var settings []search.Setting
		for _, s := range c.Settings.Settings() {
			settings = append(settings, search.Setting{Knob: search.JoinKnob(model, s.Knob), Value: s.Value})
		}
		c.Settings, c.Config = search.NewCandidate(settings...), ""
	}
	for i := range d.Origin.Models {
		d.Origin.Models[i].Model = model
	}
	for _, name := range []string{tokenizer, pipeline} {
		d.Origin.Models = append(d.Origin.Models, result.Model{Model: name, Precision: "fp32", Path: name, SHA256: "ab" + name})
	}
	if d.Explanation == nil || d.Explanation.Subjects[0].Name != d.Best {
		t.Fatal("the result does not explain its best configuration")
	}
	d.Explanation.Subjects[0].Stages = []result.Stage{
		{Model: tokenizer, Instances: 2, Busy: 0.1, Calls: 1, Queue: 0.001, Compute: 0.001}, {Model: model, Instances: 2, Busy: 1.8, Calls: 1, Queue: 0.004, Compute: 0.02},
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// analyzed makes an output folder of a result's text.
func analyzed(t testing.TB, root string, text []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, result.FileName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	models, err := tuned.Parse(result.FileName, text, nil)
	if err != nil {
		return dir // the test needs the broken folder
	}
	source := modelrepo.Source{Path: filepath.Join(root, "testdata", "ort", "add_sub.onnx"), Digest: "d"}
	for _, m := range models {
		for _, f := range m.Folders() {
			if err := modelrepo.Write(filepath.Join(dir, "repository"), source, modelconfig.Clone(f.Config)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}
