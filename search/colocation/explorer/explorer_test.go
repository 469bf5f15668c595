package explorer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
	"tuner/search/plan"
	"tuner/search/searchtest"
)

// cases are campaigns that differ in what may go wrong.
func cases() map[string]searchtest.Company {
	list := map[string]searchtest.Company{}
	for name, divides := range map[string]bool{"shared": false, "divided": true} {
		c := searchtest.NewCompany(2, 7)
		c.Divides = divides
		list[name] = c
		c.Fail = func(t search.Trial) *measure.Failure {
			if v, _ := t.Candidate.Get("model1.precision"); v == "int8" {
				return &measure.Failure{Stage: measure.StageLoad, Model: "model1", Reason: "no"}
			}
			return nil
		}
		list[name+", a precision does not load"] = c
		c.Fail = func(t search.Trial) *measure.Failure {
			if v, _ := t.Candidate.Get("model2.instance_count"); v == "2" && t.Phase != search.PhaseService {
				return &measure.Failure{Stage: measure.StageCrash, Reason: "no"}
			}
			return nil
		}
		list[name+", two instances crash"] = c
		c.Fail = func(search.Trial) *measure.Failure { return &measure.Failure{Stage: measure.StageStart, Reason: "no"} }
		list[name+", nothing starts"] = c
	}
	return list
}

// campaign is a campaign of a minute at its end.
type campaign struct {
	once     sync.Once
	plan     *plan.Plan // for the test that asks it
	settings search.Settings
	events   []search.Event
}

// campaigns are those of the cases. Several tests look at them, and each takes seconds.
var campaigns = sync.OnceValue(func() map[string]*campaign {
	list := map[string]*campaign{}
	for name := range cases() {
		list[name] = &campaign{}
	}
	return list
})

func played(t *testing.T, name string, c searchtest.Company) *campaign {
	t.Helper()
	x := campaigns()[name]
	x.once.Do(func() { x.plan, x.settings, x.events = run(t, plan.Colocation, c, search.Budget{Time: time.Minute}) })
	return x
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The campaign begins with the default, keeps its budget, and ends. Candidates and loads belong to the
// space, and service trials have one model.
func TestTrials(t *testing.T) {
	t.Parallel()
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := played(t, name, c)
			p, s, events := x.plan, x.settings, x.events
			if first := events[0].Trial; !first.Candidate.IsDefault() || first.Phase != search.PhaseDefault {
				t.Errorf("the first trial is %v of phase %s", first.Candidate, first.Phase)
			}
			if last := events[len(events)-1]; last.Elapsed > 61*time.Second {
				t.Errorf("the campaign took %v", last.Elapsed)
			}
			legal := map[string]bool{"default": true}
			for _, x := range s.Space.Candidates().All() {
				legal[x.Key()], legal[s.Space.FirstStage(x).Key()] = true, true
			}
			for i, e := range events {
				level := e.Trial.Load.Level()
				switch {
				case !legal[e.Trial.Candidate.Key()]:
					t.Errorf("trial %d: %v is no candidate of the space", i, e.Trial.Candidate)
				case e.Trial.Phase == search.PhaseService && (e.Trial.Model == "" || len(e.Trial.Sizes) != e.Trial.Windows || !slices.IsSorted(e.Trial.Sizes)):
					t.Errorf("trial %d: %+v is no service trial", i, e.Trial)
				case e.Trial.Phase != search.PhaseService && s.Space.Load.AtLeast(level) != level:
					t.Errorf("trial %d: %v is no load of the axis", i, e.Trial.Load)
				}
			}
			checkDrops(t, events)
			if answer := p.SoFar().Recommended; answer == nil && !strings.HasSuffix(name, "nothing starts") {
				t.Errorf("no answer after %d trials: %v", len(events), p.Notes())
			}
			if next := p.Ask(); !next.Stop || next.Why == "" {
				t.Errorf("at the end it asks for %s", text(t, next))
			}
		})
	}
}

// checkDrops checks that what does not load is asked for once, and that what crashes under a load is
// measured at most once for each configuration.
func checkDrops(t *testing.T, events []search.Event) {
	t.Helper()
	tried := map[string]int{}
	for _, e := range events {
		key := ""
		switch f := e.Measurement.Failure; {
		case f == nil || e.Trial.Candidate.IsDefault():
			continue
		case f.Stage == measure.StageLoad:
			key = e.Trial.Candidate.Of("model1").PoolKey()
		case f.Stage == measure.StageCrash:
			key = e.Trial.Candidate.Key()
		}
		if tried[key]++; key != "" && tried[key] == 2 {
			t.Errorf("%s was tried again after it had failed", key)
		}
	}
}

// The next trial is a function of settings and events: asking changes nothing, and another strategy that
// is told the events without being asked in between asks for the same.
func TestResumesAnywhere(t *testing.T) {
	t.Parallel()
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := played(t, name, c)
			events := x.events
			for _, n := range []int{1, 3, len(events) / 3, len(events) / 2, len(events) - 1} {
				again, err := plan.New(plan.Colocation, x.settings)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events[:n] {
					again.Tell(e)
				}
				first, second := again.Ask(), again.Ask()
				if a, b := text(t, first), text(t, second); a != b {
					t.Fatalf("after %d trials it asks for\n%s\nthen for\n%s", n, a, b)
				}
				if a, b := text(t, first.Trial), text(t, events[n].Trial); a != b {
					t.Fatalf("after %d trials a resumed campaign asks for\n%s\nthe campaign asked for\n%s", n, a, b)
				}
			}
		})
	}
}

// extended is a plan whose user adds a minute to the budget after some events.
type extended struct {
	*plan.Plan
	told, after int
}

