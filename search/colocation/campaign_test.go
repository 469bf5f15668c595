package colocation_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search/colocation"
	"tuner/search/queuesim"
	"tuner/search/searchtest"
)

// The flags set the simulated campaigns of each kind. docs/design/search.md has the figures of more seeds.
var (
	seeds = flag.Int("seeds", 3, "campaigns of each kind in TestCampaigns")
	first = flag.Uint64("first", 0, "first seed in TestCampaigns")
)

// machine returns a server of four cores with an encoder and a ranker, whose laws vary by the seed.
func machine(seed uint64) searchtest.Colocated {
	r := rand.New(rand.NewPCG(seed, 99))
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	return searchtest.Colocated{
		Cores: 4,
		Laws: []searchtest.Law{
			{Fixed: between(2e-3, 6e-3), PerItem: between(2e-3, 6e-3), Rate: between(60, 180), P99: between(0.03, 0.08)},
			{Fixed: between(2e-4, 8e-4), PerItem: between(1e-4, 5e-4), Rate: between(400, 1200), P99: between(0.003, 0.012)},
		},
		Interference: between(0, 0.2), Noise: 0.03, Unknown: 0.03, Seed: seed,
	}
}

// space lists the settings of each model: two precisions of the encoder, threads × instances within the
// cores, and batches.
func space(c searchtest.Colocated) [][]searchtest.Setting {
	var list [][]searchtest.Setting
	for i := range c.Laws {
		var of []searchtest.Setting
		for _, work := range []float64{1, 0.6}[:2-i] {
			for threads := 1; threads <= c.Cores; threads *= 2 {
				for instances := 1; instances*threads <= c.Cores; instances++ {
					for _, batch := range []int{1, 4, 8} {
						of = append(of, searchtest.Setting{Work: work, Threads: threads, Instances: instances, MaxBatch: batch})
					}
				}
			}
		}
		list = append(list, of)
	}
	return list
}

// models returns the settings as options, with curves that were measured alone with 1.5 % of noise.
func models(c searchtest.Colocated, space [][]searchtest.Setting) []colocation.Model {
	var list []colocation.Model
	for i, l := range c.Laws {
		m := colocation.Model{
			Name: fmt.Sprint("model ", i), Load: measure.Load{RequestRate: l.Rate, BatchSize: 1},
			Limits: []colocation.Limit{{Metric: measure.LatencyP99, Seconds: l.P99}},
		}
		for _, x := range space[i] {
			sizes, alone, crowded := c.Curve(i, x, 0.015)
			m.Options = append(m.Options, colocation.Option{
				Name: fmt.Sprint(x), Pool: fmt.Sprint(x.Work, x.Threads, x.Instances),
				Knobs:   []int{int(x.Work * 10), x.Threads, x.Instances, x.MaxBatch},
				Batcher: queuesim.Batcher{Instances: x.Instances, MaxBatch: x.MaxBatch, Dynamic: x.MaxBatch > 1},
				Curve:   queuesim.ServiceCurve{Sizes: sizes, Alone: alone, Crowded: crowded, Spread: 0.1, Threads: x.Threads},
			})
		}
		list = append(list, m)
	}
	return list
}

func settings(c searchtest.Colocated, space [][]searchtest.Setting) colocation.Settings {
	return colocation.Settings{
		Models: models(c, space), Cores: c.Cores, IsShared: true, IsDivided: true, Least: 1e-6,
		Costs: colocation.Costs{Launch: 2 * time.Second, Change: 200 * time.Millisecond, Trial: 2500 * time.Millisecond},
		Seed:  c.Seed, Tuning: colocation.Default(),
	}
}

// chosen returns the settings of a cell.
func chosen(space [][]searchtest.Setting, cell colocation.Cell) []searchtest.Setting {
	var list []searchtest.Setting
	for i, o := range cell.Options {
		list = append(list, space[i][o])
	}
	return list
}

// outcome measures a trial.
func outcome(c searchtest.Colocated, space [][]searchtest.Setting, n int, t colocation.Trial) colocation.Outcome {
	o := colocation.Outcome{Trial: t}
	for _, p99 := range c.Measure(n, chosen(space, t.Cell), t.Cores, t.Scale) {
		o.Latencies = append(o.Latencies, []float64{p99})
	}
	return o
}

