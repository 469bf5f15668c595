package plan

import (
	"errors"
	"fmt"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/grid"
	"tuner/search/guided"
	"tuner/search/quick"
	"tuner/search/random"
)

// The names of the strategies, as users write them.
const (
	Guided = "guided"
	Grid   = "grid"
	Random = "random"
	Quick  = "quick"
)

// Strategy is a row of the table of strategies. A new strategy is a folder of its own and a row here
// (docs/how-to/add-a-strategy.md).
type Strategy struct {
	Name string
	// New returns the strategy for a campaign's settings. It reads the ledger, which its owner writes, and
	// draws from the candidates.
	New func(search.Settings, *search.Ledger, *search.Candidates) Explorer
	// Reuses says that it learns from earlier campaigns (search.Settings.Earlier).
	Reuses bool
	// IsExhaustive says that it goes through all candidates. A large space needs a budget then.
	IsExhaustive bool
	// KeepsPrecision says that it measures no other precision than that of the space's first candidate.
	KeepsPrecision bool
}

// Strategies lists what a campaign may search with, the default first.
func Strategies() []Strategy {
	return []Strategy{
		{Name: Guided, Reuses: true, New: func(s search.Settings, l *search.Ledger, c *search.Candidates) Explorer { return guided.New(s, l, c) }},
		{Name: Grid, IsExhaustive: true, New: func(s search.Settings, l *search.Ledger, c *search.Candidates) Explorer { return grid.New(s, l, c) }},
		{Name: Random, New: func(s search.Settings, l *search.Ledger, c *search.Candidates) Explorer { return random.New(s, l, c) }},
		{Name: Quick, KeepsPrecision: true, New: func(s search.Settings, l *search.Ledger, c *search.Candidates) Explorer { return quick.New(s, l, c) }},
	}
}

// Names lists the strategies that New knows.
func Names() []string {
	var names []string
	for _, s := range Strategies() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the named strategy; false for a name that the table has not.
func Find(name string) (Strategy, bool) {
	all := Strategies()
	i := slices.IndexFunc(all, func(s Strategy) bool { return s.Name == name })
	if i < 0 {
		return Strategy{}, false
	}
	return all[i], true
}

// Explorer is a strategy that Plan frames. It is told the events of the default and search phases, after
// the plan has entered them in the ledger that the explorer was made with.
type Explorer interface {
	search.Strategy
	Remaining() int         // candidates still to be measured, an estimate
	Skipped() []search.Fold // candidates passed over, by reason
}

// What follows is for an explorer that can do more. Each interface is optional.

// Learner learns from the finals, too, and may have more to explore after them.
type Learner interface {
	Explorer
	// Confirm learns the outcome of a final trial.
	Confirm(search.Event)
}

// Economist knows of something cheaper where the budget is too short for what it asks for.
type Economist interface {
	Explorer
	// AskWithin is Ask among the trials that are affordable; it stops where none is worth its time.
	AskWithin(affords func(search.Trial) bool) search.Action
}

// Explainer says why its answer is what it is. It may be asked after any event, and changes nothing.
type Explainer interface {
	Explorer
	// Predict tells what is known of a configuration at a load; false where nothing is.
	Predict(search.Candidate, measure.Load) (search.Prediction, bool)
	// Effects tells how much each knob matters, the winner's value against every other.
	Effects(winner search.Candidate) []search.KnobEffect
	// Dropped lists the metrics whose predictions turned out wrong.
	Dropped() []measure.Metric
}

// Noter has sentences about its search: what it learned from, what it left out, why it ended.
type Noter interface {
	Explorer
	Notes() []string
}

// mostUnbounded is how many candidates an exhaustive search may have without a budget: at a second for
// each, two weeks.
const mostUnbounded = 1_000_000

// New returns a campaign with the named strategy inside. It fails for a name or settings that are not
// usable, all errors at once.
func New(name string, s search.Settings) (*Plan, error) {
	strategy, known := Find(name)
	if !known {
		unknown := fmt.Errorf("unknown strategy %q; allowed: %q", name, Names())
		return nil, fmt.Errorf("cannot plan campaign: %w", errors.Join(unknown, check(s)))
	}
	return strategy.Plan(s)
}

// Plan returns a campaign with the strategy inside. It fails for settings that are not usable.
func (x Strategy) Plan(s search.Settings) (*Plan, error) {
	p, err := Around(s, func(l *search.Ledger, candidates *search.Candidates) Explorer { return x.New(s, l, candidates) })
	if err != nil {
		return nil, err
	}
	if x.IsExhaustive && s.Budget == (search.Budget{}) {
		if n, _ := p.candidates.Len(); n > mostUnbounded {
			return nil, fmt.Errorf("cannot plan campaign: the %s has %d candidates and no budget; "+
				"give it one, list fewer values or knobs, or choose the strategy %s", x.Name, n, Guided)
		}
	}
	return p, nil
}
