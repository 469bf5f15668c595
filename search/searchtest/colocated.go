package searchtest

import (
	"cmp"
	"math"
	"math/rand/v2"

	"tuner/internal/nodes"
)

// Colocated is a server in closed form with several models. Each serves an open loop in one of its
// settings, on cores of its own or on all. Its laws have nothing of a queue simulation.
//
// A batch of b takes (Fixed + PerItem·b)·Work / threads^0.8, and 8 % more for each other instance of
// the model. More threads of its instances than cores slow all of them down in proportion, and by a
// tenth, and so do more than the cores of its own. Two things slow it down that no measurement of the model alone shows: the interference of
// the others' work, in caches and memory, and the cores that they take where cores are shared.
type Colocated struct {
	Cores int
	Laws  []Law
	// Interference is the relative time that a batch would take longer if the others kept all cores
	// busy.
	Interference float64
	Noise        float64 // standard deviation of a trial's log latency
	// Unknown is the standard deviation of the logarithm of a factor on a model's times in company, of
	// its own for each setting and number of cores.
	Unknown float64
	Seed    uint64
	// Nodes are the processors of each NUMA node; empty: one has all. Remote is the relative time that a batch
	// takes longer for each node beyond one on which the model's own cores are.
	Nodes  []int
	Remote float64
	// Queue: the latencies follow from queuesim instead of the formula.
	Queue bool

	requests int // of each model in a simulation of the truth; 0: quickRequests
	model    int // index of the first model, where a part of them is looked at
}

// Law is one model.
type Law struct {
	Fixed, PerItem float64 // s, on one thread
	Rate           float64 // requests/s at scale 1
	P99            float64 // s, its limit
}

// Setting is a configuration of a model.
type Setting struct {
	Work                         float64 // relative to fp32
	Threads, Instances, MaxBatch int
}

// othersCost is the relative time by which each other instance of a model slows a batch down.
const othersCost = 0.08

// Time returns the seconds of a batch of a model while some of its instances are busy, and no other
// model is.
func (c Colocated) Time(model int, x Setting, batch float64, busy int) float64 {
	l := c.Laws[model]
	seconds := (l.Fixed + l.PerItem*batch) * x.Work / math.Pow(float64(x.Threads), 0.8) * (1 + othersCost*float64(busy-1))
	if asked := busy * x.Threads; asked > c.Cores {
		seconds *= float64(asked) / float64(c.Cores) / 0.9
	}
	return seconds
}

// P99 returns the latencies of all models at a scale, in s. cores are those of each; nil: all share all
// of them. +Inf: beyond the capacity.
func (c Colocated) P99(settings []Setting, cores []int, scale float64) []float64 {
	if c.Queue {
		var p99 []float64
		for _, r := range c.simulated(settings, cores, scale, func(int) int { return cmp.Or(c.requests, quickRequests) }, c.Seed) {
			if r.Throughput == 0 {
				r.P99 = math.Inf(1)
			}
			p99 = append(p99, r.P99)
		}
		return p99
	}
	busy := make([]float64, len(settings)) // cores, mean
	for i, x := range settings {
		busy[i] = c.busy(i, x, scale)
	}
	list := make([]float64, len(settings))
	for i, x := range settings {
		others := 0.0
		for j := range settings {
			if j != i {
				others += busy[j]
			}
		}
		slow := (1 + c.Interference*others/float64(c.Cores)) * c.unknown(i, x, cores) * c.remote(i, cores)
		own := float64(x.Instances * x.Threads)
		asked, on := own+others, float64(c.Cores) // all have the same share of what they ask for
		if cores != nil {
			asked, on = own, float64(cores[i])
		}
		slow *= max(1, asked/on) / max(1, own/float64(c.Cores))
		list[i] = c.latency(i, x, scale, slow)
	}
	return list
}

// unknown returns the factor that no law explains.
func (c Colocated) unknown(model int, x Setting, cores []int) float64 {
	own := 0
	if cores != nil {
		own = cores[model]
	}
	seed := uint64(c.model+model)<<48 | uint64(x.Threads)<<36 | uint64(x.Instances)<<24 | uint64(x.MaxBatch)<<12 | uint64(own)<<6 | uint64(x.Work*32)
	return math.Exp(c.Unknown * rand.New(rand.NewPCG(c.Seed, seed)).NormFloat64())
}

