package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/spec/csvfiles"
	"tuner/spec/goals"
	"tuner/spec/plots"
)

// allFormats returns the program's formats.
func allFormats() []string {
	return []string{"table", "csv", "data", "png", "html", "junit", FormatConfig, FormatRepository, FormatHelm}
}

func TestParseAnalyze(t *testing.T) {
	t.Parallel()
	check := func(name, text string, want Analyze) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAnalyze("work/analyze.yaml", []byte(text), allFormats())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	check("defaults", "input: out/minilm", Analyze{Path: "work/analyze.yaml", Input: "work/out/minilm", Output: "work/out/minilm",
		Top: 3, Rank: RankScore, Formats: allFormats()})
	p99 := goals.Single(measure.LatencyP99)
	check("complete", `
input: ../out
output: results
objective: perf_latency_p99
constraints: {perf_throughput: {min: 50}}
confidence: 0.9
top: 5
mode: online
rank: score
at: concurrency=8
inference_output_fields: [perf_latency_p95, model_name, backend_parameter/intra_op_thread_count]
gpu_output_fields: [gpu_uuid]
server_output_fields: gpu_power_usage
plots:
  mine: {title: Mine, x_axis: perf_latency_p95, y_axis: throughput, monotonic: true}
  load: {x_axis: request_rate, y_axis: gpu_power_usage}
formats: [csv, table]
`, Analyze{Path: "work/analyze.yaml", Input: "out", Output: "work/results", Objective: &p99,
		Constraints: []search.Constraint{{Metric: measure.Throughput, Min: pointer(50.0)}},
		Confidence:  0.9, Top: 5, Mode: ModeOnline, Rank: RankScore, At: &At{Load: measure.Load{Concurrency: 8}},
		CSV: csvfiles.Files{Inference: csvfiles.File{Columns: []string{"perf_latency_p95", "model_name", "backend_parameter/intra_op_thread_count"}},
			GPU: csvfiles.File{Columns: []string{"gpu_uuid"}}, Server: csvfiles.File{Columns: []string{"gpu_power_usage"}}},
		Plots:   []plots.Plot{{Name: "mine", Title: "Mine", X: "latency_p95", Y: measure.Throughput, IsMonotonic: true}, {Name: "load", Y: measure.GPUPower}},
		Formats: []string{"csv", "table"}})
}

func TestAnalyzeMistakes(t *testing.T) {
	t.Parallel()
	check := func(text string, want ...string) {
		t.Helper()
		_, err := ParseAnalyze("a.yaml", []byte(text), allFormats())
		if diff := cmp.Diff(want, mistakes(t, err)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("", "1: the file is empty")
	check("top: 0", "1: top: is out of range", "1: input: is required")
	check("input: x\nat: concurrency=0\nrank: mean", "2: at: is not a load to compare at", "3: rank: is not known")
	check("input: x\nat: request_rate=Inf", "2: at: is not a load to compare at")
	check("input: x\nrank: top3-mean\nat: concurrency=8", "2: rank: top3-mean is a mean over loads, and configurations are compared at one")
	check("input: x\nmode: online\nrank: top3-mean", "3: rank: top3-mean is a mean over loads, and configurations are compared at one")
	check("input: x\nrank: top3-mean\nobjective: memory", "2: rank: top3-mean is a mean of throughputs, and the objective is another")
	check("input: x\ninference_output_fields: [perf_latency_p98, backend_parameter/, batch_size, batch_size]\nserver_output_fields: [batch_size]",
		"2: inference_output_fields[0]: is not a column of this file", "2: inference_output_fields[1]: is not a column of this file",
		"2: inference_output_fields[3]: appears twice in the list", "3: server_output_fields[0]: is not a column of this file")
	check("input: x\nmode: fast\nformats: [csv, pdf, csv]",
		"2: mode: is not known", "3: formats[1]: is not known", "3: formats[2]: appears twice in the list")
	check("input: x\nformats: [csv, helm]", "2: formats: has helm, the chart of the repository, without that")
	check("input: x\nplots: {a/b: {x_axis: latency_p99, y_axis: throughput}, c: {y_axis: concurrency}, d: {x_axis: batch_size, y_axis: cpu, z: 1}}",
		"2: plots.a/b: is not usable as the name of a file", "2: plots.c.y_axis: is not a metric", "2: plots.c: has no x_axis",
		"2: plots.d.x_axis: is not a metric", "2: plots.d.z: unknown field")
	check("input: x\nobjective: throughput\nweights: {cpu: 1}", "3: weights: contradicts objective")
	check("report_model_configs: [a]", "1: report_model_configs: belongs to Triton Model Analyzer's files, which profile and analyze read")
}

// An analyze.yaml replaces what it sets and keeps the rest. An empty mapping of constraints removes
// them.
func TestAnalyzeGoal(t *testing.T) {
	t.Parallel()
	campaign := search.Goal{Objective: goals.Single(measure.Throughput),
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: pointer(0.05)}}}
	check := func(text string, want search.Goal) {
		t.Helper()
		a, err := ParseAnalyze("a.yaml", []byte("input: x\n"+text), allFormats())
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Goal(campaign, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	check("", campaign)
	check("objective: memory", search.Goal{Objective: goals.Single(measure.Memory), Constraints: campaign.Constraints})
	check("constraints: {}", search.Goal{Objective: campaign.Objective, Constraints: []search.Constraint{}})
	check("objective: cost\nprice: {per_hour: 0.4}", search.Goal{Objective: goals.Single(measure.Cost), Constraints: campaign.Constraints, Price: 0.4})
	campaign.Price = 2
	check("objective: cost", search.Goal{Objective: goals.Single(measure.Cost), Constraints: campaign.Constraints, Price: 2})
	check("price: {per_hour: 3}", search.Goal{Objective: campaign.Objective, Constraints: campaign.Constraints, Price: 3})
	a, err := ParseAnalyze("a.yaml", []byte("input: x\nconstraints: {cost: {max: 1}}"), allFormats())
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Goal(search.Goal{Objective: goals.Single(measure.Throughput)}, nil)
	if want := "a.yaml: price: is required: the metric cost needs it"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a cost without a price: %v, want %q", err, want)
	}
}
