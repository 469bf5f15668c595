package analyze

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"tuner/internal/parallel"
	"tuner/measure"
	"tuner/profile/campaign"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/posterior"
	"tuner/search/verdict"
	"tuner/spec"
	"tuner/spec/csvfiles"
	"tuner/spec/plots"
)

// Options select how a campaign is analyzed: the goal, the ranking and the tables.
type Options struct {
	Goal *search.Goal // replaces the profile's goal; nil keeps that
	Top  int          // see Result.Top
	// Confidence is the required probability, between 0.5 and 1, that the recommended configuration
	// keeps the constraints. 0 keeps the profile's value.
	Confidence float64
	Rank       string         // spec.RankScore (or "") or spec.RankTop3Mean
	At         spec.At        // the load at which configurations are compared; zero value: each at its best load
	CSV        csvfiles.Files // see Result.CSV
	Plots      []plots.Plot   // see Result.Plots
}

// Analyze ranks what a campaign measured. It is deterministic: the same campaign and options give
// the same result.
//
// The error is a LoadError if nothing was measured at the load Options.At. It is an ObjectiveError
// if no measurement has the metrics of the goal's objective.
func Analyze(c Campaign, o Options) (Result, error) {
	goal := c.Profile.Goal
	if o.Goal != nil {
		goal = *o.Goal
	}
	if o.Rank == spec.RankTop3Mean {
		goal = byThroughput(goal)
	}
	r, err := analyzed(c, o, goal)
	if err != nil {
		return Result{}, fmt.Errorf("cannot analyze campaign in %q: %w", c.Dir, err)
	}
	return r, nil
}

func analyzed(c Campaign, o Options, goal search.Goal) (Result, error) {
	models, err := servedModels(c)
	if err != nil {
		return Result{}, err
	}
	events := atLoads(c.Events)
	configs, err := describe(c, events, models)
	if err != nil {
		return Result{}, err
	}
	all, ofDefault := measuredLoads(events)
	at, err := comparedAt(o.At, all, ofDefault)
	if err != nil {
		return Result{}, err
	}
	memory := remember(c)
	strategy, err := assess(c, configs, memory.fill(c.Header, configs), memory.seen(events), goal, o.Confidence)
	if err != nil {
		return Result{}, err
	}
	if err := checkObjective(configs, goal); err != nil {
		return Result{}, err
	}
	space := c.Profile.Space(c.Facts)
	r := Result{
		Header: c.Header, Goal: goal, Shapes: c.Profile.Inputs.Shape, Requests: shapesOf(models), Pad: c.Profile.Inputs.Pad, Arrivals: arrivalsText(space.Load), Cores: c.Facts.Cores, Top: o.Top,
		Rank: o.Rank, At: at, Each: o.At.Each, CSV: o.CSV, Plots: o.Plots,
		Ending: ending(c), Account: account(c), Trials: len(events), Windows: countWindows(events), ServiceTrials: len(c.Events) - len(events),
		Reused: reused(c.Earlier), Failures: failures(events, configs), Folds: space.Candidates().Folds(),
		Placements: c.Placements, Accuracy: comparison(c.Profile), Assigned: assigned(c.Facts), Steps: c.Steps, Course: course(events, configs, goal),
	}
	if c.Header.IsPipeline() {
		r.Stages = servedOf(c)
	} else {
		r.Models = servedOf(c)
	}
	r.Tried, r.Failed = len(configs), len(r.Failures)
	known := strategy.plan.Posterior()
	v := viewOf(strategy.plan, known, at, c.Header.Finals != nil)
	r.Verdict, r.Withheld, r.Speed = v.verdict, newWithheld(space, events), newSpeed(events)
	r.Decide = func(constraints []search.Constraint) verdict.Verdict {
		other := goal
		other.Constraints = constraints
		return verdict.Decide(known, verdict.Options{Space: space, Goal: other, Confidence: r.Verdict.Confidence, At: at})
	}
	r.Configs = v.ordered(configs)
	if o.Rank == spec.RankTop3Mean {
		r.Configs = byTopMean(c.Header, scoredByTopMean(c.Header, r.Configs), goal)
	}
	r.Loads = bestAtLoads(r.onBestServer(), func(at measure.Load) view {
		return viewOf(strategy.plan, known, &at, c.Header.Finals != nil)
	})
	r.Fronts = fronts(r.onBestServer(), v, goal)
	r.FirstStage, r.StageElsewhere = stageByServer(r, space)
	r.Explanation = explain(c, r, strategy)
	r.Ending.Statement, r.Ending.Notes = claims(r, strategy)
	return r, nil
}

