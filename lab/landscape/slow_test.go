package landscape

import (
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/verdict"
)

// A service trial of a slow detector under a tight limit measures at most one size whose batches
// break the limit, its last. They exceed it by half at most, which allows for noise. Every
// precision and number of threads has service times before the finals. Pools that are never opened
// do not prove that nothing is better.
func TestSlowDetector(t *testing.T) {
	t.Parallel()
	const campaigns = 4
	l, limit := slow().make(), Limit{"asked", 0.150}
	best, _ := l.Best(limit)
	for _, budget := range []time.Duration{time.Minute, 2 * time.Minute} {
		pools, missed := 0, 0.0
		for seed := range uint64(campaigns) {
			settings := l.Settings(limit, budget, seed)
			settings.Turns = true
			p, err := plan.New("guided", settings)
			if err != nil {
				t.Fatal(err)
			}
			values, opened := map[search.Value]bool{}, map[string]bool{}
			o := l.Run(p, limit, seed, func(e search.Event, _ string, _ float64) {
				if e.Trial.Phase != search.PhaseService {
					return
				}
				full, _ := l.Space.Canonical(l.completed(e.Trial.Candidate))
				opened[full.PoolKey()] = true
				for _, s := range full.Settings() {
					values[search.Value(s.Knob)+s.Value] = true
				}
				for i, w := range e.Measurement.Windows {
					took, _ := measure.Measurement{Windows: []measure.Window{w}}.Value(measure.LatencyAvg)
					if isLast := i == len(e.Measurement.Windows)-1; took > limit.P99 && (!isLast || took > 1.5*limit.P99) {
						t.Errorf("within %v, batches of %d took %.3f s", budget, e.Trial.Sizes[i], took)
					}
				}
			})
			for _, v := range []search.Value{
				search.KnobPrecision + "fp32", search.KnobPrecision + "int8",
				search.KnobIntraOpThreads + "1", search.KnobIntraOpThreads + "2",
			} {
				if !values[v] {
					t.Errorf("within %v, %s was never measured", budget, v)
				}
			}
			pools, missed = pools+len(opened), missed+o.Regret[Now]/campaigns
			if v := p.Verdict(); o.Regret[Now] > 0.3 && v.State != verdict.Unfinished {
				t.Errorf("within %v, %.2f of the best is missed, and the campaign says %q, better by %.2f at most", budget, o.Regret[Now], v.State, v.More)
			}
		}
		t.Logf("within %v, of 8 pools %.1f were opened, and %.2f of %.0f infer/s missed", budget, float64(pools)/campaigns, missed, best.Throughput)
	}
}
