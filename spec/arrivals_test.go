package spec

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure/arrivals"
	"tuner/search"
)

func TestArrivalsOfALoad(t *testing.T) {
	t.Parallel()
	check := func(text string, want search.LoadAxis) {
		t.Helper()
		if diff := cmp.Diff(want, parse(t, "model: a\nload: "+text).Load); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	check("{request_rate: 50, arrivals: {on_off: {on: 2s, off: 8s}}}", search.LoadAxis{Rate: true, Levels: []float64{50}, BatchSize: 1,
		Arrivals: arrivals.Pattern{Kind: arrivals.OnOffKind, On: 2 * time.Second, Off: 8 * time.Second}})
	check("{arrivals: {trace: t.csv}}", search.LoadAxis{Rate: true, BatchSize: 1, Arrivals: arrivals.Pattern{Kind: arrivals.TraceKind, File: "work/t.csv"}})

	// A trace without a rate has its own: three requests in 4.5 s. With one it is scaled.
	trace, err := arrivals.NewTrace([]time.Duration{0, time.Second, 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	facts := search.Facts{Trace: &trace}
	own := parse(t, "model: a\nload: {arrivals: {trace: t.csv}}").Space(facts).Load
	if own.Levels[0] != 0.666667 || own.Whole(time.Second, own.First()).Round(time.Millisecond) != 4500*time.Millisecond {
		t.Errorf("at its own speed: the levels %v, and windows of %v", own.Levels, own.Whole(time.Second, own.First()))
	}
	scaled := parse(t, "model: a\nload: {request_rate: [1, 3], arrivals: {trace: t.csv}}").Settings(facts)
	if w := scaled.Trial(search.Candidate{}, 3, search.PhaseSearch).Window; w != time.Second*(w/time.Second) || w < scaled.Window {
		t.Errorf("at 3/s a window lasts %v, want whole seconds", w)
	}
}

func TestArrivalsThatContradict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{concurrency: 4, arrivals: poisson}":                  "2: load.arrivals: contradicts concurrency, whose requests follow the answers",
		"{arrivals: {gamma: {cv: 2}}}":                         "2: load.arrivals: needs a mean rate",
		"{request_rate: 5, arrivals: {gamma: {cv: 0}}}":        "2: load.arrivals.gamma.cv: must be a number above 0",
		"{request_rate: 5, arrivals: {curve: {1s: 1, 2s: 1}}}": "2: load.arrivals.curve: the curve begins at 1s and must begin at 0s",
	} {
		_, err := ParseProfile("work/profile.yaml", []byte("model: a\nload: "+text))
		if got := mistakes(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("%s gives %q, want %q", text, got, want)
		}
	}
	if _, err := ParseGate("gate.yaml", []byte("baseline: a\ncandidate: b\nload: {arrivals: {trace: t.csv}}\nmetrics: [throughput]")); err == nil {
		t.Error("a gate compares the throughput of a trace")
	}
	g, err := ParseGate("gate.yaml", []byte("baseline: a\ncandidate: b\nload: {arrivals: {trace: t.csv}}"))
	if err != nil || g.Arrivals.File != "t.csv" || g.Metrics[0].Metric != "latency_avg" {
		t.Errorf("%+v, %v", g, err)
	}
}
