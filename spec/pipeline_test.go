package spec_test

import (
	"strings"
	"testing"

	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// pipelineText is a profile of an ensemble with three stages.
const pipelineText = `pipeline: repository/search
op_libraries: [ops.so]
load: {concurrency: [2, 8], client_batch_size: 2}
constraints: {latency_p99: 50ms}
models:
  tokenizer:
  encoder: {space: {instance_count: [1, 2], max_batch_size: [4, 8]}, constraints: {accuracy: {metric: cosine, min: 0.9}}, load: {inputs: {shape: {ids: [128]}}}}
  head: {model: other/head.onnx}
`

// Load and limits are the pipeline's. The stages have what is searched, and their models lie beside it unless
// they say otherwise.
func TestPipeline(t *testing.T) {
	t.Parallel()
	p, err := spec.ParseProfile("dir/p.yaml", []byte(pipelineText))
	if err != nil {
		t.Fatal(err)
	}
	if !p.IsPipeline() || p.Name != "search" || p.Output != "dir/out/search" || p.Search.Strategy != plan.Stagewise || len(p.Goal.Constraints) != 1 {
		t.Errorf("got %+v", p)
	}
	for i, want := range []string{"dir/repository/tokenizer", "dir/repository/encoder", "dir/other/head.onnx"} {
		if got := p.Models[i]; got.Model.Path != want || got.Output != p.Output || len(got.Model.Libraries.Operators) != 1 || got.Load.BatchSize != 2 {
			t.Errorf("stage %d is %+v, want the file %s", i, got, want)
		}
	}
	facts := search.Facts{Cores: 2, Parts: map[string]search.Facts{
		"tokenizer": {Cores: 2, IsForeign: true, BaseMaxBatchSize: 8, BaseInstances: 1, Batching: true},
		"encoder":   {Cores: 2, Batching: true}, "head": {Cores: 2, Batching: true},
	}}
	space := p.Space(facts)
	if !space.IsPipeline() || space.Load.BatchSize != 2 || len(space.Load.Levels) != 2 || len(space.Parts[0].Space.Knobs) != 0 {
		t.Errorf("the space is %+v", space)
	}
	// The tokenizer is fixed. The encoder has 2 × 2 configurations, and the head those of a default space.
	head := space.Parts[2].Space.Candidates()
	n, _ := head.Len()
	if all, _ := space.Candidates().Len(); all != 4*n {
		t.Errorf("%d candidates, want 4 × %d", all, n)
	}
}

// The requests of a pipeline may be the user's rows, such as texts for a tokenizer.
func TestRowsOfPipeline(t *testing.T) {
	t.Parallel()
	text := strings.Replace(pipelineText, "client_batch_size: 2}", "client_batch_size: 2, inputs: {data: texts.json}}", 1)
	p, err := spec.ParseProfile("dir/p.yaml", []byte(text))
	if err != nil || p.Inputs.Data != "dir/texts.json" {
		t.Errorf("data %q, %v", p.Inputs.Data, err)
	}
}

func TestPipelineMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, replaced, want string }{
		{"  head: {model: other/head.onnx}", "  head: {load: {request_rate: 5}}", "requests come from the pipeline"},
		{"  head: {model: other/head.onnx}", "  head: {constraints: {latency_p99: 5ms}}", "a limit on its accuracy alone"},
		{"  head: {model: other/head.onnx}", "  head: {space: {max_batch_size: [1]}}", "in every stage"},
		{"  head: {model: other/head.onnx}", "  search: {}", "has the name of the pipeline"},
		{"  head: {model: other/head.onnx}", "  head: {model: repository/encoder}", "is the file of encoder"},
		{"load: {c", "space: {instance_count: [1]}\nload: {c", "belongs to a stage"},
		{"load: {c", "scale: {min: 1, max: 2}\nload: {c", "is not supported beside pipeline"},
		{"constraints: {latency_p99: 50ms}", "constraints: {accuracy: {metric: cosine, min: 0.9}}", "belongs to a stage"},
		{"constraints: {latency_p99: 50ms}", "search: {strategy: colocation}", "strategy"},
		{"constraints: {latency_p99: 50ms}", "objective: scale", "is not a metric"},
		{"constraints: {latency_p99: 50ms}", "runner: {mode: remote, url: host}", "runner.mode"},
		{"concurrency: [2, 8]", "request_rate: 12.5", "must be a whole number"},
		{"concurrency: [2, 8]", "request_rate: []", "load.request_rate"},
		{"concurrency: [2, 8]", "request_rate: 50, arrivals: {trace: t.csv}", "repeats"},
		{"client_batch_size: 2}", "client_batch_size: 2, inputs: {mix: [{weight: 1, shape: {text: [1]}}, {weight: 1, shape: {text: [2]}}]}}", "all requests have one shape"},
	} {
		_, err := spec.ParseProfile("p.yaml", []byte(strings.Replace(pipelineText, c.old, c.replaced, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.replaced, err, c.want)
		}
	}
	if _, err := spec.ParseProfile("p.yaml", []byte("pipeline: repository/search\n")); err == nil ||
		!strings.HasPrefix(err.Error(), "p.yaml:1: pipeline: calls no known models") || !strings.Contains(err.Error(), "write models: {NAME: {}, …}") {
		t.Errorf("without stages: %v", err)
	}
}
