package packing

import (
	"cmp"
	"math"
	"slices"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

// Served is a model in one configuration, with its traffic and its limits.
type Served struct {
	Name string
	// Load at scale 1. The scale multiplies the request rate, or the concurrency, which is rounded. The
	// zero load takes no part.
	Load measure.Load
	// Limits bound metrics that the queue simulation has: the throughput, the latency, the time in the
	// queue and goodputs. Bounds on others are not looked at.
	Limits  []search.Constraint
	Batcher queuesim.Batcher
	// Curve has the times of its batches on these cores while no other model computes.
	Curve queuesim.ServiceCurve
	// Arrivals are the instants of an open loop at a rate; nil: Poisson.
	Arrivals func(rate float64) queuesim.Arrivals
}

// Options set the extent of the simulations behind an answer.
type Options struct {
	Requests int     // of each model, that are counted at each scale; 0: 2,000
	Step     float64 // resolution of the scale's logarithm; 0: 0.005
	// Seed of the requests. Equal seeds give equal requests at every scale, only sooner, so latencies
	// grow with the scale beyond the simulation's noise.
	Seed uint64
}

// Answer is the largest scale at which all models keep their limits.
type Answer struct {
	Scale float64 // 0: no load keeps the limits; +Inf without any load
	// Binding is the model that misses a limit first when the scale grows, −1 without any load.
	Binding int
	// Limit is the constraint that it misses. The zero constraint stands for its capacity: it no longer
	// answers requests at the rate at which they come.
	Limit search.Constraint
	// Results are the models' figures at the scale, in their order.
	Results []queuesim.Result
}

const (
	counted = 2000  // Options.Requests
	finest  = 0.005 // Options.Step
	// widest is the largest distance of a scale's logarithm from that at which the search begins: a
	// factor of 1,000. At a thousandth of the capacity a request practically never meets another.
	widest = 7.0
	// late is the number of standard deviations of the counted arrivals by which the answers may stay
	// behind the offered rate: of 2,000 requests 7 %, of 100 30 %. Most models have a limit on their
	// latency, which breaks before.
	late = 3
	// A model with fewer requests than another counts fewer of them: the simulation would otherwise
	// have to be as much longer. frequent is the ratio of two rates up to which both count as many, and
	// fewest the least number that is counted. A 99th percentile needs at least 100.
	frequent = 16
	fewest   = 100
)

// Shared returns the largest scale at which models on the same cores keep all limits, by simulation of
// all of them together. It halves the interval of scales, so the scale is that of one crossing if noise
// makes several. The simulation of a scale takes about a millisecond for every 2,000 requests.
func Shared(models []Served, cores int, o Options) Answer {
	return newBench(models, cores, o).largest()
}

// Alone returns the largest scale at which a model keeps its limits on cores of its own.
func Alone(m Served, cores int, o Options) Answer { return Shared([]Served{m}, cores, o) }

// Tabulate returns a model with its highest loads on 1 to cores cores. on returns its configuration on
// some cores, with the curve that was measured or is expected there, and the standard deviation
// of the logarithm of the highest load; false: it is not served on so few.
func Tabulate(m Served, cores int, on func(cores int) (Served, float64, bool), o Options) Model {
	table := Model{Name: m.Name, Load: m.Load.Level(), Highest: make([]Highest, cores)}
	for c := range cores {
		if served, deviation, ok := on(c + 1); ok && table.Load > 0 {
			a := Alone(served, c+1, o)
			table.Highest[c] = Highest{Load: a.Scale * table.Load, Deviation: deviation}
		}
	}
	return table
}

// LeastCores returns the least number of shared cores, up to most, on which models keep their limits at
// a scale; false if none suffices. on returns the models on some cores.
func LeastCores(on func(cores int) []Served, most int, scale float64, o Options) (int, bool) {
	for c := 1; c <= most; c++ {
		if newBench(on(c), c, o).holds(math.Log(scale)) {
			return c, true
		}
	}
	return 0, false
}

// SharedConflict returns the fewest models whose limits cannot hold together at a scale on shared cores;
// nil if those of all hold. It looks at each model alone, then at each pair, and then names all.
func SharedConflict(models []Served, cores int, scale float64, o Options) *Conflict {
	conflict := func(of ...Served) *Conflict {
		if newBench(of, cores, o).holds(math.Log(scale)) {
			return nil
		}
		c := &Conflict{Cores: cores, Scale: scale}
		for _, m := range of {
			if m.Load.Level() > 0 {
				c.Models = append(c.Models, m.Name)
			}
		}
		return c
	}
	all := conflict(models...)
	if all == nil {
		return nil
	}
	for _, m := range models {
		if c := conflict(m); c != nil {
			return c
		}
	}
	for i, a := range models {
		for _, b := range models[i+1:] {
			if c := conflict(a, b); c != nil {
				return c
			}
		}
	}
	return all
}

// bench simulates models at one scale after the other.
type bench struct {
	models    []Served
	cores     int
	options   Options
	simulator queuesim.Simulator
	ranks     []int // of the models, in an order that depends neither on names nor on the list
}

func newBench(models []Served, cores int, o Options) *bench {
	o.Requests, o.Step = cmp.Or(o.Requests, counted), cmp.Or(o.Step, finest)
	order := make([]int, len(models))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(models[i], models[j]) })
	b := &bench{models: models, cores: cores, options: o, ranks: make([]int, len(models))}
	for rank, i := range order {
		b.ranks[i] = rank
	}
	return b
}

