package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/standings"
)

// curve returns the next trial of the load curves: of the best, of the default, and of the first
// stage between them (search.Space.FirstStage). First come the missing loads of the first stage:
// those of the default in the search, and the best one's load. They make the three comparable. Then
// come the levels of the axis, for each of the three the nearest to its best load first.
func (p *Plan) curve() (search.Action, bool) {
	if next, ok := p.required(); ok {
		return next, true
	}
	best, ok := p.best()
	if !ok {
		return search.Action{}, false
	}
	shown := []standings.Standing{best}
	if base := p.decided().verdict.Default; base != nil && !base.IsBroken && !best.Candidate.IsDefault() {
		shown = append(shown, standings.Standing{Load: base.Load, Point: pointOf(*base)})
	}
	if first, ok := p.firstStage(best); ok {
		shown = append(shown, first)
	}
	for _, s := range shown {
		if level, ok := p.missing(s, p.curveLevels(), s.Point.Level*p.tuning.LoadCurveReach); ok {
			return p.loadCurveTrial(s.Candidate, level), true
		}
	}
	return search.Action{}, false
}

func (p *Plan) loadCurveTrial(c search.Candidate, level float64) search.Action {
	return search.Action{Trial: p.settings.Trial(c, level, search.PhaseLoadCurve), Why: "load curve"}
}

// best returns the answer so far.
func (p *Plan) best() (standings.Standing, bool) { return standingOf(p.decided().verdict) }

// firstStage returns the configuration that shows the gain's share of precision, provider and
// session options. It is the best one with only its settings of that kind. Alternatively it is a
// better configuration within the constraints that the search measured with the default's instances
// and batching. The former comes first while it is still to be measured, since the others may be
// unrelated to the best. It returns false if the result is the default or the best itself.
func (p *Plan) firstStage(best standings.Standing) (standings.Standing, bool) {
	space := p.settings.Space
	if space.InFirstStage(best.Candidate) {
		return standings.Standing{}, false
	}
	own := space.FirstStage(best.Candidate)
	isKnown, found := own.IsDefault() || len(p.defaultLevels()) == 0, false
	var first standings.Standing
	for _, s := range p.ledger.Ranked() {
		stage := space.FirstStage(s.Candidate)
		if stage.IsDefault() || !s.Point.Scored || !space.InFirstStage(s.Candidate) {
			continue
		}
		isOwn := stage.Key() == own.Key() // the same configuration by its name in the space
		isKnown = isKnown || isOwn
		if !found && (isOwn || s.Point.Passes()) {
			first, found = s, true
		}
	}
	if isKnown {
		return first, found
	}
	alone, more := p.alone(own, best)
	if more || !found || alone.Point.Better(first.Point) {
		return alone, true
	}
	return first, true
}

// alone returns the curve phase's measurements of a first stage outside the search, and whether a
// load is still missing.
func (p *Plan) alone(c search.Candidate, best standings.Standing) (s standings.Standing, more bool) {
	space, level := p.settings.Space, p.defaultLevels()[0]
	s = standings.Standing{Candidate: c, Load: space.Load.At(level), Point: standings.Point{Level: level}}
	for _, e := range p.curved() {
		if e.Trial.Candidate.Key() != c.Key() {
			continue
		}
		if point := standings.Judge(p.settings.Goal, e.Trial.Load, e.Measurement); point.Better(s.Point) {
			s.Load, s.Point, s.Measurement = e.Trial.Load, point, e.Measurement
		}
	}
	_, more = p.missing(s, p.stageLevels(best), math.Inf(1))
	return s, more
}

// stageLevels returns the loads at which the first stage is compared with the default and with the
// best.
func (p *Plan) stageLevels(best standings.Standing) []float64 {
	return append(p.defaultLevels(), best.Point.Level)
}

// defaultLevels returns the loads at which the search measured the default, its best first.
func (p *Plan) defaultLevels() []float64 {
	for _, s := range p.ledger.Ranked() {
		if !s.Candidate.IsDefault() || !s.Point.Scored {
			continue
		}
		levels := []float64{s.Point.Level}
		for _, point := range p.ledger.Points(s.Candidate) {
			if point.Scored && !slices.Contains(levels, point.Level) {
				levels = append(levels, point.Level)
			}
		}
		return levels
	}
	return nil
}

// required returns a trial of the first stage at a load of the default, or at the best one's load.
func (p *Plan) required() (search.Action, bool) {
	best, ok := p.best()
	if !ok {
		return search.Action{}, false
	}
	first, ok := p.firstStage(best)
	if !ok {
		return search.Action{}, false
	}
	if level, ok := p.missing(first, p.stageLevels(best), math.Inf(1)); ok {
		return p.loadCurveTrial(first.Candidate, level), true
	}
	return search.Action{}, false
}

// missing returns the unmeasured level, up to a limit, that is nearest to a configuration's best
// load. It skips loads from the first failure on, and all loads if the engine does not start.
func (p *Plan) missing(s standings.Standing, among []float64, limit float64) (float64, bool) {
	measured := map[float64]bool{}
	note := func(level float64, failure *measure.Failure) {
		measured[level] = true
		switch {
		case failure == nil:
		case failure.Stage == measure.StageStart || failure.Stage == measure.StageLoad:
			limit = 0
		default:
			limit = min(limit, level)
		}
	}
	for _, point := range p.ledger.Points(s.Candidate) {
		note(point.Level, point.Failure)
	}
	for _, e := range p.curved() {
		if e.Trial.Candidate.Key() == s.Candidate.Key() {
			note(e.Trial.Load.Level(), e.Measurement.Failure)
		}
	}
	if s.Point.Scored { // a finalist's best load need not be a level of the search
		measured[s.Point.Level] = true
	}
	var levels []float64
	for _, level := range among {
		if level <= limit && !measured[level] {
			levels = append(levels, level)
		}
	}
	if len(levels) == 0 {
		return 0, false
	}
	return slices.MinFunc(levels, func(a, b float64) int {
		return cmp.Compare(math.Abs(math.Log(a/s.Point.Level)), math.Abs(math.Log(b/s.Point.Level)))
	}), true
}

// curveLevels returns the levels of the axis that curves may show.
func (p *Plan) curveLevels() []float64 {
	axis := p.settings.Space.Load
	if axis.Mix.IsZero() {
		return axis.Levels
	}
	var list []float64
	for _, level := range axis.Levels {
		if len(list) == 0 || level >= p.tuning.LoadCurveStep()*list[len(list)-1] {
			list = append(list, level)
		}
	}
	return list
}

// loadCurveReserve returns the part of the budget that is set aside for the curves.
func (p *Plan) loadCurveReserve() budgetPart {
	b, share := p.settings.Budget, p.tuning.LoadCurveShare
	return budgetPart{time: time.Duration(float64(b.Time) * share), trials: int(float64(b.Trials) * share)}
}

// curved returns the events of the curve phase, each with the memory of its configuration.
func (p *Plan) curved() []search.Event {
	var list []search.Event
	for _, e := range p.events {
		if e.Trial.Phase == search.PhaseLoadCurve {
			list = append(list, p.held.Seen(e))
		}
	}
	return list
}
