package guided

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/belief"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/tuning"
	"tuner/search/standings"
	"tuner/search/verdict"
)

// Guided is the strategy. It reads the ledger of its owner.
type Guided struct {
	settings  search.Settings
	tuning    tuning.Tuning
	ledger    *standings.Ledger
	held      *footprint.Model
	schedule  *schedule
	pools     *pools.Pools
	predictor *predict.Predictor
	beliefs   *belief.Beliefs
	surveyor  *surveyor
	appraiser appraiser
	opener    opener
	past      past
	next      *decision // nil before the first request

	affords func(search.Trial) bool // nil: any

	isConfirming bool   // the finals have begun
	over         string // reason why nothing was left to do before; "" if something was
}

// decision is the next action, with the survey behind it.
type decision struct {
	action search.Action
	survey survey
	rivals *rivals // nil before the first request
}

// New returns the strategy for the candidates of the settings' space.
func New(s search.Settings, l *standings.Ledger, candidates *search.Candidates) *Guided {
	n, held := tuning.Default(), footprint.New(s.Space)
	g := &Guided{settings: s, tuning: n, ledger: l, held: held}
	g.schedule = newSchedule(s, held, n)
	g.pools = pools.New(s.Space, l, candidates, held, n)
	g.predictor = predict.New(s, g.pools, n)
	g.beliefs = belief.New(s, g.pools, g.predictor, held, n)
	g.surveyor = newSurveyor(s, g.pools, g.predictor, g.beliefs, n)
	g.appraiser = appraiser{s, n, g.beliefs, g.schedule}
	g.opener = opener{s, n, g.pools, g.predictor, g.beliefs, g.schedule, g.appraiser}
	g.recall(candidates)
	return g
}

// Ask returns the next service trial or window.
func (g *Guided) Ask() search.Action { return g.decide().action }

// AskWithin is Ask restricted to affordable trials. Late in a budget there is no time to open
// another pool, but still for windows in the running process.
func (g *Guided) AskWithin(affords func(search.Trial) bool) search.Action {
	g.affords = affords
	defer func() { g.affords = nil }()
	return g.choose().action
}

// allows reports whether an action is affordable now.
func (g *Guided) allows(a search.Action) bool { return g.affords == nil || g.affords(a.Trial) }

// mayMeasure reports whether a trial of a cell may be the next one.
func (g *Guided) mayMeasure(c pools.Cell) bool {
	return g.affords == nil || g.allows(g.measure(c, nil, ""))
}

// Tell learns the outcome of a trial.
func (g *Guided) Tell(e search.Event) {
	g.next = nil
	g.beliefs.Expire()
	g.surveyor.expire()
	g.schedule.record(e)
	g.held.Add(e)
	g.record(e)
	if g.pools.FollowBest() {
		g.predictor.Extend()
	}
	g.updatePath()
	g.beliefs.UpdateDropped()
	g.beliefs.UpdateScales()
}

// Confirm learns the outcome of a final trial: a further trial of its cell, on its own launch.
func (g *Guided) Confirm(e search.Event) {
	if !g.isConfirming {
		if next := g.Ask(); next.Stop {
			g.over = next.Why
		}
		g.isConfirming = true
	}
	g.Tell(e)
}

// record adds an event to its pool.
func (g *Guided) record(e search.Event) {
	c, m, phase := e.Trial.Candidate, e.Measurement, e.Trial.Phase
	if x, ok := m.Estimate(measure.Throughput); ok && phase != search.PhaseService {
		g.surveyor.recordThroughput(x.Value)
	}
	p, ok := g.poolOf(c)
	if !ok { // figures of a default outside all pools: they are measured in every campaign, and show the pace
		if m.Failure == nil && phase != search.PhaseService {
			g.recordTrial(g.pools.Outside(), c, e)
		}
		return
	}
	g.schedule.recordLaunch(p.Engine(), m.Times.Launch)
	switch {
	case phase == search.PhaseService:
		g.predictor.Learn(p, e)
		return
	case phase == search.PhaseSearch:
		g.schedule.served++
	}
	if c = g.pools.InPool(c); m.Failure != nil {
		g.recordFailure(p, c, e)
		return
	}
	g.recordTrial(p, c, e)
}

// poolOf returns the pool of a candidate. It adds an unknown one, with others of its engine.
func (g *Guided) poolOf(c search.Candidate) (*pools.Pool, bool) {
	before := len(g.pools.All())
	p, ok := g.pools.Of(c)
	if len(g.pools.All()) > before {
		g.predictor.Extend()
	}
	return p, ok
}

// recordFailure rules out cells because of a failed trial.
func (g *Guided) recordFailure(p *pools.Pool, c search.Candidate, e search.Event) {
	switch f := e.Measurement.Failure; f.Stage {
	case measure.StageStart:
		p.FailStart(f.Reason)
	case measure.StageLoad:
		p.RuleOutFrom(c.Key(), 0)
	default:
		p.RuleOutBatches(g.pools.Queue(c).MaxBatch, e.Trial.Load.Level())
	}
}

