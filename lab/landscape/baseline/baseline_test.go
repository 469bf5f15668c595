package baseline

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

func settings(trials int) search.Settings {
	s := searchtest.Settings(searchtest.Small(), 50*time.Millisecond)
	s.Space.Load.Any = false
	s.Budget = search.Budget{Trials: trials}
	return s
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func newPlan(t *testing.T, name string, s search.Settings) *plan.Plan {
	t.Helper()
	p, err := New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEqualEventsGiveEqualActions(t *testing.T) {
	t.Parallel()
	machine := searchtest.Small()
	machine.Noise = 0.05
	machine.Fail = func(t search.Trial) *measure.Failure {
		if v, _ := t.Candidate.Get(search.KnobInstanceCount); v == "3" {
			return &measure.Failure{Stage: measure.StageStart, Reason: "no"}
		}
		return nil
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := machine.Run(newPlan(t, name, settings(40)), 1000)
			if len(events) < 30 || len(events) > 40 {
				t.Errorf("%d trials of at most 40", len(events))
			}
			again := newPlan(t, name, settings(40))
			for i, e := range events {
				first, second := again.Ask(), again.Ask()
				if text(t, first) != text(t, second) {
					t.Fatalf("trial %d: %s, then %s", i, text(t, first), text(t, second))
				}
				if text(t, first.Trial) != text(t, e.Trial) {
					t.Fatalf("trial %d: %s; the campaign asked for %s", i, text(t, first), text(t, e.Trial))
				}
				again.Tell(e)
			}
		})
	}
}

// Only the seed decides the draws of a baseline, even if other goroutines draw meanwhile.
func TestSeedsDecide(t *testing.T) {
	t.Parallel()
	machine := searchtest.Small()
	for _, name := range Names() {
		campaign := func(seed uint64) string {
			s := settings(30)
			s.Seed = seed
			return text(t, machine.Run(newPlan(t, name, s), 1000))
		}
		if first := campaign(1); campaign(1) != first || campaign(2) == first {
			t.Errorf("%s: the same seed gives other trials, or another seed the same", name)
		}
	}
}

func TestBaselinesFind(t *testing.T) {
	t.Parallel()
	machine := searchtest.Small()
	s := settings(80)
	best := 0.0
	for _, c := range s.Space.Candidates().All() {
		for _, level := range s.Space.Load.Levels {
			if x, latency := machine.Serve(c, s.Space.Load.At(level)); latency <= 50*time.Millisecond {
				best = max(best, x)
			}
		}
	}
	// Little is expected of the estimator in 80 trials.
	for name, share := range map[string]float64{"gp-bo": 0.9, "tpe": 0.2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlan(t, name, s)
			machine.Run(p, 1000)
			leader, ok := p.Leader()
			if !ok {
				t.Fatal("finds nothing")
			}
			x, latency := machine.Serve(leader.Candidate, leader.Load)
			if x < share*best || latency > 50*time.Millisecond {
				t.Errorf("finds %.0f/s at %v, the best does %.0f/s", x, latency, best)
			}
		})
	}
}

func TestExhaustiveMeasuresEveryPointOnce(t *testing.T) {
	t.Parallel()
	s := settings(0)
	s.Space.Knobs = s.Space.Knobs[2:4] // instances and batches
	s.Space.Load.Levels = []float64{1, 8}
	seen := map[string]int{}
	for _, e := range searchtest.Small().Run(newPlan(t, "exhaustive", s), 1000) {
		if e.Trial.Phase == search.PhaseSearch {
			seen[e.Trial.Candidate.Key()+e.Trial.Load.String()]++
		}
	}
	if len(seen) != 4*5*2 {
		t.Errorf("%d points of 40", len(seen))
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s is measured %d times", k, n)
		}
	}
}

func TestUnknownName(t *testing.T) {
	t.Parallel()
	if _, err := New("oracle", settings(1)); err == nil {
		t.Error("an unknown baseline is made")
	}
}

// sample returns a smooth function at points of a square.
func sample() (d data) {
	for i := range 5 {
		for j := range 5 {
			x := []float64{float64(i) / 4, float64(j) / 4}
			d.add(x, truth(x), 1)
		}
	}
	return d
}

func truth(x []float64) float64 { return 3 + math.Sin(2*x[0]) }

