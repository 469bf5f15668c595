package measure

import (
	"math"
	"testing"
	"time"
)

// plausible returns a measurement of two windows.
func plausible() Measurement {
	w := Window{Start: time.Second, Duration: time.Second, Requests: 10, Inferences: 20, Errors: 2, TimedOut: 1, InFlight: 1,
		Sub: []SubWindow{{Requests: 4, Duration: 400 * time.Millisecond}, {Requests: 6, Duration: 600 * time.Millisecond, Sum: time.Second}}}
	return Measurement{Windows: []Window{w, {Duration: time.Second}}, Launch: 1, Memory: 1, Times: Times{Windows: 2 * time.Second}}
}

func TestCheckTakesWhatIsMeasured(t *testing.T) {
	t.Parallel()
	for _, m := range []Measurement{{}, plausible(), {Failure: &Failure{Stage: StageStart}, Times: Times{Launch: time.Second}}, {Windows: []Window{{}}}} {
		if err := m.Check(); err != nil {
			t.Errorf("%+v is refused: %v", m, err)
		}
	}
}

func TestCheckRefusesWhatNoMeasurementHas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Measurement){
		"launch":               func(m *Measurement) { m.Launch = -1 },
		"memory":               func(m *Measurement) { m.Memory = -1 },
		"time":                 func(m *Measurement) { m.Times.WarmUp = -1 },
		"start":                func(m *Measurement) { m.Windows[0].Start = -1 },
		"duration":             func(m *Measurement) { m.Windows[0].Duration = -1 },
		"no time":              func(m *Measurement) { m.Windows[0].Duration, m.Windows[0].Sub = 0, nil },
		"requests":             func(m *Measurement) { m.Windows[0].Requests = -1 },
		"inferences":           func(m *Measurement) { m.Windows[0].Inferences = 9 },
		"errors":               func(m *Measurement) { m.Windows[0].Errors = -1 },
		"timed out":            func(m *Measurement) { m.Windows[0].TimedOut = 3 },
		"in flight":            func(m *Measurement) { m.Windows[0].InFlight = -1 },
		"requests of a part":   func(m *Measurement) { m.Windows[0].Sub[1].Requests = 11 },
		"negative part":        func(m *Measurement) { m.Windows[0].Sub[0].Requests = -1 },
		"duration of a part":   func(m *Measurement) { m.Windows[0].Sub[0].Duration = time.Minute },
		"sum of the latencies": func(m *Measurement) { m.Windows[0].Sub[0].Sum = -1 },
	} {
		m := plausible()
		change(&m)
		if err := m.Check(); err == nil {
			t.Errorf("%s: %+v is taken", name, m)
		}
	}
}

// Durations that overflow add up to the largest duration, not to a small one.
func TestLasted(t *testing.T) {
	t.Parallel()
	if got := plausible().Lasted(); got != 2*time.Second {
		t.Errorf("two windows of 1 s lasted %v", got)
	}
	for n := range 5 {
		m := Measurement{Windows: make([]Window, n)}
		for i := range m.Windows {
			m.Windows[i].Duration = math.MaxInt64
		}
		if got := m.Lasted(); n > 0 && got != math.MaxInt64 {
			t.Errorf("%d windows of the largest duration lasted %v", n, got)
		}
	}
}
