package compare

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/measure/stats"
)

// What a campaign expects of CPU time that others take, before it has learned: all of it is lost,
// with a standard deviation of a half (docs/design/measurement.md, "What others withheld").
const (
	expectedSlope = -1.0
	slopeDoubt    = 0.5
)

// withheld is the CPU time that others took from a run: −ln of the share that was left, and the slope
// of the logarithm of throughput over it.
type withheld struct {
	taken, slope, deviation float64
}

// newWithheld converts a campaign's share, slope and deviation. Without a learned slope the expected
// one stands.
func newWithheld(share, slope, deviation float64) withheld {
	if deviation == 0 {
		slope, deviation = expectedSlope, slopeDoubt
	}
	return withheld{-math.Log1p(-min(share, 0.99)), slope, deviation}
}

// correction returns what to add to the logarithm of B over A under a load so that both had lost as much
// CPU time, and its variance. Only rates and client latencies are corrected.
func correction(metric measure.Metric, load measure.Load, a, b withheld) (add, variance float64) {
	difference := b.taken - a.taken
	info, _ := metric.Info()
	_, isPercentile := metric.Quantile()
	_, of := metric.Split()
	isLatency := of == measure.LatencyAvg || isPercentile
	if difference == 0 || isScheduled(metric, load) || !isLatency && info.Unit != measure.InferPerSecond {
		return 0, 0
	}
	slope, deviation := expectedSlope, slopeDoubt
	switch {
	case isLatency:
		slope = -expectedSlope
	case a.taken > 0 && b.taken > 0:
		slope, deviation = (a.slope+b.slope)/2, max(a.deviation, b.deviation)
	case a.taken > 0:
		slope, deviation = a.slope, a.deviation
	default:
		slope, deviation = b.slope, b.deviation
	}
	return -slope * difference, deviation * deviation * difference * difference
}

// isScheduled reports whether the schedule decides a metric, whatever others take: it is the throughput at a request
// rate. The sum over several models is decided if each of them has a rate.
func isScheduled(metric measure.Metric, load measure.Load) bool {
	model, of := metric.Split()
	if of != measure.Throughput {
		return false
	}
	if parts := load.Mix.Parts(); model == "" && len(parts) > 0 {
		return !slices.ContainsFunc(parts, func(p measure.Part) bool { return p.RequestRate == 0 })
	}
	return load.Of(model).RequestRate > 0
}

// logOf returns the logarithm of a figure and its variance. It returns false without an interval. The
// longer half of the interval counts: that of a rate in an open loop ends at what the clients offered.
func logOf(f Figure) (mean, variance float64, ok bool) {
	if !(f.Lo > 0 && f.Value > 0 && f.Hi > f.Lo) || math.IsInf(f.Hi, 0) {
		return 0, 0, false
	}
	deviation := max(math.Log(f.Hi/f.Value), math.Log(f.Value/f.Lo)) / stats.Half95
	return math.Log(f.Value), deviation * deviation, true
}

// shiftOf compares two figures. It returns false if one has no interval. The logarithm of their
// quotient is normal, with the variances of both intervals. shared is a variance that is added, and add
// corrects the logarithm.
func shiftOf(a, b Figure, shared, add float64) (shift, bool) {
	logA, varA, okA := logOf(a)
	logB, varB, okB := logOf(b)
	return shift{logB - logA + add, varA + varB, shared}, okA && okB
}

// change returns the relative change with its 95 % interval.
func (s shift) change() *Figure {
	half := stats.Half95 * math.Sqrt(s.variance+s.shared)
	return &Figure{math.Expm1(s.mean), math.Expm1(s.mean - half), math.Expm1(s.mean + half)}
}

// judge sets the change of both figures and what it shows. For the first two parameters see shiftOf.
func (c *Change) judge(shared, add float64, higherBetter bool) {
	if s, ok := shiftOf(c.A, c.B, shared, add); ok {
		c.shift, c.Change = s, s.change()
	}
	c.Direction = directionOf(c.Change, higherBetter)
}

// directionOf tells what a change shows.
func directionOf(change *Figure, higherBetter bool) Direction {
	if change == nil || change.Lo <= 0 && change.Hi >= 0 {
		return NotShown
	}
	if change.Lo > 0 == higherBetter {
		return Better
	}
	return Worse
}

// Of compares the first run with each of the others. spread is the standard deviation of a metric's
// logarithm between two runs of one server on one machine (measure.AssumedSpread).
func Of(runs []Run, spread float64) Comparison {
	runs = keyed(runs)
	c := Comparison{Format: Format, Runs: runs, Spread: spread, Pairs: []Pair{}}
	for _, b := range runs[1:] {
		c.Pairs = append(c.Pairs, pairOf(runs[0], b, spread))
	}
	return c
}

