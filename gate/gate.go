// Package gate decides whether a candidate is worse than its baseline by more than the tolerance,
// or outside an absolute limit: `tuner gate`.
//
// It measures both in pairs on fresh engine processes (package runner), in turn, until package
// decide has a verdict or the time is over. Or it measures the candidate alone, against limits or a
// saved baseline. It keeps saved baselines and the history. Package gate/output writes everything
// that people and CI systems read. It does not search configurations.
package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/runner"
)

// Engine measures jobs on one engine process that it keeps running, as a runner.Runner does.
type Engine interface {
	runner.Turner
	Close(ctx context.Context)
}

// Observer receives the progress, on the gate's goroutine.
type Observer interface {
	Measured(pair Pair, p Progress)
}

// Progress is the state of a gate after a pair.
type Progress struct {
	Pairs, Most int // measured so far; largest possible number
	Elapsed     time.Duration
	Standings   []decide.Standing // by criterion, from all pairs so far; nil if none is judged
}

// Side is one of the two measured sides.
type Side struct {
	Engine Engine
	// Job: job of one window; the gate decides how many follow, and which run on a fresh process
	Job runner.Job
}

// Pair has the measurements of baseline and candidate on fresh processes, in turn. Without a
// baseline it has only the candidate's windows.
type Pair struct {
	Baseline, Candidate measure.Measurement
}

// isWhole reports whether neither side failed.
func (p Pair) isWhole() bool { return p.Baseline.Failure == nil && p.Candidate.Failure == nil }

// Gate has everything that a verdict depends on.
type Gate struct {
	Baseline  *Side // nil if no baseline is measured
	Candidate Side
	Reference map[measure.Metric]Reference // the metrics of a saved baseline; nil without one
	// Criteria: empty: the candidate gets as many pairs as a first look needs, and is not judged
	Criteria []Criterion
	Budget   time.Duration
	Now      func() time.Time
	Observer Observer
}

// Outcome is the outcome of a gate.
type Outcome struct {
	Verdict   decide.Verdict
	Reasons   []string          // for people: failures, or reasons why nothing is proven; empty for a pass
	Standings []decide.Standing // by criterion; nil if none was judged
	Pairs     []Pair
	Looks     int
	Elapsed   time.Duration
	Needed    Need
	// Timeless: more time would not help: a side is broken, a queue grows, or jobs differ by more
	// than the tolerance
	Timeless bool
	// Broken lists what of the candidate failed or refuses requests: one of several models, or "" for the server as a
	// whole
	Broken []string
	// Backlog: the candidate cannot keep up with the request rate, so its times cannot pass
	Backlog     bool
	Interrupted bool // the context ended before the gate
}

// Need estimates what an inconclusive gate needs for a decision. It is zero if that is unknown, or
// if no time is enough.
type Need struct {
	Time   time.Duration // total
	Window time.Duration // required length of the windows; 0: they are long enough
}

// run is the state of a running gate.
type run struct {
	Gate
	judge   *decide.Gate // nil before the first pair, and without criteria
	outcome Outcome
	most    int // number of pairs that the looks and the time allow
	begin   time.Time
	took    time.Duration // total of all finished pairs
}

// errOverdue ends a pair when the budget is used, in every state of an engine. The first pair
// always finishes, since it shows how long a decision takes.
var errOverdue = errors.New("the budget is used")

// Run measures pairs until there is a verdict, the looks are over, the budget is used or the
// context ends. An error means that the gate itself failed.
func (g Gate) Run(ctx context.Context) (Outcome, error) {
	r := &run{Gate: g, most: 1, begin: g.Now()}
	r.outcome.Verdict = decide.Inconclusive
	for n := 0; n < r.most; n++ {
		if n > 0 && r.outcome.Elapsed+r.pairTime() > g.Budget {
			if r.judge != nil && r.judge.End() {
				r.decided()
				return r.end(), nil
			}
			return r.unproven(fmt.Sprintf("the budget of %v is used after %s", g.Budget, pairsText(n))), nil
		}
		pair, err := r.boundedPair(ctx, n)
		r.outcome.Elapsed = g.Now().Sub(r.begin)
		switch {
		case ctx.Err() != nil:
			r.outcome.Interrupted = true
			r.inconclusive("interrupted after " + pairsText(n))
			return r.end(), nil
		case errors.Is(err, errOverdue): // the candidate may be why the pair hangs, so nothing is judged without it
			return r.unproven(fmt.Sprintf("the budget of %v is used after %s", g.Budget, pairsText(n))), nil
		case err != nil:
			return r.outcome, err
		}
		if ended := r.addPair(pair); ended {
			return r.end(), nil
		}
	}
	return r.unproven("nothing is proven after " + pairsText(len(r.outcome.Pairs))), nil
}

