package stagewise

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/queuesim"
)

// combination is a configuration of all stages.
type combination struct {
	options   []option
	candidate search.Candidate
	key       string
	bound     float64 // requests/s that it cannot exceed
	lone      float64 // s, the sum of the stages' shortest times
}

// cell is a combination at a load.
type cell struct {
	key   string
	level float64
}

// result is a simulation of a cell.
type result struct {
	queuesim.Result
	shares []float64 // busy share of each stage's instances
}

// outlook is a cell that was not measured, with what is expected of it.
type outlook struct {
	candidate search.Candidate
	level     float64
	score     posterior.Normal
	holds     float64 // probability that it keeps the limits
	worth     float64 // expected gain, relative; or the probability to keep the limits while nothing does
	isOpen    bool    // all its engines have measured times
	why       string
}

// bounded puts options of the stages together, without the name of the configuration: its bound is the capacity
// of its slowest stage, or what the cores do with the core time of all stages.
func (x *Stagewise) bounded(options []option) combination {
	c := combination{options: options, bound: math.Inf(1)}
	cost := 0.0
	for _, o := range options {
		c.bound = min(c.bound, o.capacity)
		cost += o.cost
		c.lone += o.lone
	}
	if cores := float64(x.settings.Space.Facts.Cores); cost > 0 && cores > 0 {
		c.bound = min(c.bound, cores/cost)
	}
	return c
}

// named names the configuration of a combination.
func (x *Stagewise) named(c combination) combination {
	own := make([]search.Candidate, len(c.options))
	for i, o := range c.options {
		own[i] = o.candidate
	}
	c.candidate = x.joined(own)
	c.key = c.candidate.Key()
	return c
}

// combine puts options of the stages together.
func (x *Stagewise) combine(options []option) combination { return x.named(x.bounded(options)) }

// combinationOf returns the combination of a candidate; false if its times are not known.
func (x *Stagewise) combinationOf(c search.Candidate) (combination, bool) {
	if known, ok := x.known[c.Key()]; ok {
		return known, known.options != nil
	}
	var options []option
	for _, s := range x.stages {
		own := s.own(c)
		pool, known := s.pools.Of(own)
		if !known {
			x.known[c.Key()] = combination{}
			return combination{}, false
		}
		o, ok := s.option(pool, own, x.client(), x.settings.Space.Facts.Cores)
		if !ok {
			x.known[c.Key()] = combination{}
			return combination{}, false
		}
		options = append(options, o)
	}
	made := x.bounded(options)
	made.candidate, made.key = c, c.Key()
	x.known[c.Key()] = made
	return made, true
}

func (x *Stagewise) client() int { return max(x.settings.Space.Load.BatchSize, 1) }

// simulate predicts a cell from the service times alone.
func (x *Stagewise) simulate(c combination, level float64) result {
	at := cell{c.key, level}
	if known, ok := x.simulated[at]; ok {
		return known
	}
	stages := make([]queuesim.Stage, len(c.options))
	for i, o := range c.options {
		stages[i] = queuesim.Stage{Batcher: o.queue, Curve: o.curve, After: x.stages[i].after}
	}
	options := queuesim.Options{Requests: x.tuning.Requests, Seed: x.settings.Seed, Within: x.settings.Goal.Within()}
	r, busy := x.line.Simulate(stages, x.settings.Space.Facts.Cores, x.settings.Space.Load.At(level), x.overhead, options)
	one := result{Result: r}
	for i, b := range busy {
		one.shares = append(one.shares, b/float64(max(c.options[i].queue.Instances, 1)))
	}
	x.simulated[at] = one
	return one
}

// value returns the logarithm of a metric in a simulation; false for one that it does not predict.
func (x *Stagewise) value(r result, m measure.Metric) (float64, bool) {
	if r.Throughput <= 0 {
		return 0, false
	}
	if q, isQuantile := m.Quantile(); isQuantile {
		return posterior.Log(m, r.Quantile(q)), true // far below the median, a quantile may be less than 0
	}
	if limit, isGoodput := m.Within(); isGoodput {
		i := slices.Index(x.settings.Goal.Within(), limit.Seconds())
		if i < 0 {
			return 0, false
		}
		return posterior.LogGoodput(r.Throughput, r.Within[i]), true
	}
	switch m {
	case measure.Throughput:
		return math.Log(r.Throughput), true
	case measure.LatencyAvg:
		return posterior.Log(m, r.Mean), true
	case measure.Cost:
		if cost := x.settings.Goal.Cost(r.Throughput); cost > 0 {
			return math.Log(cost), true
		}
	}
	return 0, false
}

