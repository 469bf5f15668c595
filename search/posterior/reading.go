package posterior

import (
	"maps"
	"math"

	"tuner/measure"
	"tuner/search"
	"tuner/search/withheld"
)

// reading is one trial of a cell with its figures of all metrics.
type reading struct {
	cell     Cell
	key      CellKey // of the cell
	at       float64 // s since the campaign's start (search.Event.Middle)
	launch   int
	withheld withheld.Withheld
	seconds  float64 // of the windows
	values   []value // by metric
}

// value is a trial's figure of a metric, on log scale.
type value struct {
	log      float64
	variance float64 // explained by the windows' own intervals
	isKnown  bool
}

// read lists the trials with figures of a load. Service trials measure batches instead; their
// information enters through the prior.
func (p *Posterior) read(events []search.Event) []reading {
	var list []reading
	metrics := p.metrics()
	for _, e := range events {
		if !isUseful(e) {
			continue
		}
		m := e.Measurement
		space := p.options.Space
		r := reading{cell: cellOf(e, p.options), launch: m.Launch}
		r.key = r.cell.Key()
		r.withheld = withheld.Of(space, e.Trial.Candidate, space.Instances(e.Trial.Candidate), m)
		for _, w := range m.Whole().Windows {
			r.seconds += w.Duration.Seconds()
		}
		r.at = e.Middle().Seconds()
		for _, metric := range metrics {
			v := p.options.Figures.of(m, metric).value
			v.isKnown = v.isKnown && isFinite(v.log) && isFinite(v.variance)
			r.values = append(r.values, v)
		}
		list = append(list, r)
	}
	return list
}

// isFinite reports whether a number is one that learning can use. A single other one makes all scales equally
// unlikely.
func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// findMissing finds, for each metric, the candidates whose trials lack it. Percentiles are left out,
// since the model completes them in a trial with too few requests.
func findMissing(readings []reading, metrics []measure.Metric) map[measure.Metric]map[string]bool {
	missing := map[measure.Metric]map[string]bool{}
	for i, metric := range metrics {
		if _, isPercentile := metric.Quantile(); isPercentile {
			continue
		}
		keys, isKnown := map[string]bool{}, map[string]bool{}
		for _, r := range readings {
			key := r.key.candidate
			isKnown[key] = isKnown[key] || r.values[i].isKnown
			keys[key] = !isKnown[key]
		}
		maps.DeleteFunc(keys, func(_ string, isMissing bool) bool { return !isMissing })
		missing[metric] = keys
	}
	return missing
}

// isUseful reports whether a trial has windows of a load.
func isUseful(e search.Event) bool {
	return e.Measurement.Failure == nil && len(e.Measurement.Windows) > 0 && e.Trial.Phase != search.PhaseService
}

func cellOf(e search.Event, o Options) Cell {
	return Cell{e.Trial.Candidate, e.Trial.Load, o.Elsewhere && e.Trial.Phase == search.PhaseFinal}
}

// Least is the least value for a logarithm, and the least standard deviation. It only keeps calculations
// finite: doubled, no answer changes.
const Least = 1e-9

// The least values for logarithms of some metrics: a microsecond, and a share of a hundredth, since
// drivers report utilisations in whole per cents.
const (
	shortest   = 1e-6
	leastShare = 0.01
)

// Log returns the natural logarithm of a metric's value in its base unit. Smaller values count as
// the metric's least value.
func Log(metric measure.Metric, value float64) float64 {
	least := Least
	switch info, _ := metric.Info(); info.Unit {
	case measure.Seconds:
		least = shortest
	case measure.Share:
		least = leastShare
	}
	return math.Log(max(value, least))
}

// LogIn returns the natural logarithm of a metric's value in a measurement, as Log and LogGoodput do.
func LogIn(m measure.Measurement, metric measure.Metric, value float64) float64 {
	if !metric.IsGoodput() {
		return Log(metric, value)
	}
	rate, _ := m.Value(measure.Throughput)
	return LogGoodput(rate, value/max(rate, Least))
}

