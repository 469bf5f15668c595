// Package tuning holds the numbers by which the guided search decides. Each has its unit, where it comes from, and what
// happens when it is doubled, as far as that was measured.
//
// Users set none of them: what is theirs to say is in search.Settings. Numbers that only guard a calculation, such as the
// least value that a logarithm is taken of, stand beside it.
package tuning

import "time"

// Tuning is all of them, by the part of the search that reads them.
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

// Service is for service trials, which measure what a batch of each size takes.
type Service struct {
	// Window is how long a size is measured. Doubled, service trials take most of a short budget.
	Window time.Duration
	// Batches is how many batches a size takes at least, with what goes before its window.
	Batches float64
	// BudgetParts is the part of the budget that a batch may take to be measured: one of so many. A size takes
	// Batches of them, and the smaller sizes take as long again. Doubled, curves end earlier.
	BudgetParts float64
	// Shorter is the least factor between the times of neighbouring sizes when nothing disturbed them: a larger
	// batch takes no shorter, and there is room for noise. A smaller factor than this is measured again.
	Shorter float64
	// Longer is the highest factor between the times of two sizes, one twice the other: at most twice as long, and
	// there is room for noise. A higher factor is measured again. Doubled, disturbed windows are believed.
	Longer float64
	// LeastSpread is the least standard deviation of the logarithm of a batch's time. No real server has less, and
	// without any the simulation falls into an arbitrary cycle. Between 0.01 and 0.1 it hardly matters
	// (queuesim.Curve).
	LeastSpread float64
	// BeyondDeviation is the standard deviation of the logarithm of a batch's time, for each doubling of the size
	// beyond the last one that was measured. The curve goes on as a line there. In the recordings it is 0.07 (cnn)
	// to 0.3 (mlp).
	BeyondDeviation float64
}

// GuessedSize is what a size takes until one was measured: what goes before its window takes as long again.
func (s Service) GuessedSize() time.Duration { return 2 * s.Window }

// Parts is for spaces that are too large to be looked at as a whole. All of it bounds the time between two trials: a
// decision takes as much longer as there are more pools and members.
type Parts struct {
	// Pools is how many pools are looked at in all.
	Pools int
	// Farthest is in how many knobs an engine may differ from the default's or the best's.
	Farthest int
	// Patience is how many pools may be gone through for each that is to be entered: most may be known or illegal.
	Patience int
	// Members is how many members of a large pool are looked at in all.
	Members int
	// FirstMembers is how many of them are spread over all settings of the batcher.
	FirstMembers int
	// WholePool is the largest number of members with which a pool is looked at as a whole.
	WholePool int
}

// Whole is the largest number of pools with which a space is looked at as a whole. They are cheap before they are opened.
func (p Parts) Whole() int { return 5 * p.Pools }

// First is how many pools are looked at around the default.
func (p Parts) First() int { return p.Pools / 2 }

// Next is how many pools are looked at around each new best.
func (p Parts) Next() int { return p.Pools / 16 }

// Engines is for how the logarithms of engines' service times compare: each engine knob has an effect of its own, these
// add up, and each engine has a rest. On another machine all have a common factor, and effects and rests differ somewhat.
// All are variances.
type Engines struct {
	Common        float64 // of what all have in common: nothing is known of the model beforehand
	Effect        float64 // of a value of a knob. Doubled, engines that were not opened are less ruled out
	Rest          float64 // of what the values together do not explain. Doubled, more engines are opened
	ForeignFactor float64 // of the factor between two machines
	ForeignEffect float64 // of what a value does on another machine beyond what it does here
	ForeignRest   float64 // of an engine's rest on another machine beyond that here
	// Attempts is how many pools of an engine may fail before the engine counts as failed: one launch may be bad luck.
	Attempts int
	// Hopeless is how many engines with a value of a knob may fail while none works, before the value is given up.
	// Doubled, a provider that creates no session costs twice as many launches.
	Hopeless int
}

// Contention is for what instances do to each other: how the logarithm of what they do together differs from what they
// would do undisturbed, within the cores. Pools are alike as far as their instances and threads are, on a scale of e.
type Contention struct {
	Alike     float64 // variance of what pools that are alike have in common
	Own       float64 // variance of what each has beside that
	Strangers float64 // correlation of pools whose engines have no value in common
}

// Path is for what a request takes on its way to the server, in processor time (queuesim.Curve).
type Path struct {
	// LeastShare is the share of the processor time that the path must have to be told: less is lost in that of the
	// instances.
	LeastShare float64
	// Busy is the share of the highest request rate from which on trials count. Fewer requests share fewer wake-ups.
	Busy float64
	// Undisturbed is how many trials there are for each that counts as undisturbed. Threads that spin, switch or wait
	// for memory only add to what a trial uses. By the median instead, a request of the recorded CNN took 250 µs
	// instead of 150 µs (160 to 220 where one thread computes alone), and 0.81 instead of 0.87 of the answers were
	// right.
	Undisturbed int
	// Step is that of the path's logarithm, lest all be simulated again for every small change.
	Step float64
}

