package explorer

import (
	"math"
	"slices"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/colocation"
	"tuner/search/guided/pools"
	"tuner/search/standings"
)

// joined returns the joint candidate of each model's configuration. Where all equal the default's, it is
// the default.
func (x *Explorer) joined(server search.Candidate, own []search.Candidate) search.Candidate {
	isShared := true
	if v, has := server.Get(search.KnobIsolation); has {
		isShared = v == search.IsolationShared
	}
	isDefault := isShared
	var settings []search.Setting
	if i := slices.IndexFunc(x.settings.Space.Server, func(k search.Knob) bool { return k.Name == search.KnobIsolation }); i >= 0 && isShared {
		server = server.With(search.KnobIsolation, search.IsolationShared)
	}
	settings = append(settings, server.Settings()...)
	for i, p := range x.parts {
		isDefault = isDefault && p.isDefault(own[i])
		for _, s := range p.named(own[i]).Settings() {
			settings = append(settings, search.Setting{Knob: search.JoinKnob(p.name, s.Knob), Value: s.Value})
		}
	}
	if isDefault {
		return search.Candidate{}
	}
	return search.NewCandidate(settings...)
}

// candidateOf returns the joint candidate of a cell.
func (x *Explorer) candidateOf(c colocation.Cell) search.Candidate {
	own := make([]search.Candidate, len(x.parts))
	for i, p := range x.parts {
		own[i] = p.options[c.Options[i]].candidate
	}
	return x.joined(serverOf(c), own)
}

// serverOf returns the settings of the server in a cell.
func serverOf(c colocation.Cell) search.Candidate {
	if c.Cores == nil {
		return search.Candidate{}
	}
	return search.NewCandidate(search.Setting{Knob: search.KnobIsolation, Value: search.DividedCores(c.Cores)})
}

// cellOf returns the cell of a joint candidate; false for one that is none of the search's, such as a
// default that equals no option.
func (x *Explorer) cellOf(c search.Candidate) (colocation.Cell, bool) {
	cell := colocation.Cell{Options: make([]int, len(x.parts))}
	for i, p := range x.parts {
		at, known := p.index[p.own(c).Key()]
		if !known {
			return cell, false
		}
		cell.Options[i] = at
	}
	if v, has := c.Get(search.KnobIsolation); has {
		cell.Cores, _ = v.Divided()
	}
	return cell, true
}

// action returns the action of a trial of the search. Engine processes whose service times are not
// measured get a service trial first, in the process of the trial.
func (x *Explorer) action(t colocation.Trial) search.Action {
	own := make([]*pools.Pool, len(x.parts))
	for i, p := range x.parts {
		own[i] = p.options[t.Options[i]].pool
	}
	for i, p := range x.parts {
		if p.missing(own[i]) > 0 {
			return x.service(i, p.opening(own[i], "service times of an engine process that may be better"), own, serverOf(t.Cell))
		}
	}
	c := x.candidateOf(t.Cell)
	trial := x.settings.Trial(c, x.level(c, t), search.PhaseSearch)
	trial.Windows = x.windows(trial)
	return search.Action{Trial: trial, Why: t.Why}
}

// level returns the level of the axis at which a cell is measured: the nearest one to the scale of the
// search, and of the leader that of leading.
func (x *Explorer) level(c search.Candidate, t colocation.Trial) float64 {
	axis := x.settings.Space.Load
	if answer, leads := x.search.Answer(); leads && slices.Equal(answer.Options, t.Options) && slices.Equal(answer.Cores, t.Cores) {
		return leading(axis, answer.Scale, t.Scale, x.ledger.Points(c))
	}
	return nearest(axis, t.Scale)
}

// nearest returns the level of an axis that is nearest to a scale, by ratios.
func nearest(axis search.LoadAxis, scale float64) float64 {
	below, above := axis.AtMost(scale), axis.AtLeast(scale)
	if scale*scale < below*above {
		return below
	}
	return above
}

// leading returns the level at which the leader is measured after some points. First comes the highest level that
// it surely keeps, since that is the answer if nothing better is found. Then comes the next one, which decides
// whether the answer rises, unless a lower level is nearest to the most likely scale. A trial at that scale itself
// says as much of the leader's slowdown, but the verdict on a level follows from trials of that level above all.
func leading(axis search.LoadAxis, sure, likely float64, points []standings.Point) float64 {
	level := axis.AtMost(sure)
	for _, p := range points {
		if p.Level == level {
			return min(axis.AtLeast(math.Nextafter(level, math.Inf(1))), nearest(axis, max(sure, likely)))
		}
	}
	return level
}