// compare orders models: those without load last, others by their traffic, then by their times.
func compare(a, b Served) int {
	return cmp.Or(cmp.Compare(b.Load.RequestRate, a.Load.RequestRate), cmp.Compare(b.Load.Concurrency, a.Load.Concurrency),
		cmp.Compare(a.Load.BatchSize, b.Load.BatchSize), slices.Compare(a.Curve.Sizes, b.Curve.Sizes),
		slices.Compare(a.Curve.Alone, b.Curve.Alone), slices.Compare(a.Curve.Crowded, b.Curve.Crowded))
}

// at returns the models' figures at a scale, by its logarithm.
func (b *bench) at(log float64) []queuesim.Result {
	list := make([]queuesim.Model, len(b.models))
	for i, m := range b.models {
		load := m.at(math.Exp(log))
		o := queuesim.Options{Requests: b.requests(m), Seed: b.options.Seed + uint64(b.ranks[i]), Within: within(m.Limits)}
		if m.Arrivals != nil && load.RequestRate > 0 {
			o.Arrivals = m.Arrivals(load.RequestRate)
		}
		list[i] = queuesim.Model{Batcher: m.Batcher, Curve: m.Curve, Load: load, Options: o}
	}
	return b.simulator.Together(list, b.cores)
}

// requests returns the number of a model's requests that are counted.
func (b *bench) requests(m Served) int {
	all := float64(b.options.Requests)
	if m.Load.RequestRate == 0 {
		return b.options.Requests
	}
	most := 0.0
	for _, other := range b.models {
		most = max(most, other.Load.RequestRate)
	}
	return int(min(max(frequent*all*m.Load.RequestRate/most, fewest), all))
}

// at returns the load at a scale.
func (m Served) at(scale float64) measure.Load {
	load := m.Load
	load.RequestRate *= scale
	if load.Concurrency > 0 {
		load.Concurrency = max(1, int(math.Round(float64(load.Concurrency)*scale)))
	}
	return load
}

// holds reports whether all models keep their limits at a scale, by its logarithm.
func (b *bench) holds(log float64) bool {
	_, _, violation := b.worst(log, b.at(log))
	return violation == 0
}

// worst returns the model that misses its limits by most, with the limit and the relative amount; 0 if
// all keep theirs.
func (b *bench) worst(log float64, results []queuesim.Result) (model int, limit search.Constraint, violation float64) {
	model = -1
	for i, m := range b.models {
		load, r := m.at(math.Exp(log)), results[i]
		if load.Level() == 0 {
			continue
		}
		if lack := m.lack(load, r, b.requests(m)); lack > violation {
			model, limit, violation = i, search.Constraint{}, lack
		}
		for _, c := range m.Limits {
			if x, ok := valueOf(r, c.Metric, within(m.Limits)); ok && c.Violation(x) > violation {
				model, limit, violation = i, c, c.Violation(x)
			}
		}
	}
	return model, limit, violation
}

