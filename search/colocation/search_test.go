package colocation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"

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
	x, ok := slowdown{mean, deviation}.atLeast(0, 0, at)
	if !ok {
		t.Fatal("a bound in the middle says nothing")
	}
	r.add(x)
	mean, deviation = r.believe(at)
	if math.Abs(mean-math.Sqrt(2/math.Pi)) > 1e-6 || math.Abs(deviation*deviation-(1-2/math.Pi)) > 1e-6 {
		t.Errorf("mean %v and variance %v", mean, deviation*deviation)
	}
	if _, ok := (slowdown{0, 1}).atLeast(-5, 0, at); ok {
		t.Error("a bound far below the belief says something")
	}
}

// With an error, what a bound says has the mean and the variance of the belief times the probability of the bound, which are
// summed here. The reading turns the belief into them.
func TestReadingOfABoundWithAnError(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 1))
	for range 100 {
		b := slowdown{random.NormFloat64(), 0.05 + random.Float64()}
		bound, deviation := b.mean+b.deviation*(25*random.Float64()-1), b.deviation*math.Pow(10, -3*random.Float64())
		var sum, first, second float64
		for z := -8.0; z <= 30; z += 0.0005 {
			x := b.mean + z*b.deviation
			p := distuv.UnitNormal.Prob(z) * distuv.UnitNormal.CDF((x-bound)/deviation)
			sum, first, second = sum+p, first+p*x, second+p*x*x
		}
		mean := first / sum
		variance := second/sum - mean*mean
		r, ok := b.atLeast(bound, deviation, site{})
		if !ok {
			t.Fatalf("%+v, at least %g ± %g: no reading", b, bound, deviation)
		}
		precision := 1/(b.deviation*b.deviation) + 1/r.variance
		got := (b.mean/(b.deviation*b.deviation) + r.slowdown/r.variance) / precision
		if math.Abs(got-mean) > min(1e-4, 1e-3*b.deviation) || math.Abs(1/precision-variance) > min(1e-4, 0.01*variance+1e-5) {
			t.Errorf("%+v, at least %g ± %g: mean %g and variance %g, want %g and %g", b, bound, deviation, got, 1/precision, mean, variance)
		}
	}
}

// A p99 of few requests is often low by luck. Such a trial looks as if it were near the limit, and does not weigh more
// than the others: the mean of many cells is their slowdown.
func TestLuckyTrialsWeighNoMore(t *testing.T) {
	t.Parallel()
	const slow, noise, trials, cells = 0.3, 0.25, 10, 400
	random := rand.New(rand.NewPCG(5, 1))
	m, sum, squares := curve(), 0.0, 0.0
	scale := m.highest(slow) + 0.15
	for range cells {
		var list []shown
		for range trials {
			list = append(list, shown{scale, m.slowdown(scale, slow+m.of(scale+slow)+noise*random.NormFloat64())})
		}
		mean, _ := m.joined(list, noise)
		sum, squares = sum+mean, squares+mean*mean
	}
	mean := sum / cells
	if deviation := math.Sqrt((squares/cells - mean*mean) / cells); math.Abs(mean-slow) > 4*deviation {
		t.Errorf("mean slowdown %.4f ± %.4f, want %g", mean, deviation, slow)
	}
}

