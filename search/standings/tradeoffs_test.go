package standings_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
	"tuner/search/standings"
)

// strict asks for at least 500 infer/s at a p99 of at most 20 ms.
func strict() search.Goal {
	least := 500.0
	return search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{searchtest.AtMost(measure.LatencyP99, 0.020), {Metric: measure.Throughput, Min: &least}},
	}
}

func TestShortfallNamesWhatWouldHaveToGive(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	l := standings.NewLedger(strict())
	if text := l.Shortfall(); text != nil {
		t.Errorf("an empty ledger says %q", text)
	}
	told(l, "1", 8, 0, 0)
	if text := l.Shortfall(); text != nil {
		t.Errorf("without a score it says %q", text)
	}
	told(l, "2", 64, 250, 44*ms) // misses both, by 1.2 and by a half
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, l.Shortfall()); diff != "" {
			t.Errorf("sentences (-want +got):\n%s", diff)
		}
	}
	check("Nearest to the constraints is 2 instances at concurrency 64: latency_p99 is 44.0 ms, 2.2 × the limit of 20.0 ms, throughput is 250.0 infer/s, 50 % below the least of 500.0 infer/s.",
		"Constraints would have to give: latency_p99 to 44.0 ms and throughput to 250.0 infer/s.")
	told(l, "3", 16, 600, 30*ms) // by a half
	told(l, "3", 8, 550, 26*ms)  // by 30 %
	told(l, "4", 4, 300, 10*ms)  // by 40 %
	told(l, "5", 2, 100, 10*ms)
	check("Nearest to the constraints is 3 instances at concurrency 8: latency_p99 is 26.0 ms, 30 % above the limit of 20.0 ms.",
		"A constraint would have to give: latency_p99 to 26.0 ms (3 instances at concurrency 8), or throughput to 300.0 infer/s (4 instances at concurrency 4).")
	told(l, "6", 8, 700, 15*ms)
	if text := l.Shortfall(); text != nil {
		t.Errorf("where something satisfies the constraints it says %q", text)
	}
}

// An unknown figure, or refused requests, cannot be a trade-off.
func TestTradeoffsAreOfKnownFigures(t *testing.T) {
	t.Parallel()
	limit := search.MostErrors
	for name, miss := range map[string]search.Miss{
		"unknown": {Constraint: searchtest.AtMost(measure.CPU, 1), Violation: 1, Missing: true},
		"refused": {Constraint: search.Constraint{Metric: measure.ErrorRate, Max: &limit}, Value: 0.2, Violation: 19},
	} {
		got := standings.Tradeoffs{}.Add(standings.Standing{Point: standings.Point{Scored: true, Misses: []search.Miss{miss}}})
		if len(got) != 0 || got.String() != "" {
			t.Errorf("%s: %v", name, got)
		}
	}
}
