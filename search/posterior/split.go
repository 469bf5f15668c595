package posterior

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// mostJoined is the largest number of trials in one process. The time grows with their cube: 200
// take a fifth of a second. An exhaustive campaign has thousands, and few are near the best. A campaign
// of ten minutes has 80 to 150, so doubled it only changes longer ones.
const mostJoined = 200

// split separates the trials of the cells near the best from all others if there are too many. The
// default always counts as near. Cells are ranked by the means of their trials: of many trials beyond a limit some keep
// it by luck, and a cell would pass for better than one that keeps it.
func split(events []search.Event, o Options) (joined, plain []search.Event) {
	useful := slices.DeleteFunc(slices.Clone(events), func(e search.Event) bool { return !isUseful(e) })
	if len(useful) <= mostJoined {
		return useful, nil
	}
	type rank struct{ violation, score, trials float64 } // means over the trials, and their number
	ranks := map[CellKey]rank{}
	for _, e := range useful {
		key := cellOf(e, o).Key()
		point := standings.Judge(o.Goal, e.Trial.Load, e.Measurement)
		r := ranks[key]
		n := r.trials + 1
		ranks[key] = rank{r.violation + (point.Violation()-r.violation)/n, r.score + (point.Score-r.score)/n, n}
		if e.Trial.Candidate.IsDefault() {
			ranks[key] = rank{0, math.Inf(1), n}
		}
	}
	order := slices.Clone(useful)
	slices.SortStableFunc(order, func(a, b search.Event) int {
		x, y := ranks[cellOf(a, o).Key()], ranks[cellOf(b, o).Key()]
		return cmp.Or(cmp.Compare(x.violation, y.violation), -cmp.Compare(x.score, y.score),
			cmp.Compare(a.Trial.Candidate.Key(), b.Trial.Candidate.Key()), cmp.Compare(a.Trial.Load.Level(), b.Trial.Load.Level()))
	})
	near := map[CellKey]bool{}
	for _, e := range order[:mostJoined] {
		near[cellOf(e, o).Key()] = true
	}
	for _, e := range useful {
		if near[cellOf(e, o).Key()] {
			joined = append(joined, e)
		} else {
			plain = append(plain, e)
		}
	}
	return joined, plain
}

// IsApart reports whether a cell was measured and is estimated from its own trials alone, since
// many others are nearer to the best.
func (p *Posterior) IsApart(c Cell) bool {
	_, isPlain := p.plain[c.Key()]
	return isPlain
}

// alone estimates each cell from its own trials: their mean, with the usual error of a trial.
func (p *Posterior) alone(events []search.Event) map[CellKey][]Normal {
	byCell := map[CellKey][]reading{}
	for _, r := range p.read(events) {
		byCell[r.key] = append(byCell[r.key], r)
	}
	all := make(map[CellKey][]Normal, len(byCell))
	for key, list := range byCell {
		for k, metric := range p.metrics() {
			all[key] = append(all[key], meanOf(list, k, metric))
		}
	}
	return all
}

func meanOf(list []reading, k int, metric measure.Metric) Normal {
	s := usual(metric)
	sum, n, variance := 0.0, 0.0, 0.0
	for _, r := range list {
		if v := r.values[k]; v.isKnown {
			sum, n, variance = sum+v.log, n+1, variance+v.variance
		}
	}
	if n == 0 {
		return Normal{math.NaN(), 0}
	}
	machine := s.fast*s.fast + s.slow*s.slow
	return Normal{sum / n, math.Sqrt((s.trial*s.trial+variance/n)/n + machine)}
}
