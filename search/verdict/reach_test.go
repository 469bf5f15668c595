package verdict_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// Reach has closed forms with one choice: an answer of 100 ± 10 % is 2 deviations below a gain of 0.2, which a
// normal number exceeds with 0.0228. Deviations add in squares.
func TestReach(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 0.1, 0.001)
	o := options()
	check := func(name string, mark posterior.Normal, want float64) {
		t.Helper()
		if got := verdict.Decide(b, o).Reach.Beyond(mark); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %.4f, want %.4f", name, got, want)
		}
	}
	mark := posterior.Normal{Mean: 0.2}
	check("two deviations", mark, 0.02275)
	check("with the doubt about the mark", posterior.Normal{Mean: 0.2, Deviation: 0.1 * math.Sqrt(3)}, 0.15866)
	o.Goal.Objective.Terms[0].Weight = 2
	check("a weight changes no gain", mark, 0.02275)
	o.Goal.Objective.Terms[0].Weight = 1
	o.Rivals = []verdict.Rival{{Candidate: candidate("instance_count", "2"), Score: posterior.Normal{Mean: math.Log(100) + 0.2, Deviation: 0.3}, Holds: 0.4}}
	check("or a rival, if it keeps the limits: 1 − 0.97725 · (1 − 0.4 · 0.5)", mark, 0.21820)
	o.Rivals[0].Candidate = candidate()
	check("of one process the most promising cell counts", mark, 0.2)
	o.IsOpen = true
	check("something has no prediction", mark, 1)
	if got := (verdict.Reach{}).Beyond(mark); got != 1 {
		t.Errorf("%g where nothing is known, want 1", got)
	}
}

// In an open loop of 104 requests/s nothing answers more, also where something was never tried: a gain of 4 % over 100.
func TestReachIsAtMostTheOfferedRate(t *testing.T) {
	t.Parallel()
	offered := measure.Load{RequestRate: 104, BatchSize: 1}
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 0.1, 0.05)
	b.places = map[string]int{candidate().Key() + offered.String(): 0}
	b.cells[0].Load = offered
	o := options()
	o.Space.Load = search.LoadAxis{Levels: []float64{104}, Rate: true, BatchSize: 1}
	for _, isOpen := range []bool{false, true} {
		o.IsOpen = isOpen
		r := verdict.Decide(b, o).Reach
		if below, above := r.Beyond(posterior.Normal{Mean: math.Log(1.03)}), r.Beyond(posterior.Normal{Mean: math.Log(1.05)}); below == 0 || above != 0 {
			t.Errorf("some never tried: %t: %g and %g", isOpen, below, above)
		}
	}
}

// The probability is an upper bound, whatever errors the cells share: truths are drawn from the beliefs.
func TestReachIsAnUpperBound(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 1))
	const draws = 4000
	for range 200 {
		b := &beliefs{shared: 0.2 * random.Float64()}
		for i := range 1 + random.IntN(6) {
			b.add(candidate("instance_count", string(search.IntValue(1+i))), 1, 100*math.Exp(-0.3*random.Float64()), 0.010, 1e8, 0.001+0.1*random.Float64(), 0.001)
		}
		v := verdict.Decide(b, options())
		mark := posterior.Normal{Mean: 0.3 * random.Float64(), Deviation: 0.1 * random.Float64()}
		beyond := 0
		for range draws {
			most, shared := math.Inf(-1), b.shared*random.NormFloat64()
			for i, mean := range b.means[measure.Throughput] {
				most = max(most, mean+shared+b.own[measure.Throughput][i]*random.NormFloat64())
			}
			if most-v.Answer().Score.Mean > mark.Mean+mark.Deviation*random.NormFloat64() {
				beyond++
			}
		}
		got, share := v.Reach.Beyond(mark), float64(beyond)/draws
		if noise := 4 * math.Sqrt(share*(1-share)/draws); share > got+noise {
			t.Errorf("%d cells, in common %.2f: beyond %+v in %.4f of the draws, said %.4f", len(b.cells), b.shared, mark, share, got)
		}
	}
}
