package posterior

import (
	"math"
	"time"
	"unique"

	"tuner/measure"
	"tuner/search"
)

// Coordinates holds the coordinates of a cell that the kernel compares. It is the same for all metrics,
// and may be kept. Its names are interned, since coordinates are compared far more often than made.
type Coordinates struct {
	pool   unique.Handle[string] // the engine process and its server
	server unique.Handle[string] // cells of one server and load are identical (search.Space.ClassKey)
	at     [3]float64            // logarithms of load and batch, and queue delay
}

// site has coordinates and the prediction of a metric there.
type site struct {
	Coordinates
	prior   float64 // on log scale
	isKnown bool    // prior is a prediction
}

// delayUnit scales queue delays. The kernel takes ln(1 + delay/delayUnit), so delays below it count
// linearly and longer ones logarithmically. The fastest models in use take a tenth of a
// millisecond, so a shorter delay hardly matters.
const delayUnit = 100 * time.Microsecond

// siteOf returns the site of a cell with a key.
func siteOf(c Cell, key CellKey, metric measure.Metric, o Options) site {
	s := site{Coordinates: o.Figures.at(c, key, o.Space)}
	s.prior, s.isKnown = o.predict(c, metric)
	return s
}

// CoordinatesOf returns the coordinates of a cell.
func CoordinatesOf(c Cell, space search.Space) Coordinates {
	pool, server := space.PoolClass(c.Candidate), space.ClassKey(c.Candidate, c.Load)+" @ "+c.Load.String()
	if c.IsElsewhere {
		pool, server = "elsewhere "+pool, "elsewhere "+server
	}
	batch, delay := batching(c, space)
	return Coordinates{
		pool:   unique.Make(pool),
		server: unique.Make(server),
		at:     [3]float64{math.Log(max(c.Load.Level(), Least)), batch, delay},
	}
}

// batching returns the coordinates of batch and queue delay. Of several models they are the sums of
// the models', so that a change of one model's batcher moves the cell as far as it would alone.
func batching(c Cell, space search.Space) (batch, delay float64) {
	if !space.IsSeveral() {
		size := filled(space.MaxBatch(c.Candidate), c.Load)
		if d, err := space.Value(c.Candidate, search.KnobMaxQueueDelay).Duration(); err == nil && size > 1 {
			delay = float64(d) // a batch of one never waits
		}
		return math.Log(size), math.Log1p(delay / float64(delayUnit))
	}
	for _, p := range space.Parts {
		b, d := batching(Cell{Candidate: c.Candidate.Of(p.Model), Load: c.Load.Of(p.Model)}, p.Space)
		batch, delay = batch+b, delay+d
	}
	return batch, delay
}

// CoordinatesBeyond returns coordinates in an engine process that was never measured. Only the component that
// all processes share is known there.
func CoordinatesBeyond(load measure.Load, batch int) Coordinates {
	return Coordinates{at: [3]float64{math.Log(max(load.Level(), Least)), math.Log(filled(batch, load)), 0}}
}

// filled returns the largest batch that a load fills, at least 1.
func filled(batch int, l measure.Load) float64 { return max(min(float64(batch), inFlight(l)), 1) }

// inFlight returns the number of inferences that wait or run at once in a closed loop; infinite in
// an open loop.
func inFlight(l measure.Load) float64 {
	if l.Concurrency == 0 {
		return math.Inf(1)
	}
	return float64(l.Concurrency * max(l.BatchSize, 1))
}
