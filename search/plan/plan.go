// Package plan is the frame of every campaign around a strategy. It has these phases:
//   - The default configuration is measured first.
//   - The strategy searches, and leaves a part of the budget.
//   - Finals measure, on fresh launches, the cells on which the decision depends.
//   - The rest of the budget goes into more search and more finals while any trial is worth its
//     time.
//   - Load curves of the answer, the default and the first stage come last.
//
// The plan is a strategy itself, and equally pure: it knows the time only from the events. The
// reasons are in docs/design/search.md.
package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/posterior"
	"tuner/search/standings"
	"tuner/search/tour"
	"tuner/search/verdict"
)

// Plan is a campaign's strategy.
type Plan struct {
	settings search.Settings
	tuning   Tuning
	ledger   *standings.Ledger // default and search phase
	costs    costs
	held     *footprint.Model // memory of configurations
	finally  *footprint.Model // the same on the server of the final trials
	base     *tour.Tour       // the default configuration
	inner    Explorer
	ended    string // reason for the first end of the search phase; "" until then

	finals    int  // number of final trials so far
	blocks    int  // number of blocks of turns so far
	isRefused bool // a block could not be measured in turns
	isHurried bool // what follows only confirms the answer

	candidates *search.Candidates
	events     []search.Event       // all events so far
	figures    posterior.Figures    // of the events
	known      *posterior.Posterior // source of scales for the displayed decisions
	knownOf    int                  // number of events behind known
	shown      *decision            // last displayed decision
	decisions  []*decision          // the last two
	searched   *decision            // the last one by the search alone
	next       *search.Action       // answer of Ask; nil before the first question after a change
}

// Around returns a campaign around an explorer that is made for the ledger and the space's
// candidates. For invalid settings it returns all errors at once.
func Around(s search.Settings, explorer func(*standings.Ledger, *search.Candidates) Explorer) (*Plan, error) {
	if err := check(s); err != nil {
		return nil, fmt.Errorf("cannot plan campaign: %w", err)
	}
	p := &Plan{settings: s, tuning: DefaultTuning(), ledger: standings.NewLedger(s.Goal), candidates: s.Space.Candidates(), held: footprint.New(s.Space)}
	p.costs = costs{settings: s, tuning: p.tuning, held: p.held}
	if p.finally = p.held; s.Elsewhere {
		p.finally = footprint.New(s.Space)
	}
	p.base = tour.New(s, p.ledger, search.PhaseDefault, []search.Candidate{{}})
	p.inner = explorer(p.ledger, p.candidates)
	return p, nil
}

// Candidates returns the candidates of the campaign's space.
func (p *Plan) Candidates() *search.Candidates { return p.candidates }

func check(s search.Settings) error {
	var errs []error
	if len(s.Goal.Objective.Terms) == 0 {
		errs = append(errs, errors.New("the goal has no objective"))
	}
	levels := s.Space.Load.Levels
	if len(levels) == 0 || !slices.IsSorted(levels) || levels[0] <= 0 {
		errs = append(errs, fmt.Errorf("the load axis has the levels %v; allowed: one or more, positive and ascending", levels))
	}
	if s.Window <= 0 {
		errs = append(errs, fmt.Errorf("the window is %v; allowed: a positive length", s.Window))
	}
	if n, ok := s.Space.Candidates().BatcherCombinations(); !ok {
		errs = append(errs, fmt.Errorf("the space has %d settings of the batcher for each engine process; list fewer values of %s, %s or %s",
			n, search.KnobMaxBatchSize, search.KnobPreferredBatchSize, search.KnobMaxQueueDelay))
	}
	return errors.Join(errs...)
}

// Ask returns the next trial, or the reason why the campaign ends. Those who show the campaign's progress ask, too.
func (p *Plan) Ask() search.Action {
	if p.next == nil {
		next := p.following()
		if next.Block != nil {
			next = next.Numbered(p.blocks + 1)
		} else {
			next.Trial.Fresh = !next.Stop && p.costs.isFresh(next.Trial)
		}
		p.next = &next
	}
	return *p.next
}

// following returns the next action, without regard to the running process.
func (p *Plan) following() search.Action {
	if p.isHurried {
		return p.confirming()
	}
	if p.ended != "" {
		return p.afterSearch(p.ended)
	}
	next := p.searching()
	if !next.Stop {
		return next
	}
	return p.afterSearch(next.Why)
}

// searching returns the next trial of the default and search phases.
func (p *Plan) searching() search.Action {
	if next := p.base.Ask(); !next.Stop {
		if p.costs.trials > 0 && !p.affords(next.Trial, budgetPart{}) {
			return search.Action{Stop: true, Why: p.spent()}
		}
		return next
	}
	if n := len(p.events); p.settings.Until > 0 && anchor(n) == n && p.isEnough(p.decided().verdict) {
		return search.Action{Stop: true, Why: p.enough()}
	}
	next, aside := p.inner.Ask(), p.reserve()
	affords := func(t search.Trial) bool { return p.affords(t, aside) }
	if next.Stop || affords(next.Trial) {
		return next
	}
	if inner, ok := p.inner.(Economist); ok {
		if next = inner.AskWithin(affords); !next.Stop {
			return next
		}
	}
	return search.Action{Stop: true, Why: p.spent()}
}

