// Package guided is the strategy that knows how a server works. A pool's service times, measured in a second, tell the event
// simulation of batcher and instances (queuesim) what every batcher setting does under every load; search/posterior corrects that by
// what was measured; and pools whose bounds cannot reach the best are never started. It measures what is expected to bring most for
// its time, until nothing is worth a trial.
//
// It stands inside search/plan, like every strategy, and never looks at a clock: what is next is a function of the settings and the
// events alone. The reasons are in docs/design/search.md.
package guided

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/posterior"
	"tuner/search/queuesim"
	"tuner/search/verdict"
)

const (
	serviceWindow = 200 * time.Millisecond // of a service trial
	exploreShare  = 0.4                    // of the budget that the default leaves, after which only what may be better is opened
)

// Windows get longer, as the cells that are left differ by less.
const (
	growth      = 1.3
	growthEvery = 6 // trials
	growthMost  = 4.0
)

// Guided is the strategy. It reads the ledger that its owner writes.
type Guided struct {
	settings   search.Settings
	ledger     *search.Ledger
	candidates *search.Candidates
	levels     []float64
	models     []*model
	engines    []*engine
	pools      []*pool
	byKey      map[string]*pool   // by pool key
	byName     map[string]*engine // by engineKey
	isPart     bool               // the pools are a part of the space's, those around the default and what was the best
	home       string             // engineKey of the last best that was looked around
	largest    int                // batch of all pools
	widest     int                // member of each pool that allows the largest batches and waits the least

	trusted   float64          // probability to keep the constraints from which on a cell may lead
	sure      float64          // deviations within each of its limits that a leader is, at least
	base      *engine          // the default's, or else the one most like it
	twin      search.Candidate // that is the same as the default; the default itself where none is
	costs     costs
	held      *footprint.Model
	served    int     // trials of cells in the search
	answered  float64 // the highest throughput of any trial under load, in inferences/s
	path      float64 // s of processor time that a request takes outside of the instances; 0 unknown, or too little to tell
	forecasts []forecast
	past      past
	outside   pool // of a default that is not like any candidate: what was measured of it
	simulator queuesim.Simulator
	next      *decision // nil until it is asked for

	entered   []search.Event       // trials of cells
	figures   posterior.Figures    // of them
	known     *posterior.Posterior // what they tell
	isLearned bool                 // known is of all of them
	scales    *posterior.Posterior // what was known when scales were learned last
	scaledAt  int                  // trials then
	bounded   []belief             // what bounds cells that were not measured; nil until it is asked for

	affords func(search.Trial) bool // nil: any

	isConfirming bool   // the finals have begun
	over         string // why nothing was left to do before; "" where something was
}

// decision is what to do next, and the survey behind it.
type decision struct {
	action search.Action
	survey survey
	rivals *rivals // nil until it is asked for
}

// New returns the strategy for the candidates of the settings' space.
func New(s search.Settings, l *search.Ledger, candidates *search.Candidates) *Guided {
	g := &Guided{settings: s, ledger: l, candidates: candidates, levels: levels(s.Space.Load), models: newModels(s.Goal),
		byKey: map[string]*pool{}, byName: map[string]*engine{}, held: footprint.New(s.Space),
		trusted: cmp.Or(s.Confidence, verdict.Confidence)}
	g.costs = costs{settings: s, held: g.held}
	g.sizeUp()
	g.look()
	g.adoptDefault()
	if p, ok := g.byKey[search.Candidate{}.PoolKey()]; ok {
		g.base = p.engine
	} else if len(g.pools) > 0 {
		g.base = slices.MinFunc(g.pools, func(a, b *pool) int { return g.strange(a) - g.strange(b) }).engine
	}
	g.recall(candidates)
	return g
}

// strange counts the engine's settings of a pool that the default has not.
func (g *Guided) strange(p *pool) int {
	n := 0
	for _, s := range p.settings.Settings() {
		if isEngineKnob(s.Knob) && !g.isBase(s) {
			n++
		}
	}
	return n
}

// Ask returns the next service trial or window.
func (g *Guided) Ask() search.Action { return g.decide().action }

// AskWithin is Ask among the trials that are affordable: late in a budget there is no time to open another pool, but for windows in the running process.
func (g *Guided) AskWithin(affords func(search.Trial) bool) search.Action {
	g.affords = affords
	defer func() { g.affords = nil }()
	return g.choose().action
}

// allows reports whether an action may be taken now.
func (g *Guided) allows(a search.Action) bool { return g.affords == nil || g.affords(a.Trial) }

