package colocation

import (
	"cmp"
	"math"
	"slices"
)

// Ask returns the next trial; false if none is worth its time. It changes nothing.
func (x *Search) Ask() (Trial, bool) {
	if x.next == nil {
		t, ok := x.choose(func(Trial) bool { return true })
		x.next = &next{t, ok}
	}
	return x.next.trial, x.next.isAny
}

// AskIf is Ask restricted to trials that are allowed.
func (x *Search) AskIf(allows func(Trial) bool) (Trial, bool) { return x.choose(allows) }

// next is the trial that was chosen after the latest outcome.
type next struct {
	trial Trial
	isAny bool
}

func (x *Search) choose(allows func(Trial) bool) (Trial, bool) {
	if len(x.models) == 0 {
		return Trial{}, false
	}
	lead, leads := x.leader()
	if !leads {
		return x.first(allows)
	}
	best, rate := Trial{}, 0.0
	consider := func(c Cell, scale, gain float64, why string) {
		cost := x.cost(c)
		t := Trial{c, math.Exp(scale), why}
		if r := gain / cost.Seconds(); gain > x.settings.Least && r > rate && allows(t) {
			best, rate = t, r
		}
	}
	of := x.outlook(lead)
	median := of.scale(0.5)
	// The first trial of a challenger is where its limit is expected, which tells most about others. Later
	// ones are at the leader's scale or above: whether it carries that is all that matters, and how its
	// latencies grow up to there is known badly.
	for _, c := range x.promising {
		if c.key() == lead.key() {
			continue
		}
		o := x.outlook(c)
		if scale := o.scale(0.5); !math.IsInf(scale, -1) {
			if x.trials[c.key()] > 0 {
				scale = max(scale, median)
			}
			consider(c, scale, o.surplus(median), "may carry more than the best so far")
		}
	}
	// The next trial of the leader makes its deviation smaller as that of a mean does, and lets its scale
	// come as much nearer to the most likely one.
	n := float64(x.trials[lead.key()])
	gain := (median - of.scale(x.settings.Confidence)) * (1 - math.Sqrt(n/(n+1)))
	consider(lead, median, gain, "the best so far, to know its scale precisely")
	return best, rate > 0
}

// promote lists the cells that may be measured, after the most promising ones on shared cores were
// simulated with all their models. It is part of learning, since which cells are simulated must follow
// from the outcomes, and not from the times at which the search is asked.
func (x *Search) promote() {
	x.next, x.promising = nil, nil
	if len(x.models) == 0 {
		return
	}
	cells, least := x.cells(), math.Inf(-1)
	if lead, leads := x.leader(); leads {
		least = x.scale(lead, 0.5)
	}
	var shared []Cell
	scales := map[string]float64{}
	for _, c := range cells {
		if c.Cores != nil || x.shared[c.key()].isSimulated || x.scale(c, x.settings.Tuning.Possible) <= least {
			continue
		}
		if s := x.scale(c, 0.5); !math.IsInf(s, -1) {
			shared, scales[c.key()] = append(shared, c), s
		}
	}
	slices.SortStableFunc(shared, func(a, b Cell) int { return cmp.Compare(scales[b.key()], scales[a.key()]) })
	for _, c := range shared[:min(x.settings.Tuning.Simulated, len(shared))] {
		x.settle(c)
	}
	x.promising = slices.DeleteFunc(cells, func(c Cell) bool { return c.Cores == nil && !x.shared[c.key()].isSimulated })
}

// first returns the trial of the cell with the largest expected scale, while nothing leads.
func (x *Search) first(allows func(Trial) bool) (Trial, bool) {
	best, most := Trial{}, math.Inf(-1)
	for _, c := range x.promising {
		s := x.scale(c, 0.5)
		if t := (Trial{c, math.Exp(s), "carries most, as predicted"}); s > most && allows(t) {
			best, most = t, s
		}
	}
	return best, !math.IsInf(most, -1)
}

// leader returns the measured cell with the largest scale that is kept with the confidence.
func (x *Search) leader() (Cell, bool) {
	best, most := Cell{}, math.Inf(-1)
	for _, c := range x.measured {
		if x.isOut(c) {
			continue
		}
		if s := x.scale(c, x.settings.Confidence); s > most {
			best, most = c, s
		}
	}
	return best, !math.IsInf(most, -1)
}

// Answer returns the leader; false if no measured cell keeps the limits surely enough.
func (x *Search) Answer() (Answer, bool) {
	lead, leads := x.leader()
	if !leads {
		return Answer{}, false
	}
	o := x.outlook(lead)
	scale := o.scale(x.settings.Confidence)
	return Answer{Cell: lead, Scale: math.Exp(scale), Median: math.Exp(o.scale(0.5)), Binding: x.binding(o, scale), Trials: x.trials[lead.key()]}, true
}