// remote returns the factor for cores of a model's own on several nodes.
func (c Colocated) remote(model int, cores []int) float64 {
	if cores == nil || len(c.Nodes) < 2 {
		return 1
	}
	return 1 + c.Remote*float64(len(nodes.Place(c.Nodes, cores)[model])-1)
}

// batch returns the mean batch at a rate, so that k instances with batches of b keep up with it:
// k·b/time(b) = rate, where time is linear; and the capacity, with full batches.
func (c Colocated) batch(model int, x Setting, rate, slow float64) (batch, capacity float64) {
	k, most := float64(x.Instances), float64(x.MaxBatch)
	fixed := slow * c.Time(model, x, 0, x.Instances)
	each := slow*c.Time(model, x, 1, x.Instances) - fixed
	batch = most
	if free := k - rate*each; free > 0 {
		batch = min(max(rate*fixed/free, 1), most)
	}
	return batch, k * most / (fixed + each*most)
}

// busy returns the cores that a model keeps busy, in the mean.
func (c Colocated) busy(model int, x Setting, scale float64) float64 {
	rate := scale * c.Laws[model].Rate
	batch, _ := c.batch(model, x, rate, 1)
	executions := min(rate/batch*c.Time(model, x, batch, x.Instances), float64(x.Instances))
	return executions * float64(x.Threads)
}

// latency returns a model's p99 when everything takes slow times as long. The requests that wait find
// all instances busy; the longest waits grow with 1/(1−ρ), as in an M/D/k queue.
func (c Colocated) latency(model int, x Setting, scale, slow float64) float64 {
	rate := scale * c.Laws[model].Rate
	batch, capacity := c.batch(model, x, rate, slow)
	rho := rate / capacity
	if rho >= 1 {
		return math.Inf(1)
	}
	const tail = 2.2 // of the 99th percentile of an M/D/1 queue's wait, in (ρ/(1−ρ)) services
	return slow * c.Time(model, x, batch, x.Instances) * (1 + tail/float64(x.Instances)*rho/(1-rho))
}

// Scale returns the largest scale at which all models keep their limits, exact to 1e-6.
func (c Colocated) Scale(settings []Setting, cores []int) float64 {
	low, high := -12.0, 8.0 // ln of the scale
	for high-low > 1e-6 {
		mid := (low + high) / 2
		if c.holds(settings, cores, math.Exp(mid)) {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(low)
}

func (c Colocated) holds(settings []Setting, cores []int, scale float64) bool {
	for i, p99 := range c.P99(settings, cores, scale) {
		if p99 > c.Laws[i].P99 {
			return false
		}
	}
	return true
}

// Measure returns the latencies of a trial: those of the law with noise, of which half is common to all
// models. trial numbers the trials of a campaign.
func (c Colocated) Measure(trial int, settings []Setting, cores []int, scale float64) []float64 {
	r := rand.New(rand.NewPCG(c.Seed, 1<<63|uint64(trial)))
	list, common := c.P99(settings, cores, scale), r.NormFloat64()
	for i := range list {
		list[i] *= math.Exp(c.Noise * math.Sqrt(0.5) * (common + r.NormFloat64()))
	}
	return list
}

// Curve returns the times of batches of a model alone, for batches of 1, 2, 4, … to the largest: with
// one instance busy, and with all. Each has noise of a standard deviation.
func (c Colocated) Curve(model int, x Setting, noise float64) (sizes []int, alone, crowded []float64) {
	r := rand.New(rand.NewPCG(c.Seed, 1<<62|uint64(model)<<32|uint64(x.Threads)<<16|uint64(x.Instances)<<8|uint64(x.Work*32)))
	for size := 1; size <= x.MaxBatch; size *= 2 {
		sizes = append(sizes, size)
		alone = append(alone, c.Time(model, x, float64(size), 1)*math.Exp(noise*r.NormFloat64()))
		crowded = append(crowded, c.Time(model, x, float64(size), x.Instances)*math.Exp(noise*r.NormFloat64()))
	}
	return sizes, alone, crowded
}