// lack returns the share of a load's requests that the model leaves unanswered, of a counted number; 0
// if it keeps up.
func (m Served) lack(load measure.Load, r queuesim.Result, counted int) float64 {
	offered := load.RequestRate * float64(max(load.BatchSize, 1))
	switch {
	case r.Throughput == 0:
		return 1
	case r.Throughput >= offered*(1-late/math.Sqrt(float64(counted))):
		return 0
	}
	return 1 - r.Throughput/offered
}

// largest finds a scale that does not hold and one of at least half that does, and halves the interval
// between their logarithms.
func (b *bench) largest() Answer {
	a := Answer{Scale: math.Inf(1), Binding: -1, Results: make([]queuesim.Result, len(b.models))}
	high, isAny := b.start()
	if !isAny {
		return a
	}
	// try simulates a scale, and keeps what it says.
	try := func(log float64) bool {
		results := b.at(log)
		model, limit, violation := b.worst(log, results)
		if violation > 0 {
			a.Binding, a.Limit = model, limit
			return false
		}
		a.Scale, a.Results = math.Exp(log), results
		return true
	}
	first := high
	for try(high) {
		if high += math.Ln2; high > first+widest {
			return a
		}
	}
	low := high - math.Ln2
	for !try(low) {
		if low -= math.Ln2; low < first-widest {
			a.Scale = 0
			return a
		}
	}
	for high = low + math.Ln2; high-low > b.options.Step; {
		if mid := (low + high) / 2; try(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return a
}

// start returns the logarithm of the scale with which the search begins, the capacity of the model that
// reaches it first, or 1 for closed loops; false without any load.
func (b *bench) start() (log float64, isAny bool) {
	log = math.Inf(1)
	for _, m := range b.models {
		isAny = isAny || m.Load.Level() > 0
		if m.Load.RequestRate > 0 {
			log = min(log, math.Log(m.capacity()/m.Load.RequestRate))
		}
	}
	if math.IsInf(log, 1) {
		log = 0
	}
	return log, isAny
}

// capacity returns an upper bound of the requests/s that the model answers.
func (m Served) capacity() float64 { return Capacity(m.Batcher, m.Curve, m.Load.BatchSize) }

// Capacity returns an upper bound of the requests/s that a configuration's instances answer, with any
// number of inferences in an execution and any number of busy instances. batchSize is the client batch.
func Capacity(b queuesim.Batcher, c queuesim.ServiceCurve, batchSize int) float64 {
	rows, instances, most := max(batchSize, 1), max(b.Instances, 1), 0.0
	sizes := []int{rows}
	if b.Dynamic { // between the curve's sizes an instance's throughput is monotone
		sizes = append(slices.DeleteFunc(slices.Clone(c.Sizes), func(size int) bool { return size < rows || size > b.MaxBatch }), rows, max(b.MaxBatch, rows))
	}
	for _, size := range sizes {
		for _, busy := range []int{1, instances} {
			most = max(most, float64(size*busy)/c.Time(size, busy, instances))
		}
	}
	return most / float64(rows)
}

// within returns the limits of the goodputs among constraints, in s.
func within(limits []search.Constraint) []float64 {
	var list []float64
	for _, c := range limits {
		if limit, isGoodput := c.Metric.Within(); isGoodput {
			list = append(list, limit.Seconds())
		}
	}
	return list
}

// valueOf returns a simulated metric; false if the simulation lacks it. limits are those of the shares
// in the result.
func valueOf(r queuesim.Result, metric measure.Metric, limits []float64) (float64, bool) {
	switch metric {
	case measure.Throughput:
		return r.Throughput, true
	case measure.LatencyAvg:
		return r.Mean, true
	case measure.QueueTime:
		return r.Queue, true
	}
	if q, isQuantile := metric.Quantile(); isQuantile {
		return r.Quantile(q), true
	}
	limit, isGoodput := metric.Within()
	i := slices.Index(limits, limit.Seconds())
	if !isGoodput || i < 0 || i >= len(r.Within) {
		return 0, false
	}
	return r.Throughput * r.Within[i], true
}
