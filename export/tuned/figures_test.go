package tuned

import (
	"testing"

	"tuner/measure"
	"tuner/profile/journal"
	"tuner/report/result"
)

// A remote server reported the memory during the search. It must not count as the engine's memory,
// although the finals ran on this machine.
func TestRemoteMemoryIsNotCounted(t *testing.T) {
	t.Parallel()
	d := result.Result{Origin: &result.Origin{Server: &journal.ServerInfo{Mode: modeRemote}, Finals: &journal.ServerInfo{Mode: modeBundled}}}
	memory := func(bytes float64) result.Sample {
		return result.Sample{Values: map[measure.Metric]result.Estimate{measure.Memory: {Value: bytes}}}
	}
	m, searched := Model{}, memory(64e9)
	err := m.addFigures(d, result.Configuration{Points: []result.Point{{Sample: memory(64e9)}, {Confirmed: true, Sample: memory(3e8), Searched: &searched}}})
	if m.Memory != 3e8 || err != nil {
		t.Errorf("%g bytes, %v; want 3e8 of the engine here", m.Memory, err)
	}
}

// Some results have no single memory figure for a configuration. Their peak may come from any load
// and from the search, since an engine does not reload its model at every load.
func TestPeak(t *testing.T) {
	t.Parallel()
	at := func(concurrency int, values, searched float64) result.Point {
		figures := func(bytes float64) *result.Sample {
			return &result.Sample{Values: map[measure.Metric]result.Estimate{measure.Memory: {Value: bytes}}}
		}
		return result.Point{Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Sample: *figures(values), Searched: figures(searched)}
	}
	for _, points := range [][]result.Point{
		{at(1, 5e8, 0), at(2, 3e8, 2e8)},
		{at(1, 2e8, 0), at(2, 5e8, 6e8)},
	} {
		m := Model{Load: measure.Load{Concurrency: 2, BatchSize: 1}}
		if err := m.addFigures(result.Result{}, result.Configuration{Points: points}); m.Memory != 5e8 || err != nil {
			t.Errorf("%+v: %g bytes, %v; want 5e8", points, m.Memory, err)
		}
	}
}
