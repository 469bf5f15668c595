package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// disturbed returns a window of one second on two cores. used, steal and foreign are shares of
// their time.
func disturbed(used, steal, foreign float64) Window {
	return Window{Duration: time.Second, EngineCPU: time.Duration(2 * used * float64(time.Second)), Steal: steal, Foreign: foreign}
}

// The shares that are left are computed by hand.
func TestWithheld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got, left float64
	}{
		"nobody else":                         {disturbed(0.9, 0, 0).Withheld(2), 1},
		"all cores busy":                      {disturbed(0.6, 0.1, 0.3).Withheld(2), 0.6},
		"the hypervisor alone":                {disturbed(0.75, 0.25, 0).Withheld(2), 0.75},
		"others on idle cores":                {disturbed(0.3, 0, 0.3).Withheld(2), 1},
		"of one busy core of two":             {disturbed(0.5, 0.25, 0).Withheld(2), 2.0 / 3},
		"work is unknown":                     {disturbed(0, 0.1, 0.3).Withheld(2), 0.6},
		"nothing is left":                     {disturbed(0, 0, 1).Withheld(2), 0.05},
		"the hypervisor has all":              {disturbed(0, 1, 0).Withheld(2), 0.05},
		"cores are unknown":                   {disturbed(0.6, 0.1, 0.3).Withheld(0), 1},
		"no time":                             {Window{Steal: 0.5}.Withheld(2), 1},
		"its own cores count":                 {Window{Duration: time.Second, Cores: 1, EngineCPU: 700 * time.Millisecond, Foreign: 0.3}.Withheld(8), 0.7},
		"half a core":                         {Window{Duration: time.Second, Cores: 0.5, ClientCPU: 300 * time.Millisecond, Foreign: 0.4}.Withheld(1), 0.6},
		"throttled by its own quota":          {Window{Duration: time.Second, Cores: 1, EngineCPU: time.Second, Throttled: 0.5}.Withheld(2), 1},
		"one thread beside one neighbour":     {disturbed(0.5, 0, 0.5).WithheldOf(2, 1), 1},
		"one thread beside two neighbours":    {disturbed(0.3, 0, 0.7).WithheldOf(2, 1), 0.6},
		"one thread, of whose time it steals": {disturbed(0.4, 0.2, 0.4).WithheldOf(2, 1), 0.8},
		"two windows by their time": {Measurement{Windows: []Window{disturbed(0.6, 0.1, 0.3), {Duration: 3 * time.Second}}}.Withheld(2),
			math.Pow(0.6, 0.25)},
		"no window": {Measurement{}.Withheld(2), 1},
	} {
		if want := -math.Log(c.left); math.Abs(c.got-want) > 1e-9 {
			t.Errorf("%s: %.4f, want %.4f", name, c.got, want)
		}
	}
}

// Withheld is finite and at least 0 for every window. It is 0 if nobody took anything. It grows
// with the share of the hypervisor. A process that can use fewer cores loses no more.
func TestWithheldProperties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		used, steal, foreign, usable := random.Float64(), random.Float64(), random.Float64(), random.Float64()
		w := disturbed(used, steal, foreign)
		x := w.Withheld(2)
		if !(x >= 0) || x > 3 || disturbed(used, 0, 0).Withheld(2) != 0 {
			t.Fatalf("%g, %g, %g: %g", used, steal, foreign, x)
		}
		if more := disturbed(used, steal+0.01, 0).Withheld(2); more < disturbed(used, steal, 0).Withheld(2) {
			t.Fatalf("%g of %g: less is withheld where more is stolen", steal, used)
		}
		if less := w.WithheldOf(2, 2*usable); less > x+1e-12 {
			t.Fatalf("%g, %g, %g: of %g of the cores %g is withheld, of all %g", used, steal, foreign, usable, less, x)
		}
		if same := w.WithheldOf(2, 2); same != x {
			t.Fatalf("of all cores %g, else %g", same, x)
		}
	}
	for _, odd := range []float64{math.NaN(), math.Inf(1), -1} {
		if x := disturbed(0.5, odd, odd).Withheld(2); !(x >= 0) || math.IsInf(x, 0) {
			t.Errorf("of shares %g: %g", odd, x)
		}
	}
}

// One second in which others took 31 %, and three seconds in which they took little: together 12 %
// of all four.
func TestOthersSentence(t *testing.T) {
	t.Parallel()
	windows := []Window{disturbed(0.69, 0, 0.31), {Duration: 3 * time.Second, Foreign: (4*0.12 - 0.31) / 3}}
	o := OthersIn(windows, 2)
	const want = "Other processes took 12 % of the CPU time on average (up to 31 %); figures are corrected to the average."
	if got := o.Corrected("the average"); got != want || o.Seconds != 4 {
		t.Errorf("%q of %+v, want %q", got, o, want)
	}
	windows[0] = disturbed(0.69, 0.16, 0.15)
	if got := OthersIn(windows[:1], 2).Corrected("x"); got != "Other processes and the hypervisor took 31 % of the CPU time on average (up to 31 %); figures are corrected to x." {
		t.Error(got)
	}
	if got := OthersIn([]Window{disturbed(0.9, 0.1, 0)}, 2).Corrected("x"); got != "The hypervisor took 10 % of the CPU time on average (up to 10 %); figures are corrected to x." {
		t.Error(got)
	}
	if got := OthersIn([]Window{disturbed(0.9, 0, 0)}, 2).Corrected("x") + OthersIn(nil, 2).Corrected("x"); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
