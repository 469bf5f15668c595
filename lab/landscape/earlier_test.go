package landscape

import (
	"math"
	"testing"
	"time"

	"tuner/search"
	"tuner/search/plan"
)

// machineOf returns a machine with 4 cores and noise of 5 %: 16 pools × 11 batcher settings × 7
// loads. Threads shorten a batch by their number to a power. `factor` makes everything slower.
func machineOf(seed uint64, power, factor float64) *Landscape {
	service := cpuService(4, 0.003, 0.004) // threads to the power of 0.8
	y := synthesis{
		name: "reuse", seed: seed, noise: noiseOf(0.05), costs: cpuCosts(), wire: 0.0004, largest: 32,
		space: cpuSpace(4,
			knob(search.KnobPrecision, "fp32", "int8"),
			knob(search.KnobIntraOpThreads, "1", "2", "4"),
			knob(search.KnobInstanceCount, "1", "2", "4"),
			knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
			knob(search.KnobMaxQueueDelay, "0us", "1000us"),
		),
		service: func(s setup, concurrency, batch int) float64 {
			return factor * math.Pow(float64(s.threads), 0.8-power) * service(s, concurrency, batch)
		},
	}
	return y.onProcessor().make()
}

// effort is the cost of a campaign until it first recommended a point within 2 % of the best, and
// the total cost of its search. Both count without the finals.
type effort struct {
	events             []search.Event
	trials, launches   int
	searched, searches int // trials and launches of the search
	regret             float64
}

func (f *effort) add(g effort) {
	f.trials, f.launches = f.trials+g.trials, f.launches+g.launches
	f.searched, f.searches, f.regret = f.searched+g.searched, f.searches+g.searches, f.regret+g.regret
}

func guidedCampaign(t *testing.T, l *Landscape, limit Limit, seed uint64, earlier ...search.Earlier) effort {
	t.Helper()
	s := l.Settings(limit, 5*time.Minute, seed)
	s.Earlier = earlier
	strategy, err := plan.New("guided", s)
	if err != nil {
		t.Fatal(err)
	}
	var f effort
	isNear := false
	o := l.Run(strategy, limit, seed, func(e search.Event, _ string, regret float64) {
		f.events = append(f.events, e)
		if !isNear {
			f.trials, f.launches = len(f.events), e.Measurement.Launch
		}
		isNear = isNear || regret <= 0.02
		if e.Trial.Phase != search.PhaseFinal && e.Trial.Phase != search.PhaseLoadCurve {
			f.searched, f.searches = len(f.events), e.Measurement.Launch
		}
	})
	f.regret = o.Regret[Long]
	return f
}

// A second campaign runs on the same machine with other weather. It is within 2 % of the best after
// less than half of the trials and launches that it needs without the first. It starts fewer engine
// processes in total, and its answers are as good.
func TestSecondCampaignIsQuicker(t *testing.T) {
	t.Parallel()
	const seeds = 6
	l := machineOf(21, 0.8, 1)
	// the middle limit is unsuitable: a fifth of all answers exceed it by more than 2 %, with and
	// without the first campaign
	limit := l.Limits()[2]
	var alone, again effort
	for seed := range uint64(seeds) {
		first := guidedCampaign(t, l, limit, seed+1)
		without := guidedCampaign(t, l, limit, seed+101)
		with := guidedCampaign(t, l, limit, seed+101, search.Earlier{From: "first", Same: true, Events: first.events})
		t.Logf("seed %d: within 2 %% after %d trials and %d launches, search %d and %d, regret %.3f; without the first campaign %d and %d, %d and %d, %.3f",
			seed, with.trials, with.launches, with.searched, with.searches, with.regret,
			without.trials, without.launches, without.searched, without.searches, without.regret)
		alone.add(without)
		again.add(with)
	}
	if 2*again.trials > alone.trials || 2*again.launches > alone.launches {
		t.Errorf("within 2 %% after %d trials and %d launches with a first campaign, %d and %d without", again.trials, again.launches, alone.trials, alone.launches)
	}
	if again.searches >= alone.searches {
		t.Errorf("searches of %d launches with a first campaign, %d without", again.searches, alone.searches)
	}
	if again.regret > max(alone.regret, 0.02*seeds) {
		t.Errorf("mean regret is %.3f with a first campaign, %.3f without", again.regret/seeds, alone.regret/seeds)
	}
}

// A prior from a slower machine does no harm. That machine takes twice as long, and threads hardly
// help on it.
func TestPriorOfAnotherMachine(t *testing.T) {
	t.Parallel()
	here, there := machineOf(22, 0.8, 1), machineOf(23, 0.2, 2)
	limit := here.Limits()[1]
	for seed := range uint64(3) {
		first := guidedCampaign(t, there, there.Limits()[1], seed+1)
		without := guidedCampaign(t, here, limit, seed+101)
		with := guidedCampaign(t, here, limit, seed+101, search.Earlier{From: "there", Events: first.events})
		t.Logf("seed %d: regret %.3f, within 2 %% after %d trials; without the prior %.3f, %d", seed, with.regret, with.trials, without.regret, without.trials)
		if with.regret > max(0.05, without.regret) {
			t.Errorf("seed %d: regret is %.3f with the prior, %.3f without", seed, with.regret, without.regret)
		}
	}
}
