// Package stagewise is the strategy for the stages of a pipeline. It measures the service times of all
// stages through the pipeline, predicts configurations of all of them from these, and measures those that
// may be the best.
//
// It stands beside the other strategies, below package plan. What engines a stage has, and how service times
// of unopened ones are expected, it shares with the strategy guided (guided/pools, guided/predict). The
// stages are simulated together (queuesim.Pipeline).
package stagewise

import (
	"fmt"
	"math"
	"strings"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/pace"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
	"tuner/search/standings"
)

// Stagewise is the strategy. It is for one goroutine.
type Stagewise struct {
	settings  search.Settings
	tuning    Tuning
	guided    tuning.Tuning
	ledger    *standings.Ledger
	pace      pace.Pace
	stages    []*stage
	errors    residuals
	overhead  float64                // s per request outside of the stages
	line      queuesim.Line          // reused memory of simulations
	simulated map[cell]result        // with the present service times
	excluded  map[string]bool        // keys of candidates that failed, or miss a limit that no load cures
	next      *search.Action         // nil after an event
	promising []outlook              // of the last choice, the most worth first
	known     map[string]combination // by the key of a candidate
}

// New returns the strategy for the stages of a pipeline. It reads its owner's ledger.
func New(s search.Settings, l *standings.Ledger, _ *search.Candidates) *Stagewise {
	x := &Stagewise{settings: s, tuning: Default(), guided: tuning.Default(), ledger: l, simulated: map[cell]result{}, excluded: map[string]bool{}, known: map[string]combination{}}
	x.pace = pace.New(s.Budget, x.guided.Service)
	x.errors = newResiduals(x.tuning.Deviations)
	for i := range s.Space.Parts {
		x.stages = append(x.stages, newStage(s, i, x.guided))
	}
	return x
}

// Ask returns the next service trial, or the next trial of a configuration.
func (x *Stagewise) Ask() search.Action {
	if x.next == nil {
		next := x.choose(nil)
		x.next = &next
	}
	return *x.next
}

// AskWithin is Ask restricted to affordable trials.
func (x *Stagewise) AskWithin(affords func(search.Trial) bool) search.Action {
	return x.choose(affords)
}

// choose returns the next action. affords is nil, or tells which trials may be asked for.
func (x *Stagewise) choose(affords func(search.Trial) bool) search.Action {
	if next, more := x.price(); more {
		if affords != nil && !affords(next.Trial) {
			return search.Action{Stop: true, Why: "no service trial is affordable"}
		}
		return next
	}
	for _, s := range x.stages {
		if !s.pools.IsPriced() {
			return search.Action{Stop: true, Why: "no engine process of stage " + s.name + " serves"}
		}
	}
	for _, o := range x.outlooks() {
		if o.worth < x.tuning.Worth {
			break
		}
		trial := x.settings.Trial(o.candidate, o.level, search.PhaseSearch)
		if affords == nil || affords(trial) {
			return search.Action{Trial: trial, Why: o.why}
		}
	}
	if unknown := x.unpredicted(); len(unknown) == len(x.settings.Goal.Objective.Terms) {
		names := make([]string, len(unknown))
		for i, m := range unknown {
			names[i] = string(m)
		}
		return search.Action{Stop: true, Why: "the service times of the stages show nothing of " + strings.Join(names, " and ")}
	}
	return search.Action{Stop: true, Why: "no other configuration of the stages is likely to be better by enough to be worth a trial"}
}

// Tell learns the outcome of a trial.
func (x *Stagewise) Tell(e search.Event) {
	x.next, x.promising = nil, nil
	x.pace.Record(e)
	if f := e.Measurement.Failure; f != nil {
		x.blame(e, *f)
	}
	if e.Trial.Phase == search.PhaseService {
		x.recordService(e)
		return
	}
	x.learn(e)
}

// Confirm learns the outcome of a final trial, which is a further trial of its cell.
func (x *Stagewise) Confirm(e search.Event) { x.Tell(e) }

// learn records the figures of a trial beside their predictions, and batches of sizes that no service trial
// had.
func (x *Stagewise) learn(e search.Event) {
	if e.Measurement.Failure != nil || len(e.Measurement.Windows) == 0 {
		return
	}
	x.recordBatches(e)
	if x.ledger.MissesMemory(e.Trial.Candidate) {
		x.excluded[e.Trial.Candidate.Key()] = true
	}
	x.errors.add(trial{candidate: e.Trial.Candidate, load: e.Trial.Load, measurement: e.Measurement})
}

// blame drops what a failure shows not to serve. A failure at the start that names no stage is that of the
// engine processes that have not served yet; otherwise it is the candidate's.
func (x *Stagewise) blame(e search.Event, f measure.Failure) {
	isAtStart := f.Stage == measure.StageStart || f.Stage == measure.StageLoad
	isBlamed := false
	for _, s := range x.stages {
		pool, known := s.pools.Of(s.own(e.Trial.Candidate))
		if known && isAtStart && (f.Model == s.name || f.Model == "" && !pool.Engine().IsOpen()) {
			pool.Fail(f.Reason)
			isBlamed = true
		}
	}
	if isBlamed {
		x.forget()
		return
	}
	if e.Trial.Phase != search.PhaseService {
		x.excluded[e.Trial.Candidate.Key()] = true
	}
}

// Remaining estimates the number of configurations that are still to be measured.
func (x *Stagewise) Remaining() int {
	if x.Ask().Stop {
		return 0
	}
	return max(x.guided.Trials.Expected-x.ledger.Len(), 1)
}

// Skipped counts the configurations of engine processes that do not serve.
func (x *Stagewise) Skipped() []search.Fold {
	var folds search.Folds
	for _, s := range x.stages {
		for _, pool := range s.pools.All() {
			if pool.HasFailed() {
				folds.Add(s.name+": the engine does not serve with "+pool.Key()+": "+pool.Failure(), "", s.pools.PerPool())
			}
		}
	}
	return folds.List()
}

// Notes are sentences about the search: the stage that bounds the pipeline, and the reason of its end.
func (x *Stagewise) Notes() []string {
	var list []string
	if leader, ok := x.ledger.Leader(); ok {
		if c, known := x.combinationOf(leader.Candidate); known {
			if r := x.simulate(c, leader.Load.Level()); r.Throughput > 0 {
				at := 0
				for i := range x.stages {
					if r.shares[i] > r.shares[at] {
						at = i
					}
				}
				list = append(list, fmt.Sprintf("By the service times, the stage %s is busiest in the best configuration: its instances work for %.0f %% of the time.",
					x.stages[at].name, 100*math.Min(r.shares[at], 1)))
			}
		}
	}
	if next := x.Ask(); next.Stop {
		list = append(list, "The search is over: "+next.Why+".")
	}
	return list
}