// A cell that has just kept its limits in a trial is believed to carry about the scale of the trial, however far below the
// predicted one it is.
func TestWhatWasKeptIsBelieved(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.9, 0.5, 0.3, 0.2} {
		s := two()
		s.IsShared, s.IsDivided = true, false
		x, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		trial, ok := x.Ask()
		if !ok {
			t.Fatal("no first trial")
		}
		trial.Scale *= share
		x.Tell(Outcome{Trial: trial, Latencies: [][]float64{{0.049}, {0.098}, nil}})
		if got := x.Scale(trial.Cell, 0.5); got < 0.9*trial.Scale {
			t.Errorf("limits were kept at %.3f, %g of the predicted scale: it is believed to carry %.3f", trial.Scale, share, got)
		}
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
	return Settings{Models: []Model{model("a", 0.01, 40), model("b", 0.02, 60), {Name: "idle", Options: []Option{option(1, 1)}}}, Cores: 3, IsDivided: true, Least: 3e-4, Tuning: Default()}
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

// An option that refuses the model's requests carries no load.
func TestOptionThatRefuses(t *testing.T) {
	t.Parallel()
	s := two()
	s.Models[0].Load.BatchSize = 2
	for i := range s.Models[0].Options[1:] {
		s.Models[0].Options[1+i].Batcher.MaxBatch = 2
	}
	x, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	for option, carries := range []bool{false, true, true} {
		if log := x.predict(0, option, 3).highest(0); math.IsInf(log, -1) == carries {
			t.Errorf("option %d carries up to exp(%v) requests/s", option, log)
		}
	}
	if trial, ok := x.Ask(); ok && trial.Options[0] == 0 {
		t.Errorf("it asks for %v", trial)
	}
}

// measured returns a search of two models with one trial, at which all latencies are at half of their
// limits.
func measured(t *testing.T) (*Search, Outcome) {
	t.Helper()
	x, err := New(two())
	if err != nil {
		t.Fatal(err)
	}
	trial, ok := x.Ask()
	if !ok {
		t.Fatal("no first trial")
	}
	o := Outcome{Trial: trial, Latencies: [][]float64{{0.025}, {0.05}, nil}}
	x.Tell(o)
	return x, o
}

// What is dropped is neither asked for nor the answer.
func TestDrops(t *testing.T) {
	t.Parallel()
	x, o := measured(t)
	if _, ok := x.Answer(); !ok {
		t.Fatal("no answer after a trial within the limits")
	}
	x.Exclude(o.Trial.Cell)
	if a, ok := x.Answer(); ok {
		t.Errorf("the excluded cell is the answer: %v", a)
	}
	if next, ok := x.Ask(); !ok || next.key() == o.Trial.key() {
		t.Errorf("after the exclusion it asks for %v, %v", next, ok)
	}
	x.Break(1, "1")
	for _, c := range x.promising {
		if c.Options[1] == 0 {
			t.Errorf("%v has the option of a broken engine process", c)
		}
	}
}

// Options that are replaced by themselves change nothing. Slower ones lower the scale of their cells.
func TestRevises(t *testing.T) {
	t.Parallel()
	x, o := measured(t)
	before, _ := x.Ask()
	scale := x.Scale(o.Trial.Cell, 0.5)
	same := map[int]Option{}
	for i, option := range x.settings.Models[1].Options {
		same[i] = option
	}
	x.Revise(1, same)
	after, _ := x.Ask()
	if d := gocmp.Diff(before, after); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	for i, option := range same {
		option.Curve.Alone, option.Curve.Crowded = []float64{0.04}, []float64{0.04}
		same[i] = option
	}
	x.Revise(1, same)
	if slower := x.Scale(o.Trial.Cell, 0.5); slower >= scale {
		t.Errorf("with twice the times the scale is %v, before %v", slower, scale)
	}
}

// A batch of a takes 10 ms, and its limit is 8 ms: by its service times no load keeps it. A trial of such a cell is learned
// like any other. If it misses the limit nothing follows, and if it keeps the limit the cell is the answer. So it is once
// the batches turn out to take 1 ms.
func TestLimitBelowABatch(t *testing.T) {
	t.Parallel()
	cell := Cell{Options: []int{0, 0, 0}}
	after := func(latency float64) *Search {
		s := two()
		s.IsShared, s.IsDivided = true, false
		s.Models[0].Limits[0].Seconds = 0.008
		x, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, scale := range []float64{0.2, 0.1} {
			x.Tell(Outcome{Trial: Trial{Cell: cell, Scale: scale}, Latencies: [][]float64{{latency}, {0.05}, nil}})
		}
		return x
	}
	if a, ok := after(0.005).Answer(); !ok || a.Scale < 0.15 {
		t.Errorf("the limit was kept at scale 0.2, and the answer is %+v, %t", a, ok)
	}
	x := after(0.012)
	if a, ok := x.Answer(); ok || x.Scale(cell, 0.5) > 0 {
		t.Errorf("no trial keeps the limit, and the answer is %+v at %v", a, x.Scale(cell, 0.5))
	}
	if next, ok := x.Ask(); ok {
		t.Errorf("no cell can keep the limit, and it asks for %+v", next)
	}
	faster := map[int]Option{}
	for i, option := range x.settings.Models[0].Options {
		option.Curve.Alone, option.Curve.Crowded = []float64{0.001}, []float64{0.001}
		faster[i] = option
	}
	x.Revise(0, faster)
	if _, ok := x.Ask(); !ok {
		t.Error("batches take a tenth, and it asks for nothing")
	}
}

// A trial that is not allowed gives way to the next best one, and nothing follows where none is.
func TestAsksWithinBounds(t *testing.T) {
	t.Parallel()
	x, _ := measured(t)
	first, _ := x.Ask()
	other, ok := x.AskIf(func(t Trial) bool { return t.key() != first.key() })
	if !ok || other.key() == first.key() {
		t.Errorf("without %v it asks for %v, %v", first, other, ok)
	}
	if again, _ := x.Ask(); again.key() != first.key() {
		t.Errorf("later it asks for %v", again)
	}
	if _, ok := x.AskIf(func(Trial) bool { return false }); ok {
		t.Error("it asks for a trial that is not allowed")
	}
}

// An expected curve has the doubt of its pool, which all options of the pool share.
func TestDoubtOfAPool(t *testing.T) {
	t.Parallel()
	r := residuals{deviations: Deviations{Option: 0.3}}
	doubtful := site{option: 1, pool: "a", doubt: 0.4}
	if _, deviation := r.believe(doubtful); math.Abs(deviation-0.5) > 1e-9 {
		t.Errorf("deviation %v, want 0.5 = √(0.3² + 0.4²)", deviation)
	}
	r.add(reading{site: doubtful, slowdown: 0.25, variance: 1e-9})
	// another option of the pool has 0.4²/0.5² of the slowdown
	if mean, _ := r.believe(site{option: 2, pool: "a", doubt: 0.4}); math.Abs(mean-0.16) > 1e-6 {
		t.Errorf("mean %v, want 0.16", mean)
	}
}

// Unknown latencies teach nothing, and wide intervals little.
func TestErrorsOfLatencies(t *testing.T) {
	t.Parallel()
	deviation := func(latency, err float64) float64 {
		x, err2 := New(two())
		if err2 != nil {
			t.Fatal(err2)
		}
		trial, _ := x.Ask()
		x.Tell(Outcome{Trial: trial, Latencies: [][]float64{{latency}, {0.1}, nil}, Errors: [][]float64{{err}, {0}, nil}})
		return x.believe(0, x.site(0, trial.Cell)).deviation
	}
	precise, vague, unknown := deviation(0.05, 0), deviation(0.05, 1), deviation(math.NaN(), 0)
	if !(precise < vague && vague < unknown) {
		t.Errorf("deviations: precise %v, vague %v, unknown %v", precise, vague, unknown)
	}
}