// mayMeasure reports whether a trial of a cell may be the next one.
func (g *Guided) mayMeasure(c cell) bool { return g.affords == nil || g.allows(g.measure(c, nil, "")) }

// Tell learns the outcome of a trial.
func (g *Guided) Tell(e search.Event) {
	defer func() {
		g.follow()
		g.adjust()
		g.relearn()
	}()
	g.next, g.isLearned, g.bounded = nil, false, nil
	g.costs.add(e)
	g.held.Add(e)
	c := e.Trial.Candidate
	m := e.Measurement
	if rate, ok := m.Estimate(measure.Throughput); ok && e.Trial.Phase != search.PhaseService {
		g.answered = max(g.answered, rate.Value)
	}
	p, ok := g.poolOf(c)
	if !ok {
		g.tellOutside(e)
		return
	}
	p.engine.launch.add(m.Times.Launch)
	if e.Trial.Phase == search.PhaseService {
		g.tellService(p, e)
		return
	}
	if c.IsDefault() {
		c = g.twin
	}
	if e.Trial.Phase == search.PhaseSearch {
		g.served++
	}
	if m.Failure != nil {
		p.fail(c, g.queue(c).MaxBatch, e)
		return
	}
	g.enter(p, c, e)
}

// tellService enters a service trial. One that fails closes the pool, or, where smaller batches were measured before it did, rules out the batches that
// it failed with and larger ones: with one client in all pools of the engine.
func (g *Guided) tellService(p *pool, e search.Event) {
	curve, zones := &p.crowded, &p.zones
	if e.Trial.Load.Concurrency == 1 {
		curve, zones, p.engine.opened = &p.engine.alone, &p.engine.zones, p
	}
	g.renew(curve, e.Trial)
	curve.enter(e)
	size, isRefused := refused(e)
	switch f := e.Measurement.Failure; {
	case f != nil && (size <= g.clientBatch() || len(curve.sizes) == 0):
		p.failure = f.Reason
	case len(curve.sizes) == 0:
		p.failure = "its service times are unknown"
	case isRefused:
		*zones = append(*zones, zone{batch: size})
	}
	if curve == &p.crowded {
		g.prepare(p)
	} else {
		for _, q := range p.engine.pools {
			g.prepare(q)
		}
		g.foresee()
	}
	g.foreseeCompany()
}

// fail notes what a failed trial rules out.
func (p *pool) fail(c search.Candidate, batch int, e search.Event) {
	f := e.Measurement.Failure
	switch f.Stage {
	case measure.StageStart:
		if p.stillborn++; len(p.tracks) == 0 || p.stillborn == attempts { // what has served may have had bad luck
			p.failure = f.Reason
		}
	case measure.StageLoad:
		p.zones = append(p.zones, zone{candidate: c.Key()})
	default:
		p.zones = append(p.zones, zone{batch: batch, level: e.Trial.Load.Level()})
	}
}

// enter adds a trial's windows to those of its cell. What refuses requests, or completes none, is out, also with larger batches; at a rate
// at which not all could be sent, so is the candidate, and that tells all the same how much it answers.
func (g *Guided) enter(p *pool, c search.Candidate, e search.Event) {
	ok := g.isScored(e.Measurement)
	level := e.Trial.Load.Level()
	if failed, known := e.Measurement.Estimate(measure.ErrorRate); !ok || known && failed.Value > search.MostErrors {
		if isEmpty(e.Measurement.Windows) { // as at a low rate by chance
			p.zones = append(p.zones, zone{candidate: c.Key(), level: level, isCell: true})
			return
		}
		if !ok || e.Measurement.Errors() > 0 { // what refuses some is quick with the others
			p.zones = append(p.zones, zone{batch: g.queue(c).MaxBatch, level: level})
			return
		}
		p.zones = append(p.zones, zone{candidate: c.Key(), level: level})
	}
	g.lookBeside(p, c)
	if g.isEndless(e.Measurement) {
		p.zones = append(p.zones, zone{candidate: c.Key(), level: level})
		return
	}
	t := p.track(c.Key(), level)
	if t == nil {
		t = &track{key: c.Key(), level: level}
		p.tracks = append(p.tracks, t)
	}
	t.trials++
	m := &t.measurement
	m.Windows = append(m.Windows, e.Measurement.Windows...)
	m.Memory, m.Launch = max(m.Memory, e.Measurement.Memory), e.Measurement.Launch
	g.entered = append(g.entered, e)
}

