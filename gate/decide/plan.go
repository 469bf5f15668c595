// Package decide says whether a candidate is worse than it may be: a group-sequential test on pairs of measurements that are handed to it one
// by one (docs/design/gate.md). It is the pure part of `tuner gate`: numbers in, a verdict out. It knows neither metrics nor clocks, and it
// measures nothing.
package decide

import (
	"fmt"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure/stats"
)

// The looks of a gate: at most six, every ten pairs. Where the time does not suffice for ten there is one look at what there is, at five or
// more.
const (
	PairsPerLook = 10
	MostLooks    = 6
	LeastPairs   = 5
)

// errorRate is the probability that a candidate that is worse by exactly what is tolerated fails, all looks together, and that it passes.
const errorRate = 0.025

// trimmed is the part of the pairs that Mean leaves out at each end.
const trimmed = 0.1

// Plan says when a gate looks at its pairs, and how sure it must be then. It is immutable.
type Plan struct {
	every        int
	fails, holds []bound // by look
}

// bound is what a look demands of one side of the interval.
type bound struct {
	beyond   float64 // one-sided probability of an error at this look by itself
	critical float64 // Student's quantile for it at the look's number of pairs
}

// NewPlan plans the looks of a gate on so many criteria (1 or more) that can measure so many pairs. An error says that the pairs are too few
// for any look.
//
// Failing follows O'Brien and Fleming: early looks fail only what is beyond doubt, and the last one has nearly the power of a test without
// looks. The error is divided among the criteria, since each of them can fail the gate. Passing follows Pocock, equally strict at each look, so
// that a quiet machine needs one look; all criteria must pass, which needs no division.
func NewPlan(pairs, criteria int) (Plan, error) {
	if pairs < LeastPairs {
		return Plan{}, fmt.Errorf("cannot decide on %d pairs: at least %d are needed", pairs, LeastPairs)
	}
	p := Plan{every: PairsPerLook}
	looks := min(MostLooks, pairs/PairsPerLook)
	if looks == 0 {
		p.every, looks = pairs, 1
	}
	fails, err := stats.OBrienFleming(looks, 2*errorRate/float64(max(1, criteria))) // two-sided
	if err != nil {
		return Plan{}, err
	}
	holds, err := stats.Pocock(looks, 2*errorRate)
	if err != nil {
		return Plan{}, err
	}
	for k := range looks {
		freedom := freedomOf((k + 1) * p.every)
		p.fails = append(p.fails, newBound(fails[k], freedom))
		p.holds = append(p.holds, newBound(holds[k], freedom))
	}
	return p, nil
}

// newBound takes the significance level of a critical value over to Student's t, which keeps the error close to what it is for known variances
// (Jennison and Turnbull, Group Sequential Methods, §4.4).
func newBound(critical float64, freedom int) bound {
	beyond := distuv.UnitNormal.Survival(critical)
	return bound{beyond, quantile(beyond, freedom)}
}

// quantile is what Student's t exceeds with a probability.
func quantile(beyond float64, freedom int) float64 { return -stats.TQuantile(beyond, float64(freedom)) }

// freedomOf is the degrees of freedom of a trimmed mean of n values.
func freedomOf(n int) int { return n - 2*int(trimmed*float64(n)) - 1 }

// MostPairs is the number of pairs at the last look.
func (p Plan) MostPairs() int { return p.every * p.Looks() }

// Looks is the number of looks.
func (p Plan) Looks() int { return len(p.fails) }

// bounds are those for a number of pairs: of the look that is due then, or else of the next one.
func (p Plan) bounds(pairs int) (fail, hold bound) {
	k := min((pairs+p.every-1)/p.every, p.Looks()) - 1
	fail, hold = p.fails[max(0, k)], p.holds[max(0, k)]
	if freedom := freedomOf(pairs); freedom > 0 && pairs != (k+1)*p.every {
		fail.critical, hold.critical = quantile(fail.beyond, freedom), quantile(hold.beyond, freedom)
	}
	return fail, hold
}