func TestProcessInterpolates(t *testing.T) {
	t.Parallel()
	d := sample()
	s := shape{lengths: []float64{1, 1}, noise: 1e-4}
	p, _, ok := fit(s, d)
	if !ok {
		t.Fatal("no fit")
	}
	points := [][]float64{{0.375, 0.6}, {0.9, 0.1}, {10, 10}}
	means, deviations := p.predict(points)
	for i, x := range points[:2] {
		if math.Abs(means[i]-truth(x)) > 0.01 || deviations[i] > 0.05 {
			t.Errorf("at %v: %.4f ± %.4f, want %.4f", x, means[i], deviations[i], truth(x))
		}
	}
	// Far from all known points, the prediction is the mean with the values' own spread.
	if math.Abs(means[2]-p.mean) > 0.01 || math.Abs(deviations[2]-p.scale) > 0.01*p.scale {
		t.Errorf("far away: %.4f ± %.4f, want %.4f ± %.4f", means[2], deviations[2], p.mean, p.scale)
	}
}

// A mean of many trials gets more weight than one trial.
func TestTrialsTakeNoiseOut(t *testing.T) {
	t.Parallel()
	believe := func(trials float64) (mean, deviation float64) {
		d := data{}
		d.add([]float64{0}, 0, 1)
		d.add([]float64{3}, 1, trials)
		p, _, ok := fit(shape{lengths: []float64{1}, noise: 0.5}, d)
		if !ok {
			t.Fatal("no fit")
		}
		means, deviations := p.predict([][]float64{{3}})
		return means[0], deviations[0]
	}
	once, unsure := believe(1)
	often, sure := believe(20)
	if often <= once || often < 0.98 || sure >= unsure/2 {
		t.Errorf("%.3f ± %.3f after 20 trials, %.3f ± %.3f after one", often, sure, once, unsure)
	}
}

// If the noise hides the best point, points are measured again, as often as the uncertainty
// justifies.
func TestBayesReplicates(t *testing.T) {
	t.Parallel()
	machine := searchtest.Small()
	machine.Noise = 0.2
	trials := map[string]int{}
	most := 0
	for _, e := range machine.Run(newPlan(t, "gp-bo", settings(120)), 1000) {
		if e.Trial.Phase == search.PhaseSearch {
			k := e.Trial.Candidate.Key() + e.Trial.Load.String()
			trials[k]++
			most = max(most, trials[k])
		}
	}
	if most < 3 || most > mostTrials {
		t.Errorf("the point that is measured most often is measured %d times", most)
	}
}

func TestRefitFindsWhatDoesNotMatter(t *testing.T) {
	t.Parallel()
	d := sample()
	s := newShape(2)
	for range 5 {
		s = refit(s, d)
	}
	if s.lengths[1] <= s.lengths[0] || s.noise >= 0.01 {
		t.Errorf("lengths %v, noise %g: the second dimension does not matter, and there is no noise", s.lengths, s.noise)
	}
}

func TestImprovement(t *testing.T) {
	t.Parallel()
	// For a standard normal against 0: φ(0) = 0.39894. For one that is far better: the difference.
	// For one far worse: 0.
	for _, c := range []struct{ mean, best, want float64 }{{0, 0, 0.39894}, {10, 0, 10}, {0, 10, 0}} {
		if got := improvement(c.mean, 1, c.best); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("from %g to %g: %g, want %g", c.best, c.mean, got, c.want)
		}
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	p := newPoints(settings(1), nil, nil)
	at := func(precision, threads, instances search.Value) []float64 {
		return p.features(search.NewCandidate(search.Setting{Knob: search.KnobPrecision, Value: precision}, search.Setting{Knob: search.KnobIntraOpThreads, Value: threads},
			search.Setting{Knob: search.KnobInstanceCount, Value: instances}, search.Setting{Knob: search.KnobMaxBatchSize, Value: "1"}, search.Setting{Knob: search.KnobMaxQueueDelay, Value: "0us"}))
	}
	home := at("fp32", "1", "1")
	for _, c := range []struct {
		to   []float64
		want bool
	}{{home, false}, {at("int8", "1", "1"), true}, {at("fp32", "2", "1"), true}, {at("fp32", "4", "1"), false}, {at("int8", "2", "1"), false}, {at("fp32", "1", "2"), true}} {
		if got := p.isStep(home, c.to); got != c.want {
			t.Errorf("%v to %v is a step: %t", home, c.to, got)
		}
	}
}