func (x *extended) Tell(e search.Event) {
	x.Plan.Tell(e)
	if x.told++; x.told == x.after {
		x.Extend(time.Minute)
	}
}

// Time that the user adds to the budget continues the search. While more trials are worth their time, the
// reason for its end is the budget.
func TestAddedTime(t *testing.T) {
	t.Parallel()
	c := cases()["shared"]
	short := played(t, "shared", c)
	p, err := plan.New(plan.Colocation, short.settings)
	if err != nil {
		t.Fatal(err)
	}
	begun := slices.IndexFunc(short.events, func(e search.Event) bool { return e.Trial.Phase == search.PhaseSearch })
	late := 0
	for _, e := range c.Run(&extended{Plan: p, after: begun + 1}, 500) {
		if e.Trial.Phase == search.PhaseSearch && e.Elapsed > time.Minute {
			late++
		}
	}
	if late == 0 {
		t.Error("no trial of the search is in the added minute")
	}
	if next := p.Ask(); !strings.Contains(next.Why, "the budget of 2m0s") {
		t.Errorf("the campaign ends since %s", next.Why)
	}
}

// quiet is a plan whose second model gets no request in the first trial of each configuration.
type quiet struct {
	*plan.Plan
	trials map[string]int
}

func (x *quiet) Tell(e search.Event) {
	key := e.Trial.Candidate.Key()
	if e.Trial.Phase != search.PhaseService {
		if x.trials[key]++; x.trials[key] == 1 {
			e.Measurement.Windows = slices.Clone(e.Measurement.Windows)
			for i, w := range e.Measurement.Windows {
				if w.Model == "model2" {
					e.Measurement.Windows[i] = measure.Window{Model: w.Model, Start: w.Start, Duration: w.Duration}
				}
			}
		}
	}
	x.Plan.Tell(e)
}

// Of few requests a model gets none in a trial, by chance. The trial is repeated, of the default and of what may lead.
func TestTrialsWithoutARequestAreRepeated(t *testing.T) {
	t.Parallel()
	c := searchtest.NewCompany(2, 7)
	s, err := c.Settings(search.Budget{Time: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(plan.Colocation, s)
	if err != nil {
		t.Fatal(err)
	}
	x := &quiet{p, map[string]int{}}
	trials, defaults, again := map[string]int{}, 0, 0
	for _, e := range c.Run(x, 500) {
		switch key := e.Trial.Candidate.Key(); e.Trial.Phase {
		case search.PhaseDefault:
			defaults++
		case search.PhaseSearch:
			if trials[key]++; trials[key] == 2 {
				again++
			}
		}
	}
	if again == 0 || defaults < 2 || p.SoFar().Recommended == nil {
		t.Errorf("%d configurations and %d trials of the default were repeated; answer %v", again, defaults-1, p.SoFar().Recommended)
	}
}

// A model without knobs keeps its default configuration, and the others are searched beside it.
func TestModelWithoutKnobs(t *testing.T) {
	t.Parallel()
	c := searchtest.NewCompany(2, 3)
	s, err := c.Settings(search.Budget{Time: 3 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	parts := slices.Clone(s.Space.Parts)
	parts[1].Space.Knobs = nil
	if s.Space, err = joint.Space(parts, nil, s.Space.Load.Levels, search.Facts{Cores: c.Cores}); err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(plan.Colocation, s)
	if err != nil {
		t.Fatal(err)
	}
	events := c.Run(p, 500)
	searched := 0
	for _, e := range events {
		if own := e.Trial.Candidate.Of("model2"); !own.IsDefault() {
			t.Fatalf("model2 is measured as %v", own)
		}
		if e.Trial.Phase == search.PhaseSearch {
			searched++
		}
	}
	if searched < 5 {
		t.Errorf("the search has %d trials of all models", searched)
	}
}

// The answer says what separate servers would need: by the names of the models, and not more than the
// cores of this server for each.
func TestApart(t *testing.T) {
	t.Parallel()
	p, _, _ := run(t, plan.Colocation, searchtest.NewCompany(2, 5), search.Budget{Time: 2 * time.Minute})
	notes := strings.Join(p.Notes(), "\n")
	for _, want := range []string{"servers of their own would need ", "for model1 and ", "for model2, ", "this server has 4."} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in\n%s", want, notes)
		}
	}
}

// Where nothing keeps all limits at the lowest scale, the models are named whose limits do not fit on the server together. Each of
// these two would keep its own.
func TestConflictIsNamed(t *testing.T) {
	t.Parallel()
	c := searchtest.NewCompany(2, 5)
	s, err := c.Settings(search.Budget{Time: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s.Space.Load.Levels = slices.DeleteFunc(s.Space.Load.Levels, func(scale float64) bool { return scale < 8 })
	p, err := plan.New(plan.Colocation, s)
	if err != nil {
		t.Fatal(err)
	}
	c.Run(p, 500)
	if notes := strings.Join(p.Notes(), " "); !strings.Contains(notes, `this server cannot keep the limits of "model1" and "model2" together`) {
		t.Errorf("%s", notes)
	}
}

// Where the highest scale is kept surely, nothing is left to search.
func TestEndsAtTheHighestScale(t *testing.T) {
	t.Parallel()
	c := searchtest.NewCompany(2, 5)
	s, err := c.Settings(search.Budget{Time: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	s.Space.Load.Levels = s.Space.Load.Levels[:10]
	p, err := plan.New(plan.Colocation, s)
	if err != nil {
		t.Fatal(err)
	}
	searched := 0
	for _, e := range c.Run(p, 500) {
		if e.Trial.Phase == search.PhaseSearch {
			searched++
		}
	}
	if notes := strings.Join(p.Notes(), " "); searched > 5 || !strings.Contains(notes, "the highest one") {
		t.Errorf("%d trials of all models; %s", searched, notes)
	}
}
