package landscape

import "tuner/search"

// tolerance is the largest excess over the limit of a useful recommendation.
const tolerance = 0.02

// judge knows the truth under a limit on a machine with a mean speed. Throughputs are the
// landscape's times the speed. Latencies are divided by it, by Little's law.
type judge struct {
	landscape *Landscape
	limit     Limit
	speed     float64
	best      *Point // with the highest throughput within the limit; nil if no point keeps it
}

func (l *Landscape) judge(limit Limit, speed float64) judge {
	j := judge{landscape: l, limit: limit, speed: speed}
	for i := range l.Points {
		p := &l.Points[i]
		if j.keeps(p, 0) && (j.best == nil || p.Throughput > j.best.Throughput) {
			j.best = p
		}
	}
	return j
}

// keeps reports whether a point keeps the limit, or exceeds it by at most a share.
func (j judge) keeps(p *Point, tolerance float64) bool {
	return p != nil && p.Measurable() && p.P99/j.speed <= j.limit.P99*(1+tolerance)
}

// isFalse reports whether a point exceeds the limit by more than the tolerance.
func (j judge) isFalse(p *Point) bool {
	return p != nil && p.Measurable() && !j.keeps(p, tolerance)
}

// regret returns Landscape.Regret at the judge's speed.
func (j judge) regret(c search.Candidate, level float64) float64 {
	p := j.landscape.Find(c, level)
	if j.best == nil || !j.keeps(p, tolerance) {
		return 1
	}
	return max(0, 1-p.Throughput/j.best.Throughput)
}

// ofStep returns the regret of a recommendation, 1 without one.
func (j judge) ofStep(s Step) float64 {
	if !s.isKnown {
		return 1
	}
	return j.regret(s.candidate, s.level)
}
