package search

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
)

// A neighbour on one of two cores takes half of the CPU time of a configuration with as many
// threads as cores. It takes nothing from one instance with a single thread and idle clients. It
// takes time from two such instances, or from clients that use a core.
func TestWithheldGoesByThreads(t *testing.T) {
	t.Parallel()
	m := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Foreign: 0.5, EngineCPU: time.Second}}}
	one := NewCandidate(Setting{KnobIntraOpThreads, "1"})
	clients := measure.Measurement{Windows: []measure.Window{{Duration: time.Second, Foreign: 0.5, EngineCPU: time.Second / 2, ClientCPU: time.Second / 2}}}
	s := Space{Facts: Facts{Cores: 2}}
	for name, c := range map[string]struct{ got, want float64 }{
		"all cores":        {s.Withheld(Candidate{}, 1, m), math.Ln2},
		"one thread":       {s.Withheld(one, 1, m), 0},
		"two instances":    {s.Withheld(one, 2, m), math.Ln2},
		"with its clients": {s.Withheld(one, 1, clients), math.Log(1.5)}, // 1.5 of 2 cores were usable, and 1 was left
		"on a GPU":         {s.Withheld(one.With(KnobExecutionProvider, "cuda"), 1, m), math.Ln2},
		"no window":        {s.Withheld(one, 1, measure.Measurement{}), 0},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, c.got, c.want)
		}
	}
}
