package posterior

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tuner/measure"
	"tuner/search"
)

// site is where a cell lies for a metric: what the kernel compares.
type site struct {
	pool    string // the engine process, and on which server
	server  string // Server: cells of one server and load are one and the same
	batcher string // the server's batcher without the load
	at      [3]float64
	shared  [2]float64 // what cells of different pools have in common
	prior   float64    // what is predicted, on log scale
	isKnown bool       // prior is a prediction
}

// delayUnit scales queue delays: the kernel takes ln(1 + delay/delayUnit), so that a delay below it
// counts in proportion and a longer one by its ratio.
const delayUnit = time.Millisecond

func siteOf(c Cell, metric measure.Metric, o Options) site {
	pool := poolOf(c.Candidate, o.Space)
	if c.IsElsewhere {
		pool = "elsewhere " + pool
	}
	flight, batch := inFlight(c.Load), float64(o.Space.MaxBatch(c.Candidate))
	batch = max(min(batch, flight), 1)
	delay := delayOf(c.Candidate, o.Space)
	if flight <= 1 {
		delay = 0 // nothing that could join a lone request is waited for by others
	}
	level := math.Log(max(c.Load.Level(), least))
	batcher := batcherOf(c, o.Space, batch)
	s := site{
		pool:    pool,
		batcher: pool + "|" + batcher,
		server:  fmt.Sprintf("%s|%s|%v", pool, batcher, c.Load),
		at:      [3]float64{level, math.Log(batch), math.Log1p(float64(delay) / float64(delayUnit))},
		shared:  [2]float64{level - math.Log(float64(max(o.Space.Facts.Instances(c.Candidate), 1))), math.Log(batch)},
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

func delayOf(c search.Candidate, space search.Space) time.Duration {
	d, err := space.Value(c, search.KnobMaxQueueDelay).Duration()
	if err != nil {
		return 0
	}
	return d
}

// batcherOf names what the batcher does at a load. Without a queue delay a largest batch beyond what
// is in flight never fills, so that configurations which differ in it alone are one and the same.
func batcherOf(c Cell, space search.Space, batch float64) string {
	if delayOf(c.Candidate, space) == 0 && float64(space.MaxBatch(c.Candidate)) >= inFlight(c.Load) {
		return fmt.Sprintf("batch=%g", batch)
	}
	values := settingsOf(c.Candidate, space, func(s search.Scope) bool { return s == search.ScopeBatcher })
	values = slices.DeleteFunc(values, func(s search.Setting) bool { return s.Knob == search.KnobMaxBatchSize })
	return fmt.Sprintf("batch=%g%s", batch, text(values))
}

// poolOf names an engine process by what its settings come to. A candidate that says what the default
// has anyway is in the default's process.
func poolOf(c search.Candidate, space search.Space) string {
	return text(settingsOf(c, space, func(s search.Scope) bool { return s != search.ScopeBatcher }))
}

// settingsOf lists what the knobs of some scopes come to in a candidate, in alphabetical order.
func settingsOf(c search.Candidate, space search.Space, isIn func(search.Scope) bool) []search.Setting {
	var list []search.Setting
	add := func(knob string, v search.Value) {
		isKnown := slices.ContainsFunc(list, func(s search.Setting) bool { return s.Knob == knob })
		if scope, _ := search.KnobScope(knob); !isKnown && v != "" && isIn(scope) {
			list = append(list, search.Setting{Knob: knob, Value: v})
		}
	}
	for _, s := range c.Settings() {
		add(s.Knob, s.Value)
	}
	for _, k := range space.Knobs {
		if k.Name != search.KnobPreferredBatchSize || space.MaxBatch(c) == space.MaxBatch(search.Candidate{}) {
			add(k.Name, space.Value(c, k.Name)) // preferred sizes are the default's with its own batch size alone
		}
	}
	slices.SortFunc(list, func(a, b search.Setting) int { return strings.Compare(a.Knob, b.Knob) })
	return list
}

func text(settings []search.Setting) string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, " %s=%s", s.Knob, s.Value)
	}
	return b.String()
}