// Loads is for the levels that are looked at.
type Loads struct {
	Ratio float64 // of neighbouring levels where any level may be tried
	Fine  float64 // of the same around the best one. Verdicts call 1 % a tie
	// EndlessLimits and EndlessBatches say from which latency on the queue of an open loop counts as growing without
	// end: so many limits, or without one so many of the largest batches. How far it got says nothing of lower rates.
	EndlessLimits  float64
	EndlessBatches float64
	// Stride is how far above what was answered so far a request rate may be. Beyond its end an open loop tells
	// nothing but that.
	Stride float64
}

// Beliefs is for what counts as known.
type Beliefs struct {
	// Wrong is the standard deviation of the logarithms of measured against simulated figures within pools beyond which
	// the simulation is of no use. Doubled, wrong predictions are kept for longer.
	Wrong float64
	// Freedom is how many degrees of freedom that takes.
	Freedom float64
	// Possible is the probability to keep the constraints below which a cell is out.
	Possible float64
	// Clearly is by how many standard deviations something must miss what matters for it not to matter. Doubled, nearly
	// every cell is simulated, and no window is cut.
	Clearly float64
}

// Survey is for how many cells are looked at after each trial. A simulation takes half a millisecond.
type Survey struct {
	Anchors   int // cells of the highest probability to be feasible with which it begins where nothing measured leads
	Most      int // cells that are simulated at most
	Explained int // cells that are simulated at most to find the best of every value of every knob
}

// Worth is the relative gain to be expected of trials below which none is made.
type Worth struct {
	// WithoutBudget ends a search that has no budget. With 0.001, 13 of 20 campaigns on the machine of
	// TestFindsTheBest end within 2 % of the best, with 0.0003 15 or more.
	WithoutBudget float64
	// WithinBudget is the same within a budget, which is there to be used. With 0.0001, campaigns of 600 s on the
	// recordings ended after 309 s in the mean, and 0.79 of the answers were right; with this after 381 s, and 0.89.
	WithinBudget float64
	// Repeats are the numbers of trials that a cell is considered with. One alone may teach nothing where several
	// would decide (Frazier and Powell, Paradoxes in Learning and the Marginal Value of Information, Decision Analysis
	// 7, 2010). Eight leave a third of one trial's error.
	Repeats [4]int
}

// Trials is for the course of a campaign.
type Trials struct {
	// ExploreShare is the share of the budget that the default leaves, after which only what may be better is opened.
	ExploreShare float64
	// Growth is the factor by which windows get longer with every GrowthEvery trials, up to GrowthMost: the cells that
	// are left differ by less and less.
	Growth      float64
	GrowthEvery int
	GrowthMost  float64
	// LongAgo is how long before this campaign an earlier one is taken to have been: the machine's speed has nothing
	// left in common with it. Any time beyond the slow course of the speed does the same.
	LongAgo time.Duration
	// Expected is how many trials a search usually has. It is for progress alone.
	Expected int
}

// Default is what campaigns use.
func Default() Tuning {
	return Tuning{
		Service: Service{
			Window: 200 * time.Millisecond, Batches: 5, BudgetParts: 200,
			Shorter: 0.95, Longer: 2.4, LeastSpread: 0.03, BeyondDeviation: 0.2,
		},
		Parts: Parts{Pools: 4000, Farthest: 3, Patience: 20, Members: 150, FirstMembers: 48, WholePool: 1000},
		Engines: Engines{
			Common: 3.0 * 3.0, Effect: 0.5 * 0.5, Rest: 0.12 * 0.12,
			ForeignFactor: 1.5 * 1.5, ForeignEffect: 0.15 * 0.15, ForeignRest: 0.10 * 0.10,
			Attempts: 2, Hopeless: 3,
		},
		Contention: Contention{Alike: 0.3 * 0.3, Own: 0.06 * 0.06, Strangers: 0.6},
		Path:       Path{LeastShare: 0.1, Busy: 0.7, Undisturbed: 10, Step: 0.05},
		Loads:      Loads{Ratio: 1.15, Fine: 1.04, EndlessLimits: 2, EndlessBatches: 10, Stride: 1.5},
		Beliefs:    Beliefs{Wrong: 0.3, Freedom: 3, Possible: 0.02, Clearly: 3},
		Survey:     Survey{Anchors: 30, Most: 1500, Explained: 1000},
		Worth:      Worth{WithoutBudget: 0.0003, WithinBudget: 1e-6, Repeats: [4]int{1, 2, 4, 8}},
		Trials:     Trials{ExploreShare: 0.4, Growth: 1.3, GrowthEvery: 6, GrowthMost: 4, LongAgo: 1000 * time.Hour, Expected: 20},
	}
}