// predicts reports whether the simulation predicts a metric.
func (x *Stagewise) predicts(m measure.Metric) bool {
	_, ok := x.value(result{Result: queuesim.Result{Throughput: 1, Within: make([]float64, len(x.settings.Goal.Within()))}}, m)
	return ok
}

// unpredicted lists the metrics of the objective that the simulation does not predict, such as the memory.
func (x *Stagewise) unpredicted() []measure.Metric {
	var list []measure.Metric
	for _, t := range x.settings.Goal.Objective.Terms {
		if !x.predicts(t.Metric) {
			list = append(list, t.Metric)
		}
	}
	return list
}

// standard is the best configuration so far, with which others are compared.
type standard struct {
	score float64                    // -Inf while none keeps the limits
	logs  map[measure.Metric]float64 // logarithms of what the simulation does not predict
}

// standard returns the best configuration so far. Others are expected to have the figures of it that the simulation
// does not predict.
func (x *Stagewise) standard() standard {
	s := standard{x.ledger.Lead(), map[measure.Metric]float64{}}
	best, ok := x.ledger.Leader()
	if ranked := x.ledger.Ranked(); !ok && len(ranked) > 0 {
		best = ranked[0]
	}
	for _, m := range x.unpredicted() {
		if value, known := x.settings.Goal.Value(best.Measurement, m); known && value > 0 {
			s.logs[m] = math.Log(value)
		}
	}
	return s
}

// Log predicts a metric of a configuration under a load from the service times, as the prior of the plan's
// posterior.
func (x *Stagewise) Log(c search.Candidate, load measure.Load, metric measure.Metric) (float64, bool) {
	known, ok := x.combinationOf(c)
	if !ok || load.Level() <= 0 || load.BatchSize != x.settings.Space.Load.At(load.Level()).BatchSize {
		return 0, false
	}
	return x.value(x.simulate(known, load.Level()), metric)
}

// believe returns what is expected of a metric at a cell: the simulation, corrected by the trials.
func (x *Stagewise) believe(c combination, level float64, metric measure.Metric) (posterior.Normal, bool) {
	log, ok := x.value(x.simulate(c, level), metric)
	if !ok {
		return posterior.Normal{}, false
	}
	if metric == measure.Cost {
		mean, variance := x.errors.at(x, c, level, measure.Throughput) // with the other sign
		return posterior.Normal{Mean: log - mean, Deviation: math.Sqrt(variance)}, true
	}
	mean, variance := x.errors.at(x, c, level, metric)
	return posterior.Normal{Mean: log + mean, Deviation: math.Sqrt(variance)}, true
}

// expect returns the score of a cell, and the probability that it keeps the limits. Of an objective's metrics that
// no service time shows, it has the figures of the best configuration so far. Limits on others do not count. It
// returns false if service times show none of the objective.
func (x *Stagewise) expect(c combination, level float64, lead standard) (score posterior.Normal, holds float64, ok bool) {
	variance := 0.0
	for _, t := range x.settings.Goal.Objective.Terms {
		n, known := x.believe(c, level, t.Metric)
		if !known {
			score.Mean += t.Signed() * lead.logs[t.Metric]
			continue
		}
		ok = true
		score.Mean += t.Signed() * n.Mean
		variance += t.Weight * t.Weight * n.Deviation * n.Deviation
	}
	score.Deviation = math.Sqrt(variance)
	holds = 1
	for _, limit := range x.settings.Goal.Constraints {
		n, known := x.believe(c, level, limit.Metric)
		if !known {
			continue
		}
		if limit.Max != nil {
			holds *= n.Below(*limit.Max)
		}
		if limit.Min != nil {
			holds *= n.Above(math.Log(*limit.Min))
		}
	}
	return score, holds, ok
}

