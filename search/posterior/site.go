package posterior

import (
	"math"
	"time"

	"tuner/measure"
	"tuner/search"
)

// site is where a cell lies for a metric: what the kernel compares.
type site struct {
	pool    string     // the engine process, and on which server
	server  string     // cells of one server and load are one and the same (search.Space.ClassKey)
	at      [3]float64 // load and batch, as logarithms, and queue delay
	prior   float64    // what is predicted, on log scale
	isKnown bool       // prior is a prediction
}

// delayUnit scales queue delays: the kernel takes ln(1 + delay/delayUnit), so that a delay below it
// counts in proportion and a longer one by its ratio. The quickest models that are served take a tenth of a
// millisecond, so that a shorter delay hardly matters.
const delayUnit = 100 * time.Microsecond

func siteOf(c Cell, metric measure.Metric, o Options) site {
	pool, server := o.Space.PoolClass(c.Candidate), o.Space.ClassKey(c.Candidate, c.Load)+" @ "+c.Load.String()
	if c.IsElsewhere {
		pool, server = "elsewhere "+pool, "elsewhere "+server
	}
	flight, batch := inFlight(c.Load), float64(o.Space.MaxBatch(c.Candidate))
	batch = max(min(batch, flight), 1)
	delay := 0.0
	if d, err := o.Space.Value(c.Candidate, search.KnobMaxQueueDelay).Duration(); err == nil && batch > 1 {
		delay = float64(d) // a batch of one waits for nothing
	}
	s := site{
		pool:   pool,
		server: server,
		at:     [3]float64{math.Log(max(c.Load.Level(), least)), math.Log(batch), math.Log1p(delay / float64(delayUnit))},
	}
	if o.Prior != nil {
		s.prior, s.isKnown = o.Prior.Log(c.Candidate, c.Load, metric)
	}
	return s
}

// inFlight is how many inferences wait or run at once in a closed loop, infinite in an open loop.
func inFlight(l measure.Load) float64 {
	if l.Concurrency == 0 {
		return math.Inf(1)
	}
	return float64(l.Concurrency * max(l.BatchSize, 1))
}