// afterSearch returns the next trial once there is an answer to confirm. It uses the budget while
// any trial is worth its time: in the finals, and in the search, which learns from the finals. The
// curves come last, when their configurations are fixed. Any measurement may change the answer, so
// finals and curves keep the time to confirm one more. If nothing needs it in the end, the last final
// trial uses it.
func (p *Plan) afterSearch(why string) search.Action {
	if next, ok := p.final(p.decided(), p.loadCurveReserve().orMore(p.confirmation(search.Candidate{}))); ok {
		return next
	}
	if p.isEnough(p.decided().verdict) {
		why = p.enough()
	} else if next := p.searching(); !next.Stop && p.settings.Budget != (search.Budget{}) {
		return next
	}
	if next, ok := p.curve(); ok && p.affords(next.Trial, p.confirmation(next.Trial.Candidate)) {
		return next
	}
	if d := p.decidedAfter(len(p.events)); d.verdict.Answer() != nil {
		for _, aside := range []budgetPart{p.confirmation(d.verdict.Answer().Candidate), {}} {
			if next, ok := p.final(d, aside); ok {
				return next
			}
		}
	}
	return search.Action{Stop: true, Why: why}
}

// confirming returns the next trial that the answer needs to be confirmed.
func (p *Plan) confirming() search.Action {
	if next, ok := p.final(p.decidedAfter(len(p.events)), budgetPart{}); ok {
		return next
	}
	return search.Action{Stop: true, Why: p.ended}
}

// spent returns the budget that ended the search.
func (p *Plan) spent() string {
	if b := p.settings.Budget; b.Trials > 0 && p.costs.trials+1 > b.Trials-p.reserve().trials {
		return fmt.Sprintf("the budget of %d trials is used", b.Trials)
	}
	return fmt.Sprintf("the budget of %v leaves no time for another trial", p.settings.Budget.Time)
}

// Tell learns the outcome of the last trial. The judging parts get the event with the memory of its
// configuration, and the explorer gets the measured event.
func (p *Plan) Tell(e search.Event) {
	p.next = nil
	phase := e.Trial.Phase
	if p.ended == "" && (phase == search.PhaseFinal || phase == search.PhaseLoadCurve) {
		p.ended = p.whyEnded()
	}
	p.costs.record(e)
	p.events = append(p.events, e)
	p.blocks = max(p.blocks, e.Trial.Block)
	switch phase {
	case search.PhaseFinal:
		p.finals++
		p.isRefused = p.isRefused || e.Trial.IsApart
		p.finally.Add(e)
		// figures of one server carry no information about another
		if learner, ok := p.inner.(Learner); ok && !p.settings.Elsewhere {
			learner.Confirm(p.finally.Seen(e))
		}
	case search.PhaseLoadCurve:
		p.held.Add(e)
	default:
		p.held.Add(e)
		seen := p.held.Seen(e)
		p.ledger.Add(seen)
		p.base.Tell(seen)
		p.inner.Tell(e)
	}
}

// whyEnded returns the reason why the search phase is over once a later phase has begun. A
// journal's campaign may have had a smaller budget, a larger Settings.Until or an impatient user
// (Confirm), so that its search ended earlier than it would today.
func (p *Plan) whyEnded() string {
	if next := p.searching(); next.Stop {
		return next.Why
	}
	return "an earlier run ended the search: with a smaller budget, a larger until, or at the user's wish"
}

// Extend adds time to a budget of time. Trials that the old budget did not leave room for follow, as
// in a resumed campaign with a larger budget. The strategy keeps the sizes that it derived from the
// budget at its start.
func (p *Plan) Extend(by time.Duration) {
	if p.settings.Budget.Time > 0 {
		p.settings.Budget.Time += by
		p.next = nil
	}
}

// Confirm ends the search. From now on the plan asks only for the finals that the answer so far needs.
// A resumed campaign searches on.
func (p *Plan) Confirm() {
	p.isHurried, p.ended, p.next = true, "the user asked for no more than to confirm the answer", nil
}

// Explainer returns the framed strategy if it can explain its answer.
func (p *Plan) Explainer() (Explainer, bool) {
	x, ok := p.inner.(Explainer)
	return x, ok
}

// Skipped returns the candidates that the search skipped, by reason.
func (p *Plan) Skipped() []search.Fold { return p.inner.Skipped() }

