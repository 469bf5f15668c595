package guided

import (
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/guided/belief"
	"tuner/search/guided/pools"
	"tuner/search/guided/predict"
	"tuner/search/guided/service"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
)

// opener makes service trials: it selects the pools that are worth one, and the measured sizes.
type opener struct {
	settings  search.Settings
	tuning    tuning.Tuning
	pools     *pools.Pools
	predictor *predict.Predictor
	beliefs   *belief.Beliefs
	schedule  *schedule
	appraiser appraiser
}

// poolBound is an upper bound for a pool with unknown service times.
type poolBound struct {
	pool   *pools.Pool
	worth  float64 // per second, see appraiser.rate
	chance float64 // highest probability that a cell satisfies the constraints
}

// worthOpening lists the pools of an engine that are not ready and are worth a trial.
func (o opener) worthOpening(e *pools.Engine, s *survey) []poolBound {
	return slices.DeleteFunc(o.bounds(e, s), func(x poolBound) bool { return x.worth == 0 })
}

// bounds lists all pools of an engine that are not ready, if its service times are known or
// forecast.
func (o opener) bounds(e *pools.Engine, s *survey) []poolBound {
	f, ok := o.predictor.Forecast(e)
	if !ok {
		return nil
	}
	var list []poolBound
	for _, p := range e.Pools() {
		if p.IsUnopened() {
			list = append(list, o.bound(p, f, s))
		}
	}
	return list
}

// bound returns an upper bound for a pool.
func (o opener) bound(p *pools.Pool, f predict.Forecast, s *survey) poolBound {
	x, cost := poolBound{pool: p}, o.cost(p, f)
	for b := range o.beliefs.Outlook(p, f) {
		x.chance = max(x.chance, b.Feasible)
		if b.Feasible >= o.tuning.Beliefs.Possible {
			x.worth = max(x.worth, o.appraiser.rate(cost, func(trials int) float64 { return o.appraiser.gain(s, b, trials) }))
		}
	}
	return x
}

// chance returns the highest probability that a configuration satisfies the constraints, over cells
// and unstarted pools, while none is believed to.
func (o opener) chance(s *survey) float64 {
	if len(o.pools.All()) == 0 {
		return 0
	}
	most, known := s.chance, o.pools.Experience()
	for _, e := range o.pools.Engines() {
		if known.IsHopeless(e) {
			continue
		}
		for _, x := range o.bounds(e, s) {
			most = max(most, x.chance)
		}
	}
	return most
}

// best returns the pool whose opening is worth most, among those with an allowed service trial;
// false if none is worth a trial.
func (o opener) best(s *survey, allows func(search.Action) bool) (poolBound, bool) {
	var best poolBound
	known, isHurried := o.pools.Experience(), o.isHurried()
	for _, e := range o.pools.Engines() {
		if known.IsHopeless(e) {
			continue
		}
		for _, x := range o.worthOpening(e, s) {
			if x.worth > best.worth && allows(o.begin(x.pool, isHurried)) {
				best = x
			}
		}
	}
	return best, best.pool != nil
}

// cost returns the time until the first window of a pool, in seconds.
func (o opener) cost(p *pools.Pool, f predict.Forecast) float64 {
	trials := 1
	if !p.Engine().IsOpen() && p.Instances() > 1 {
		trials = 2
	}
	seconds := 0.0
	for _, size := range o.pools.Sizes(p)[:o.measurable(p, f.Curve)] {
		takes := max(o.schedule.Size().Seconds(), measure.ServiceBatches*f.Curve.Time(size, p.Instances(), p.Instances()))
		seconds += float64(trials*o.pools.WindowsPerSize()) * takes
	}
	first := o.pools.First(p)
	return seconds + o.schedule.expect(p.Engine(), first, first.Key(), o.schedule.window()).Seconds()
}

// begin returns the next service trial of a pool that must become ready: alone, if the engine's
// times are unknown, else with all instances busy. isHurried is the opener's, which looks at all engines.
func (o opener) begin(p *pools.Pool, isHurried bool) search.Action {
	if !p.Engine().IsOpen() {
		return o.serviceTrial(p, 1, o.priced(p, isHurried), "service times of an engine that may be better")
	}
	return o.serviceTrial(p, p.Instances(), o.priced(p, isHurried), "service times of instances together")
}

// price returns the service trial by which an engine shows the effect of its values.
func (o opener) price(e *pools.Engine) search.Action {
	entry := e.EntryPool()
	return o.serviceTrial(entry, 1, o.priced(entry, o.isHurried()), "service times of an engine")
}