func pairOf(a, b Run, spread float64) Pair {
	p := Pair{A: a.Name, B: b.Name, Shown: shownIn(a, b), Changes: []Change{}, Common: []Common{}, Gains: []Change{}, OnlyA: onlyIn(a, b), OnlyB: onlyIn(b, a)}
	for _, configA := range a.Configurations {
		configB, ok := b.byKey(configA.Key)
		if !ok {
			continue
		}
		p.Changes = append(p.Changes, changes(a, b, configA, configB, spread)...)
		if hasSameGain(configA, configB) {
			change := Change{Configuration: configA.Name, Other: configB.Name, Key: configA.Key, A: figureOf(*configA.gain), B: figureOf(*configB.gain)}
			change.judge(0, 0, true)
			p.Gains = append(p.Gains, change)
		}
	}
	for _, metric := range p.Shown {
		var shifts []shift
		for _, c := range p.Changes {
			if c.Metric == metric && c.Change != nil {
				shifts = append(shifts, c.shift)
			}
		}
		if common, ok := commonOf(metric, shifts); ok {
			p.Common = append(p.Common, common)
		}
	}
	p.Winner = winners(a, b, p)
	p.Differences = differences(a.Facts, b.Facts)
	p.ConfigDiffs = configDiffs(a, b)
	p.Notes = notes(a, b, p, spread)
	return p
}

// hasSameGain reports whether the factors of a configuration over the default compare: both are at the
// same load, or at loads that both runs confirmed as the best ones. A load at which a search has left a
// configuration is none of these.
func hasSameGain(a, b Configuration) bool {
	return a.gain != nil && b.gain != nil && a.Key != defaultKey && (sameLoad(a.best, b.best) || a.isConfirmed && b.isConfirmed)
}

// changes compares the points that two runs have of a configuration.
func changes(a, b Run, configA, configB Configuration, spread float64) (list []Change) {
	for _, one := range configA.Points {
		other, ok := configB.at(one)
		if !ok {
			continue
		}
		for _, metric := range metricsOf(one, other) {
			change := Change{Configuration: configA.Name, Other: configB.Name, Key: configA.Key, Server: cmp.Or(one.Server, other.Server), Load: one.Load, Metric: metric,
				A: one.Values[metric], B: other.Values[metric]}
			add, doubt := correction(metric, one.Load, a.withheld, b.withheld)
			info, _ := metric.Info()
			change.judge(2*spread*spread+doubt, add, info.HigherBetter)
			list = append(list, change)
		}
	}
	return list
}

// metricsOf lists the metrics that both points have, in the order of tables.
func metricsOf(a, b Point) (list []measure.Metric) {
	for metric := range a.Values {
		if _, ok := b.Values[metric]; ok {
			list = append(list, metric)
		}
	}
	order := measure.Metrics()
	place := func(m measure.Metric) int {
		if i := slices.Index(order, m); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(list, func(x, y measure.Metric) int { return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x, y)) })
	return list
}

// shownIn lists the metrics that reports show.
func shownIn(a, b Run) []measure.Metric {
	list := []measure.Metric{measure.Throughput, measure.LatencyP99}
	if a.several && b.several { // they have no common throughput and latency
		list = []measure.Metric{}
	}
	for _, m := range slices.Concat(a.shown, b.shown) {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

func (r Run) byKey(key string) (Configuration, bool) {
	i := slices.IndexFunc(r.Configurations, func(c Configuration) bool { return c.Key == key })
	if i < 0 {
		return Configuration{}, false
	}
	return r.Configurations[i], true
}

func (r Run) byName(name string) (Configuration, bool) {
	i := slices.IndexFunc(r.Configurations, func(c Configuration) bool { return c.Name == name })
	if i < 0 || name == "" {
		return Configuration{}, false
	}
	return r.Configurations[i], true
}

func (c Configuration) at(p Point) (Point, bool) {
	i := slices.IndexFunc(c.Points, func(other Point) bool { return sameLoad(other.Load, p.Load) && isSameServer(other, p) })
	if i < 0 {
		return Point{}, false
	}
	return c.Points[i], true
}

// isSameServer reports whether figures of two runs are those of one server, or of the servers of one role. So runs on a
// server and on its next version compare. Beside a run of two servers, a run of one compares where the server is the same.
func isSameServer(a, b Point) bool {
	if (a.Server == "") != (b.Server == "") {
		return a.served == b.served
	}
	return a.Server == b.Server
}

// sameLoad takes an unknown client batch as 1, as most programs send it.
func sameLoad(a, b measure.Load) bool {
	a.BatchSize, b.BatchSize = max(1, a.BatchSize), max(1, b.BatchSize)
	return a == b
}

// onlyIn lists what a run has and another one has not.
func onlyIn(a, b Run) []string {
	list := []string{}
	for _, c := range a.Configurations {
		other, ok := b.byKey(c.Key)
		if !ok {
			list = append(list, c.Name+" ("+c.Description+")")
			continue
		}
		for _, p := range c.Points {
			if _, ok := other.at(p); !ok {
				list = append(list, c.Name+" at "+p.Load.String())
			}
		}
	}
	return list
}

func figureOf(e measure.Estimate) Figure { return Figure{e.Value, e.Lo, e.Hi} }
