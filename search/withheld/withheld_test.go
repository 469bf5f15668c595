package withheld

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// A neighbour on one of two cores takes half of the CPU time of a configuration with as many
// threads as cores. It takes nothing from one instance with a single thread and idle clients. It
// takes time from two such instances, or from clients that use a core.
func TestWithheldGoesByThreads(t *testing.T) {
	t.Parallel()
	m := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Foreign: 0.5, EngineCPU: time.Second}}}
	one := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"})
	clients := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Foreign: 0.5, EngineCPU: time.Second / 2, ClientCPU: time.Second / 2}}}
	// two neighbours on two cores; with one request in flight, one instance computes
	chain := measure.Window{Duration: time.Second, Foreign: 0.75, EngineCPU: time.Second / 2, InFlight: 1}
	busy := chain
	busy.InFlight = 4
	s := search.Space{Facts: search.Facts{Cores: 2}}
	for name, c := range map[string]struct{ got, want float64 }{
		"one in flight":    {Of(s, one, 2, measure.Measurement{Windows: []measure.Window{chain}}).Taken(), math.Ln2},
		"four in flight":   {Of(s, one, 2, measure.Measurement{Windows: []measure.Window{busy}}).Taken(), math.Log(4)},
		"all cores":        {Of(s, search.Candidate{}, 1, m).Taken(), math.Ln2},
		"one thread":       {Of(s, one, 1, m).Taken(), 0},
		"two instances":    {Of(s, one, 2, m).Taken(), math.Ln2},
		"with its clients": {Of(s, one, 1, clients).Taken(), math.Log(1.5)}, // 1.5 of 2 cores were usable, and 1 was left
		"on a GPU":         {Of(s, one.With(search.KnobExecutionProvider, "cuda"), 1, m).Taken(), math.Ln2},
		"no window":        {Of(s, one, 1, measure.Measurement{}).Taken(), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, c.got, c.want)
		}
	}
}

// Requests that the batcher lets wait for others lose nothing to a neighbour that takes three
// quarters of the CPU time. The shares are computed by hand.
func TestWithheldFromPatientRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue, infer time.Duration // of each of 10 requests in a second
		inFlight     float64
		left         float64
	}{
		"nobody waits":                       {0, 20 * time.Millisecond, 1, 0.25},
		"nine tenths of the time":            {90 * time.Millisecond, 0, 1, 0.9 + 0.1*0.25},
		"behind a busy instance":             {100 * time.Millisecond, 100 * time.Millisecond, 2, 0.25},
		"half the time an instance was free": {100 * time.Millisecond, 50 * time.Millisecond, 2, 0.25 + 0.75*0.25},
		"longer than by Little's law":        {time.Second, 0, 1, 1},
		"without requests in flight":         {90 * time.Millisecond, 0, 0, 0.25},
	} {
		w := measure.Window{
			Duration: time.Second, Foreign: 0.75, EngineCPU: time.Second / 2, InFlight: c.inFlight, Requests: 10,
			Server: measure.ServerStats{Requests: 10, Inferences: 10, Executions: 10, Queue: 10 * c.queue, ComputeInfer: 10 * c.infer},
		}
		got := Of(search.Space{Facts: search.Facts{Cores: 2}}, search.Candidate{}, 1, measure.Measurement{Windows: []measure.Window{w, w}}).Taken()
		if want := -math.Log(c.left); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
}