// serviceTrial returns a service trial in a pool's process, with the candidate that has the largest
// batches and the shortest delay.
func (o opener) serviceTrial(p *pools.Pool, concurrency int, sizes []int, why string) search.Action {
	sizes = slices.DeleteFunc(slices.Clone(sizes), p.Refuses)
	return search.Action{Trial: search.Trial{
		Candidate: o.pools.Widest(p), Load: measure.Load{Concurrency: concurrency, BatchSize: sizes[0]},
		Windows: len(sizes) * o.pools.WindowsPerSize(), Window: o.tuning.Service.Window, Phase: search.PhaseService,
		Sizes: sizes, Kinds: o.pools.Kinds(), Longest: o.longest(),
	}, Why: why}
}

// repeat measures implausible sizes of the service trial in the running process again, once: they
// are not smoothed.
func (o opener) repeat() (search.Action, bool) {
	p, ok := o.pools.ByKey(o.schedule.process.Pool)
	if !ok || p.HasFailed() {
		return search.Action{}, false
	}
	const why = "service times again: the time of a larger batch is implausible"
	together := p.Together()
	suspects := func(t *service.Times) []int { return slices.DeleteFunc(t.Suspects(o.tuning.Service), p.Refuses) }
	if sizes := suspects(together); len(sizes) > 0 && together.Trials() == 1 {
		return o.serviceTrial(p, p.Instances(), sizes, why), true
	}
	alone := p.Engine().Alone()
	if sizes := suspects(alone); len(sizes) > 0 && alone.Trials() == 1 && p == p.Engine().OpenedOn() {
		return o.serviceTrial(p, 1, sizes, why), true
	}
	return search.Action{}, false
}

// complete returns the service trial that continues a ready pool's curve before its first load;
// false if nothing is missing. An engine that was only priced lacks sizes. A curve of an earlier
// campaign may end early because of a tighter limit or a smaller budget. It is then measured again,
// since the machine may now have another pace.
func (o opener) complete(p *pools.Pool) (search.Action, bool) {
	t, concurrency := p.ServiceTimes(), 1
	if t == p.Together() {
		concurrency = p.Instances()
	}
	all := o.pools.Sizes(p)
	sizes := slices.DeleteFunc(slices.Clone(all), func(size int) bool { return size <= t.Largest() || p.Refuses(size) })
	if len(sizes) == 0 || !t.IsInherited() && sizes[0] <= t.LargestAsked() || !o.isBrief(o.curve(p).Time(sizes[0], 1, 1)) {
		return search.Action{}, false
	}
	if t.IsInherited() {
		sizes = all
	}
	return o.serviceTrial(p, concurrency, sizes, "service times of larger batches"), true
}

// curve returns the measured service times of a pool.
func (o opener) curve(p *pools.Pool) queuesim.ServiceCurve {
	return p.ServiceTimes().Curve()
}

func (o opener) longest() time.Duration { return o.schedule.Longest(o.beliefs.TightestLatency()) }

// isBrief reports whether a batch of the given seconds is measured.
func (o opener) isBrief(seconds float64) bool {
	longest := o.longest()
	return longest == 0 || seconds <= longest.Seconds()
}

// measurable returns the number of sizes of a known or forecast curve that are expected to be
// measured in a pool.
func (o opener) measurable(p *pools.Pool, c queuesim.ServiceCurve) int {
	sizes := o.pools.Sizes(p)
	tooLong := func(size int) bool { return len(c.Sizes) > 0 && !o.isBrief(c.Time(size, 1, 1)) }
	if i := slices.IndexFunc(sizes, tooLong); i >= 0 {
		return max(i, 1)
	}
	return len(sizes)
}

// priced returns the sizes of a service trial that prices an engine: the smallest two if time is
// short, else all.
func (o opener) priced(p *pools.Pool, isHurried bool) []int {
	sizes := o.pools.Sizes(p)
	if isHurried {
		return sizes[:min(2, len(sizes))]
	}
	return sizes
}

// isHurried reports whether there is no time for a load on an engine before all values of the
// engine knobs were tried. Their expected time then exceeds the rest of its share.
func (o opener) isHurried() bool {
	if o.settings.Budget.Time == 0 {
		return false
	}
	untried := o.pools.Untried()
	if untried == 0 {
		return false
	}
	each := o.schedule.Launch() + time.Duration(len(o.pools.LargestSizes())*o.pools.WindowsPerSize())*o.schedule.Size()
	cost := time.Duration(untried)*each + o.schedule.window() + o.schedule.WarmUp()
	return o.schedule.Searched()+o.schedule.Share(cost) > o.tuning.Trials.ExploreShare
}
