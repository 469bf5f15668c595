package stats

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// tableRuns is for the tables in the documents: go test ./measure/stats -run Coverage -v
// -coverage.runs 10000
var tableRuns = flag.Int("coverage.runs", 0, "simulated runs in each cell of the tables of coverage; 0: 1,000 in the cells that are judged and quick")

// The shares that an interval of 95 % must cover.
const leastCovered, mostCovered = 0.93, 0.97

// runs returns the number of runs to simulate in a cell; 0 skips the cell.
func runs(quick bool) int {
	if *tableRuns == 0 && quick {
		return 1000
	}
	return *tableRuns
}

// judge logs a cell of a table. It fails the test if the cell promises coverage and does not keep
// it.
func judge(t *testing.T, promised bool, share float64, format string, arguments ...any) {
	t.Helper()
	t.Logf("%.3f covered: "+format, append([]any{share}, arguments...)...)
	if promised && (share < leastCovered || share > mostCovered) {
		t.Errorf("%.3f covered: "+format, append([]any{share}, arguments...)...)
	}
}

// Intervals of the mean of sub-windows, such as a throughput. A series with too few values for its
// autocorrelation promises nothing: its cells only appear in the table.
func TestCoverageOfMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, rho   float64
		promised bool
	}{
		{50, 0, true}, {50, 0.3, true}, {50, 0.5, true}, {50, 0.8, false}, {50, 0.9, false},
		{100, 0, true}, {100, 0.3, true}, {100, 0.5, true}, {100, 0.8, true}, {100, 0.9, false},
		{200, 0, true}, {200, 0.3, true}, {200, 0.5, true}, {200, 0.8, true}, {200, 0.9, true},
	} {
		random := rand.New(rand.NewPCG(6, uint64(c.n+10*c.rho)))
		covered, width, n := 0, 0.0, runs(c.promised)
		if n == 0 {
			continue
		}
		for range n {
			e := seriesMean(autoregressive(random, int(c.n), c.rho))
			if e.Lo <= 0 && 0 <= e.Hi {
				covered++
			}
			width += (e.Hi - e.Lo) / float64(n)
		}
		judge(t, c.promised, float64(covered)/float64(n), "%g sub-windows, ρ = %g, mean width %.2f σ", c.n, c.rho, width)
	}
}

// Intervals of a mean where measuring stops at the first of many looks that is precise enough. The
// target is 2 % where sub-windows vary by 5 %. Looks are at every 10 values from 50 to 400, once
// they are worth 30 independent ones. In autocorrelated series this stopping rule lowers the
// coverage.
func TestCoverageOfStopping(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rho      float64
		promised bool
	}{{0, true}, {0.3, false}, {0.5, false}, {0.8, false}} {
		random := rand.New(rand.NewPCG(6, uint64(1000+10*c.rho)))
		covered, length, n := 0, 0.0, runs(c.promised)
		if n == 0 {
			continue
		}
		for range n {
			series := autoregressive(random, 400, c.rho)
			for i := range series {
				series[i] = 1 + 0.05*series[i]
			}
			look, e := 50, seriesMean(series[:50])
			for look < len(series) && ((e.Hi-e.Lo)/2 > 0.02*e.Value || EffectiveCount(series[:look]) < 30) {
				look += 10
				e = seriesMean(series[:look])
			}
			if e.Lo <= 1 && 1 <= e.Hi {
				covered++
			}
			length += float64(look) / float64(n)
		}
		judge(t, c.promised, float64(covered)/float64(n), "stopped at 2 %%, ρ = %g, after %.0f sub-windows", c.rho, length)
	}
}

// Intervals of the 99th percentile of requests in sub-windows of unequal numbers. Each request
// depends on the one before (autoregressive). Ranks do not depend on the distribution, so normal
// values stand for all. An interval without an upper end covers all values above its lower end.
func TestCoverageOfPercentiles(t *testing.T) {
	t.Parallel()
	const q = 0.99
	truth := distuv.UnitNormal.Quantile(q)
	for _, c := range []struct {
		sub, requests int // requests: mean of each sub-window
		rho           float64
		promised      bool
	}{
		{50, 100, 0, true}, {50, 100, 0.5, true}, {50, 100, 0.9, true},
		{50, 400, 0, true}, {50, 400, 0.5, true}, {50, 400, 0.9, true}, {50, 400, 0.99, false},
		{100, 200, 0.9, true}, {100, 200, 0.99, false},
	} {
		random := rand.New(rand.NewPCG(6, uint64(c.sub*c.requests)+uint64(100*c.rho)))
		covered, unbounded, n := 0, 0, runs(c.promised && c.sub*c.requests <= 5000)
		if n == 0 {
			continue
		}
		for range n {
			below, above, bounded := percentileInterval(random, c.sub, c.requests, c.rho, q)
			if below <= truth && (!bounded || truth <= above) {
				covered++
			}
			if !bounded {
				unbounded++
			}
		}
		judge(t, c.promised, float64(covered)/float64(n), "p99 of %d × %d requests, ρ = %g, %.0f %% without an upper end",
			c.sub, c.requests, c.rho, 100*float64(unbounded)/float64(n))
	}
}

// percentileInterval simulates requests in sub-windows and returns the interval of their
// q-quantile. The interval always has a lower end.
func percentileInterval(random *rand.Rand, sub, requests int, rho, q float64) (below, above float64, bounded bool) {
	sizes := make([]float64, sub)
	total := 0
	for i := range sizes {
		size := requests/2 + random.IntN(requests+1) // half to three halves
		sizes[i] = float64(size)
		total += size
	}
	values := autoregressive(random, total, rho)
	sorted := slices.Sorted(slices.Values(values))
	quantile := sorted[int(q*float64(total))]
	hits := make([]float64, sub)
	at := 0
	for i := range hits {
		for range int(sizes[i]) {
			if values[at] <= quantile {
				hits[i]++
			}
			at++
		}
	}
	lo, hi := QuantileRanks(total, EffectiveSize(hits, sizes), q)
	return sorted[max(lo, 1)-1], sorted[min(hi, total)-1], hi <= total
}
