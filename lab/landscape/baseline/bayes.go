package baseline

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// bayes is Bayesian optimization like in a generic tuner. It has a Gaussian process for the score
// and one for each constrained metric, all on log scale, over the knobs and the load. The next
// point has the highest expected improvement × probability of satisfying the constraints, divided
// by its expected cost. It has no model of queues and batches.
type bayes struct {
	points
	features [][]float64 // by candidate
	seen     []observation
	places   map[point]int // index in seen
	costs    costs
	models   []model // for the score, then for each constraint
	next     *search.Action
}

// observation is the mean of all windows of a point.
type observation struct {
	at     point
	values []float64 // by model; NaN if unknown
	pooled measure.Measurement
	judged standings.Point
	trials int
}

// model is a Gaussian process of one figure.
type model struct {
	process  process
	shape    shape
	refitted int // number of known points when its shape was fitted; 0: never
}

// costs are the durations of the parts of a trial, in seconds. A launch counts for every point
// outside the running process.
type costs struct {
	launches, trials float64 // sums
	launched, run    float64 // counts
	last             search.Candidate
}

const (
	initial    = 10  // points that are drawn before the models are used
	considered = 300 // points of the space that are considered for the next trial
	refitEvery = 8   // points
	mostTrials = 20  // per point: the same limit as for guided
)

func newBayes(p points) *bayes {
	b := &bayes{points: p, places: map[point]int{}, models: make([]model, 1+len(p.settings.Goal.Constraints))}
	for _, c := range p.candidates {
		b.features = append(b.features, p.features(c))
	}
	return b
}

// features returns a candidate's knobs as numbers. An ordinal knob is its index among the values,
// scaled to 0..1. Other knobs have one number for each value.
func (p points) features(c search.Candidate) []float64 {
	var list []float64
	for knob, k := range p.settings.Space.Knobs {
		v, _ := c.Get(k.Name)
		place := slices.Index(k.Values, v)
		if p.ordinal[knob] {
			list = append(list, float64(max(place, 0))/float64(max(len(k.Values)-1, 1)))
			continue
		}
		for i := range k.Values {
			is := 0.0
			if i == place {
				is = math.Sqrt(0.5)
			}
			list = append(list, is)
		}
	}
	return list
}

// input returns a point's features: the candidate's and the load's.
func (b *bayes) input(at point) []float64 {
	levels := b.settings.Space.Load.Levels
	load := math.Log(levels[at.level]/levels[0]) / max(math.Log(levels[len(levels)-1]/levels[0]), 1e-9)
	return append(slices.Clone(b.features[at.candidate]), load)
}

// Ask returns the next point. It is decided once, and kept until the next event.
func (b *bayes) Ask() search.Action {
	if len(b.candidates) == 0 {
		return search.Action{Stop: true, Why: "the space is empty"}
	}
	if b.next == nil {
		next := b.trial(b.decide(), "expected improvement")
		b.next = &next
	}
	return *b.next
}

// Tell adds an observation of a point of the space.
func (b *bayes) Tell(e search.Event) {
	b.next = nil
	b.costs.add(e)
	level := slices.Index(b.settings.Space.Load.Levels, e.Trial.Load.Level())
	i, isCandidate := b.index[e.Trial.Candidate.Key()]
	if !isCandidate || level < 0 || e.Measurement.Failure != nil {
		return
	}
	at := point{i, level}
	place, known := b.places[at]
	if !known {
		place = len(b.seen)
		b.places[at] = place
		b.seen = append(b.seen, observation{at: at})
	}
	o := &b.seen[place]
	o.trials++
	o.pooled.Windows = append(slices.Clone(o.pooled.Windows), e.Measurement.Windows...)
	o.pooled.Memory = max(o.pooled.Memory, e.Measurement.Memory)
	o.values, o.judged = b.values(o.pooled), standings.Judge(b.settings.Goal, e.Trial.Load, o.pooled)
	b.learn()
}

// values returns the figures that are modelled.
func (b *bayes) values(m measure.Measurement) []float64 {
	values := make([]float64, len(b.models))
	for i := range values {
		values[i] = math.NaN()
	}
	if score, ok := b.settings.Goal.Score(m); ok {
		values[0] = score
	}
	for i, c := range b.settings.Goal.Constraints {
		if e, ok := m.Estimate(c.Metric); ok && e.Value > 0 {
			values[i+1] = math.Log(e.Value)
		}
	}
	return values
}

// learn fits the models to all observations.
func (b *bayes) learn() {
	if len(b.seen) < initial {
		return
	}
	for i := range b.models {
		var d data
		for _, o := range b.seen {
			if !math.IsNaN(o.values[i]) {
				d.add(b.input(o.at), o.values[i], float64(o.trials))
			}
		}
		if len(d.values) < initial/2 {
			continue
		}
		m := &b.models[i]
		if m.shape.lengths == nil {
			m.shape = newShape(len(d.inputs[0]))
		}
		if m.refitted == 0 || len(b.seen) >= m.refitted+refitEvery {
			m.shape, m.refitted = refit(m.shape, d), len(b.seen)
		}
		if p, _, ok := fit(m.shape, d); ok {
			m.process = p
		}
	}
}