// LogGoodput returns the natural logarithm of a goodput, from the throughput and the share of the
// answers that come within the limit. A share below leastShare counts as that, since the logarithm
// of 0 tells a Gaussian process nothing.
func LogGoodput(throughput, share float64) float64 {
	return Log(measure.Throughput, throughput) + math.Log(max(share, leastShare))
}

// quietest is the least standard deviation of one trial's figure: a window's edges cut batches.
const quietest = 0.002

// measuredCells sums up the data behind each cell, in the order of the first trials.
func measuredCells(events []search.Event, o Options) []Measured {
	var list []Measured
	indices, launches := map[CellKey]int{}, map[CellKey]map[int]bool{}
	failed, others := map[CellKey]int{}, map[string]bool{}
	onlyLoadCurve, broken := map[string]bool{}, map[string]bool{}
	for _, e := range events {
		key := e.Trial.Candidate.Key()
		if f := e.Measurement.Failure; f != nil && e.Trial.Fresh {
			broken[key] = true
		} else if isUseful(e) {
			broken[key] = broken[key] && !e.Trial.Fresh
		}
		if !isUseful(e) {
			continue
		}
		others[key] = others[key] || e.Trial.Phase != search.PhaseLoadCurve
		onlyLoadCurve[key] = !others[key] && !e.Trial.Candidate.IsDefault()
		c := cellOf(e, o)
		at, known := indices[c.Key()]
		if !known {
			at = len(list)
			indices[c.Key()], launches[c.Key()] = at, map[int]bool{}
			list = append(list, Measured{Cell: c, Independent: map[measure.Metric]float64{}})
		}
		list[at].enter(e, o)
		launches[c.Key()][e.Measurement.Launch] = true
		failed[c.Key()] += failures(e.Measurement)
	}
	for i := range list {
		m, k, key := &list[i], list[i].Key(), list[i].Candidate.Key()
		m.Launches = len(launches[k])
		m.Errors = float64(failed[k]) / float64(max(failed[k]+m.Requests, 1))
		m.OnlyLoadCurve, m.IsBroken = onlyLoadCurve[key], broken[key]
	}
	return list
}

// enter adds a trial to the data behind a cell.
func (m *Measured) enter(e search.Event, o Options) {
	m.Trials++
	if e.Trial.Fresh && e.Trial.Phase == search.PhaseFinal {
		m.Fresh++
	}
	for _, w := range e.Measurement.Windows {
		m.Requests += w.Requests
	}
	percentiles := o.Goal.Percentiles()
	if len(percentiles) == 0 {
		percentiles = []measure.Metric{o.Goal.Latency()}
	}
	for _, metric := range percentiles {
		m.Independent[metric] += o.Figures.of(e.Measurement, metric).independent
	}
}

func failures(m measure.Measurement) int {
	n := 0
	for _, w := range m.Windows {
		n += w.Errors + w.Dropped
	}
	return n
}

// CellKey identifies a cell and is comparable.
type CellKey struct {
	candidate   string
	load        measure.Load
	isElsewhere bool
}

// Key is equal for equal cells.
func (c Cell) Key() CellKey { return CellKey{c.Candidate.Key(), c.Load, c.IsElsewhere} }

// withheldMean returns the campaign's mean of the CPU time withheld from busy threads, on log scale:
// figures refer to the average machine. Trials with patient requests show little of the machine.
func withheldMean(readings []reading) float64 {
	sum, weights := 0.0, 0.0
	for _, r := range readings {
		if r.at >= 0 { // an earlier campaign's trials do not count in this one's mean
			weight := r.seconds * (1 - r.withheld.Patience)
			sum, weights = sum+r.withheld.Log*weight, weights+weight
		}
	}
	return sum / max(weights, Least)
}