// isEmpty reports whether no request ended in windows, well or not.
func isEmpty(windows []measure.Window) bool {
	return !slices.ContainsFunc(windows, func(w measure.Window) bool { return w.Requests+w.Errors+w.Dropped > 0 })
}

// decide chooses the next action, once after each event.
func (g *Guided) decide() *decision {
	if g.next == nil {
		g.next = g.choose()
	}
	return g.next
}

// choose goes through what may be done, in the order of its worth.
func (g *Guided) choose() *decision {
	if len(g.pools) == 0 {
		stop := search.Action{Stop: true, Why: "the space has no configuration but the default"}
		return &decision{action: stop, survey: survey{leader: -1, lead: g.defaultScore()}}
	}
	g.learn()
	if again, ok := g.again(); ok && g.allows(again) {
		return &decision{action: again, survey: g.survey()}
	}
	d := &decision{survey: g.survey()}
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

// ways are what may be done, in the order of its worth. Where the time is short, all engines are priced before a load is put on one.
func (g *Guided) ways() []func(*survey) (search.Action, bool) {
	if g.isHurried() {
		return []func(*survey) (search.Action, bool){g.explore, g.settleIn, g.worthiest}
	}
	return []func(*survey) (search.Action, bool){g.settleIn, g.explore, g.worthiest}
}

// before is what comes before an action: where a load is put on a pool whose curve is to go on, the service trial of that.
func (g *Guided) before(a search.Action) search.Action {
	if p, ok := g.poolOf(a.Trial.Candidate); ok && a.Trial.Phase == search.PhaseSearch && p.isReady() {
		if more, ok := g.complete(p); ok && g.allows(more) {
			return more
		}
	}
	return a
}

// again repeats, once, the sizes of the service trial in the running process whose times cannot be right: they are not smoothed.
func (g *Guided) again() (search.Action, bool) {
	p, ok := g.byKey[g.costs.process.Pool]
	if !ok || p.failure != "" {
		return search.Action{}, false
	}
	const why = "service times again: a larger batch cannot take so much shorter or longer"
	if sizes := p.crowded.suspects(); len(sizes) > 0 && p.crowded.trials == 1 {
		return g.service(p, p.instances, sizes, why), true
	}
	alone := &p.engine.alone
	if sizes := alone.suspects(); len(sizes) > 0 && alone.trials == 1 && p == p.engine.opened {
		return g.service(p, 1, sizes, why), true
	}
	return search.Action{}, false
}

// service is a service trial in a pool's process, with the candidate that allows the largest batches and waits the least.
func (g *Guided) service(p *pool, concurrency int, sizes []int, why string) search.Action {
	c := g.candidates.Member(p.settings, g.widest)
	if p.hosts && g.byWidth(search.Candidate{}, c) < 0 {
		c = search.Candidate{}
	}
	sizes = slices.DeleteFunc(slices.Clone(sizes), p.refuses)
	return search.Action{Trial: search.Trial{
		Candidate: c, Load: measure.Load{Concurrency: concurrency, BatchSize: sizes[0]},
		Windows: len(sizes), Window: serviceWindow, Phase: search.PhaseService, Sizes: sizes, Longest: g.longest(),
	}, Why: why}
}

// settleIn measures the best of the running process's pool while nothing of that was measured: it shows the pool's own part of the
// residuals, and costs no launch. What is trusted to keep the limits goes first, since it may be the only load of a short campaign. At a request rate it
// does not: whoever keeps up answers what comes, so a safe rate tells nothing of how much the pool does.
func (g *Guided) settleIn(s *survey) (search.Action, bool) {
	p, ok := g.byKey[g.costs.process.Pool]
	if !ok || !p.isReady() || len(p.tracks) > 0 {
		return search.Action{}, false
	}
	best, found := belief{}, false
	safety := func(b belief) float64 {
		if g.settings.Space.Load.Rate {
			return 0
		}
		return min(b.feasible, g.trusted)
	}
	for _, b := range s.beliefs {
		isBetter := !found || cmp.Or(cmp.Compare(safety(b), safety(best)), cmp.Compare(b.score, best.score)) > 0
		if b.pool == p && b.feasible >= possible && isBetter {
			best, found = b, true
		}
	}
	if !found || g.gap(s, best) <= 0 {
		return search.Action{}, false
	}
	return g.measure(best.cell, s, "the best of a new pool, as predicted"), true
}

// explore opens the default's pool, which was measured already, and then engines that show the effect of a value that was not tried.
func (g *Guided) explore(*survey) (search.Action, bool) {
	if g.costs.searched() > exploreShare {
		return search.Action{}, false
	}
	if p, ok := g.byKey[search.Candidate{}.PoolKey()]; ok && p.engine.isOpen() && !p.isReady() && p.failure == "" {
		return g.begin(p), true
	}
	e := g.unexplored(g.experience())
	if e == nil {
		return search.Action{}, false
	}
	return g.service(e.door(), 1, g.priced(e.door()), "service times of an engine"), true
}

// worthiest takes the trial that is worth most for its cost: of a cell, of the leader, or of a pool that opens. While nothing leads, that is what
// most likely leads after some trials; where nothing can, it is what is nearest to the constraints, for the answer.
func (g *Guided) worthiest(s *survey) (search.Action, bool) {
	if s.leader >= 0 && s.beliefs[s.leader].trials == 0 && g.mayMeasure(s.beliefs[s.leader].cell) {
		return g.measure(s.beliefs[s.leader].cell, s, "the best, as predicted"), true
	}
	best, worth, why := cell{}, 0.0, ""
	consider := func(c cell, gain func(trials int) float64, reason string) {
		if rate := g.rate(g.cost(c), gain); rate > worth && g.mayMeasure(c) {
			best, worth, why = c, rate, reason
		}
	}
	isNone, reason := math.IsInf(s.lead, -1), "may be better than the best so far"
	if isNone {
		reason = "most likely to satisfy the constraints"
	}
	for i, b := range s.beliefs {
		if i != s.leader {
			consider(b.cell, func(trials int) float64 { return g.gain(s, b, trials) }, reason)
		}
	}
	if s.leader >= 0 {
		consider(s.beliefs[s.leader].cell, func(trials int) float64 { return g.lessonOfLeader(s, trials) }, "the best so far, to know by how much")
	}
	o, ok := g.opening(s)
	switch {
	case ok && o.worth > worth:
		return g.begin(o.pool), true
	case worth > 0:
		return g.measure(best, s, why), true
	case isNone && s.nearest != nil && len(s.nearest.pool.tracks) == 0:
		return g.measure(s.nearest.cell, s, "nearest to the constraints"), true
	}
	return search.Action{}, false
}

// measure is a trial of a cell, which is cut where it shows that it can no longer matter beside what the survey found, but for the leader's. nil: it never is.
func (g *Guided) measure(c cell, s *survey, why string) search.Action {
	t := g.settings.Trial(c.batcher().candidate, c.level, search.PhaseSearch)
	t.Window, t.Windows = g.window(), g.windows(c)
	if s != nil && (s.leader < 0 || s.beliefs[s.leader].cell != c) {
		t.Worth = g.worth(s)
	}
	return search.Action{Trial: t, Why: why}
}

// windows is how many windows a trial of a cell has.
func (g *Guided) windows(c cell) int {
	return g.windowsAfter(g.costs.launchOf(c.pool.engine, c.batcher().candidate))
}

// windowsAfter is one, or as many as a launch before them is worth (Kalibera and Jones, 2013: repeat most where the costs are least).
func (g *Guided) windowsAfter(launch time.Duration) int {
	const most = 3
	return int(min(max(math.Round(math.Sqrt(launch.Seconds()/g.window().Seconds())), 1), most))
}

// window is the length of the next window.
func (g *Guided) window() time.Duration {
	factor := min(math.Pow(growth, float64(g.served/growthEvery)), growthMost)
	return time.Duration(factor * float64(g.settings.Window)).Round(time.Millisecond)
}

// cost is what a trial of a cell takes, in seconds.
func (g *Guided) cost(c cell) float64 {
	b := c.batcher()
	return g.costs.expect(c.pool.engine, b.candidate, b.key, time.Duration(g.windows(c))*g.window()).Seconds()
}

// defaultScore is the default's best within the constraints, where no ready pool stands for it; else -Inf.
func (g *Guided) defaultScore() float64 {
	if s, ok := g.defaultStanding(); ok {
		return s.Point.Score
	}
	return math.Inf(-1)
}

// defaultStanding is the default at its best load as it was measured, where it is within the constraints and no ready pool stands for it.
func (g *Guided) defaultStanding() (search.Standing, bool) {
	if p, ok := g.byKey[search.Candidate{}.PoolKey()]; ok && p.isReady() {
		return search.Standing{}, false
	}
	s, ok := g.ledger.Best(search.Candidate{})
	return s, ok && s.Point.Passes()
}
