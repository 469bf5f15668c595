package posterior

import (
	"math"
	"time"
	"unique"

	"tuner/measure"
	"tuner/search"
)

// Place is where a cell lies: what the kernel compares. It is the same for all metrics, and may be kept. Its
// names are interned, since places are compared far more often than made.
type Place struct {
	pool   unique.Handle[string] // the engine process, and on which server
	server unique.Handle[string] // cells of one server and load are one and the same (search.Space.ClassKey)
	at     [3]float64            // load and batch, as logarithms, and queue delay
}

// site is a place and what is predicted of a metric there.
type site struct {
	Place
	prior   float64 // on log scale
	isKnown bool    // prior is a prediction
}

// delayUnit scales queue delays: the kernel takes ln(1 + delay/delayUnit), so that a delay below it
// counts in proportion and a longer one by its ratio. The quickest models that are served take a tenth of a
// millisecond, so that a shorter delay hardly matters.
const delayUnit = 100 * time.Microsecond

func siteOf(c Cell, metric measure.Metric, o Options) site {
	s := site{Place: PlaceOf(c, o.Space)}
	if o.Prior != nil {
		s.prior, s.isKnown = o.Prior.Log(c.Candidate, c.Load, metric)
	}
	return s
}

// PlaceOf is where a cell lies.
func PlaceOf(c Cell, space search.Space) Place {
	pool, server := space.PoolClass(c.Candidate), space.ClassKey(c.Candidate, c.Load)+" @ "+c.Load.String()
	if c.IsElsewhere {
		pool, server = "elsewhere "+pool, "elsewhere "+server
	}
	batch, delay := filled(space.MaxBatch(c.Candidate), c.Load), 0.0
	if d, err := space.Value(c.Candidate, search.KnobMaxQueueDelay).Duration(); err == nil && batch > 1 {
		delay = float64(d) // a batch of one waits for nothing
	}
	return Place{
		pool:   unique.Make(pool),
		server: unique.Make(server),
		at:     [3]float64{math.Log(max(c.Load.Level(), least)), math.Log(batch), math.Log1p(delay / float64(delayUnit))},
	}
}

// PlaceBeyond is a place in an engine process that was never measured, so that only what all processes have
// in common is known of it.
func PlaceBeyond(load measure.Load, batch int) Place {
	return Place{at: [3]float64{math.Log(max(load.Level(), least)), math.Log(filled(batch, load)), 0}}
}

// filled is the largest batch that a load fills, at least 1.
func filled(batch int, l measure.Load) float64 { return max(min(float64(batch), inFlight(l)), 1) }

// inFlight is how many inferences wait or run at once in a closed loop, infinite in an open loop.
func inFlight(l measure.Load) float64 {
	if l.Concurrency == 0 {
		return math.Inf(1)
	}
	return float64(l.Concurrency * max(l.BatchSize, 1))
}
