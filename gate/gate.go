// Package gate finds out whether a candidate is worse than its baseline by more than is tolerated, or outside an absolute limit: `tuner gate`.
// It measures both in pairs on fresh engine processes (package runner), in turn, until package decide has a verdict or the time is over; or the
// candidate alone, against limits or a saved baseline. It keeps saved baselines and the history; package gate/output writes everything that
// people and CI systems read. It searches nothing and chooses nothing.
package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/runner"
)

// Engine measures jobs on an engine process that it keeps: a runner.Runner.
type Engine interface {
	runner.Turner
	Close(ctx context.Context)
}

// Observer is told what happens, from the gate's goroutine.
type Observer interface {
	Measured(pair Pair, p Progress)
}

// Progress is how a gate stands after a pair.
type Progress struct {
	Pairs, Most int // measured; at most
	Elapsed     time.Duration
}

// Side is one of the two that are measured.
type Side struct {
	Engine Engine
	Job    runner.Job // of one window; how many there are at a time, and which of them on a fresh process, is the gate's business
}

// Pair is baseline and candidate measured next to each other on fresh processes, in turn. Without a baseline it is the candidate's windows alone.
type Pair struct {
	Baseline, Candidate measure.Measurement
}

// isWhole reports whether neither side failed.
func (p Pair) isWhole() bool { return p.Baseline.Failure == nil && p.Candidate.Failure == nil }

// Gate is everything that a verdict needs.
type Gate struct {
	Baseline  *Side // nil where none is measured
	Candidate Side
	Reference map[measure.Metric]Reference // of a saved baseline; nil without one
	Criteria  []Criterion                  // none: the candidate is measured as often as a first look needs, and nothing is judged
	Budget    time.Duration
	Now       func() time.Time
	Observer  Observer
}

// Outcome is how a gate ended.
type Outcome struct {
	Verdict     decide.Verdict
	Reasons     []string          // for people: what failed, or why nothing is proven; none for a pass
	Standings   []decide.Standing // by criterion; nil where none was judged
	Pairs       []Pair
	Looks       int
	Elapsed     time.Duration
	Needed      Need
	Timeless    bool // more time would not decide it: a side is broken, a queue grows, or jobs differ by more than is tolerated
	Backlog     bool // the candidate does not keep up with the request rate, so that no time it took can pass
	Interrupted bool // the context ended first
}

// Need is what an inconclusive gate would probably need for a decision; the zero Need where that is unknown, or where nothing would do.
type Need struct {
	Time   time.Duration // in all
	Window time.Duration // length of the windows, longer than they were; 0: they are long enough
}

// mostErrors is the share of a side's requests that may fail.
const mostErrors = 0.01

// run is a gate under way.
type run struct {
	Gate
	judge   *decide.Gate // nil before the first pair, and without criteria
	outcome Outcome
	most    int // pairs that the looks and the time allow
	begin   time.Time
	took    time.Duration // all pairs together, without one that did not end
}

// errOverdue ends a pair in which the budget is used, whatever an engine does. The first one is always finished: it tells what a decision needs.
var errOverdue = errors.New("the budget is used")

// Run measures pairs until there is a verdict, the looks are over, the time is used or the context ends. An error means that the gate could
// not go on for a reason of its own.
func (g Gate) Run(ctx context.Context) (Outcome, error) {
	r := &run{Gate: g, most: 1, begin: g.Now()}
	r.outcome.Verdict = decide.Inconclusive
	for n := 0; n < r.most; n++ {
		if n > 0 && r.outcome.Elapsed+r.pairTime() > g.Budget {
			r.inconclusive(fmt.Sprintf("the budget of %v is used after %s", g.Budget, pairsText(n)))
			return r.end(), nil
		}
		pair, err := r.boundedPair(ctx, n)
		r.outcome.Elapsed = g.Now().Sub(r.begin)
		switch {
		case ctx.Err() != nil:
			r.outcome.Interrupted = true
			r.inconclusive("interrupted after " + pairsText(n))
			return r.end(), nil
		case errors.Is(err, errOverdue):
			r.inconclusive(fmt.Sprintf("the budget of %v is used after %s", g.Budget, pairsText(n)))
			return r.end(), nil
		case err != nil:
			return r.outcome, err
		}
		if ended := r.add(pair); ended {
			return r.end(), nil
		}
	}
	if len(g.Criteria) == 0 {
		r.outcome.Verdict = decide.Pass // there was nothing to judge
		return r.end(), nil
	}
	r.inconclusive("nothing is proven after " + pairsText(len(r.outcome.Pairs)))
	return r.end(), nil
}

// boundedPair is pair within what is left of the budget, from the second one on.
func (r *run) boundedPair(ctx context.Context, n int) (Pair, error) {
	if n > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.Budget-r.Now().Sub(r.begin), errOverdue)
		defer cancel()
	}
	return r.pair(ctx, n)
}

// windowsPerTurn is how many windows of a side are measured without a pause. In a closed loop the sides take turns window by window, so that the
// machine has no time to change. A pause empties a server's queue: at a rate it hides that the queue grows. So there a side has two turns, each
// with a warm-up of its own, and where there is no other side it has one.
func (g Gate) windowsPerTurn() int {
	switch {
	case g.Baseline == nil:
		return decide.WindowsPerPair
	case g.Candidate.Job.Load.RequestRate > 0:
		return decide.WindowsPerPair / 2
	}
	return 1
}