// unproven ends a gate whose criteria have no verdict. Without criteria there is nothing to judge, so a gate passes
// if its pairs are a baseline.
func (r *run) unproven(why string) Outcome {
	if len(r.Criteria) == 0 && r.outcome.Unfit() == "" {
		r.outcome.Verdict = decide.Pass
	} else {
		r.inconclusive(why)
	}
	return r.end()
}

// boundedPair is pair within the remaining budget, from the second pair on.
func (r *run) boundedPair(ctx context.Context, n int) (Pair, error) {
	if n > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.Budget-r.Now().Sub(r.begin), errOverdue)
		defer cancel()
	}
	return r.pair(ctx, n)
}

// windowsPerTurn returns the number of windows of a side without a pause.
//
// In a closed loop, the sides alternate after each window, so that the machine has no time to
// change. A pause empties a server's queue, and at a request rate it would hide a growing queue. So
// at a rate each side has two turns, each with its own warm-up. Without another side there is one
// turn.
func (g Gate) windowsPerTurn() int {
	switch {
	case g.Baseline == nil:
		return decide.WindowsPerPair
	case isOpen(g.Candidate.Job):
		return decide.WindowsPerPair / 2
	}
	return 1
}

// isOpen reports whether a job, or that of one of several models, has a request rate.
func isOpen(job runner.Job) bool {
	return job.Load.RequestRate > 0 || slices.ContainsFunc(job.Parts, isOpen)
}

// pair measures both sides in turn, with the same number of windows, and stops the engines. The
// side that comes first alternates between pairs.
func (r *run) pair(ctx context.Context, n int) (Pair, error) {
	sides := []*Side{&r.Candidate}
	if r.Baseline != nil {
		sides = append(sides, r.Baseline)
	}
	var seats []runner.Seat
	for _, side := range sides {
		defer side.Engine.Close(context.WithoutCancel(ctx)) // it has its own deadline
		job := side.Job
		job.Fresh = true
		seats = append(seats, runner.Seat{Turner: side.Engine, Job: job})
	}
	windows := r.windowsPerTurn()
	turns := runner.Turns{Rounds: decide.WindowsPerPair / windows, Windows: windows, Backwards: n%2 == 1, Strict: true}
	taken, err := turns.Take(ctx, seats)
	if err != nil {
		return Pair{}, err
	}
	p := Pair{Candidate: taken[0]}
	if r.Baseline != nil {
		p.Baseline = taken[1]
	}
	return p, nil
}

// addPair records a pair, and reports whether the gate has ended.
func (r *run) addPair(p Pair) (ended bool) {
	o := &r.outcome
	o.Pairs, r.took = append(o.Pairs, p), o.Elapsed
	if r.isBroken(p) {
		return true
	}
	if len(o.Pairs) == 1 && !r.plan() {
		return true
	}
	values := make([]decide.Value, len(r.Criteria))
	for i, c := range r.Criteria {
		var ok bool
		if values[i], ok = c.value(p, r.Reference); !ok {
			r.undecidable(fmt.Sprintf("%s cannot be judged: it was not measured", c.Metric))
			return true
		}
	}
	isOver, at := false, Progress{Pairs: len(o.Pairs), Most: r.most, Elapsed: o.Elapsed}
	if r.judge != nil {
		isOver = r.judge.Tell(values) && r.judge.Verdict() != decide.Inconclusive
		at.Standings = r.judge.Standings()
	}
	if r.Observer != nil {
		r.Observer.Measured(p, at)
	}
	if isOver {
		r.decided()
	}
	return isOver
}

// decided records the judge's verdict, with the reasons for a failure.
func (r *run) decided() {
	r.outcome.Verdict = r.judge.Verdict()
	for i, s := range r.judge.Standings() {
		if s.Verdict == decide.Fail {
			r.outcome.Reasons = append(r.outcome.Reasons, r.Criteria[i].failure(s))
		}
	}
}

