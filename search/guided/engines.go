package guided

import (
	"math"
	"slices"

	"tuner/search"
	"tuner/search/queuesim"
)

// How the logarithms of engines' service times differ: each engine knob has an effect of its own (an additive model), and each
// engine a rest.
const (
	commonSD = 3.0  // of what all have in common: nothing is known of the model beforehand
	effectSD = 0.5  // of a value of a knob
	ownSD    = 0.12 // of what the values together do not explain
)

// hopeless is the number of engines with a value of a knob that may fail while none works, before the rest is given up.
const hopeless = 3

// forecast is what is expected of an engine that has not been opened.
type forecast struct {
	curve     queuesim.Curve
	deviation float64 // standard deviation of its times' logarithm
	last      int     // the largest size of the curves that it rests on
}

// kinship is the covariance of two engines' log service times.
func kinship(a, b *engine) float64 {
	k := commonSD * commonSD
	for i, v := range a.values {
		if v == b.values[i] {
			k += effectSD * effectSD
		}
	}
	if a == b {
		k += ownSD * ownSD
	}
	return k
}

// foresee predicts the curves of all engines that have not been opened from those that are known: for each size the best linear
// prediction of the logarithm.
func (g *Guided) foresee() {
	known := g.witnesses()
	g.forecasts = make([]forecast, len(g.engines))
	if len(known) == 0 {
		return
	}
	factor := make([][]float64, len(known))
	for i, a := range known {
		factor[i] = make([]float64, i+1)
		for j := range factor[i] {
			factor[i][j] = a.kinship(known[j])
		}
	}
	cholesky(factor)
	for _, e := range g.engines {
		if door := e.door(); door != nil && !e.isOpen() {
			g.forecasts[e.index] = predict(e, known, factor, g.sizes(door.maxBatch))
		}
	}
}

// predict is the forecast of one engine. The means of what known service times have in common are taken from the first, to which the
// others are compared.
func predict(e *engine, known []witness, factor [][]float64, sizes []int) forecast {
	k := make([]float64, len(known))
	for i, w := range known {
		k[i] = w.kinship(witness{engine: e})
	}
	reduced := append([]float64(nil), k...)
	forward(factor, reduced)
	f := forecast{deviation: math.Sqrt(max(kinship(e, e)-dot(reduced, reduced), 0))}
	weights := solve(factor, k)
	first := known[0].curve
	for _, w := range known {
		f.last = max(f.last, w.curve.Sizes[len(w.curve.Sizes)-1])
	}
	f.curve = queuesim.Curve{Sizes: sizes, Alone: make([]float64, len(sizes)), Overhead: first.Overhead, Spread: first.Spread}
	for i, size := range sizes {
		base, sum := math.Log(first.Time(size, 1, 1)), 0.0
		for j, w := range known {
			if w.machine == 0 {
				f.curve.Overhead = min(f.curve.Overhead, w.curve.Overhead)
			}
			sum += weights[j] * (math.Log(w.curve.Time(size, 1, 1)) - base)
		}
		f.curve.Alone[i] = math.Exp(base + sum)
	}
	return f
}

// foreseen is what is known, or else predicted, of an engine's service times; false where nothing is.
func (g *Guided) foreseen(e *engine) (f forecast, ok bool) {
	switch {
	case e.isOpen():
		f.curve, f.last = e.alone.curve(), e.alone.last()
	case g.forecasts != nil && e.door() != nil:
		f = g.forecasts[e.index]
	}
	return f, len(f.curve.Sizes) > 0
}

// record counts the engines with a value of a knob that are open and that have failed for good.
type record struct{ open, failed int }

// experience is what is known of each value of each engine knob; a value without an entry was not tried.
func (g *Guided) experience() []map[search.Value]record {
	known := make([]map[search.Value]record, len(g.base.values))
	for i := range known {
		known[i] = map[search.Value]record{}
	}
	for _, e := range g.engines {
		if !e.isTried() {
			continue
		}
		for i, v := range e.values {
			r := known[i][v]
			switch {
			case e.isOpen():
				r.open++
			case e.door() == nil:
				r.failed++
			}
			known[i][v] = r
		}
	}
	return known
}

// unexplored is the engine to open next so that each value of each engine knob has been tried once: of those with a new value the
// one that differs least from the default's, since that shows the value's effect. Nil when all values were tried, but for those that only come with
// what always fails. While none is open, one that failed once is tried again, with more instances.
func (g *Guided) unexplored(known []map[search.Value]record) *engine {
	if !g.base.isTried() {
		return g.base
	}
	var next *engine
	least := math.MaxInt
	for _, e := range g.engines {
		if e.isTried() || isHopeless(e, known) {
			continue
		}
		distance, isNew := 0, false
		for i, v := range e.values {
			if _, tried := known[i][v]; !tried {
				isNew = true
			}
			if v != g.base.values[i] {
				distance++
			}
		}
		if isNew && distance < least {
			next, least = e, distance
		}
	}
	if next == nil && !slices.ContainsFunc(g.engines, (*engine).isOpen) {
		again := slices.IndexFunc(g.engines, func(e *engine) bool { return e.door() != nil && !isHopeless(e, known) })
		if again >= 0 {
			return g.engines[again]
		}
	}
	return next
}

// isHopeless reports whether an engine has a value with which several engines failed and none works.
func isHopeless(e *engine, known []map[search.Value]record) bool {
	for i, v := range e.values {
		if r := known[i][v]; r.open == 0 && r.failed >= hopeless {
			return true
		}
	}
	return false
}
