package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
)

// The goal's own metrics have columns, and stand in the comments of the optimum.
func TestGoalsMetricsAreShown(t *testing.T) {
	t.Parallel()
	limit := 0.05
	goal := search.Goal{
		Objective: search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}}, Price: 0.4,
		Constraints: []search.Constraint{{Metric: "latency_p99.9", Max: &limit}, {Metric: measure.LatencyAvg, Max: &limit}},
	}
	r := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(analyzetest.Candidate(2, 1, 16), 8, 16), analyze.Options{Goal: &goal})
	var table, config bytes.Buffer
	if err := WriteTable(&table, r); err != nil {
		t.Fatal(err)
	}
	if err := WriteConfig(&config, r); err != nil {
		t.Fatal(err)
	}
	// 0.4 an hour at 614 infer/s: 0.4 / 3600 / 614 · 1e6 = 0.181.
	for text, wants := range map[string][]string{
		table.String():  {"cost/M p99.9 ms mean ms", " 0.18", "the default's cost", "p99.9 ≤ 50 ms, mean latency ≤ 50 ms kept: "},
		config.String(): {"cost 0.18", " per million [", "p99.9 ", "mean latency "},
	} {
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
}

func TestMetricColumns(t *testing.T) {
	t.Parallel()
	check := func(m measure.Metric, value float64, header, cell string) {
		t.Helper()
		c := analyze.Config{Best: &analyze.Point{Sample: analyze.Sample{Values: map[measure.Metric]measure.Estimate{m: {Value: value}}}}}
		if col := metricColumn(m); col.header != header || col.cell(c) != cell {
			t.Errorf("%s has the column %q with %q, want %q with %q", m, col.header, col.cell(c), header, cell)
		}
	}
	check(measure.LatencyP95, 0.0004, "p95 ms", "0.400")
	check("latency_p99.9", 0.0412, "p99.9 ms", "41.2")
	check(measure.LatencyAvg, 0.0045, "mean ms", "4.50")
	check(measure.QueueTime, 0.0045, "queue ms", "4.50")
	check(measure.ComputeInfer, 0.0045, "infer ms", "4.50")
	check(measure.CPU, 1.5, "cores", "1.5")
	check(measure.GPUMemory, 2e9, "GPU MB", "2000")
	check(measure.GPUUtilization, 0.815, "GPU %", "81.5")
	check(measure.GPUPower, 61.25, "GPU W", "61.2")
	check(measure.Energy, 0.0123, "J/infer", "0.0123")
	check(measure.Cost, 0.2713, "cost/M", "0.271")
}

func TestGPURows(t *testing.T) {
	t.Parallel()
	r := ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 64), analyze.Options{})
	points := r.Configs[0].Points
	points[0].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 0.5, Power: 61.25, MemoryUsed: 2.5e9}, {UUID: "GPU-2"}}
	points[1].GPUs = []measure.GPUWindow{{UUID: "GPU-1", Utilization: 1, Power: 70, MemoryUsed: 3e9}}
	var b bytes.Buffer
	if err := WriteGPUCSV(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `Model,GPU UUID,Batch,Concurrency,Model Config Path,Instance Group,Satisfies Constraints,GPU Memory Usage (MB),GPU Utilization (%),GPU Power Usage (W)
minilm,GPU-1,1,4,minilm_config_default,2:CPU,Yes,2500.000,50.000,61.250
minilm,GPU-2,1,4,minilm_config_default,2:CPU,Yes,0.000,0.000,0.000
minilm,GPU-1,1,64,minilm_config_default,2:CPU,No,3000.000,100.000,70.000
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Which execution provider another program's default had on a GPU is not known, but that it was on one.
func TestInstanceGroupOfARecording(t *testing.T) {
	t.Parallel()
	want := "Model,Batch,Concurrency,Model Config Path,Instance Group,Max Batch Size,Satisfies Constraints,Throughput (infer/sec),p99 Latency (ms)\n" +
		"resnet,1,1,resnet_config_default,1:GPU,8,No,200.000,5.000\n"
	if diff := cmp.Diff(want, written(t, ofAnother(t), WriteInferenceCSV)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
