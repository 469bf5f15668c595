package landscape

import (
	"cmp"
	"slices"
	"time"

	"tuner/search"
	"tuner/search/standings"
)

// Parameters of an informed strategy's comparison.
const (
	mostRivals = 8
	nearLimit  = 1.10 // a p99 up to this multiple of the limit may appear to keep it
	nearBest   = 0.95 // share of the best throughput
	turns      = 2    // windows per turn, each twice as long as the campaign's
)

// informed is an ideal strategy with knowledge of the truth. It knows the best point and those that
// may be confused with it. It uses the whole budget to distinguish them by measurements. Its errors
// are the least that the machine's noise allows.
type informed struct {
	settings search.Settings
	rivals   []standings.Standing // best first
	told     int
	elapsed  time.Duration
	longest  time.Duration // of a trial
}

// Informed returns that strategy for campaigns under a limit. No rival keeps an impossible limit.
func (l *Landscape) Informed(limit Limit, s search.Settings) Strategy {
	best, _ := l.Best(limit)
	points := slices.DeleteFunc(slices.Clone(l.Points), func(p Point) bool {
		return !p.Measurable() || p.P99 > nearLimit*limit.P99 || p.Throughput < nearBest*best.Throughput
	})
	slices.SortStableFunc(points, func(a, b Point) int { // those within the limit come before those beyond
		return cmp.Or(cmp.Compare(max(a.P99, limit.P99), max(b.P99, limit.P99)), cmp.Compare(b.Throughput, a.Throughput))
	})
	strategy := &informed{settings: s}
	for _, p := range points[:min(len(points), mostRivals)] {
		strategy.rivals = append(strategy.rivals, standings.Standing{Candidate: p.Candidate, Load: s.Space.Load.At(p.Level)})
	}
	return strategy
}

// turn returns the next rival in the order A B C, C B A, A B C, ….
func (i *informed) turn() int {
	n := len(i.rivals)
	if at := i.told % n; i.told/n%2 == 0 {
		return at
	}
	return n - 1 - i.told%n
}

// Ask returns the next rival's trial while the longest trial would fit into the budget.
func (i *informed) Ask() search.Action {
	if len(i.rivals) == 0 || i.elapsed+i.longest > i.settings.Budget.Time {
		return search.Action{Stop: true, Why: "the budget is used"}
	}
	r := i.rivals[i.turn()]
	t := i.settings.Trial(r.Candidate, r.Load.Level(), search.PhaseSearch)
	t.Windows, t.Window = turns, 2*t.Window
	return search.Action{Trial: t, Why: "in turn with all that may be taken for the best"}
}

// Tell adds a trial.
func (i *informed) Tell(e search.Event) {
	r := &i.rivals[i.turn()]
	r.Measurement.Windows = append(r.Measurement.Windows, e.Measurement.Windows...)
	r.Point = standings.Judge(i.settings.Goal, r.Load, r.Measurement)
	i.longest = max(i.longest, e.Elapsed-i.elapsed)
	i.told, i.elapsed = i.told+1, e.Elapsed
}

// Leader returns the best rival that keeps the limit by all its requests so far.
func (i *informed) Leader() (standings.Standing, bool) {
	var best standings.Standing
	found := false
	for _, r := range i.rivals {
		if len(r.Measurement.Windows) > 0 && r.Point.Passes() && (!found || r.Point.Score > best.Point.Score) {
			best, found = r, true
		}
	}
	return best, found
}