// budget is the time of a campaign. Every engine was measured alone for three seconds of it.
const budget = 10 * time.Minute

// run runs a campaign, and returns the search and the number of trials.
func run(t *testing.T, c searchtest.Colocated, space [][]searchtest.Setting, s colocation.Settings) (*colocation.Search, int) {
	t.Helper()
	x, err := colocation.New(s)
	if err != nil {
		t.Fatal(err)
	}
	spent := time.Duration(0)
	for _, m := range s.Models {
		var pools []string
		for _, o := range m.Options {
			pools = append(pools, o.Pool)
		}
		slices.Sort(pools)
		spent += time.Duration(len(slices.Compact(pools))) * 3 * time.Second
	}
	var last *colocation.Cell
	for n := 0; ; n++ {
		trial, ok := x.AskIf(func(t colocation.Trial) bool { return spent+cost(s, last, t.Cell) <= budget })
		if !ok {
			return x, n
		}
		spent += cost(s, last, trial.Cell)
		last = &trial.Cell
		x.Tell(outcome(c, space, n, trial))
	}
}

// cost returns the time of a trial of a cell after that of another one, if any. Other engines and other cores are launched.
func cost(s colocation.Settings, last *colocation.Cell, c colocation.Cell) time.Duration {
	if last == nil || !slices.Equal(last.Cores, c.Cores) {
		return s.Costs.Launch + s.Costs.Trial
	}
	for i, o := range c.Options {
		if s.Models[i].Options[o].Pool != s.Models[i].Options[last.Options[i]].Pool {
			return s.Costs.Launch + s.Costs.Trial
		}
	}
	if !slices.Equal(last.Options, c.Options) {
		return s.Costs.Change + s.Costs.Trial
	}
	return s.Costs.Trial
}

// best returns the largest scale of all cells of two models.
func best(c searchtest.Colocated, space [][]searchtest.Setting, s colocation.Settings) (scale float64, cell colocation.Cell) {
	for a, x := range space[0] {
		for b, y := range space[1] {
			of := []searchtest.Setting{x, y}
			try := func(cores []int) {
				if v := c.Scale(of, cores); v > scale {
					scale, cell = v, colocation.Cell{Options: []int{a, b}, Cores: cores}
				}
			}
			if s.IsShared {
				try(nil)
			}
			for first := x.Threads * x.Instances; s.IsDivided && first <= c.Cores-y.Threads*y.Instances; first++ {
				try([]int{first, c.Cores - first})
			}
		}
	}
	return scale, cell
}

// At least half of the answers are within 2 % of the best of all cells; docs/design/search.md has the
// figures of many campaigns. No answer's scale is beyond what its cell carries by more than 2 %.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name                string
		isShared, isDivided bool
	}{{"divided", false, true}, {"shared", true, false}, {"either", true, true}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			good, infeasible, trials, ratios := 0, 0, 0, []float64{}
			for seed := *first; seed < *first+uint64(*seeds); seed++ {
				c := machine(seed)
				of := space(c)
				s := settings(c, of)
				s.IsShared, s.IsDivided = kind.isShared, kind.isDivided
				x, n := run(t, c, of, s)
				answer, ok := x.Answer()
				most, cell := best(c, of, s)
				if !ok {
					t.Errorf("seed %d: no answer, the best is %v with %v", seed, most, cell)
					continue
				}
				carried := c.Scale(chosen(of, answer.Cell), answer.Cores)
				ratio := min(answer.Scale, carried) / most
				trials += n
				ratios = append(ratios, ratio)
				if ratio >= 0.98 {
					good++
				}
				if answer.Scale > 1.02*carried {
					infeasible++
				}
				t.Logf("seed %d: %d trials, %v %v at %.3f, which carries %.3f; the best is %v with %.3f", seed, n, answer.Options, answer.Cores, answer.Scale, carried, cell, most)
			}
			slices.Sort(ratios)
			t.Logf("%s: %d of %d within 2 %%, %d infeasible by more than 2 %%, median %.4f, least %.4f, %d trials in the mean",
				kind.name, good, *seeds, infeasible, ratios[len(ratios)/2], ratios[0], trials / *seeds)
			if 2*good < *seeds || infeasible > 0 {
				t.Errorf("%d of %d are within 2 %%, %d are infeasible", good, *seeds, infeasible)
			}
		})
	}
}