// pair measures both sides in turn, each in as many windows, and stops the engines. Which side comes first changes from pair to pair.
func (r *run) pair(ctx context.Context, n int) (Pair, error) {
	sides := []*Side{&r.Candidate}
	if r.Baseline != nil {
		sides = append(sides, r.Baseline)
	}
	var seats []runner.Seat
	for _, side := range sides {
		defer side.Engine.Close(context.WithoutCancel(ctx)) // it has a deadline of its own
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

// add takes a pair in, and reports whether the gate has ended.
func (r *run) add(p Pair) (ended bool) {
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
			r.undecidable(fmt.Sprintf("%s cannot be judged: the measurements do not tell it", c.Metric))
			return true
		}
	}
	if r.Observer != nil {
		r.Observer.Measured(p, Progress{len(o.Pairs), r.most, o.Elapsed})
	}
	if r.judge == nil || !r.judge.Tell(values) || r.judge.Verdict() == decide.Inconclusive {
		return false
	}
	o.Verdict = r.judge.Verdict()
	for i, s := range r.judge.Standings() {
		if s.Verdict == decide.Fail {
			o.Reasons = append(o.Reasons, r.Criteria[i].failure(s))
		}
	}
	return true
}

// isBroken ends a gate whose figures mean nothing: of a side that failed, or refuses requests.
func (r *run) isBroken(p Pair) bool {
	pairs := r.outcome.Pairs
	candidate := refusals(pairs, "candidate", func(p Pair) measure.Measurement { return p.Candidate })
	baseline := refusals(pairs, "baseline", func(p Pair) measure.Measurement { return p.Baseline })
	switch {
	case p.Candidate.Failure != nil:
		r.fail("the candidate failed: " + failureText(p.Candidate.Failure))
	case p.Baseline.Failure != nil:
		r.undecidable("the baseline failed: " + failureText(p.Baseline.Failure))
	case candidate != "":
		r.fail(candidate)
	case baseline != "":
		r.undecidable(baseline)
	default:
		return false
	}
	return true
}

// refusals says which part of a side's requests failed, where it is too large a part; else "".
func refusals(pairs []Pair, name string, side func(Pair) measure.Measurement) string {
	var all measure.Measurement
	for _, p := range pairs {
		all.Windows = append(all.Windows, side(p).Windows...)
	}
	e, ok := all.Estimate(measure.ErrorRate)
	if !ok || e.Value <= mostErrors {
		return ""
	}
	return fmt.Sprintf("%.1f %% of the %s's requests failed, the first with: %s", 100*e.Value, name, firstError(all.Windows))
}

// plan settles how many pairs there are, by the time that the first one took; false when they are too few.
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
		r.inconclusive(fmt.Sprintf("the budget of %v is enough for %s of %v, and %s needs %d at least", r.Budget, pairsText(affordable),
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

// pairTime is what a pair takes, on average.
func (r *run) pairTime() time.Duration {
	return r.took / time.Duration(len(r.outcome.Pairs))
}

// inconclusive notes why nothing is proven.
func (r *run) inconclusive(why string) { r.outcome.Reasons = append(r.outcome.Reasons, why) }

// undecidable is inconclusive for a reason that more time does not mend.
func (r *run) undecidable(why string) {
	r.outcome.Timeless = true
	r.inconclusive(why)
}

// fail notes what is wrong with the candidate.
func (r *run) fail(why string) {
	r.outcome.Verdict = decide.Fail
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

// withDoubts is an inconclusive outcome with why each criterion is open, and what would decide them.
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

// withoutTimes is the outcome of a candidate that does not keep up with its rate. The longer its queue grows, the longer everything takes: a time
// that is short enough so far proves nothing. Nor does the backlog prove that the candidate is to blame, so that it fails nothing by itself.
func (r *run) withoutTimes(o Outcome) Outcome {
	if len(r.Criteria) == 0 { // what was measured is no baseline
		o.Verdict = decide.Inconclusive
	}
	for i, c := range r.Criteria {
		if o.Standings[i].Verdict == decide.Pass && c.isTime() {
			o.Standings[i].Verdict = decide.Inconclusive
			if o.Verdict == decide.Pass {
				o.Verdict = decide.Inconclusive
			}
		}
	}
	o.Needed, o.Timeless = Need{}, true
	o.Reasons = append(o.Reasons, fmt.Sprintf("the candidate does not keep up with %s: its queue grows, so that no latency is short enough for good", r.Candidate.Job.Load))
	return o
}

// mostWindow is the longest window that a gate.yaml may ask for.
const mostWindow = 5 * time.Minute

// windowStep is what advised windows are multiples of.
const windowStep = 100 * time.Millisecond

// need is what the criteria that are open would probably need. There are never more pairs than a plan's looks have: beyond these only what a pair
// tells can grow, with its windows.
func (r *run) need() Need {
	pairs, ok := r.judge.NeededPairs()
	if !ok {
		return Need{}
	}
	const most = decide.PairsPerLook * decide.MostLooks
	// One pair more for each look: the looks are planned by the time of the first pair, which may be slower than the others.
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

// meanWindow is how long the candidate's windows were.
func meanWindow(pairs []Pair) time.Duration {
	windows, sum := 0, time.Duration(0)
	for _, p := range pairs {
		for _, w := range p.Candidate.Windows {
			windows, sum = windows+1, sum+w.Duration
		}
	}
	return sum / time.Duration(max(1, windows))
}

// failureText is a failure on one line.
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
