package report_test

import (
	"bytes"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/report"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

// The goal's own metrics have columns, and appear in the comments of the optimum.
func TestGoalsMetricsAreShown(t *testing.T) {
	t.Parallel()
	limit := 0.05
	goal := search.Goal{
		Objective: search.Objective{Terms: []search.Term{{Metric: measure.Cost, Weight: 1}}}, Price: 0.4,
		Constraints: []search.Constraint{{Metric: "latency_p99.9", Max: &limit}, {Metric: measure.LatencyAvg, Max: &limit}},
	}
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(analyzetest.Candidate(2, 1, 16), 8, 16), analyze.Options{Goal: &goal})
	var table, config bytes.Buffer
	if err := text.WriteTable(&table, r); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteConfig(&config, r); err != nil {
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
