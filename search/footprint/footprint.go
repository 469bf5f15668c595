// Package footprint estimates the memory of a configuration. It is one figure per configuration:
// the peak resident set of a fresh engine process. That process has executed one of its largest
// batches on every instance. The peak of a trial differs, since a process keeps the memory of
// earlier, larger batches.
//
// The package stands beside the strategies. It learns from all events of a campaign, and search,
// analysis and reports read it. It measures nothing, and ignores loads and times.
package footprint

import (
	"math"
	"slices"
	"strings"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/ort/sessionoption"
	"tuner/search"
)

// Basis is the source of an estimate.
type Basis string

// The bases of estimates.
const (
	Measured Basis = "measured" // from a process that had executed this batch and no larger one
	Derived  Basis = "derived"  // from other batches, other numbers of instances, or a process that held more
)

// Estimate is a configuration's memory in bytes, with its 95 % interval.
type Estimate struct {
	measure.Estimate
	Basis Basis
}

// Deviation returns the standard deviation of the logarithm, from the interval.
func (e Estimate) Deviation() float64 { return math.Log(e.Hi/e.Lo) / (2 * stats.Half95) }

// Model estimates the memory of a campaign's configurations. It is for one goroutine.
type Model struct {
	space   search.Space
	process Process
	pools   map[string]*Pool
	engines map[string]*engine
	order   []*Pool // in the order of the first request
}

// engine holds the pools that differ only in the number of instances.
type engine struct {
	pools []*Pool
	// each is the part of a process's memory that its instances take one by one, if only one number
	// of instances was measured
	each float64
}

// The parts of a process's memory that its instances take: half of it if each has the model's
// weights, and a tenth if they share a session. MiniLM's share it to 0.00 to 0.07: only what a run
// computes is each instance's own (docs/design/engine.md).
const (
	ownWeights    = 0.5
	sharedWeights = 0.1
)

// New returns an empty model of a space.
func New(space search.Space) *Model {
	return &Model{space: space, pools: map[string]*Pool{}, engines: map[string]*engine{}}
}

// Pool returns the pool of a candidate, for any batcher settings.
func (m *Model) Pool(c search.Candidate) *Pool {
	name := m.engineOf(c)
	instances := m.space.Instances(c)
	key := name + " × " + string(search.IntValue(instances))
	if p, known := m.pools[key]; known {
		return p
	}
	e, known := m.engines[name]
	if !known {
		e = m.newEngine(c)
		m.engines[name] = e
	}
	p := &Pool{model: m, engine: e, instances: instances, knots: map[int]*knot{}, bounds: map[int]float64{}, grown: map[int]float64{}}
	m.pools[key], m.order, e.pools = p, append(m.order, p), append(e.pools, p)
	return p
}

// newEngine makes the engine of a candidate. One instance on a session that others could share is one
// instance with a session of its own, so that its pool tells about both engines.
func (m *Model) newEngine(c search.Candidate) *engine {
	if m.space.Value(c, sessionoption.ShareSession) != search.BoolValue(true) {
		return &engine{each: ownWeights}
	}
	alone := c.With(sessionoption.ShareSession, search.BoolValue(false)).With(search.KnobInstanceCount, search.IntValue(1))
	return &engine{pools: []*Pool{m.Pool(alone)}, each: sharedWeights}
}

// engineOf names a candidate's process apart from the number of its instances. An unset knob has
// the default's value.
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

// Add learns from an event. Events come in the order in which they happened, including those of
// service trials.
func (m *Model) Add(e search.Event) {
	before, p := m.process.During(e), m.Pool(e.Trial.Candidate)
	m.process = m.process.After(e, m.space)
	r := e.Measurement
	if r.Footprint.Bytes > 0 {
		p.see(footprint, r.Footprint.Batch, r.Footprint.Bytes)
	}
	isTold := false
	if e.Trial.Model != "" {
		return // the other models of the process have executed nothing
	}
	for i, w := range r.Windows {
		if size, ok := e.Trial.SizeOf(i); ok && size >= before.Batch && w.Memory > 0 {
			p.see(service, size, w.Memory)
			isTold = true
		}
	}
	if r.Failure != nil || r.Memory <= 0 {
		return
	}
	if e.Trial.Phase == search.PhaseService {
		if !isTold && m.process.Batch > before.Batch { // windows of old journals lack it
			p.see(service, m.process.Batch, r.Memory)
		}
		return
	}
	batch := m.space.MaxBatch(e.Trial.Candidate)
	switch {
	case before.Batch > batch:
	case m.space.IsMixed():
		// A load of a mix seldom makes a full batch of the largest kind. So its peak is no figure of
		// one. But the arena grows with the shapes that come, and what it grew to counts.
		p.grow(batch, r.Memory)
		return
	case before.Batch == 0:
		p.see(fresh, batch, r.Memory)
	default:
		p.see(kept, batch, r.Memory)
	}
	if !m.space.IsMixed() {
		p.bound(batch, r.Memory)
	}
}

// Of returns the memory of a candidate; false if nothing is known about any.
func (m *Model) Of(c search.Candidate) (Estimate, bool) {
	return m.Pool(c).Holds(m.space.MaxBatch(c))
}

// Knows reports whether the memory of a candidate was measured.
func (m *Model) Knows(c search.Candidate) bool {
	e, ok := m.Of(c)
	return ok && e.Basis == Measured
}

// Any reports whether anything is known.
func (m *Model) Any() bool {
	return slices.ContainsFunc(m.order, func(p *Pool) bool { return p.isKnown() })
}

// Seen returns an event with the memory of its configuration instead of that of its process. So a
// goal judges all trials of a configuration by the same figure. A service trial stays unchanged,
// since it is not a figure of its configuration.
func (m *Model) Seen(e search.Event) search.Event {
	if e.Trial.Phase == search.PhaseService || e.Measurement.Failure != nil || e.Measurement.Memory <= 0 {
		return e
	}
	if held, ok := m.Of(e.Trial.Candidate); ok {
		e.Measurement.Memory = int64(math.Round(held.Value))
	}
	return e
}
