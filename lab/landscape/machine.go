package landscape

import (
	"math"
	"math/rand/v2"
	"time"

	"tuner/measure"
	"tuner/search"
)

// Machine replays a landscape on a virtual clock. Equal seeds and trials give equal events. It is
// for one goroutine.
type Machine struct {
	landscape *Landscape
	random    *rand.Rand
	weather   *weather
	recorder  *measure.Recorder
	clock     time.Duration
	launches  int
	launch    float64 // speed of the running engine process, relative to the mean launch
	last      search.Candidate
}

// NewMachine returns a machine without an engine, at time 0.
func (l *Landscape) NewMachine(seed uint64) *Machine {
	return &Machine{
		landscape: l, random: rand.New(rand.NewPCG(seed, 1)), recorder: measure.NewRecorder(),
		weather: newWeather(l.trace, l.noise, l.neighbour, seed),
	}
}

// Launches returns the number of engine processes that were started.
func (m *Machine) Launches() int { return m.launches }

// Measure answers a trial.
func (m *Machine) Measure(t search.Trial) search.Event {
	result := m.begin(t)
	switch {
	case result.Failure != nil:
	case t.Phase == search.PhaseService:
		m.service(t, &result)
	default:
		m.point(t, &result)
	}
	result.Launch = m.launches
	return search.Event{Trial: t, Measurement: result, Elapsed: m.clock}
}

// begin launches or reconfigures if necessary.
func (m *Machine) begin(t search.Trial) measure.Measurement {
	var result measure.Measurement
	p := m.landscape.pool(t.Candidate)
	switch {
	case m.launches == 0 || t.Fresh || t.Candidate.PoolKey() != m.last.PoolKey():
		m.launches++
		m.launch = math.Exp(m.landscape.noise.Launch * m.random.NormFloat64())
		if p != nil {
			result.Times.Launch = p.launches[m.random.IntN(len(p.launches))]
		}
	case t.Candidate.Key() != m.last.Key():
		result.Times.Reconfigure = m.landscape.costs.reconfigure
	}
	m.last = t.Candidate
	m.clock += result.Times.Total()
	if p != nil && p.failure != nil {
		result.Failure = p.failure
	}
	return result
}

// point measures windows at a load.
func (m *Machine) point(t search.Trial, result *measure.Measurement) {
	p := m.landscape.Find(t.Candidate, t.Load.Level())
	if p == nil || t.Load.Concurrency == 0 {
		result.Failure = &measure.Failure{Stage: measure.StageLoad, Reason: "the landscape does not have this point"}
		return
	}
	if result.Failure = p.Failure; p.Failure != nil {
		return
	}
	result.Memory = p.memory
	result.Times.WarmUp = m.landscape.costs.warmUp
	m.clock += result.Times.WarmUp
	s := stay{point: p}
	for range t.Windows {
		begin := m.clock
		w := m.window(&s, begin, t.Window, m.launch, t.Load)
		m.clock += w.Duration
		if part := until(w, measure.Look); t.IsFutile(part) {
			w, m.clock, result.Cut = m.beside(part), begin+part.Duration, true
		}
		result.Windows = append(result.Windows, w)
		result.Times.Windows += m.clock - begin
		if result.Cut {
			break
		}
	}
	m.clock += m.landscape.costs.other
}
