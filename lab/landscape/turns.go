package landscape

import (
	"time"

	"tuner/measure"
	"tuner/search"
)

// fill is the time before each turn of a block: the engine is continued, its queue fills, and the
// clients come and go (docs/design/gate.md).
const fill = 350 * time.Millisecond

// Block answers the trials of a block. Their engines are launched one after the other. Then they
// have their windows in turn, in the order A B C, C B A, …. The windows of a round share the
// machine's weather at their times.
func (m *Machine) Block(block []search.Trial) []search.Event {
	events := make([]search.Event, len(block))
	stays := make([]stay, len(block))
	launches := make([]float64, len(block))
	begin := m.clock
	for i, t := range block {
		events[i] = search.Event{Trial: t, Measurement: m.begin(t)}
		events[i].Measurement.Launch, launches[i] = m.launches, m.launch
		if events[i].Measurement.Failure == nil {
			events[i].Measurement.Failure = m.failure(t)
		}
		stays[i].point = m.landscape.Find(t.Candidate, t.Load.Level())
	}
	for round := range block[0].Windows {
		for k := range block {
			i := k
			if round%2 == 1 {
				i = len(block) - 1 - k
			}
			if result := &events[i].Measurement; result.Failure == nil {
				m.turn(block[i], &stays[i], launches[i], result)
			}
		}
	}
	for i := range events {
		begin += events[i].Measurement.Times.Total()
		events[i].Elapsed = begin
	}
	m.clock += m.landscape.costs.other
	events[len(events)-1].Elapsed = m.clock
	return events
}

// failure returns the reason why a trial at a load has no figures; nil if it has some.
func (m *Machine) failure(t search.Trial) *measure.Failure {
	p := m.landscape.Find(t.Candidate, t.Load.Level())
	if p == nil || t.Load.Concurrency == 0 {
		return &measure.Failure{Stage: measure.StageLoad, Reason: "the landscape does not have this point"}
	}
	return p.Failure
}

// turn replays one window of a trial.
func (m *Machine) turn(t search.Trial, s *stay, launch float64, result *measure.Measurement) {
	m.clock += fill
	begin := m.clock
	w := m.window(s, begin, t.Window, launch, t.Load)
	m.clock += w.Duration
	w.Turn = true
	result.Memory = max(result.Memory, s.point.memory)
	result.Windows = append(result.Windows, w)
	result.Times = result.Times.Add(measure.Times{WarmUp: fill, Windows: m.clock - begin})
}

// events answers an action.
func (m *Machine) events(a search.Action) []search.Event {
	if a.Block != nil {
		return m.Block(a.Block)
	}
	return []search.Event{m.Measure(a.Trial)}
}
