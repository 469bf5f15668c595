package searchtest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
	"tuner/search/queuesim"
)

// The law of a Colocated server may be the queue simulation instead of its formula (Queue). The times of batches
// are the same. A trial is then as long as its windows, so its percentiles vary as those of so few requests do.

// quickRequests and longRequests are counted of each model where the truth is simulated. The former compare cells:
// near the capacity the p99 of 6,000 requests is off by up to a third, but alike in all cells, since the requests are
// the same. The latter judge an answer. The p99 of a minute still has errors of 3 to 20 % there. The scale that keeps a
// limit was 5 % higher than with two minutes in the one answer that was compared.
const (
	quickRequests = 6000
	longRequests  = 30_000
)

// simulated returns the results of all models at a scale, with some requests of each. cores are those of each model;
// nil: all share all.
func (c Colocated) simulated(settings []Setting, cores []int, scale float64, requests func(model int) int, seed uint64) []queuesim.Result {
	models := make([]queuesim.Model, len(settings))
	slow := c.slowdowns(settings, cores, scale)
	for i, x := range settings {
		curve := queuesim.ServiceCurve{Spread: 0.1, Threads: x.Threads}
		for size := 1; size <= x.MaxBatch; size *= 2 {
			curve.Sizes = append(curve.Sizes, size)
			curve.Alone = append(curve.Alone, slow[i]*c.Time(i, x, float64(size), 1))
			curve.Crowded = append(curve.Crowded, slow[i]*c.Time(i, x, float64(size), x.Instances))
		}
		models[i] = queuesim.Model{
			Batcher: queuesim.Batcher{Instances: x.Instances, MaxBatch: x.MaxBatch, Dynamic: x.MaxBatch > 1}, Curve: curve,
			Load:    measure.Load{RequestRate: scale * c.Laws[i].Rate, BatchSize: 1},
			Options: queuesim.Options{Requests: requests(i), Seed: seed + uint64(i)},
		}
	}
	if cores == nil {
		return queuesim.Together(models, c.Cores)
	}
	var list []queuesim.Result
	for i, m := range models {
		list = append(list, queuesim.Together([]queuesim.Model{m}, cores[i])[0])
	}
	return list
}

// slowdowns returns the factors on all times of each model that no measurement of the model alone shows. The
// simulation knows how models share cores, so on shared ones that is no part of them.
func (c Colocated) slowdowns(settings []Setting, cores []int, scale float64) []float64 {
	list := make([]float64, len(settings))
	for i, x := range settings {
		others := 0.0
		for j, y := range settings {
			if j != i {
				others += c.busy(j, y, scale)
			}
		}
		list[i] = (1 + c.Interference*min(1, others/float64(c.Cores))) * c.unknown(i, x, cores) * c.remote(i, cores)
		if cores != nil {
			own := float64(x.Instances * x.Threads)
			list[i] *= max(1, own/float64(cores[i])) / max(1, own/float64(c.Cores))
		}
	}
	return list
}

// observed returns the latencies of all models in a trial of some seconds.
func (c Colocated) observed(trial int, settings []Setting, cores []int, scale, seconds float64) []measure.Histogram {
	count := func(model int) int { return max(1, int(seconds*scale*c.Laws[model].Rate)) }
	results := c.simulated(settings, cores, scale, count, c.Seed<<32|uint64(trial)<<8)
	list := make([]measure.Histogram, len(results))
	for i, r := range results {
		latencies := make([]time.Duration, count(i))
		for k := range latencies {
			seconds := overloaded.Seconds()
			if r.Throughput > 0 {
				seconds = min(seconds, r.Quantile((float64(k)+0.5)/float64(len(latencies))))
			}
			latencies[k] = max(time.Duration(seconds*float64(time.Second)).Round(time.Microsecond), time.Microsecond)
		}
		list[i] = measure.NewHistogram(latencies)
	}
	return list
}

