package posterior

import (
	"math"
	"sync"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Figures caches the figures of trials, so that each is computed from its windows once. A
// percentile with its error takes longer than all other learning from a trial. It also caches the
// coordinates of cells. A campaign that asks after each trial has one cache. Several goroutines may
// use it.
type Figures struct {
	mutex  sync.Mutex
	known  map[figureKey]figure
	places map[CellKey]Coordinates
}

// figureKey identifies a trial by its windows, which are immutable.
type figureKey struct {
	windows *measure.Window
	count   int
	metric  measure.Metric
}

// figure is a trial's figure of a metric.
type figure struct {
	value
	independent float64 // independent latencies behind a percentile, see measure.Tail
}

// of computes a figure, or returns it from the cache. m has windows.
func (f *Figures) of(m measure.Measurement, metric measure.Metric) figure {
	if f == nil {
		return figureOf(m, metric)
	}
	key := figureKey{&m.Windows[0], len(m.Windows), metric}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if known, ok := f.known[key]; ok {
		return known
	}
	if f.known == nil {
		f.known = map[figureKey]figure{}
	}
	f.known[key] = figureOf(m, metric)
	return f.known[key]
}

// at computes the coordinates of a cell with a key, or returns them from the cache.
func (f *Figures) at(c Cell, key CellKey, space search.Space) Coordinates {
	if f == nil {
		return CoordinatesOf(c, space)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if known, ok := f.places[key]; ok {
		return known
	}
	if f.places == nil {
		f.places = map[CellKey]Coordinates{}
	}
	f.places[key] = CoordinatesOf(c, space)
	return f.places[key]
}

func figureOf(m measure.Measurement, metric measure.Metric) figure {
	if model, of := metric.Split(); model != "" {
		if m, metric = m.Of(model).Alone(), of; len(m.Windows) == 0 {
			return figure{}
		}
	}
	if q, isPercentile := metric.Quantile(); isPercentile {
		if len(m.Models()) > 0 {
			return figure{} // several models have no common latency
		}
		t, ok := m.Tail(q)
		return figure{value{t.Log, max(t.Deviation*t.Deviation, quietest*quietest), ok}, t.Independent}
	}
	e, ok := estimate(m, metric)
	if !ok || e.Value < 0 {
		return figure{}
	}
	v := value{log: LogIn(m, metric, e.Value), variance: quietest * quietest, isKnown: true}
	if e.Lo > 0 && e.Hi > e.Lo {
		d := math.Log(e.Hi/e.Lo) / (2 * stats.Half95)
		v.variance = max(d*d, v.variance)
	}
	return figure{value: v}
}

// estimate returns a metric with its interval. In a closed loop the throughput is by Little's law,
// which has a smaller error in short windows than completed requests.
func estimate(m measure.Measurement, metric measure.Metric) (measure.Estimate, bool) {
	if metric == measure.Throughput && len(m.Models()) == 0 {
		if e, ok := m.Little(); ok {
			return e, true
		}
	}
	return m.Estimate(metric)
}