// decide chooses the next point.
func (b *bayes) decide() point {
	random := rand.New(rand.NewPCG(b.settings.Seed, uint64(b.total())))
	if len(b.seen) < initial || b.models[0].process.values == nil {
		return b.draw(random)
	}
	points := b.consider(random)
	score, deviation, feasible := b.believe(points)
	best, hope := b.incumbent(), -1.0
	chosen := points[len(points)-1] // a random one
	for i, at := range points {
		if place, known := b.places[at]; known && b.seen[place].trials >= mostTrials {
			continue
		}
		gain := feasible[i]
		if !math.IsInf(best, -1) {
			gain *= improvement(score[i], deviation[i], best)
		}
		if value := gain / b.costs.expect(b.candidates[at.candidate]); value > hope {
			chosen, hope = at, value
		}
	}
	return chosen
}

// total returns the number of measurements, which seeds the next draw.
func (b *bayes) total() int { return int(b.costs.run) }

// draw returns a random point of a pool that is not known to fail.
func (b *bayes) draw(random *rand.Rand) point {
	at := b.at(random.IntN(b.number()))
	for range considered {
		if !b.isBroken(at.candidate) {
			break
		}
		at = b.at(random.IntN(b.number()))
	}
	return at
}

// consider returns random points, and those that differ in one step from the best observed ones.
func (b *bayes) consider(random *rand.Rand) []point {
	list := make([]point, 0, considered)
	for _, s := range b.ranked()[:min(3, len(b.seen))] {
		for level := range b.settings.Space.Load.Levels {
			list = append(list, point{s.at.candidate, level})
		}
		for i, f := range b.features {
			if b.isStep(b.features[s.at.candidate], f) && !b.isBroken(i) {
				list = append(list, point{i, s.at.level})
			}
		}
	}
	for len(list) < considered {
		list = append(list, b.draw(random))
	}
	return list
}

// isStep reports whether two candidates' features differ in one ordinal knob by one place, or in
// one other knob.
func (p points) isStep(a, b []float64) bool {
	changes, at := 0, 0
	for knob, k := range p.settings.Space.Knobs {
		width := 1
		if !p.ordinal[knob] {
			width = len(k.Values)
		}
		if !slices.Equal(a[at:at+width], b[at:at+width]) {
			changes++
			if width == 1 && math.Abs(a[at]-b[at]) > 1.01/float64(max(len(k.Values)-1, 1)) {
				return false
			}
		}
		at += width
	}
	return changes == 1
}

// believe returns the score's mean and standard deviation, and the probability of satisfying the
// constraints.
func (b *bayes) believe(points []point) (score, deviation, feasible []float64) {
	inputs := make([][]float64, len(points))
	feasible = make([]float64, len(points))
	for i, at := range points {
		inputs[i], feasible[i] = b.input(at), 1
	}
	score, deviation = b.models[0].process.predict(inputs)
	for j, c := range b.settings.Goal.Constraints {
		if b.models[j+1].process.values == nil {
			continue
		}
		mean, spread := b.models[j+1].process.predict(inputs)
		for i := range points {
			if c.Max != nil {
				feasible[i] *= distuv.UnitNormal.CDF((math.Log(*c.Max) - mean[i]) / spread[i])
			}
			if c.Min != nil {
				feasible[i] *= distuv.UnitNormal.CDF((mean[i] - math.Log(*c.Min)) / spread[i])
			}
		}
	}
	return score, deviation, feasible
}

// improvement returns the expected improvement of a normal variable over the best.
func improvement(mean, deviation, best float64) float64 {
	z := (mean - best) / deviation
	return deviation * (z*distuv.UnitNormal.CDF(z) + distuv.UnitNormal.Prob(z))
}

// belief is an observed point with its predictions.
type belief struct {
	observation
	score, feasible float64
}

// ranked orders the observed points. First come those that more likely than not satisfy the
// constraints, by score. The others follow by that probability.
func (b *bayes) ranked() []belief {
	list := make([]belief, len(b.seen))
	points := make([]point, len(b.seen))
	for i, o := range b.seen {
		list[i], points[i] = belief{observation: o, score: o.values[0], feasible: 1}, o.at
		if !o.judged.Passes() {
			list[i].feasible = 0
		}
	}
	if b.models[0].process.values != nil {
		score, _, feasible := b.believe(points)
		for i := range list {
			list[i].score, list[i].feasible = score[i], feasible[i]
		}
	}
	slices.SortStableFunc(list, func(x, y belief) int {
		likelyX, likelyY := x.feasible > 0.5, y.feasible > 0.5
		switch {
		case likelyX && likelyY:
			return cmp.Compare(y.score, x.score)
		case likelyX:
			return -1
		case likelyY:
			return 1
		}
		return cmp.Compare(y.feasible, x.feasible)
	})
	return list
}

// incumbent returns the best predicted score of an observed point within the constraints; -Inf
// without one.
func (b *bayes) incumbent() float64 {
	if list := b.ranked(); len(list) > 0 && list[0].feasible > 0.5 {
		return list[0].score
	}
	return math.Inf(-1)
}

// Remaining returns the number of points that were not measured.
func (b *bayes) Remaining() int { return max(1, b.number()-len(b.seen)) }

// add learns from a trial.
func (c *costs) add(e search.Event) {
	t := e.Measurement.Times
	if t.Launch > 0 {
		c.launches, c.launched = c.launches+t.Launch.Seconds(), c.launched+1
	}
	c.trials, c.run = c.trials+(t.WarmUp+t.Windows).Seconds(), c.run+1
	c.last = e.Trial.Candidate
}

// expect returns the expected duration of a trial of a candidate, in seconds.
func (c *costs) expect(candidate search.Candidate) float64 {
	seconds := c.trials / max(c.run, 1)
	if candidate.PoolKey() != c.last.PoolKey() {
		seconds += c.launches / max(c.launched, 1)
	}
	return max(seconds, time.Millisecond.Seconds())
}
