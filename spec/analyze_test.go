package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
)

func TestParseAnalyze(t *testing.T) {
	t.Parallel()
	check := func(name, text string, want Analyze) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAnalyze("work/analyze.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	check("defaults", "input: out/minilm", Analyze{Path: "work/analyze.yaml", Input: "work/out/minilm", Output: "work/out/minilm",
		Top: 3, Mode: ModeOnline, Formats: []string{"table", "csv", "png", "config", "repository"}})
	p99 := single(measure.LatencyP99)
	check("complete", `
input: ../out
output: results
objective: perf_latency_p99
constraints: {perf_throughput: {min: 50}}
top: 5
mode: online
formats: [csv, table]
`, Analyze{Path: "work/analyze.yaml", Input: "out", Output: "work/results", Objective: &p99,
		Constraints: []search.Constraint{{Metric: measure.Throughput, Min: pointer(50.0)}},
		Top:         5, Mode: ModeOnline, Formats: []string{"csv", "table"}})
}

func TestAnalyzeMistakes(t *testing.T) {
	t.Parallel()
	check := func(text string, want ...string) {
		t.Helper()
		_, err := ParseAnalyze("a.yaml", []byte(text))
		if diff := cmp.Diff(want, mistakes(t, err)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("", "1: the file is empty")
	check("top: 0", "1: top: is out of range", "1: input: is required")
	check("input: x\nmode: offline", "2: mode: is not supported by this version")
	check("input: x\nmode: fast\nformats: [csv, pdf, csv]",
		"2: mode: is not known", "3: formats[1]: is not known", "3: formats[2]: appears twice in the list")
	check("input: x\nobjective: throughput\nweights: {cpu: 1}", "3: weights: contradicts objective")
	check("report_model_configs: [a]", "1: report_model_configs: belongs to Triton Model Analyzer's files, which profile and analyze read")
}

// An analyze.yaml replaces what it gives and keeps the rest; an empty mapping of constraints removes them.
func TestAnalyzeGoal(t *testing.T) {
	t.Parallel()
	campaign := search.Goal{Objective: single(measure.Throughput),
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: pointer(0.05)}}}
	check := func(text string, want search.Goal) {
		t.Helper()
		a, err := ParseAnalyze("a.yaml", []byte("input: x\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Goal(campaign)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	check("", campaign)
	check("objective: memory", search.Goal{Objective: single(measure.Memory), Constraints: campaign.Constraints})
	check("constraints: {}", search.Goal{Objective: campaign.Objective, Constraints: []search.Constraint{}})
	check("objective: cost\nprice: {per_hour: 0.4}", search.Goal{Objective: single(measure.Cost), Constraints: campaign.Constraints, Price: 0.4})
	campaign.Price = 2
	check("objective: cost", search.Goal{Objective: single(measure.Cost), Constraints: campaign.Constraints, Price: 2})
	check("price: {per_hour: 3}", search.Goal{Objective: campaign.Objective, Constraints: campaign.Constraints, Price: 3})
	a, err := ParseAnalyze("a.yaml", []byte("input: x\nconstraints: {cost: {max: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Goal(search.Goal{Objective: single(measure.Throughput)})
	if want := "a.yaml: price: is required: cost cannot be told without it"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a cost without a price: %v, want %q", err, want)
	}
}
