// Package explorer is the strategy colocation for several models on one server. It frames the search of
// package colocation: it measures the service times of each model alone, and then lets that search
// choose cells, which are measured with all models together.
//
// It stands beside the other strategies, below package plan. What engines and pools a model has, and how
// service times of unopened ones are expected, it shares with the strategy guided (guided/pools,
// guided/predict).
package explorer

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/guided/pace"
	"tuner/search/guided/pools"
	"tuner/search/guided/tuning"
	"tuner/search/standings"
)

// Explorer is the strategy. It is for one goroutine.
type Explorer struct {
	settings search.Settings
	tuning   tuning.Tuning
	ledger   *standings.Ledger
	parts    []*part
	clock    clock
	search   *colocation.Search // nil until the models are priced
	refusal  string             // reason why the search cannot begin
	waiting  []search.Event     // trials before it
	last     search.Candidate   // of the running process
	next     *search.Action     // nil after an event
}

// New returns the strategy for a space of several models, whose goal is their scale. It reads its
// owner's ledger.
func New(s search.Settings, l *standings.Ledger, _ *search.Candidates) *Explorer {
	x := &Explorer{settings: s, tuning: tuning.Default(), ledger: l}
	x.clock = clock{Pace: pace.New(s.Budget, x.tuning.Service), window: s.Window}
	for i := range s.Space.Parts {
		x.parts = append(x.parts, newPart(s, i, x.tuning))
	}
	return x
}

// Ask returns the next service trial of one model, or the next trial of all.
func (x *Explorer) Ask() search.Action {
	if x.next == nil {
		next := x.choose(nil)
		x.next = &next
	}
	return *x.next
}

// AskWithin is Ask restricted to affordable trials.
func (x *Explorer) AskWithin(affords func(search.Trial) bool) search.Action { return x.choose(affords) }

// choose returns the next action. affords is nil, or tells which trials may be asked for.
func (x *Explorer) choose(affords func(search.Trial) bool) search.Action {
	if next, more := x.price(); more {
		if affords != nil && !affords(next.Trial) {
			return search.Action{Stop: true, Why: "no service trial is affordable"}
		}
		return next
	}
	for _, p := range x.parts {
		if !p.pools.IsPriced() {
			return search.Action{Stop: true, Why: "no engine process of model " + p.name + " serves"}
		}
	}
	if x.search == nil {
		return search.Action{Stop: true, Why: x.refusal}
	}
	if highest := x.settings.Space.Load.Last(); x.isReached(highest) {
		return search.Action{Stop: true, Why: fmt.Sprintf("the best so far keeps all limits at scale %.4g, the highest one", highest)}
	}
	trial, more := x.search.AskIf(func(t colocation.Trial) bool { return affords == nil || affords(x.action(t).Trial) })
	if !more {
		return search.Action{Stop: true, Why: "no other configuration is likely to carry more traffic by enough to be worth a trial"}
	}
	return x.action(trial)
}

// isReached reports whether the leader surely keeps its limits at a scale, and was measured there.
func (x *Explorer) isReached(scale float64) bool {
	answer, leads := x.search.Answer()
	return leads && answer.Scale >= scale && slices.ContainsFunc(x.ledger.Points(x.candidateOf(answer.Cell)), func(p standings.Point) bool {
		return p.Level == scale && p.Passes()
	})
}

// begin starts the search once the models are priced, with the trials so far. A model that it cannot
// place is the refusal. It is part of learning, since the search must follow from the events alone. The
// budget is the plan's, which may extend it: the search has none of its own (AskWithin).
func (x *Explorer) begin() {
	if _, more := x.price(); more || x.search != nil || x.refusal != "" || slices.ContainsFunc(x.parts, func(p *part) bool { return !p.pools.IsPriced() }) {
		return
	}
	s := colocation.Settings{
		Cores: x.settings.Space.Facts.Cores, Nodes: x.settings.Space.Facts.Nodes, Confidence: x.settings.Confidence,
		Least: x.tuning.Worth.Least(x.settings.Budget != search.Budget{}),
		Costs: x.clock.costs(), Seed: x.settings.Seed, Tuning: colocation.Default(),
	}
	s.IsShared, s.IsDivided = isolations(x.settings.Space)
	for _, p := range x.parts {
		p.list()
		m := colocation.Model{Name: p.name, Load: p.load, Limits: p.limits}
		for i := range p.options {
			m.Options = append(m.Options, p.made(i, x.clock.Size().Seconds()))
		}
		s.Models = append(s.Models, m)
	}
	found, err := colocation.New(s)
	if err != nil {
		x.refusal = err.Error()
		return
	}
	x.search = found
	for _, e := range x.waiting {
		x.learn(e)
	}
	x.waiting = nil
}