// isBroken ends a gate whose figures are useless: a side failed, or refuses requests.
func (r *run) isBroken(p Pair) bool {
	pairs := r.outcome.Pairs
	model, candidate := refusals(pairs, "candidate", func(p Pair) measure.Measurement { return p.Candidate })
	_, baseline := refusals(pairs, "baseline", func(p Pair) measure.Measurement { return p.Baseline })
	switch {
	case p.Candidate.Failure != nil:
		r.broken(p.Candidate.Failure.Model, "the candidate failed: "+failureText(p.Candidate.Failure))
	case p.Baseline.Failure != nil:
		r.undecidable("the baseline failed: " + failureText(p.Baseline.Failure))
	case candidate != "":
		r.broken(model, candidate)
	case baseline != "":
		r.undecidable(baseline)
	default:
		return false
	}
	return true
}

// refusals describes the failed requests of a side if their share is too large; else "". model is the one of several
// that they were sent to.
func refusals(pairs []Pair, name string, side func(Pair) measure.Measurement) (model, text string) {
	var all measure.Measurement
	for _, p := range pairs {
		all.Windows = append(all.Windows, side(p).Windows...)
	}
	models := all.Models()
	if len(models) == 0 {
		models = []string{""}
	}
	for _, model := range models {
		own := all.Of(model).Alone()
		if e, ok := own.Estimate(measure.ErrorRate); ok && e.Value > measure.MostErrors {
			return model, fmt.Sprintf("%.1f %% of the %s's requests%s failed, the first with: %s", 100*e.Value, name, toModel(model), firstError(own.Windows))
		}
	}
	return "", ""
}

// toModel names one of several models in a text about requests; "" for one model.
func toModel(model string) string {
	if model == "" {
		return ""
	}
	return " to " + model
}

// plan sets the number of pairs from the time of the first one. It returns false if they are too
// few.
func (r *run) plan() bool {
	affordable := 1
	if took := r.pairTime(); took > 0 {
		affordable += max(0, int((r.Budget-r.outcome.Elapsed)/took))
	} else {
		affordable = decide.PairsPerLook * decide.MostLooks
	}
	plan, err := decide.NewPlan(affordable, len(r.Criteria))
	if err != nil {
		r.outcome.Needed = Need{Time: decide.PairsPerLook * r.pairTime()}
		what := "a look"
		if len(r.Criteria) == 0 {
			what = "a baseline"
		}
		r.inconclusive(fmt.Sprintf("the budget of %v is enough for %s of %v, but %s needs at least %d", r.Budget, pairsText(affordable),
			r.pairTime().Round(100*time.Millisecond), what, decide.LeastPairs))
		return false
	}
	if len(r.Criteria) == 0 {
		r.most = min(affordable, decide.PairsPerLook)
		return true
	}
	criteria := make([]decide.Criterion, len(r.Criteria))
	for i, c := range r.Criteria {
		criteria[i] = c.judged(r.Reference)
	}
	r.most, r.judge = plan.MostPairs(), decide.New(plan, criteria)
	return true
}

// pairTime returns the mean time of a pair.
func (r *run) pairTime() time.Duration {
	return r.took / time.Duration(len(r.outcome.Pairs))
}

// inconclusive records a reason why nothing is proven.
func (r *run) inconclusive(why string) { r.outcome.Reasons = append(r.outcome.Reasons, why) }

// undecidable is inconclusive for a reason that more time cannot remove.
func (r *run) undecidable(why string) {
	r.outcome.Timeless = true
	r.inconclusive(why)
}

// broken records a defect of the candidate: of one of several models, or with "" of its server.
func (r *run) broken(model, why string) {
	r.outcome.Verdict = decide.Fail
	r.outcome.Broken = append(r.outcome.Broken, model)
	r.outcome.Reasons = append(r.outcome.Reasons, why)
}

// end completes the outcome.
func (r *run) end() Outcome {
	o := r.outcome
	o.Backlog = hasBacklog(o.Pairs)
	if r.judge != nil {
		o.Standings, o.Looks = r.judge.Standings(), r.judge.Looks()
	}
	if o.Verdict == decide.Inconclusive && r.judge != nil {
		o = r.withDoubts(o)
	}
	if o.Backlog && (r.judge != nil || o.Verdict == decide.Pass) {
		return r.withoutTimes(o)
	}
	return o
}

