package compare

import (
	"slices"
	"strings"
	"testing"

	"tuner/measure"
)

// Runs of several models are compared by the figures of each model, and by the scales of their winners.
func TestRunsOfSeveralModels(t *testing.T) {
	t.Parallel()
	run, err := Read("../report/testdata/two.json")
	if err != nil {
		t.Fatal(err)
	}
	other := run
	other.Name = "later"
	c := Of([]Run{run, other}, 0.01)
	p := c.Pairs[0]
	want := []measure.Metric{"encoder.latency_p99", "ranker.latency_p99", "memory"}
	if !slices.Equal(p.Shown, want) {
		t.Errorf("shown are %v, want %v", p.Shown, want)
	}
	if text := strings.Join(p.Winner, " "); !strings.Contains(text, "The winner keeps the limits at scale 3 in two, and at scale 3 in later.") {
		t.Errorf("winners: %s", text)
	}
	isOf := func(m measure.Metric) func(Change) bool {
		return func(c Change) bool { return c.Metric == m && c.Load.Scale == 3 }
	}
	for _, m := range want[:2] {
		if !slices.ContainsFunc(p.Changes, isOf(m)) {
			t.Errorf("no change of %s at scale 3", m)
		}
	}
	if run.Facts["model file, encoder fp32"] != "abencoder" || run.Facts["model file, ranker fp32"] != "abranker" ||
		!strings.Contains(run.Facts[factRequests], "encoder 60 requests/s, ranker concurrency 2 × batch 2") {
		t.Errorf("facts %v", run.Facts)
	}
}

// A sample has the figures of all models between two edges.
func TestSampleOfSeveralModels(t *testing.T) {
	t.Parallel()
	s := sampleOf([]measure.Window{{Model: "encoder", Duration: 2e9, Requests: 100, Inferences: 100}, {Model: "ranker", Duration: 2e9, Requests: 300, Inferences: 600}})
	if s.Requests != 400 || s.Values["encoder.throughput"] != 50 || s.Values["ranker.throughput"] != 300 {
		t.Errorf("got %+v", s)
	}
}
