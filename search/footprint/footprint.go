// Package footprint tells what a configuration holds in memory. That is one figure of
// each configuration: the peak resident set of a fresh engine process that has executed
// one of its largest batches on every instance. The peak of a trial is another one, since
// a process keeps what larger batches took before.
//
// The package stands beside the strategies: it learns from all events of a campaign, and
// search, analysis and reports ask it. It measures nothing, and knows neither loads nor
// times.
package footprint

import (
	"math"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Basis says what an estimate rests on.
type Basis string

// The bases of estimates.
const (
	Measured Basis = "measured" // a process was seen that had executed this batch and no larger one
	Derived  Basis = "derived"  // of other batches, other numbers of instances, or a process that held more
)

// Estimate is what a configuration holds, in bytes, with its 95 % interval.
type Estimate struct {
	measure.Estimate
	Basis Basis
}

// Deviation is the standard deviation of the logarithm, by the interval.
func (e Estimate) Deviation() float64 { return math.Log(e.Hi/e.Lo) / (2 * stats.Half95) }

// Model is what a campaign tells of its configurations' memory. It is for one goroutine.
type Model struct {
	space   search.Space
	process search.Process
	pools   map[string]*Pool
	engines map[string]*engine
	order   []*Pool // as first asked for
}

// engine is the pools that differ in the number of instances alone.
type engine struct{ pools []*Pool }

// New returns a model of a space that knows nothing yet.
func New(space search.Space) *Model {
	return &Model{space: space, pools: map[string]*Pool{}, engines: map[string]*engine{}}
}

// Pool returns the pool of a candidate, whatever the candidate's batcher.
func (m *Model) Pool(c search.Candidate) *Pool {
	name := m.engineOf(c)
	instances := m.space.Facts.Instances(c)
	key := name + " × " + string(search.IntValue(instances))
	if p, known := m.pools[key]; known {
		return p
	}
	e, known := m.engines[name]
	if !known {
		e = &engine{}
		m.engines[name] = e
	}
	p := &Pool{model: m, engine: e, instances: instances, knots: map[int]*knot{}, bounds: map[int]float64{}}
	m.pools[key], m.order, e.pools = p, append(m.order, p), append(e.pools, p)
	return p
}

// engineOf names all that a candidate's process is apart from the number of its
// instances. A knob that it leaves alone is the default's.
func (m *Model) engineOf(c search.Candidate) string {
	var parts []string
	add := func(knob string) {
		scope, known := search.KnobScope(knob)
		if v := m.space.Value(c, knob); v != "" && knob != search.KnobInstanceCount && (!known || scope != search.ScopeBatcher) {
			parts = append(parts, knob+"="+string(v))
		}
	}
	for _, k := range m.space.Knobs {
		add(k.Name)
	}
	for _, s := range c.Settings() {
		if !slices.ContainsFunc(m.space.Knobs, func(k search.Knob) bool { return k.Name == s.Knob }) {
			add(s.Knob)
		}
	}
	return strings.Join(parts, " ")
}

// Add learns from an event. Events come in the order in which they happened, those of
// service trials among them.
func (m *Model) Add(e search.Event) {
	before, p := m.process.During(e), m.Pool(e.Trial.Candidate)
	m.process = m.process.After(e, m.space)
	r := e.Measurement
	if r.Footprint.Bytes > 0 {
		p.see(footprint, r.Footprint.Batch, r.Footprint.Bytes)
	}
	isTold := false
	for i, w := range r.Windows {
		if i < len(e.Trial.Sizes) && e.Trial.Sizes[i] >= before.Batch && w.Memory > 0 {
			p.see(service, e.Trial.Sizes[i], w.Memory)
			isTold = true
		}
	}
	if r.Failure != nil || r.Memory <= 0 {
		return
	}
	if e.Trial.Phase == search.PhaseService {
		if !isTold && m.process.Batch > before.Batch { // windows of old journals do not tell
			p.see(service, m.process.Batch, r.Memory)
		}
		return
	}
	batch := m.space.MaxBatch(e.Trial.Candidate)
	switch {
	case before.Batch > batch:
	case before.Batch == 0:
		p.see(fresh, batch, r.Memory)
	default:
		p.see(kept, batch, r.Memory)
	}
	p.bound(batch, r.Memory)
}

// Of is what a candidate holds; false where nothing is known of any.
func (m *Model) Of(c search.Candidate) (Estimate, bool) {
	return m.Pool(c).Holds(m.space.MaxBatch(c))
}

// Knows reports whether what a candidate holds was measured.
func (m *Model) Knows(c search.Candidate) bool {
	e, ok := m.Of(c)
	return ok && e.Basis == Measured
}

// Any reports whether anything is known.
func (m *Model) Any() bool {
	return slices.ContainsFunc(m.order, func(p *Pool) bool { return p.isKnown() })
}

// Seen is an event with what its configuration holds in the place of what its process
// held meanwhile, so that a goal judges all trials of a configuration by the same figure.
// A service trial stays as it is: it is no figure of its configuration.
func (m *Model) Seen(e search.Event) search.Event {
	if e.Trial.Phase == search.PhaseService || e.Measurement.Failure != nil || e.Measurement.Memory <= 0 {
		return e
	}
	if held, ok := m.Of(e.Trial.Candidate); ok {
		e.Measurement.Memory = int64(math.Round(held.Value))
	}
	return e
}