// withDoubts adds to an inconclusive outcome the reasons why each criterion is open, and what would
// decide them.
func (r *run) withDoubts(o Outcome) Outcome {
	isOpen := func(i int) bool { return o.Standings[i].Verdict == decide.Inconclusive }
	for i, c := range r.Criteria {
		if isOpen(i) {
			o.Reasons = append(o.Reasons, c.doubt(o.Standings[i]))
		}
	}
	if o.Timeless {
		return o
	}
	if o.Needed = r.need(); o.Needed != (Need{}) {
		return o
	}
	for i, c := range r.Criteria {
		if judged := c.judged(r.Reference); isOpen(i) && !judged.CanPass() {
			o.Timeless = true
			o.Reasons = append(o.Reasons, c.tooVague(judged.Spread))
		}
	}
	return o
}

// withoutTimes returns the outcome of a candidate that cannot keep up with its rate. All times of that model grow
// with its queue, so a time within its limit proves nothing. The backlog does not prove that the
// candidate is the cause, so it does not fail the gate.
func (r *run) withoutTimes(o Outcome) Outcome {
	if len(r.Criteria) == 0 { // these measurements cannot be a baseline
		o.Verdict = decide.Inconclusive
	}
	late := backlogged(o.Pairs)
	for i, c := range r.Criteria {
		if model, _ := c.Metric.Split(); o.Standings[i].Verdict == decide.Pass && c.isTime() && slices.Contains(late, model) {
			o.Standings[i].Verdict = decide.Inconclusive
			if o.Verdict == decide.Pass {
				o.Verdict = decide.Inconclusive
			}
		}
	}
	o.Needed, o.Timeless = Need{}, true
	for _, model := range late {
		load := r.Candidate.Job.Load
		for _, part := range r.Candidate.Job.Parts {
			if part.Model == model {
				load = part.Load
			}
		}
		o.Reasons = append(o.Reasons, fmt.Sprintf("the candidate does not keep up with %s%s: its queue keeps growing, so no limit on latency holds for long", load, toModel(model)))
	}
	return o
}

// mostWindow is the longest window that a gate.yaml may have.
const mostWindow = 5 * time.Minute

// windowStep is the step to which advised windows are rounded.
const windowStep = 100 * time.Millisecond

// need estimates what decides the open criteria. The number of pairs is limited by a plan's looks.
// Beyond that, only longer windows give a pair more information.
func (r *run) need() Need {
	pairs, ok := r.judge.NeededPairs()
	if !ok {
		return Need{}
	}
	const most = decide.PairsPerLook * decide.MostLooks
	// One pair more for each look: the first pair, whose time plans the looks, may be slower than
	// the others.
	n := Need{Time: time.Duration(pairs+pairs/decide.PairsPerLook) * r.pairTime()}
	if pairs <= most {
		return n
	}
	window := time.Duration(float64(pairs) / most * float64(meanWindow(r.outcome.Pairs)))
	if n.Window = (window + windowStep - 1).Truncate(windowStep); n.Window > mostWindow {
		return Need{}
	}
	return n
}

// meanWindow returns the mean length of the candidate's windows.
func meanWindow(pairs []Pair) time.Duration {
	windows, sum := 0, time.Duration(0)
	for _, p := range pairs {
		for _, w := range p.Candidate.Windows {
			windows, sum = windows+1, sum+w.Duration
		}
	}
	return sum / time.Duration(max(1, windows))
}

// failureText prints a failure on one line.
func failureText(f *measure.Failure) string {
	return fmt.Sprintf("%s: %s", f.Stage, strings.Join(strings.Fields(f.Reason), " "))
}

func firstError(windows []measure.Window) string {
	reason := "no reason is known"
	for _, w := range windows {
		if w.FirstError != "" {
			return w.FirstError
		}
		if w.Dropped > 0 {
			reason = "it was not sent, since too many were unanswered"
		}
	}
	return reason
}

func pairsText(n int) string {
	if n == 1 {
		return "1 pair"
	}
	return fmt.Sprintf("%d pairs", n)
}
