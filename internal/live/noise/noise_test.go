package noise

import (
	"slices"
	"testing"
	"time"

	"tuner/internal/live"
	"tuner/measure"
)

// The meter has the mean over the windows of the last measurement, weighted by their lengths, and the
// flags that concern the machine, each once.
func TestWith(t *testing.T) {
	t.Parallel()
	flags := []measure.Flag{measure.FlagForeign, measure.FlagErrors}
	windows := []measure.Window{
		{Duration: time.Second, Steal: 0.1, Foreign: 0.4, Frequency: 0.98, Flags: flags},
		{Duration: 3 * time.Second, Steal: 0.02, Foreign: 0, Flags: flags}, // its clock is unknown
	}
	n := With(live.Noise{History: []float64{0.5}, Spoilt: []string{"before"}}, windows)
	near := func(x, want float64) bool { return x > want-1e-9 && x < want+1e-9 }
	// (1 s · 0.1 + 3 s · 0.02) / 4 s = 0.04, and 1 s · 0.4 / 4 s = 0.1
	if !n.IsKnown || !near(n.Steal, 0.04) || !near(n.Others, 0.1) || !near(n.Drift, -0.02) {
		t.Errorf("%+v", n)
	}
	if !slices.Equal(n.Spoilt, []string{measure.FlagForeign.Text()}) || len(n.History) != 2 || !near(n.History[1], 0.14) {
		t.Errorf("spoilt %q, history %v", n.Spoilt, n.History)
	}
	windows[1].Flags = nil
	if some := With(n, windows); !slices.Equal(some.Spoilt, []string{"1 of 2 windows: " + measure.FlagForeign.Text()}) {
		t.Errorf("spoilt %q", some.Spoilt)
	}
	for range 100 {
		n = With(n, windows)
	}
	if len(n.History) != mostHistory {
		t.Errorf("the history has %d measurements", len(n.History))
	}
	if same := With(n, nil); !same.IsKnown || same.Steal != n.Steal || len(same.History) != len(n.History) {
		t.Errorf("without windows it is %+v", same)
	}
}
