package colocation

import (
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search/queuesim"
)

// curve returns a margin that crosses 0 at ln 100 with a slope of 2.
func curve() margin {
	at := []float64{math.Log(10), math.Log(100), math.Log(1000)}
	return newMargin(at, []float64{-2 * math.Log(10), 0, 2 * math.Log(10)})
}

// A server that is slower by e^0.3 has the margin 0.3 + m(x + 0.3), so its highest load u has m(u + 0.3) =
// −0.3: with a slope of 2 it is lower by 0.3 + 0.15.
func TestMargins(t *testing.T) {
	t.Parallel()
	m := curve()
	for name, values := range map[string][2]float64{
		"highest load":          {m.highest(0), math.Log(100)},
		"highest of a slower":   {m.highest(0.3), math.Log(100) - 0.45},
		"highest of a faster":   {m.highest(-0.3), math.Log(100) + 0.45},
		"slowdown from a trial": {m.slowdown(math.Log(50), 0.3+m.of(math.Log(50)+0.3)), 0.3},
		"most slowdown":         {m.most(math.Log(100) - 0.45), 0.3},
		"shifted":               {m.shifted(1).highest(0), math.Log(100) + 1},
		"slope":                 {m.slope(math.Log(50)), 2},
	} {
		if math.Abs(values[0]-values[1]) > 1e-4 {
			t.Errorf("%s: got %v, want %v", name, values[0], values[1])
		}
	}
	if !math.IsInf(newMargin(m.at, []float64{0.1, 1, 2}).highest(0), -1) {
		t.Error("a margin that is always above 0 has a highest load")
	}
	steep := newMargin([]float64{0, 1, 2}, []float64{-50, 0, 50})
	if math.Abs(steep.logs[0]+steepest) > 1e-3 || math.Abs(steep.logs[2]-steepest) > 1e-3 {
		t.Errorf("the steep margin is %v", steep.logs)
	}
}

// One reading of variance e on a prior of variance v leaves the mean y·v/(v+e) and the variance v·e/(v+e).
// Two readings of a site are as good as one of half the variance at their mean.
func TestResiduals(t *testing.T) {
	t.Parallel()
	r := residuals{deviations: Deviations{Model: 0.1}}
	at := site{option: 1, cores: 2, cell: "a"}
	r.add(reading{at, 0.05, 0.02})
	r.add(reading{at, 0.15, 0.02})
	mean, deviation := r.believe(at)
	if want := 0.1 * 0.01 / 0.02; math.Abs(mean-want) > 1e-9 {
		t.Errorf("mean %v, want %v", mean, want)
	}
	if want := math.Sqrt(0.01 * 0.01 / 0.02); math.Abs(deviation-want) > 1e-9 {
		t.Errorf("deviation %v, want %v", deviation, want)
	}
}

// What a belief of mean 0 and deviation 1 says after "at least 0" has the mean √(2/π) and the variance
// 1 − 2/π of a half-normal distribution.
func TestReadingOfABound(t *testing.T) {
	t.Parallel()
	r := residuals{deviations: Deviations{Model: 1}}
	at := site{cell: "a"}
	mean, deviation := r.believe(at)
	x, ok := slowdown{mean, deviation}.atLeast(0, at)
	if !ok {
		t.Fatal("a bound in the middle says nothing")
	}
	r.add(x)
	mean, deviation = r.believe(at)
	if math.Abs(mean-math.Sqrt(2/math.Pi)) > 1e-6 || math.Abs(deviation*deviation-(1-2/math.Pi)) > 1e-6 {
		t.Errorf("mean %v and variance %v", mean, deviation*deviation)
	}
	if _, ok := (slowdown{0, 1}).atLeast(-5, at); ok {
		t.Error("a bound far below the belief says something")
	}
}

// two returns settings of two models, each with one and two instances, and an idle one.
func two() Settings {
	option := func(instances int, seconds float64) Option {
		return Option{Name: "x", Pool: string(rune('0' + instances)), Knobs: []int{instances}, Batcher: queuesim.Batcher{Instances: instances},
			Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{seconds}, Crowded: []float64{seconds}, Spread: 0.1, Threads: 1}}
	}
	model := func(name string, seconds, rate float64) Model {
		return Model{Name: name, Load: measure.Load{RequestRate: rate, BatchSize: 1}, Limits: []Limit{{measure.LatencyP99, 5 * seconds}},
			Options: []Option{option(1, seconds), option(2, seconds), option(3, seconds)}}
	}
	return Settings{Models: []Model{model("a", 0.01, 40), model("b", 0.02, 60), {Name: "idle", Options: []Option{option(1, 1)}}}, Cores: 3, IsDivided: true, Tuning: Default()}
}

// b has three times the work of a, so it gets two of three cores. The first trial is that cell, and asking
// again gives the same. An idle model takes no part.
func TestFirstTrial(t *testing.T) {
	t.Parallel()
	x, err := New(two())
	if err != nil {
		t.Fatal(err)
	}
	trial, ok := x.Ask()
	again, _ := x.Ask()
	if d := gocmp.Diff(trial, again); d != "" || !ok {
		t.Errorf("asked twice (-first +second):\n%s", d)
	}
	if d := gocmp.Diff(Cell{Options: []int{0, 1, 0}, Cores: []int{1, 2, 0}}, trial.Cell); d != "" {
		t.Errorf("first cell (-want +got):\n%s", d)
	}
	s := two()
	s.Models = s.Models[:2]
	without, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := without.Ask()
	if math.Abs(other.Scale-trial.Scale) > 1e-12 || !slices.Equal(other.Cores, trial.Cores[:2]) || len(without.cells()) != len(x.cells()) {
		t.Errorf("without the idle model %v at %v, with it %v at %v", other.Cores, other.Scale, trial.Cores, trial.Scale)
	}
}

// A core moves from one model to another, and every model keeps one.
func TestMoves(t *testing.T) {
	t.Parallel()
	x, err := New(two())
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff([][]int{{2, 1, 0}}, x.moves([]int{1, 2, 0})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var options [][]int
	for _, c := range x.neighbours(Cell{Options: []int{0, 1, 0}, Cores: []int{1, 2, 0}}) {
		options = append(options, c.Options)
	}
	if d := gocmp.Diff([][]int{{0, 0, 0}}, options); d != "" { // three instances do not fit on two cores
		t.Errorf("neighbours (-want +got):\n%s", d)
	}
}

// Models that cannot be placed are refused by name.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := two()
	s.Models[1].Limits = nil
	if _, err := New(s); err == nil || err.Error() != `cannot place model "b": it has no limit on its latency` {
		t.Errorf("without a limit: %v", err)
	}
	s = two()
	s.Models[0].Options = s.Models[0].Options[2:]
	s.Cores = 2
	if _, err := New(s); err == nil || err.Error() != `cannot place model "a": its configurations need more than 2 cores` {
		t.Errorf("too few cores: %v", err)
	}
}
