package profile

import (
	"math"
	"time"

	"tuner/hostinfo"
	"tuner/search"
	"tuner/spec"
)

// FactsOf collects what the folding rules of the space need to know of model and machine, but for the execution providers.
func FactsOf(s Subject, cpu hostinfo.CPU) search.Facts {
	return search.Facts{Cores: int(math.Ceil(cpu.Usable())), Batching: Signature(s.Model).CanBatch()}
}

// Plan is what a campaign is about to do: the answer of a dry run.
type Plan struct {
	Candidates []search.Candidate
	Folds      []search.Fold
	Pools      int       // engine launches at least
	Loads      []float64 // levels of the load axis
	Goal       search.Goal
	Budget     search.Budget
	Estimate   time.Duration // expected wall time without a budget
}

// What a trial costs beside its window, and how many loads a configuration needs, as seen on small models: the estimate of a
// dry run is meant to tell minutes from hours.
const (
	trialOverhead   = 600 * time.Millisecond
	launchOverhead  = 1500 * time.Millisecond
	loadsPerConfig  = 4
	finalsInWindows = 12
)

// PlanOf expands a profile's space without measuring anything.
func PlanOf(p spec.Profile, facts search.Facts) Plan {
	settings := p.Settings(facts)
	candidates, folds := settings.Space.Candidates()
	plan := Plan{Candidates: candidates, Folds: folds, Loads: settings.Space.Load.Levels, Goal: settings.Goal, Budget: settings.Budget}
	pools := map[string]bool{}
	for _, c := range candidates {
		pools[c.PoolKey()] = true
	}
	plan.Pools = len(pools)
	loads := min(loadsPerConfig, max(1, len(plan.Loads)))
	trials := (len(candidates) + 1) * loads // and the default
	plan.Estimate = time.Duration(trials)*(settings.Window+trialOverhead) + time.Duration(plan.Pools+1)*launchOverhead +
		finalsInWindows*(settings.Window+launchOverhead)
	return plan
}
