// Package landscape evaluates search strategies without an engine. A Landscape is all that a
// campaign could measure of one model on one machine. It is recorded there (package
// tuner/lab/landscape/record), or synthetic.
//
// A Machine replays it on a virtual clock. It answers a strategy's trials as the real machine would
// have: launches and warm-ups cost time, and figures have a seed's noise. The truth of every point
// is known. So the regret of what a strategy recommends is known, too.
package landscape

import (
	"math"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// Landscape is a space with the truth of its points. It is immutable, and may be replayed by
// several machines at once.
type Landscape struct {
	Name      string
	Recorded  bool // on a real machine, else synthetic
	Space     search.Space
	Points    []Point
	window    float64 // s, the length that was asked for of the windows that are drawn
	trace     trace   // of a recorded one
	noise     Noise   // of a synthetic one
	costs     costs
	spread    spread
	neighbour float64 // share of the cores that a neighbour takes in its bursts; 0: there is none
	pools     map[string]*pool
	index     map[string]int // place in Points by key and level
}

// Point is a configuration at a load.
type Point struct {
	Candidate  search.Candidate
	Level      float64
	Throughput float64 // inferences/s, the truth
	P99        float64 // s, the truth
	Error      float64 // standard error of the throughput's logarithm; 0 where the truth is known
	Failure    *measure.Failure
	class      string     // equal for points that are one and the same server
	memory     int64      // bytes
	visits     [][]window // what can be drawn: the windows of each trial of the class, in their order
}

// Measurable reports whether the point has figures: its trial does not fail.
func (p Point) Measurable() bool { return p.Failure == nil }

// pool is what belongs to an engine process.
type pool struct {
	launches []time.Duration // what a launch took
	services []service
	failure  *measure.Failure
}

// costs are what the parts of a trial take, launches aside.
type costs struct {
	reconfigure time.Duration
	warmUp      time.Duration // of a point
	settle      time.Duration // of each size of a service trial, all but its window
	other       time.Duration // of a point beyond what its times say
}

// newLandscape returns a landscape without points.
func newLandscape(name string, space search.Space) *Landscape {
	return &Landscape{Name: name, Space: space, window: 1, pools: map[string]*pool{}, index: map[string]int{}}
}

// add enters a point.
func (l *Landscape) add(p Point) {
	l.index[record.Key(p.Candidate, p.Level)] = len(l.Points)
	l.Points = append(l.Points, p)
}

// Find returns the point of a candidate, or of the one that is the same configuration once the
// default's values are filled in. It is nil where nothing is known.
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

// completed sets the knobs that a candidate leaves alone to the default's values.
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

// pool returns what is known of a candidate's pool; nil if nothing.
func (l *Landscape) pool(c search.Candidate) *pool {
	if p, ok := l.pools[c.PoolKey()]; ok {
		return p
	}
	full, _ := l.Space.Canonical(l.completed(c))
	return l.pools[full.PoolKey()]
}

// Limit is what a campaign's 99th percentile must keep.
type Limit struct {
	Name string
	P99  float64 // s; +Inf for none
}

// Limits are the limits that strategies are judged under: two that record.Limits takes from the
// points, and none.
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

// Settings are those of a campaign for the highest throughput within a limit.
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

// Best is the point with the highest throughput within a limit over long hours, and false
// when no point keeps it.
func (l *Landscape) Best(limit Limit) (Point, bool) {
	best := l.judge(limit, 1).best
	if best == nil {
		return Point{}, false
	}
	return *best, true
}

// Regret is the share of the best throughput within the limit that a recommended point
// misses over long hours: 0 at the best, 1 where the point exceeds the limit by more than
// 2 %, fails or is unknown.
func (l *Landscape) Regret(c search.Candidate, level float64, limit Limit) float64 {
	return l.judge(limit, 1).regret(c, level)
}