// viewOf makes the view of a campaign from its posterior. Configurations are compared at one load,
// or each at its best load (nil). The view also has figures of other loads, and of the search's
// server if the finals ran on another one (isTwo).
func viewOf(p *plan.Plan, known *posterior.Posterior, at *measure.Load, isTwo bool) view {
	v := p.DecideAt(known, at)
	var further []verdict.Verdict
	if at != nil {
		further = append(further, p.DecideAt(known, nil))
	}
	hasFinals := slices.ContainsFunc(v.Choices, func(x verdict.Choice) bool { return x.IsElsewhere })
	if !isTwo || !hasFinals {
		w := newView(v, at, further...)
		w.isTwo = isTwo
		return w
	}
	elsewhere := p.DecideAt(onSearchServer{known}, at)
	w := newView(v, at, append(further, elsewhere, p.DecideAt(onSearchServer{known}, nil))...)
	w.isTwo, w.elsewhere = true, elsewhere
	return w
}

// onSearchServer restricts a posterior to the cells of the search's server.
type onSearchServer struct{ *posterior.Posterior }

// Measured lists the cells that the search's server measured.
func (s onSearchServer) Measured() []posterior.Measured {
	return slices.DeleteFunc(s.Posterior.Measured(), func(m posterior.Measured) bool { return m.IsElsewhere })
}

// assess fills in the figures of all configurations. In parallel it replays the events to the
// campaign's strategy.
func assess(c Campaign, configs []Config, memory []held, events []search.Event, goal search.Goal, confidence float64) (strategy replayed, err error) {
	var telling sync.WaitGroup
	telling.Go(func() { strategy, err = replay(c, goal, confidence) })
	own := byCandidate(events)
	parallel.For(len(configs), func(i int) {
		configs[i] = assessed(configs[i], own[configs[i].Candidate.Key()], memory[i], goal)
	})
	telling.Wait()
	return strategy, err
}

// byCandidate sorts events by the key of their candidate, each list in the order of the trials.
func byCandidate(events []search.Event) map[string][]search.Event {
	own := map[string][]search.Event{}
	for _, e := range events {
		key := e.Trial.Candidate.Key()
		own[key] = append(own[key], e)
	}
	return own
}

// assessed returns a configuration with the figures of its own events.
func assessed(c Config, own []search.Event, memory held, goal search.Goal) Config {
	c.Points = points(own, goal, memory)
	return c
}

// assigned returns, for each execution provider, the nodes that it took. The nodes of a later
// runtime count only if no earlier runtime has that provider.
func assigned(facts search.Facts) map[string]string {
	all := maps.Clone(facts.Assigned)
	for _, r := range facts.Runtimes {
		for provider, text := range r.Assigned {
			if all == nil {
				all = map[string]string{}
			}
			if all[provider] == "" {
				all[provider] = text
			}
		}
	}
	return all
}

// atLoads removes the service trials, since they measure batches and not a load. Failed service
// trials stay: they are the reason why the configurations of an engine process have no figures.
func atLoads(events []search.Event) []search.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseService && e.Measurement.Failure == nil
	})
}

// describe lists the configurations of the events in order of first trial. The default comes first
// even if its first trial was later.
func describe(c Campaign, events []search.Event, models []servedModel) ([]Config, error) {
	candidates := []search.Candidate{{}}
	seen := map[string]bool{candidates[0].Key(): true}
	for _, e := range events {
		if key := e.Trial.Candidate.Key(); !seen[key] {
			seen[key] = true
			candidates = append(candidates, e.Trial.Candidate)
		}
	}
	configs := make([]Config, len(candidates))
	err := parallel.Try(len(candidates), func(i int) error {
		configs[i] = Config{Name: configName(c.Header.Model, i), Candidate: candidates[i]}
		policies, err := campaign.Policies(c.Header.Processors, candidates[i])
		if err != nil {
			return err
		}
		configs[i].Policies = policies
		for k, m := range models {
			part, err := m.part(candidates[i].Of(m.name), policies, k)
			if err != nil {
				return fmt.Errorf("candidate %s: %w", candidates[i], err)
			}
			configs[i].Parts = append(configs[i].Parts, part)
		}
		if configs[i].Parts, err = fitted(configs[i].Parts); err != nil {
			return fmt.Errorf("candidate %s: %w", candidates[i], err)
		}
		if first := configs[i].Parts[0]; first.Model == "" {
			configs[i].Setup, configs[i].Deployed, configs[i].Text, configs[i].Parts = first.Setup, first.Deployed, first.Text, nil
		} else {
			configs[i].Setup, configs[i].Text = jointSetup(configs[i].Parts), jointText(configs[i].Parts)
		}
		return nil
	})
	return configs, err
}

