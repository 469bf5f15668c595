// Package decide decides whether a candidate is worse than allowed. It runs a group-sequential test
// on pairs of measurements that arrive one by one (docs/design/gate.md). It is the pure part of
// `tuner gate`: numbers go in, a verdict comes out. It does not know metrics or clocks, and
// measures nothing.
package decide

import (
	"fmt"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure/stats"
)

// The looks of a gate: at most six, one every ten pairs. If the time is too short for ten pairs,
// there is one look, at five or more pairs. Where the pairs end between two looks, the later one is made there.
const (
	PairsPerLook = 10
	MostLooks    = 6
	LeastPairs   = 5
)

// errorRate is the probability of a wrong verdict over all looks together. It holds for a candidate
// that is worse by exactly the tolerance, once for failing and once for passing.
const errorRate = 0.025

// trimmed is the share of the pairs that Mean leaves out at each end.
const trimmed = 0.1

// Plan determines when a gate looks at its pairs, and the level of each look. It is immutable.
type Plan struct {
	every        int
	fails, holds []bound // by look
}

// bound is the level of a look for one side of the interval.
type bound struct {
	beyond   float64 // one-sided error probability of this look alone
	critical float64 // Student's quantile for it, at the look's number of pairs
}

// NewPlan plans the looks of a gate with the given number of criteria (1 or more) and time for the
// given number of pairs. The error means that the pairs are too few for a look.
//
// Failing follows O'Brien and Fleming. Early looks fail only clear cases, and the last look has
// nearly the power of a test without looks. The criteria share the error probability, since each of
// them can fail the gate.
//
// Passing follows Pocock, with the same level at each look, so that a quiet machine needs one look.
// All criteria must pass, so they need not share the error probability.
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

// newBound applies the significance level of a critical value to Student's t. The error then stays
// close to that for known variances (Jennison and Turnbull, Group Sequential Methods, §4.4).
func newBound(critical float64, freedom int) bound {
	beyond := distuv.UnitNormal.Survival(critical)
	return bound{beyond, quantile(beyond, freedom)}
}

// quantile returns the value that Student's t exceeds with a probability.
func quantile(beyond float64, freedom int) float64 { return -stats.TQuantile(beyond, float64(freedom)) }

// freedomOf returns the degrees of freedom of a trimmed mean of n values.
func freedomOf(n int) int { return n - 2*int(trimmed*float64(n)) - 1 }

// MostPairs returns the number of pairs at the last look.
func (p Plan) MostPairs() int { return p.every * p.Looks() }

// Looks returns the number of looks.
func (p Plan) Looks() int { return len(p.fails) }

// bounds returns the bounds after this many pairs: those of the look that is due, or of the next
// one.
func (p Plan) bounds(pairs int) (fail, hold bound) {
	k := min((pairs+p.every-1)/p.every, p.Looks()) - 1
	fail, hold = p.fails[max(0, k)], p.holds[max(0, k)]
	if freedom := freedomOf(pairs); freedom > 0 && pairs != (k+1)*p.every {
		fail.critical, hold.critical = quantile(fail.beyond, freedom), quantile(hold.beyond, freedom)
	}
	return fail, hold
}
