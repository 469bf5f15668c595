// Package landscape evaluates search strategies without an engine. A Landscape holds everything
// that a campaign could measure of one model on one machine. It is recorded there (package
// tuner/lab/landscape/record), or synthetic.
//
// A Machine replays it on a virtual clock. It answers a strategy's trials like the real machine:
// launches and warm-ups cost time, and figures have a seed's noise. The truth of every point is
// known, and so is the regret of a strategy's recommendation.
package landscape

import (
	"math"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// Landscape is a space with the truth of its points. It is immutable, and several machines may
// replay it at once.
type Landscape struct {
	Name      string
	Recorded  bool // on a real machine, otherwise synthetic
	Space     search.Space
	Points    []Point
	window    float64 // s, requested length of the windows that are drawn
	trace     trace   // of a recorded landscape
	noise     Noise   // of a synthetic landscape
	costs     costs
	spread    spread
	neighbour float64 // share of the cores that a neighbour takes in its bursts; 0: no neighbour
	pools     map[string]*pool
	index     map[string]int // index in Points by key and level
}

// Point is a configuration at a load.
type Point struct {
	Candidate  search.Candidate
	Level      float64
	Throughput float64 // inferences/s, the truth
	P99        float64 // s, the truth
	Error      float64 // standard error of the throughput's logarithm; 0 if the truth is known
	Failure    *measure.Failure
	class      string     // equal for points that are the same server
	memory     int64      // bytes
	visits     [][]window // possible draws: the windows of each trial of the class, in their order
}

// Measurable reports whether the point has figures: its trial does not fail.
func (p Point) Measurable() bool { return p.Failure == nil }

// pool holds the data of an engine process.
type pool struct {
	launches []time.Duration // launch times
	services []service
	failure  *measure.Failure
}

// costs are the durations of the parts of a trial, without launches.
type costs struct {
	reconfigure time.Duration
	warmUp      time.Duration // of a point
	settle      time.Duration // of each size of a service trial, without its window
	other       time.Duration // rest of a point's duration beyond its recorded times
}

// newLandscape returns a landscape without points.
func newLandscape(name string, space search.Space) *Landscape {
	return &Landscape{Name: name, Space: space, window: 1, pools: map[string]*pool{}, index: map[string]int{}}
}

// add adds a point.
func (l *Landscape) add(p Point) {
	l.index[record.Key(p.Candidate, p.Level)] = len(l.Points)
	l.Points = append(l.Points, p)
}

// Find returns the point of a candidate, or of the candidate that is equal once the default's
// values are filled in. nil if it is unknown.
func (l *Landscape) Find(c search.Candidate, level float64) *Point {
	if i, ok := l.index[record.Key(c, level)]; ok {
		return &l.Points[i]
	}
	full, illegal := l.Space.Canonical(l.completed(c))
	if i, ok := l.index[record.Key(full, level)]; ok && illegal == "" {
		return &l.Points[i]
	}
	return nil
}

// completed sets the unset knobs of a candidate to the default's values.
func (l *Landscape) completed(c search.Candidate) search.Candidate {
	for _, k := range l.Space.Knobs {
		if base, known := l.Space.Facts.Base[k.Name]; known {
			if _, set := c.Get(k.Name); !set {
				c = c.With(k.Name, base)
			}
		}
	}
	return c
}

// pool returns the data of a candidate's pool; nil without data.
func (l *Landscape) pool(c search.Candidate) *pool {
	if p, ok := l.pools[c.PoolKey()]; ok {
		return p
	}
	full, _ := l.Space.Canonical(l.completed(c))
	return l.pools[full.PoolKey()]
}

// Limit is a campaign's limit on the 99th percentile.
type Limit struct {
	Name string
	P99  float64 // s; +Inf for none
}

// Limits returns the limits under which strategies are judged: two that record.Limits computes from
// the points, and none.
func (l *Landscape) Limits() []Limit {
	var p99s []float64
	for _, p := range l.Points {
		if p.Measurable() {
			p99s = append(p99s, p.P99)
		}
	}
	tight, middle := record.Limits(p99s)
	return []Limit{{"tight", tight}, {"middle", middle}, {"none", math.Inf(1)}}
}

// Settings returns those of a campaign for the highest throughput within a limit.
func (l *Landscape) Settings(limit Limit, budget time.Duration, seed uint64) search.Settings {
	s := search.Settings{
		Space:  l.Space,
		Goal:   search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}},
		Budget: search.Budget{Time: budget},
		Seed:   seed,
		Window: time.Second,
		Turns:  true,
	}
	if !math.IsInf(limit.P99, 1) {
		s.Goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit.P99}}
	}
	return s
}

// Best returns the point with the highest throughput within a limit over long hours; false if no
// point keeps it.
func (l *Landscape) Best(limit Limit) (Point, bool) {
	best := l.judge(limit, 1).best
	if best == nil {
		return Point{}, false
	}
	return *best, true
}

// Regret returns the share of the best throughput within the limit that a recommended point loses
// over long hours. It is 0 at the best. It is 1 if the point exceeds the limit by more than 2 %,
// fails or is unknown.
func (l *Landscape) Regret(c search.Candidate, level float64, limit Limit) float64 {
	return l.judge(limit, 1).regret(c, level)
}
