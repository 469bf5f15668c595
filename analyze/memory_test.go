package analyze_test

import (
	"math"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search/footprint"
)

// All points of a configuration show the same memory: that of a fresh process. In journals without
// footprints it comes from trials on fresh processes.
func TestOneMemoryOfAConfiguration(t *testing.T) {
	t.Parallel()
	c, neighbour := analyzetest.Candidate(2, 1, 4), analyzetest.Candidate(2, 1, 16)
	for name, foot := range map[string]int64{"footprint": 90e6, "a journal without": 0} {
		campaign := analyzetest.New(t, analyzetest.Profile).Measure(c, 1).Measure(neighbour, 8).Measure(c, 2, 4).Confirm(c, 2).End("done", false).Campaign()
		for i, peak := range []int64{93e6, 573e6, 570e6, 572e6, 95e6} {
			campaign.Events[i].Measurement.Memory = peak
		}
		campaign.Events[0].Measurement.Footprint = measure.Footprint{Batch: 4, Bytes: foot}
		want := 90e6
		if foot == 0 {
			want = 94e6 // the median of the two fresh processes
		}
		r, err := analyze.Analyze(campaign, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := named(t, r, "minilm_config_0")
		if got.Memory == nil || got.Memory.Value != want || got.Memory.Basis != footprint.Measured || len(got.Points) != 3 {
			t.Fatalf("%s: %+v of %d points, want %.0f", name, got.Memory, len(got.Points), want)
		}
		for _, p := range got.Points {
			if e := p.Values[measure.Memory]; !isSame(e, got.Memory.Estimate) {
				t.Errorf("%s: at %v it holds %+v", name, p.Load, e)
			}
			if p.Searched != nil && !isSame(p.Searched.Values[measure.Memory], got.Memory.Estimate) {
				t.Errorf("%s: in the search it holds %+v", name, p.Searched.Values[measure.Memory])
			}
		}
	}
}

// A configuration's memory on the finals' server is shown with the finals only.
func TestMemoryOfTwoServers(t *testing.T) {
	t.Parallel()
	c := analyzetest.Candidate(2, 1, 4)
	campaign := analyzetest.New(t, analyzetest.Profile).Measure(c, 1, 2).Confirm(c, 2).End("done", false).Campaign()
	campaign.Header.Finals = &journal.ServerInfo{Mode: "local"}
	for i, bytes := range []int64{90e6, 0, 300e6} {
		campaign.Events[i].Measurement.Footprint = measure.Footprint{Batch: 4, Bytes: bytes}
	}
	r, err := analyze.Analyze(campaign, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := named(t, r, "minilm_config_0")
	p := got.Points[1]
	if got.Memory.Value != 300e6 || !isSame(p.Values[measure.Memory], got.Memory.Estimate) || p.Searched.Values[measure.Memory].Value != 90e6 ||
		math.Abs(got.Points[0].Values[measure.Memory].Value-90e6) > 1e3 {
		t.Errorf("%+v: %+v, in the search %+v", got.Memory, p.Values[measure.Memory], p.Searched.Values[measure.Memory])
	}
}

// isSame reports whether two memories are equal within the rounding of logarithms.
func isSame(a, b measure.Estimate) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-4*y }
	return near(a.Value, b.Value) && near(a.Lo, b.Lo) && near(a.Hi, b.Hi)
}

func named(t *testing.T, r analyze.Result, name string) analyze.Config {
	t.Helper()
	c, ok := r.Config(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return c
}