// recordTrial adds a trial's windows to those of its cell. A candidate that refuses requests, or
// completes none, is out, and so are larger batches. If not all requests could be sent at a rate,
// the candidate is out from there, but its throughput counts.
func (g *Guided) recordTrial(p *pools.Pool, c search.Candidate, e search.Event) {
	isScored, m := g.beliefs.IsScored(e.Measurement), e.Measurement
	level := e.Trial.Load.Level()
	if failed, known := m.Estimate(measure.ErrorRate); !isScored || known && failed.Value > search.MostErrors {
		if isEmpty(m.Windows) { // by chance, such as at a low rate
			p.RuleOutCell(c.Key(), level)
			return
		}
		if !isScored || m.Errors() > 0 { // a server that refuses some requests answers the others quickly
			p.RuleOutBatches(g.pools.Queue(c).MaxBatch, level)
			return
		}
		p.RuleOutFrom(c.Key(), level)
	}
	g.pools.AddNeighbours(p, c)
	if g.beliefs.IsEndless(m) {
		p.RuleOutFrom(c.Key(), level)
		return
	}
	p.Record(c.Key(), level, m)
	g.beliefs.Record(e)
}

// isEmpty reports whether no request ended in windows, with or without an error.
func isEmpty(windows []measure.Window) bool {
	return !slices.ContainsFunc(windows, func(w measure.Window) bool { return w.Requests+w.Errors+w.Dropped > 0 })
}

// updatePath sets the path to the server from trials, or from an earlier campaign while no trial
// shows it.
func (g *Guided) updatePath() {
	path, ok := g.predictor.MeasuredPath()
	if !ok {
		path = g.past.path
	}
	g.predictor.SetPath(path)
}

// learn updates the beliefs.
func (g *Guided) learn() { g.beliefs.Learn(g.schedule.next()) }

// decide chooses the next action, once after each event.
func (g *Guided) decide() *decision {
	if g.next == nil {
		g.next = g.choose()
	}
	return g.next
}

// choose tries the possible actions in order of priority.
func (g *Guided) choose() *decision {
	if len(g.pools.All()) == 0 {
		stop := search.Action{Stop: true, Why: "the space has no configuration but the default"}
		return &decision{action: stop, survey: survey{leader: -1, lead: g.defaultScore()}}
	}
	g.learn()
	d := &decision{survey: g.surveyor.survey(g.defaultScore())}
	if again, ok := g.opener.repeat(); ok && g.allows(again) {
		d.action = again
		return d
	}
	for _, way := range g.ways() {
		var ok bool
		if d.action, ok = way(&d.survey); !ok {
			continue
		}
		if d.action = g.before(d.action); g.allows(d.action) {
			return d
		}
	}
	d.action = search.Action{Stop: true, Why: g.ending(d)}
	return d
}

// ways returns the possible actions in order of priority. If time is short, all engines are priced
// before any gets a load.
func (g *Guided) ways() []func(*survey) (search.Action, bool) {
	if g.opener.isHurried() {
		return []func(*survey) (search.Action, bool){g.explore, g.settleIn, g.worthiest}
	}
	return []func(*survey) (search.Action, bool){g.settleIn, g.explore, g.worthiest}
}

// before returns the action that must precede another. A load on a pool with an incomplete curve
// needs the service trial that completes it.
func (g *Guided) before(a search.Action) search.Action {
	if p, ok := g.poolOf(a.Trial.Candidate); ok && a.Trial.Phase == search.PhaseSearch && p.IsReady() {
		if more, ok := g.opener.complete(p); ok && g.allows(more) {
			return more
		}
	}
	return a
}

// settleIn measures the best cell of the running process's pool if none of the pool was measured.
// It shows the pool's own residuals, and costs no launch. Cells that are trusted to keep the limits
// come first, since a short campaign may have only this load. At a request rate they do not. A
// server that keeps up answers the offered rate, so a safe rate carries no information about the
// pool's capacity.
func (g *Guided) settleIn(s *survey) (search.Action, bool) {
	p, ok := g.pools.ByKey(g.schedule.process.Pool)
	if !ok || !p.IsReady() || p.IsMeasured() {
		return search.Action{}, false
	}
	best, found := belief.Belief{}, false
	safety := func(b belief.Belief) float64 {
		if g.settings.Space.Load.Rate {
			return 0
		}
		return min(b.Feasible, g.beliefs.Confidence())
	}
	for _, b := range s.cells {
		isBetter := !found || cmp.Or(cmp.Compare(safety(b), safety(best)), cmp.Compare(b.Score, best.Score)) > 0
		if b.Pool == p && b.Feasible >= g.tuning.Beliefs.Possible && isBetter {
			best, found = b, true
		}
	}
	if !found || g.surveyor.gap(s, best) <= 0 {
		return search.Action{}, false
	}
	return g.measure(best.Cell, s, "the best of a new pool, as predicted"), true
}