// Progress returns the number of trials so far, and the expected number at the end. The latter is
// an estimate from the trials per configuration so far, within the budget.
func (p *Plan) Progress() (done, expected int) {
	done = p.costs.trials
	perCandidate := guessedTrials(p.settings.Space.Load)
	if n := p.ledger.Len(); n > 1 {
		perCandidate = float64(done) / float64(n)
	}
	ahead := max(verdict.Confirmed*search.MostSeats-p.finals, 0)
	if p.ended == "" {
		ahead += int(min(perCandidate*(float64(p.base.Remaining())+float64(p.inner.Remaining())), mostExpected))
	}
	if b := p.settings.Budget; b.Trials > 0 {
		ahead = min(ahead, b.Trials-done)
	}
	if b := p.settings.Budget; b.Time > 0 && done > 0 && p.costs.elapsed > 0 {
		ahead = min(ahead, int(float64(b.Time-p.costs.elapsed)/float64(p.costs.elapsed)*float64(done)))
	}
	if p.Ask().Stop {
		return done, done
	}
	return done, done + max(ahead, 1)
}

// guessedTrials returns the expected number of trials of a configuration before any is known. One trial
// shows that about every second one cannot lead. Of the others the best load is found by halving the axis.
func guessedTrials(axis search.LoadAxis) float64 { return 1 + math.Log2(float64(len(axis.Levels)))/2 }

// Remaining estimates the remaining time of the campaign. It multiplies the expected trials by the
// mean time of a trial so far, or a guess before the first, within the budget.
func (p *Plan) Remaining() time.Duration {
	done, expected := p.Progress()
	trial := p.settings.Space.Load.Longest(p.settings.Window) + search.GuessedWarmUp + search.GuessedReconfigure + p.launchShare()
	if done > 0 {
		trial = p.costs.elapsed / time.Duration(done)
	}
	d := time.Duration(min(float64(expected-done)*float64(trial), mostExpected))
	if b := p.settings.Budget.Time; b > 0 {
		d = min(d, max(b-p.costs.elapsed, 0))
	}
	return d
}

// mostExpected is the upper limit of an estimate, of trials or nanoseconds (146 years). The sum of two is still
// an integer.
const mostExpected = math.MaxInt64 / 2

// launchShare returns a trial's guessed share of the launches: one for each pool.
func (p *Plan) launchShare() time.Duration {
	pools, _ := p.candidates.PoolCount()
	size, _ := p.candidates.Len()
	return time.Duration(float64(search.GuessedLaunch) * float64(pools) / (float64(size) + 1))
}

// budgetPart is a part of the budget that is set aside.
type budgetPart struct {
	time   time.Duration
	trials int
}

func (a budgetPart) plus(b budgetPart) budgetPart {
	return budgetPart{a.time + b.time, a.trials + b.trials}
}

func (a budgetPart) orMore(b budgetPart) budgetPart {
	return budgetPart{max(a.time, b.time), max(a.trials, b.trials)}
}

// affords reports whether a trial is expected to end within the budget minus the part set aside.
func (p *Plan) affords(t search.Trial, aside budgetPart) bool {
	b := p.settings.Budget
	if b.Trials > 0 && p.costs.trials+1 > b.Trials-aside.trials {
		return false
	}
	return b.Time == 0 || p.costs.elapsed+p.costs.expect(t) <= b.Time-aside.time
}

// confirmation returns the cost of one final trial of a configuration alone.
func (p *Plan) confirmation(c search.Candidate) budgetPart {
	return p.surcharge([]search.Trial{p.finalTrial(c, p.settings.Space.Load.Levels[0])})
}

// surcharge returns the cost of trials that follow another.
func (p *Plan) surcharge(trials []search.Trial) budgetPart {
	part := budgetPart{trials: len(trials)}
	for _, t := range trials {
		part.time += p.costs.expect(t)
	}
	return part
}

// reserve returns the part of the budget that the search leaves to the finals and the curves. It is
// room for a round of finals, and the need of the curves; before any final, at least a fifth of the
// budget. While nothing satisfies the constraints there is nothing to confirm.
func (p *Plan) reserve() budgetPart {
	leader, isAny := p.ledger.Leader()
	if !isAny {
		return p.loadCurveReserve()
	}
	b, n := p.settings.Budget, min(max(p.ledger.Len(), 2), search.MostSeats)
	trial := p.finalTrial(search.Candidate{}, p.settings.Space.Load.Levels[0])
	if p.takesTurns() {
		trial = p.settings.Block([]search.Trial{trial, trial}, p.tuning.Turns).Trial
	}
	round := p.costs.expect(trial)
	trial.Candidate = leader.Candidate
	round += time.Duration(n-1) * p.costs.expect(trial)
	if p.ended != "" {
		return budgetPart{time: round, trials: n}.plus(p.loadCurveReserve())
	}
	least := time.Duration(float64(b.Time) * p.tuning.Reserved)
	most := time.Duration(float64(b.Time) * p.tuning.ReservedMost)
	return budgetPart{
		time:   min(max(least, round), most),
		trials: min(max(int(float64(b.Trials)*p.tuning.Reserved), n), int(float64(b.Trials)*p.tuning.ReservedMost)),
	}.plus(p.loadCurveReserve())
}
