package landscape

import (
	"math"
	"math/rand/v2"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Believer is a strategy with estimates.
type Believer interface {
	// Claim returns the claim about the best; false without one.
	Claim() (Claim, bool)
	// Predict returns the estimate for a configuration at a load; false without one.
	Predict(c search.Candidate, load measure.Load) (Prediction, bool)
}

// Claim is a strategy's claim about the best configuration.
type Claim struct {
	Candidate  search.Candidate
	Level      float64
	Throughput measure.Estimate // inferences/s
	Feasible   float64          // probability that the limit is kept
	Gain       *float64         // largest relative gain of any other configuration; nil without such a claim
	IsOver     bool             // the search ended by itself, not by its budget
}

// Prediction is a strategy's estimate for a configuration at a load, with 95 % intervals that are
// symmetric on log scale. A metric without an estimate is nil.
type Prediction struct{ Throughput, P99 *measure.Estimate }

// Claims compares a strategy's claims at the campaign's end with the truth.
type Claims struct {
	Value      Coverage // the interval of the best's throughput contains the truth over long hours
	Bound      Coverage // no configuration exceeds the claimed gain now; only stated if the best keeps the limit
	IsOver     bool     // the search ended by itself, not by its budget
	Kept       Kept
	Throughput Misfit // of unmeasured cells
	P99        Misfit
}

// Kept is a stated probability that the limit is kept, and whether it is kept exactly.
type Kept struct {
	Stated      bool // a limit exists
	Probability float64
	True        [hours]bool
}

// Misfit sums the errors of estimates, in units of their own standard deviations.
type Misfit struct {
	Count   int
	Squares float64
}

// RMS returns the root of the mean square: 1 if the stated deviations are right. It is NaN without
// estimates.
func (m Misfit) RMS() float64 { return math.Sqrt(m.Squares / float64(m.Count)) }

// Add adds two sums.
func (m Misfit) Add(n Misfit) Misfit { return Misfit{m.Count + n.Count, m.Squares + n.Squares} }

// enter adds an estimate with a 95 % interval on log scale. The truth has its own standard error.
func (m *Misfit) enter(e *measure.Estimate, truth, standardError float64) {
	if e == nil || e.Lo <= 0 {
		return
	}
	deviation := math.Hypot(math.Log(e.Hi/e.Lo)/(2*stats.Half95), standardError)
	if z := math.Log(truth/e.Value) / deviation; !math.IsNaN(z) && !math.IsInf(z, 0) {
		m.Count, m.Squares = m.Count+1, m.Squares+z*z
	}
}

// mostExamined is the number of cells that are examined at a campaign's end. Each is simulated;
// together they take a twentieth of the campaign's CPU time.
const mostExamined = 20

// examine compares a strategy's claims with the truth. classes are the measured ones.
func (l *Landscape) examine(b Believer, now, long judge, classes map[string]bool, seed uint64) Claims {
	var claims Claims
	if c, ok := b.Claim(); ok {
		claims.IsOver = c.IsOver
		if truth := l.Find(c.Candidate, c.Level); truth != nil && truth.Measurable() {
			claims.Value = Coverage{true, c.Throughput.Lo <= truth.Throughput && truth.Throughput <= c.Throughput.Hi}
			if c.Gain != nil && now.best != nil && now.keeps(truth, tolerance) {
				claims.Bound = Coverage{true, now.best.Throughput <= truth.Throughput*(1+*c.Gain)}
			}
			if !math.IsInf(now.limit.P99, 1) {
				claims.Kept = Kept{true, c.Feasible, [hours]bool{now.keeps(truth, 0), long.keeps(truth, 0)}}
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0x657861))
	examined := 0
	for _, i := range random.Perm(len(l.Points)) {
		p := l.Points[i]
		if !p.Measurable() || classes[p.class] {
			continue
		}
		x, ok := b.Predict(p.Candidate, l.Space.Load.At(p.Level))
		if !ok {
			continue
		}
		root := math.Sqrt(float64(len(p.visits)))
		claims.Throughput.enter(x.Throughput, p.Throughput*now.speed, l.spread.throughput/root)
		claims.P99.enter(x.P99, p.P99/now.speed, l.spread.p99/root)
		if examined++; examined == mostExamined {
			break
		}
	}
	return claims
}

// spread is the deviation between recorded visits to one class, as standard deviations of
// logarithms. The error of a truth is that divided by the root of its visits. It is 0 if truths are
// known.
type spread struct{ throughput, p99 float64 }

// newSpread pools the classes' variances.
func newSpread(points []Point) spread {
	var squares spread
	freedom, seen := 0.0, map[string]bool{}
	for _, p := range points {
		if seen[p.class] || len(p.visits) < 2 {
			continue
		}
		seen[p.class] = true
		var rates, tails []float64
		for _, visit := range p.visits {
			rate, tail := 0.0, 0.0
			for _, w := range visit {
				for _, r := range w.rates {
					rate += r / float64(len(w.rates)*len(visit))
				}
				tail += w.latency.Quantile(0.99) / float64(len(visit))
			}
			rates, tails = append(rates, math.Log(rate)), append(tails, math.Log(tail))
		}
		squares.throughput += squaresOf(rates)
		squares.p99 += squaresOf(tails)
		freedom += float64(len(p.visits) - 1)
	}
	if freedom == 0 {
		return spread{}
	}
	return spread{math.Sqrt(squares.throughput / freedom), math.Sqrt(squares.p99 / freedom)}
}