// levels lists the loads at which a combination is considered: around the one that keeps its instances busy.
func (x *Stagewise) levels(c combination) []float64 {
	axis := x.settings.Space.Load
	var list []float64
	add := func(level float64) {
		if !slices.Contains(list, level) {
			list = append(list, level)
		}
	}
	if axis.Rate {
		for _, share := range []float64{0.4, 0.6, 0.75, 0.85, 0.93, 1} {
			add(axis.AtMost(share * c.bound))
		}
		return list
	}
	knee := 0.0
	for _, o := range c.options {
		knee += float64(2*max(o.queue.MaxBatch, 1)*max(o.queue.Instances, 1)) / float64(x.client())
	}
	for _, share := range []float64{0.06, 0.12, 0.25, 0.5, 0.75, 1, 1.5} {
		add(axis.AtLeast(math.Max(share*knee, 1)))
	}
	return list
}

// best returns the best load of a combination that was not measured there, by what is expected.
func (x *Stagewise) best(c combination, lead standard) (outlook, bool) {
	if x.excluded[c.key] {
		return outlook{}, false
	}
	points := x.ledger.Points(c.candidate)
	var found outlook
	isAny := false
	for _, level := range x.levels(c) {
		isMeasured := false
		for _, p := range points {
			isMeasured = isMeasured || p.Level == level
		}
		score, holds, ok := x.expect(c, level, lead)
		if isMeasured || !ok {
			continue
		}
		o := outlook{candidate: c.candidate, level: level, score: score, holds: holds, isOpen: true, why: "the stages' service times promise more"}
		for _, part := range c.options {
			o.isOpen = o.isOpen && part.pool.Engine().IsOpen()
		}
		if math.IsInf(lead.score, -1) {
			if o.worth = holds; holds < x.tuning.Impossible {
				o.worth = 0
			}
			o.why = "the stages' service times promise to keep the limits"
		} else {
			gain := posterior.Normal{Mean: score.Mean - lead.score, Deviation: score.Deviation}
			o.worth = holds * gain.Surplus(math.Inf(-1)) / x.settings.Goal.Objective.Weight()
		}
		if !isAny || o.worth > found.worth {
			found, isAny = o, true
		}
	}
	return found, isAny
}

// outlooks lists what may be measured next, the most worth first: combinations with the highest bounds, and
// what a climb from them and from the best one meets. A step of the climb changes one stage.
func (x *Stagewise) outlooks() []outlook {
	if x.promising != nil {
		return x.promising
	}
	var options [][]option
	for _, s := range x.stages {
		list := s.options(x.client(), x.settings.Space.Facts.Cores, x.most())
		if len(list) == 0 {
			return nil
		}
		options = append(options, list)
	}
	lead := x.standard()
	seen, list := map[string]float64{}, []outlook{}
	look := func(c combination) float64 {
		if known, ok := seen[c.key]; ok {
			return known
		}
		seen[c.key] = math.Inf(-1)
		if o, ok := x.best(c, lead); ok {
			list = append(list, o)
			seen[c.key] = o.worth
		}
		return seen[c.key]
	}
	starts := x.beginnings(options)
	if leader, ok := x.ledger.Leader(); ok {
		if c, known := x.combinationOf(leader.Candidate); known {
			starts = append(starts, c)
		}
	}
	var climb combination
	worth := math.Inf(-1)
	for i, c := range starts {
		if w := look(c); w > worth || i == len(starts)-1 && worth <= 0 {
			climb, worth = c, w
		}
	}
	for improved := true; improved; {
		improved = false
		for i := range x.stages {
			for _, o := range options[i] {
				next := slices.Clone(climb.options)
				next[i] = o
				if c := x.combine(next); look(c) > worth {
					climb, worth, improved = c, seen[c.key], true
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b outlook) int { return cmp.Compare(b.worth, a.worth) })
	x.promising = list
	return list
}

// most returns the largest number of options of each stage with which the combinations can be looked at.
func (x *Stagewise) most() int {
	return min(x.tuning.Options, max(2, int(math.Pow(float64(x.tuning.Combined), 1/float64(len(x.stages))))))
}

// beginnings returns the combinations with the highest bounds that may keep the limits on latencies.
func (x *Stagewise) beginnings(options [][]option) []combination {
	limit := x.tightest()
	var list []combination
	at := make([]int, len(options))
	for {
		own := make([]option, len(options))
		for i, k := range at {
			own[i] = options[i][k]
		}
		if c := x.bounded(own); c.lone <= limit {
			list = append(list, c)
		}
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(options[i]) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b combination) int { return cmp.Or(cmp.Compare(b.bound, a.bound), cmp.Compare(a.lone, b.lone)) })
	list = list[:min(len(list), x.tuning.Beginnings)]
	for i := range list {
		list[i] = x.named(list[i])
	}
	return list
}