// configName names configurations as Model Analyzer does. Index 0 is the default.
func configName(model string, index int) string {
	if index == 0 {
		return model + "_config_default"
	}
	return fmt.Sprintf("%s_config_%d", model, index-1)
}

// points pools a candidate's successful trials by load. It keeps the final phase apart from the
// search.
func points(own []search.Event, goal search.Goal, memory held) []Point {
	type pools struct{ search, final []measure.Measurement }
	byLoad := map[measure.Load]*pools{}
	for _, e := range own {
		if e.Measurement.Failure != nil || len(e.Measurement.Windows) == 0 {
			continue
		}
		p := byLoad[e.Trial.Load]
		if p == nil {
			p = &pools{}
			byLoad[e.Trial.Load] = p
		}
		if e.Trial.Phase == search.PhaseFinal && e.Trial.Fresh {
			p.final = append(p.final, e.Measurement)
		} else {
			p.search = append(p.search, e.Measurement)
		}
	}
	var list []Point
	for load, p := range byLoad {
		list = append(list, newPoint(load, p.search, p.final, goal, memory))
	}
	slices.SortFunc(list, func(a, b Point) int { return compareLoads(a.Load, b.Load) })
	return list
}

// newPoint reports the figures of the final phase if there are any. The figures of the search
// decided what the finals measure, so those of chosen configurations are too good on average.
func newPoint(load measure.Load, searched, final []measure.Measurement, goal search.Goal, memory held) Point {
	if len(final) == 0 {
		return Point{Load: load, Sample: newSample(searched, load, goal, memory.searched), Score: noScore}
	}
	p := Point{Load: load, Sample: newSample(final, load, goal, memory.final), Score: noScore, Confirmed: true}
	if len(searched) > 0 {
		s := newSample(searched, load, goal, memory.searched)
		p.Searched = &s
	}
	return p
}

// failures lists the trials without figures, oldest first.
func failures(events []search.Event, configs []Config) []Failure {
	names := map[string]string{}
	for _, c := range configs {
		names[c.Candidate.Key()] = c.Name
	}
	var list []Failure
	for _, e := range events {
		if f := e.Measurement.Failure; f != nil {
			list = append(list, Failure{names[e.Trial.Candidate.Key()], e.Trial.Candidate, e.Trial.Load, f.Stage, f.Reason})
		}
	}
	return list
}

// reused counts the trials of earlier campaigns.
func reused(list []search.Earlier) []Reused {
	var all []Reused
	for _, e := range list {
		all = append(all, Reused{e.From, e.Created, e.Same, len(e.Events)})
	}
	return all
}

// ending reads how the campaign ended. It leaves the strategy's claims to claims.
func ending(c Campaign) Ending {
	if c.End == nil {
		return Ending{Interrupted: true, Reason: "it was killed, or is still running"}
	}
	return Ending{Interrupted: c.End.Interrupted, Reason: c.End.Reason}
}

// claims returns two lists of sentences: the verdict with the strategy's remarks, and the remarks
// alone. A claim compares configurations at their best loads, so other views have none.
func claims(r Result, told replayed) (statement, notes []string) {
	if !r.ByBestLoad() {
		return nil, nil
	}
	notes = told.plan.Notes()
	return append(r.Verdict.Sentences(r.Goal), notes...), notes
}

// account sums up the campaign's time by activity. Without a record of the end, the last event
// gives the total.
func account(c Campaign) Account {
	if e := c.End; e != nil {
		return Account{e.Elapsed, e.Windows, e.Launches, e.Reconfigurations, e.WarmUps, e.Decisions}
	}
	var t measure.Times
	var a Account
	for _, e := range c.Events {
		t = t.Add(e.Measurement.Times)
		a.Elapsed = max(a.Elapsed, e.Elapsed)
	}
	a.Windows, a.Launches, a.Reconfigurations, a.WarmUps = t.Windows, t.Launch, t.Reconfigure, t.Outside()
	a.Decisions = max(0, a.Elapsed-t.Total())
	return a
}

// comparison returns how variants were compared, with the data that was used.
func comparison(p spec.Profile) spec.Accuracy {
	a := p.Accuracy
	a.Data = p.ComparedOn()
	return a
}

func countWindows(events []search.Event) int {
	n := 0
	for _, e := range events {
		n += len(e.Measurement.Whole().Windows)
	}
	return n
}