// BestOf returns the largest scale of any candidate of a space on shared cores, and on divided ones (0 if the models
// are more than the cores). Each is exact to a thousandth. It looks only at cells that may be better than the best
// so far: no cell carries more than the least of what its models carry alone.
func (c Company) BestOf(s search.Space) (shared, divided float64) {
	options := c.options(s)
	if set, most := c.bestOn(options, nil, leastScale); most > 0 {
		shared = c.carries(set, nil)
	}
	best := 0.0
	for _, cores := range c.divisions() {
		if set, most := c.bestOn(options, cores, max(best, leastScale)); most > 0 {
			best, divided = most, c.carries(set, cores)
		}
	}
	return shared, divided
}

// carries returns the largest scale of a cell.
func (c Company) carries(settings []Setting, cores []int) float64 {
	if !c.Queue {
		return c.Scale(settings, cores)
	}
	c.requests = longRequests
	return c.largest(func(scale float64) bool { return c.holds(settings, cores, scale) }, leastScale)
}

// leastScale is the least scale that is looked for.
const leastScale = 1e-3

// options lists the distinct settings of each model.
func (c Company) options(s search.Space) [][]Setting {
	options := make([][]Setting, len(c.Laws))
	for i, p := range s.Parts {
		for _, own := range p.Space.Candidates().All() {
			if x := c.setting(s.Joined(search.Candidate{}, p.Model, own), i); !slices.Contains(options[i], x) {
				options[i] = append(options[i], x)
			}
		}
	}
	return options
}

func (c Company) divisions() [][]int {
	var list [][]int
	for _, v := range joint.Divisions(len(c.Laws), c.Cores) {
		cores, _ := v.Divided()
		list = append(list, cores)
	}
	return list
}

// bounded is a setting of a model with the largest scale that the model keeps alone.
type bounded struct {
	Setting
	most float64
}

// bestOn returns the cell with the largest scale on shared cores (nil) or on a division, if that is above least; 0
// otherwise.
func (c Company) bestOn(options [][]Setting, cores []int, least float64) (cell []Setting, best float64) {
	alone := make([][]bounded, len(options))
	for i, list := range options {
		for _, x := range list {
			if most := c.largest(func(scale float64) bool { return c.holdsAlone(i, x, cores, scale) }, least); most > 0 {
				alone[i] = append(alone[i], bounded{x, most})
			}
		}
		slices.SortStableFunc(alone[i], func(a, b bounded) int { return cmp.Compare(b.most, a.most) })
	}
	var each func(set []Setting)
	each = func(set []Setting) {
		if len(set) == len(options) {
			if most := c.largest(func(scale float64) bool { return c.holds(set, cores, scale) }, max(best, least)); most > best {
				cell, best = set, most
			}
			return
		}
		for _, x := range alone[len(set)] {
			if x.most > max(best, least) {
				each(append(set[:len(set):len(set)], x.Setting))
			}
		}
	}
	each(nil)
	return cell, best
}

// holdsAlone reports whether a model keeps its limit while the others have no traffic.
func (c Company) holdsAlone(model int, x Setting, cores []int, scale float64) bool {
	one := c.Colocated
	one.Laws, one.Interference = []Law{c.Laws[model]}, 0
	one.model = c.model + model
	var own []int
	if cores != nil {
		own = cores[model : model+1]
	}
	return one.P99([]Setting{x}, own, scale)[0] <= c.Laws[model].P99
}

// largest returns the largest scale at which something holds, exact to a thousandth; 0 if it does not hold a
// thousandth above least.
func (c Company) largest(holds func(scale float64) bool, least float64) float64 {
	const exact = 1e-3
	low := math.Log(least) + exact
	if !holds(math.Exp(low)) {
		return 0
	}
	step := 0.25
	for holds(math.Exp(low + step)) {
		low, step = low+step, 2*step
	}
	for high := low + step; high-low > exact; {
		if mid := (low + high) / 2; holds(math.Exp(mid)) {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}
