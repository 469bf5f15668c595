// Package tuning holds the parameters of the guided search. Each has its unit, its source, and what
// doubling it does. "Never mattered" means that another value would have changed nothing in 16
// campaigns of five minutes on the six recordings. lab/docs/search.md says on which of these the
// values were chosen.
//
// Users set none of them. The parameters of users are in search.Settings. Numbers that only protect
// a calculation, such as the least value for a logarithm, stand beside it.
package tuning

import (
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Tuning holds all parameters, by the part of the search that reads them.
type Tuning struct {
	Service    Service
	Parts      Parts
	Engines    Engines
	Contention Contention
	Path       Path
	Loads      Loads
	Beliefs    Beliefs
	Survey     Survey
	Worth      Worth
	Trials     Trials
}

// Service is for service trials, which measure the time of a batch of each size.
type Service struct {
	// Window is the duration of a size's measurement. Doubled, service trials take most of a short
	// budget.
	Window time.Duration
	// BudgetParts is the divisor of the budget that gives the longest time of a measured batch. A
	// size needs measure.ServiceBatches, and all smaller sizes together need as much time again. Doubled,
	// curves end earlier.
	BudgetParts float64
	// Margin is the factor for noise on the time of a size. A larger batch is never faster, and takes
	// at most as much longer as it is larger. What contradicts that by more is measured again.
	// Doubled, disturbed windows are accepted.
	Margin float64
	// BeyondDeviation is the standard deviation of the logarithm of a batch's time, for each
	// doubling of the size beyond the last measured one. The curve continues there as a line. In
	// the recordings it is 0.07 (cnn) to 0.3 (mlp). Doubled, more pools are opened whose larger
	// batches were not measured.
	BeyondDeviation float64
}

// GuessedSize is the assumed time of a size until one was measured. The part before its window
// takes as long as the window.
func (s Service) GuessedSize() time.Duration { return 2 * s.Window }

// Parts is for spaces that are too large to be considered as a whole. It limits the time between two
// trials: a decision's time grows with the number of pools and members. Doubled, that time at most
// doubles. A space of up to Whole pools with up to Survey.Most members is not affected.
type Parts struct {
	// Pools is the largest number of considered pools.
	Pools int
}

// Whole is the largest number of pools of a space that is considered as a whole. They are cheap
// before they are opened. As many are looked at around the default, and around each new best, to find
// those to consider: most may be known or illegal.
func (p Parts) Whole() int { return 5 * p.Pools }

// First is the number of considered pools around the default.
func (p Parts) First() int { return p.Pools / 2 }

// Next is the number of considered pools around each new best.
func (p Parts) Next() int { return p.Pools / 16 }

// Engines is for the model of the logarithms of engines' service times. Each engine knob has its
// own effect, these add up, and each engine has a rest. On another machine all have a common
// factor, and effects and rests differ by as much as a rest.
type Engines struct {
	// Common is the variance of the common part, and of the factor between two machines: nothing is
	// known in advance. Doubled, nothing changes once an engine is open.
	Common float64
	// Effect is the variance of a value of a knob. Doubled, fewer unopened engines are ruled out.
	Effect float64
	// Rest is the variance of the part that the values together do not explain. Doubled, more engines
	// are opened.
	Rest float64
	// Attempts is the number of pools of an engine that may fail before the engine counts as
	// failed: one failed launch may be chance.
	Attempts int
	// Hopeless is the number of failed engines with a value of a knob, while none works, after
	// which the value is given up. Doubled, a provider that creates no session costs twice as many
	// launches.
	Hopeless int
}

// Contention is for the effect of instances on each other: the logarithm of their common throughput
// minus that of their undisturbed one, within the cores. The similarity of pools depends on their
// instances and threads, on a scale of e.
type Contention struct {
	// Alike is the variance that similar pools share. Judged: a quarter of the throughput may be lost.
	// Doubled, more pools of several instances are opened.
	Alike float64
	// Own is the variance of each pool alone. Doubled, a pool tells less of the others.
	Own float64
}

// Path is for the processor time of a request on its way to the server (queuesim.ServiceCurve).
type Path struct {
	// Busy is the share of the highest request rate from which on trials count. Fewer requests
	// share fewer wake-ups: on the MLP a request takes 97 µs alone, and 14 µs with 128 in flight. Above
	// 1 nothing counts. Halved, the path is of servers that are half idle.
	Busy float64
	// Undisturbed is the number of trials for each one that counts as undisturbed. Threads that
	// spin, switch or wait for memory only add to the processor time of a trial. By the median
	// instead, a request of the recorded CNN took 250 µs instead of 150 µs (160 to 220 with one
	// computing thread). Then 0.81 instead of 0.87 of the answers were right.
	Undisturbed int
	// Step is the least change of the path's logarithm, so that a small change does not repeat all
	// simulations. Doubled, the path is off by 5 % at most instead of 2.5 %.
	Step float64
}

// Loads is for the considered levels.
type Loads struct {
	// Ratio is the ratio of neighbouring levels if any level may be tried. Around the best one all
	// levels are considered that verdicts tell apart (verdict.Tie). Squared, there are half as many.
	Ratio float64
	// EndlessLimits and EndlessBatches set the latency above which the queue of an open loop counts
	// as endless. It is a multiple of the limit, or without one a multiple of the largest batch's
	// time. Higher latencies carry no information about lower rates. Doubled, longer queues count, and
	// their length depends on the window's.
	EndlessLimits  float64
	EndlessBatches float64
	// Stride is the largest ratio of a request rate to the highest answered rate so far. Beyond its
	// capacity an open loop shows nothing else. Doubled, more trials are far beyond it.
	Stride float64
}

// Beliefs is for the thresholds of estimates.
type Beliefs struct {
	// Wrong is the standard deviation of the logarithms of measured against simulated figures
	// within pools above which the simulation is useless. Doubled, wrong predictions are kept for
	// longer.
	Wrong float64
	// Possible is the probability below which a thing is ignored: that a cell keeps the constraints,
	// that a cell or a window reaches a relevant bound, and that chance makes the simulation look
	// wrong. Doubled, the search ends earlier, and more windows are cut.
	Possible float64
}

// Clearly is the number of standard deviations with the probability Possible beyond them.
func (b Beliefs) Clearly() float64 { return distuv.UnitNormal.Quantile(1 - b.Possible) }

// Survey is for the number of cells that are considered after each trial. A simulation takes half a
// millisecond.
type Survey struct {
	// Most is the largest number of simulated cells, also for the best of every value of every knob. A pool
	// with more members is not considered as a whole. It never mattered: doubled, a decision in a large
	// space takes longer.
	Most int
}

// Members is the largest number of considered members of a pool that is not considered as a whole. Each
// has many loads, and there are several such pools.
func (s Survey) Members() int { return s.Most / 10 }

// FirstMembers is the number of those that are spread over all settings of the batcher.
func (s Survey) FirstMembers() int { return s.Members() / 3 }

// Worth is the least expected relative gain of trials.
type Worth struct {
	// WithoutBudget ends a search without a budget. With 0.001, 13 of 20 campaigns on the machine
	// of TestFindsTheBest end within 2 % of the best; with 0.0003, 15 or more.
	WithoutBudget float64
	// WithinBudget is the same within a budget, which should be used. With 0.0001, campaigns of 600
	// s on the recordings ended after 309 s in the mean, and 0.79 of the answers were right. With
	// this value they ended after 381 s, with 0.89.
	WithinBudget float64
	// Repeats are the considered numbers of trials of a cell. One alone may teach nothing where
	// several would decide (Frazier and Powell, Paradoxes in Learning and the Marginal Value of
	// Information, Decision Analysis 7, 2010). Eight leave a third of one trial's error.
	Repeats [4]int
}

// Least returns the gain of a trial above which it is made.
func (w Worth) Least(isWithinBudget bool) float64 {
	if isWithinBudget {
		return w.WithinBudget
	}
	return w.WithoutBudget
}

// Trials is for the course of a campaign.
type Trials struct {
	// ExploreShare is a share of the budget that the default leaves. Once it is used, only pools
	// that may be better are opened. Where engines cannot be priced in it, they are priced in a hurry. It
	// never mattered: only shorter budgets and slow models reach it. With 1, two of three campaigns of a
	// minute on the synthetic detector did not reach the precision that is twice as fast.
	ExploreShare float64
	// Growth is the factor by which windows get longer with every trial, up to GrowthMost: the
	// remaining cells differ by less and less. With the square of Growth windows are the longest after
	// 16 trials instead of 32.
	Growth float64
	// GrowthMost bounds it. Doubled, late trials take twice as long, and there are half as many.
	GrowthMost float64
	// Expected is the usual number of trials of a search. Only the progress uses it.
	Expected int
}

// Default returns the parameters of campaigns.
func Default() Tuning {
	return Tuning{
		Service: Service{
			Window: 200 * time.Millisecond, BudgetParts: 200, Margin: 1.2, BeyondDeviation: 0.2,
		},
		Parts:      Parts{Pools: 4000},
		Engines:    Engines{Common: 3.0 * 3.0, Effect: 0.5 * 0.5, Rest: 0.12 * 0.12, Attempts: 2, Hopeless: 3},
		Contention: Contention{Alike: 0.3 * 0.3, Own: 0.06 * 0.06},
		Path:       Path{Busy: 0.7, Undisturbed: 10, Step: 0.05},
		Loads:      Loads{Ratio: 1.15, EndlessLimits: 2, EndlessBatches: 10, Stride: 1.5},
		Beliefs:    Beliefs{Wrong: 0.3, Possible: 0.02},
		Survey:     Survey{Most: 1500},
		Worth:      Worth{WithoutBudget: 0.0003, WithinBudget: 1e-6, Repeats: [4]int{1, 2, 4, 8}},
		Trials:     Trials{ExploreShare: 0.4, Growth: 1.045, GrowthMost: 4, Expected: 20},
	}
}
