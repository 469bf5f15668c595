package plan

import (
	"errors"
	"fmt"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/alternating"
	"tuner/search/colocation/explorer"
	"tuner/search/grid"
	"tuner/search/guided"
	"tuner/search/quick"
	"tuner/search/random"
	"tuner/search/stagewise"
	"tuner/search/standings"
)

// The names of the strategies, as users write them.
const (
	Guided = "guided"
	Grid   = "grid"
	Random = "random"
	Quick  = "quick"
	// Colocation and Alternating are for several models. The first of them that fits the goal is the
	// default.
	Colocation  = "colocation"
	Alternating = "alternating"
	// Stagewise is for the stages of a pipeline.
	Stagewise = "stagewise"
)

// Strategy is a row of the table of strategies. A new strategy needs its own folder and a row here
// (docs/how-to/add-a-strategy.md).
type Strategy struct {
	Name string
	// New returns the strategy for a campaign's settings. It reads the ledger of its owner, and
	// draws from the candidates.
	New func(search.Settings, *standings.Ledger, *search.Candidates) Explorer
	// Reuses means that it learns from earlier campaigns (search.Settings.Earlier).
	Reuses bool
	// IsExhaustive means that it visits all candidates. A large space then needs a budget.
	IsExhaustive bool
	// KeepsPrecision means that it measures only the precision of the space's first candidate.
	KeepsPrecision bool
	// Several means that it can search the spaces of several models.
	Several bool
	// OnlySeveral means that it searches no other spaces.
	OnlySeveral bool
	// Pipelines means that it can search the stages of a pipeline.
	Pipelines bool
	// OnlyScale means that it searches for the largest scale, and knows no other goal.
	OnlyScale bool
}

// Strategies lists the strategies of campaigns, the default first.
func Strategies() []Strategy {
	return []Strategy{
		{Name: Guided, Reuses: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer {
			return guided.New(s, l, c)
		}},
		{Name: Colocation, Several: true, OnlySeveral: true, OnlyScale: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer {
			return explorer.New(s, l, c)
		}},
		{Name: Stagewise, Pipelines: true, OnlySeveral: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer {
			return stagewise.New(s, l, c)
		}},
		{Name: Alternating, Several: true, Pipelines: true, OnlySeveral: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer {
			return alternating.New(s, l, c)
		}},
		{Name: Grid, IsExhaustive: true, Several: true, Pipelines: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer { return grid.New(s, l, c) }},
		{Name: Random, Several: true, Pipelines: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer {
			return random.New(s, l, c)
		}},
		{Name: Quick, KeepsPrecision: true, New: func(s search.Settings, l *standings.Ledger, c *search.Candidates) Explorer { return quick.New(s, l, c) }},
	}
}

// Names lists the strategies for one model.
func Names() []string { return names(func(s Strategy) bool { return !s.OnlySeveral }) }

// OfSeveral lists the strategies for several models, the default first.
func OfSeveral() []string { return names(func(s Strategy) bool { return s.Several }) }

// OfSeveralFor lists the strategies for several models that know a goal, the default first.
func OfSeveralFor(g search.Goal) []string {
	return names(func(s Strategy) bool { return s.Several && (!s.OnlyScale || g.SeeksScale()) })
}

// OfPipelines lists the strategies for the stages of a pipeline, the default first.
func OfPipelines() []string { return names(func(s Strategy) bool { return s.Pipelines }) }

func names(fits func(Strategy) bool) []string {
	var list []string
	for _, s := range Strategies() {
		if fits(s) {
			list = append(list, s.Name)
		}
	}
	return list
}

// Find returns the named strategy; false if the table does not have it.
func Find(name string) (Strategy, bool) {
	all := Strategies()
	i := slices.IndexFunc(all, func(s Strategy) bool { return s.Name == name })
	if i < 0 {
		return Strategy{}, false
	}
	return all[i], true
}

// Explorer is a strategy that Plan frames. It gets the events of the default and search phases,
// after the plan has added them to the explorer's ledger.
type Explorer interface {
	search.Strategy
	Remaining() int         // estimated number of candidates that are still to be measured
	Skipped() []search.Fold // skipped candidates, by reason
}

// The following interfaces are optional abilities of an explorer.

// Learner also learns from the finals, and may have more to explore after them.
type Learner interface {
	Explorer
	// Confirm learns the outcome of a final trial.
	Confirm(search.Event)
}

// Economist knows a cheaper trial if the budget is too short for its first choice.
type Economist interface {
	Explorer
	// AskWithin is Ask restricted to affordable trials. It stops if none is worth its time.
	AskWithin(affords func(search.Trial) bool) search.Action
}

// Explainer explains its answer. It may be asked after any event, and changes nothing.
type Explainer interface {
	Explorer
	// Predict returns the estimate for a configuration at a load; false without one.
	Predict(search.Candidate, measure.Load) (search.Prediction, bool)
	// Effects returns the importance of each knob: the winner's value against every other.
	Effects(winner search.Candidate) []search.KnobEffect
	// Dropped lists the metrics whose predictions turned out wrong.
	Dropped() []measure.Metric
}

// Noter has sentences about its search: its sources, its omissions, the reason of its end.
type Noter interface {
	Explorer
	Notes() []string
}

// Separator knows what the models of one server would need on servers of their own.
type Separator interface {
	Explorer
	// Apart returns that as a sentence, for an answer's load; "" if it does not know.
	Apart(measure.Load) string
}

// mostUnbounded is the largest number of candidates of an exhaustive search without a budget: at a
// second for each, two weeks.
const mostUnbounded = 1_000_000

// New returns a campaign with the named strategy inside. For an invalid name or settings it returns
// all errors at once.
func New(name string, s search.Settings) (*Plan, error) {
	strategy, known := Find(name)
	if !known {
		unknown := fmt.Errorf("unknown strategy %q; allowed: %q", name, Names())
		return nil, fmt.Errorf("cannot plan campaign: %w", errors.Join(unknown, check(s)))
	}
	return strategy.Plan(s)
}

// Plan returns a campaign with the strategy inside. It returns an error for invalid settings.
func (x Strategy) Plan(s search.Settings) (*Plan, error) {
	p, err := Around(s, func(l *standings.Ledger, candidates *search.Candidates) Explorer { return x.New(s, l, candidates) })
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
