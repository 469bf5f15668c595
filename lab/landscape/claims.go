package landscape

import (
	"math"
	"math/rand/v2"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Believer is a strategy that also says what it believes.
type Believer interface {
	// Claim is what it says of the best; false while it claims nothing.
	Claim() (Claim, bool)
	// Predict is what it believes of a configuration at a load; false where it believes
	// nothing.
	Predict(c search.Candidate, load measure.Load) (Prediction, bool)
}

// Claim is what a strategy says of the best.
type Claim struct {
	Candidate  search.Candidate
	Level      float64
	Throughput measure.Estimate // inferences/s
	Feasible   float64          // probability that the limit is kept
	Gain       *float64         // relative, by which anything else is better at most; nil while nothing is said of that
	IsOver     bool             // the search ended by itself, not by its budget
}

// Prediction is what a strategy believes of a configuration at a load, with 95 %
// intervals that are symmetric on log scale. A metric is nil where nothing is believed of
// it.
type Prediction struct{ Throughput, P99 *measure.Estimate }

// Claims is what a strategy claimed at the campaign's end, beside the truth.
type Claims struct {
	Value      Coverage // the interval of the best's throughput holds the truth over long hours
	Bound      Coverage // nothing is better than the best by more than was said, now; stated of a best that keeps the limit
	IsOver     bool     // the search ended by itself, not by its budget
	Kept       Kept
	Throughput Misfit // of cells that were not measured
	P99        Misfit
}

// Kept is a stated probability that the limit is kept, and whether it is, to the letter.
type Kept struct {
	Stated      bool // there is a limit
	Probability float64
	True        [hours]bool
}

// Misfit sums by how many of its own standard deviations a belief is off the truth.
type Misfit struct {
	Count   int
	Squares float64
}

// RMS is the root of the mean square: 1 of beliefs that are as unsure as they should be.
// It is NaN of none.
func (m Misfit) RMS() float64 { return math.Sqrt(m.Squares / float64(m.Count)) }

// Add joins the sums of two.
func (m Misfit) Add(n Misfit) Misfit { return Misfit{m.Count + n.Count, m.Squares + n.Squares} }

// enter adds a belief with a 95 % interval on log scale. The truth has a standard error
// of its own.
func (m *Misfit) enter(e *measure.Estimate, truth, standardError float64) {
	if e == nil || e.Lo <= 0 {
		return
	}
	deviation := math.Hypot(math.Log(e.Hi/e.Lo)/(2*stats.Half95), standardError)
	if z := math.Log(truth/e.Value) / deviation; !math.IsNaN(z) && !math.IsInf(z, 0) {
		m.Count, m.Squares = m.Count+1, m.Squares+z*z
	}
}

// mostExamined is how many cells of a campaign's end are examined, since each is
// simulated: a twentieth of the campaign's CPU time.
const mostExamined = 20

// examine holds what a strategy claims against the truth. classes are those that were
// measured.
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

// spread is by how much recorded visits to one class differ, as standard deviations of
// logarithms. A truth errs by that over the root of its visits. It is 0 where truths are
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