// wanted is the number of requests of each model that a trial should have: with fewer, a percentile
// varies by more than the windows of two trials do.
const wanted = 300

// windows returns the number of a trial's windows: as many as a launch before them is worth, and as the
// model with the fewest requests needs.
func (x *Explorer) windows(t search.Trial) int {
	n := 1.0
	if t.Candidate.PoolKey() != x.last.PoolKey() {
		n = math.Sqrt(x.clock.costs().Launch.Seconds() / t.Window.Seconds())
	}
	for _, p := range x.parts {
		if rate := t.Load.Of(p.name).RequestRate; rate > 0 {
			n = max(n, wanted/(rate*t.Window.Seconds()))
		}
	}
	return int(min(max(math.Round(n), 1), search.MostWindows))
}

// learn tells the search the outcome of a trial of all models.
func (x *Explorer) learn(e search.Event) {
	cell, known := x.cellOf(e.Trial.Candidate)
	if !known || e.Measurement.Failure != nil {
		return
	}
	o := colocation.Outcome{Trial: colocation.Trial{Cell: cell, Scale: e.Trial.Load.Level()}}
	isOut := x.ledger.MissesMemory(e.Trial.Candidate)
	for _, p := range x.parts {
		latencies, errors := p.latencies(e.Measurement)
		o.Latencies, o.Errors = append(o.Latencies, latencies), append(o.Errors, errors)
		if slices.ContainsFunc(latencies, math.IsNaN) { // in an open loop by chance
			isOut = isOut || p.load.RequestRate == 0 || x.unknown(e.Trial.Candidate) >= mostUnknown
		}
	}
	x.search.Tell(o)
	if isOut {
		x.search.Exclude(cell)
	}
}

// mostUnknown is the number of trials of a configuration that may leave a latency unknown by chance before it is given up.
const mostUnknown = 3

// unknown returns the number of trials of a configuration that left a limited metric unknown.
func (x *Explorer) unknown(c search.Candidate) (n int) {
	for _, p := range x.ledger.Points(c) {
		if slices.ContainsFunc(p.Misses, func(m search.Miss) bool { return m.Missing }) {
			n++
		}
	}
	return n
}

// latencies returns what a measurement shows of a model's limited latencies, with the standard
// deviations of their logarithms. A model without an answer is beyond its capacity, unless too few requests came.
func (p *part) latencies(m measure.Measurement) (latencies, errors []float64) {
	own := m.Of(p.name).Alone()
	for _, l := range p.limits {
		value, deviation, ok := latency(own, l.Metric)
		switch {
		case ok:
		case p.load.RequestRate > 0 && !mayBeWithin(own, l.Seconds):
			value = math.Inf(1)
		default:
			value = math.NaN()
		}
		latencies, errors = append(latencies, value), append(errors, deviation)
	}
	return latencies, errors
}

// unlikely is the chance below which an event is not taken for chance.
const unlikely = 0.05

// mayBeWithin reports whether the requests of an open loop may be without an answer by chance,
// although they are within a limit in s: each is still in work at the end with a chance of the
// limit over the time of the windows.
func mayBeWithin(m measure.Measurement, limit float64) bool {
	scheduled := 0
	for i := range m.Windows {
		scheduled += m.Windows[i].Scheduled
	}
	return m.Errors()+m.Dropped() == 0 && math.Pow(min(1, limit/m.Lasted().Seconds()), float64(scheduled)) > unlikely
}

// latency returns a latency of a measurement, in s, and the standard deviation of its logarithm. A percentile
// and its error come from the tail of the latencies, since few requests lie above it.
func latency(m measure.Measurement, metric measure.Metric) (value, deviation float64, ok bool) {
	if q, isQuantile := metric.Quantile(); isQuantile {
		t, ok := m.Tail(q)
		return math.Exp(t.Log), t.Deviation, ok
	}
	e, ok := m.Estimate(metric)
	if !ok || !(e.Value > 0) {
		return 0, 0, false
	}
	if e.Lo > 0 && e.Hi > e.Lo {
		deviation = math.Log(e.Hi/e.Lo) / (2 * stats.Half95)
	}
	return e.Value, deviation, true
}