// explore opens the default's pool, which was measured already, and then engines that show the
// effect of an untried value.
func (g *Guided) explore(*survey) (search.Action, bool) {
	if g.schedule.Searched() > g.tuning.Trials.ExploreShare {
		return search.Action{}, false
	}
	if p, ok := g.pools.Default(); ok && p.Engine().IsOpen() && p.IsUnopened() {
		return g.opener.begin(p, g.opener.isHurried()), true
	}
	e := g.pools.Unexplored(g.pools.Experience())
	if e == nil {
		return search.Action{}, false
	}
	return g.opener.price(e), true
}

// worthiest returns the trial with the highest worth for its cost: of a cell, of the leader, or of
// a pool that opens. While nothing leads, it is the cell that most likely leads after some trials.
// If nothing can lead, it is the cell nearest to the constraints, for the answer.
func (g *Guided) worthiest(s *survey) (search.Action, bool) {
	leader, leads := s.leading()
	if leads && leader.Trials == 0 && g.mayMeasure(leader.Cell) {
		return g.measure(leader.Cell, s, "the best, as predicted"), true
	}
	best, worth, why := pools.Cell{}, 0.0, ""
	consider := func(c pools.Cell, gain func(trials int) float64, reason string) {
		if rate := g.appraiser.rate(g.schedule.cost(c), gain); rate > worth && g.mayMeasure(c) {
			best, worth, why = c, rate, reason
		}
	}
	reason := "may be better than the best so far"
	if !s.hasLead() {
		reason = "most likely to satisfy the constraints"
	}
	for i, b := range s.cells {
		if i != s.leader {
			consider(b.Cell, func(trials int) float64 { return g.appraiser.gain(s, b, trials) }, reason)
		}
	}
	if leads {
		consider(leader.Cell, func(trials int) float64 { return g.appraiser.lessonOfLeader(s, trials) }, "the best so far, to know its gain precisely")
	}
	opening, ok := g.opener.best(s, g.allows)
	switch {
	case ok && opening.worth > worth:
		return g.opener.begin(opening.pool, g.opener.isHurried()), true
	case worth > 0:
		return g.measure(best, s, why), true
	case !s.hasLead() && s.nearest != nil && !s.nearest.Pool.IsMeasured():
		return g.measure(s.nearest.Cell, s, "nearest to the constraints"), true
	}
	return search.Action{}, false
}

// measure returns a trial of a cell. It is cut when it can no longer matter beside the survey s,
// unless it is the leader's. With nil it is never cut.
func (g *Guided) measure(c pools.Cell, s *survey, why string) search.Action {
	t := g.settings.Trial(c.Batcher().Candidate, c.Level, search.PhaseSearch)
	t.Window, t.Windows = g.settings.Space.Load.Whole(g.schedule.grown(), c.Level), g.schedule.windows(c)
	if s != nil {
		if leader, ok := s.leading(); !ok || leader.Cell != c {
			t.Worth = g.beliefs.WindowConstraints(s.lead)
		}
	}
	return search.Action{Trial: t, Why: why}
}

// defaultScore returns the default's best score within the constraints if no ready pool has it;
// else -Inf.
func (g *Guided) defaultScore() float64 {
	if p, ok := g.pools.Default(); ok && p.IsReady() {
		return math.Inf(-1)
	}
	if s, ok := g.ledger.Best(search.Candidate{}); ok && s.Point.Passes() {
		return s.Point.Score
	}
	return math.Inf(-1)
}

// Log predicts a metric of a configuration under a load, as the prior of the plan's posterior.
func (g *Guided) Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool) {
	return g.beliefs.Log(c, load, metric)
}

// Predict returns the estimate for a configuration at a load; false if the service times of its
// engine process are unknown.
func (g *Guided) Predict(c search.Candidate, load measure.Load) (search.Prediction, bool) {
	if len(g.pools.All()) == 0 {
		return search.Prediction{}, false
	}
	g.decide() // afterwards it has learned from all events
	known, found := g.pools.CellOf(c, load.Level())
	if !found {
		return search.Prediction{}, false
	}
	return g.beliefs.Predict(known), true
}

// Rivals lists the unmeasured cells that may be better than the best. Cells of open pools have
// their beliefs. Pools that were not started have their bounds. isOpen means that an engine without
// any prediction may be better. The caller must not change the list.
func (g *Guided) Rivals() (list []verdict.Rival, isOpen bool) {
	if len(g.pools.All()) == 0 {
		return nil, false
	}
	d := g.decide()
	if d.rivals == nil {
		x := g.rivals(&d.survey)
		d.rivals = &x
	}
	return d.rivals.list, d.rivals.isOpen
}

// Remaining estimates the number of configurations that are still to be measured.
func (g *Guided) Remaining() int {
	if g.decide().action.Stop {
		return 0
	}
	return max(g.tuning.Trials.Expected-g.schedule.served, 1)
}