// isolations reports whether a space allows to share the cores, and to divide them. It allows all
// divisions or none.
func isolations(s search.Space) (isShared, isDivided bool) {
	i := slices.IndexFunc(s.Server, func(k search.Knob) bool { return k.Name == search.KnobIsolation })
	if i < 0 {
		return true, false
	}
	for _, v := range s.Server[i].Values {
		_, divides := v.Divided()
		isShared, isDivided = isShared || !divides, isDivided || divides
	}
	return isShared, isDivided
}

// Tell learns the outcome of a trial.
func (x *Explorer) Tell(e search.Event) {
	x.next = nil
	x.clock.record(e)
	x.last = e.Trial.Candidate
	if f := e.Measurement.Failure; f != nil {
		x.blame(e, *f)
		if f.Stage != measure.StageLoad {
			x.last = search.Candidate{}
		}
	}
	switch {
	case e.Trial.Phase == search.PhaseService:
		x.recordService(e)
	case x.search == nil:
		x.waiting = append(x.waiting, e)
	default:
		x.learn(e)
	}
	x.begin()
	if x.search != nil {
		x.search.SetCosts(x.clock.costs())
	}
}

// Confirm learns the outcome of a final trial, which is a further trial of its cell.
func (x *Explorer) Confirm(e search.Event) { x.Tell(e) }

// Remaining estimates the number of configurations that are still to be measured.
func (x *Explorer) Remaining() int {
	if x.Ask().Stop {
		return 0
	}
	return max(x.tuning.Trials.Expected-x.clock.served, 1)
}

// Skipped counts the configurations of engine processes that do not serve, and those that were not
// looked at.
func (x *Explorer) Skipped() []search.Fold {
	var folds search.Folds
	for _, p := range x.parts {
		for _, pool := range p.pools.All() {
			if pool.HasFailed() {
				folds.Add(p.name+": the engine does not serve with "+pool.Key()+": "+pool.Failure(), "", p.pools.PerPool())
			}
		}
		if p.unseen > 0 {
			folds.Add(p.name+": never looked at (at most this number): the space is so large that the search stays with the fastest engine processes", "", p.unseen)
		}
	}
	return folds.List()
}

// blame drops what a failure shows not to serve. A failure that names no model is that of the engine
// processes that have not served yet; where all have, it is the cell's.
func (x *Explorer) blame(e search.Event, f measure.Failure) {
	if f.Model == "" && f.Stage == measure.StageLoad {
		f.Model = e.Trial.Model // a service trial loads one model
	}
	isBlamed := false
	for i, p := range x.parts {
		pool, known := p.pools.Of(p.own(e.Trial.Candidate))
		if known && isAtStart(f) && (f.Model == p.name || f.Model == "" && p.missing(pool) > 0) {
			pool.Fail(f.Reason)
			x.drop(i, pool)
			isBlamed = true
		}
	}
	if isBlamed || x.search == nil || e.Trial.Phase == search.PhaseService {
		return
	}
	if cell, known := x.cellOf(e.Trial.Candidate); known {
		x.search.Exclude(cell)
	}
}

// isAtStart reports whether a trial failed before its first request.
func isAtStart(f measure.Failure) bool {
	return f.Stage == measure.StageStart || f.Stage == measure.StageLoad
}

func (x *Explorer) drop(model int, pool *pools.Pool) {
	if x.search != nil {
		x.search.Break(model, pool.Key())
	}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
