package landscape

import (
	"math"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/ort/sessionoption"
	"tuner/search"
	"tuner/search/queuesim"
)

// Synthetic returns the synthetic landscapes:
//   - cpu: a machine with 8 cores; 72 pools × 16 batcher settings × 7 loads; noise of 5 %
//   - noisy: a machine with 4 cores, 20 pools, noise of 10 %, and a neighbour that comes and goes
//   - gpu: batches up to 128 on instances that share a GPU, and launches that take long; 16 pools ×
//     25 × 9
//   - past: service times that depend on the waiting requests and on an instance's past, which no
//     service curve and no queue simulation shows
//   - slow: a detector on 2 cores, whose batches of 32 take a second; 8 pools × 16 × 7
func Synthetic() []*Landscape {
	return []*Landscape{cpu().make(), noisy().make(), gpu().make(), past().make(), slow().make()}
}

// The errors of the queue simulation on the measured service curve against the truth, as means and
// standard deviations of logarithms. They were observed on a real Triton (reference/search.md
// §3.8), except the pools' bias, which is from §2.3.
const (
	simulatedTooHigh = 0.11 // throughput
	simulatedTooLow  = 0.30 // p99
	poolBias         = 0.08 // throughput, from pool to pool
	pointError       = 0.05 // throughput, within a pool
	tailPoolBias     = 0.08 // p99
	tailPointError   = 0.10 // p99
)

// simulated returns the outcome of a queue simulation with this landscape's errors of pool and
// point.
func (y synthesis) simulated(s setup, load measure.Load) outcome {
	s = y.plainest(s, load)
	o := y.queue(s, load)
	pool, point := s.candidate.PoolKey(), record.Key(s.candidate, load.Level())
	throughput := poolBias*y.normal("throughput "+pool) + pointError*y.normal("throughput "+point) - simulatedTooHigh
	tail := tailPoolBias*y.normal("tail "+pool) + tailPointError*y.normal("tail "+point) + simulatedTooLow
	return o.bias(throughput, tail)
}

// plainest returns the simplest configuration that behaves the same at a load. It has no delay if
// two full batches for each instance are always in flight. Without a delay it has the smallest
// batch that holds all requests in flight. Equal servers have equal errors.
func (y synthesis) plainest(s setup, load measure.Load) setup {
	c := s.candidate
	if load.Concurrency > 2*s.B*s.instances {
		c = c.With(search.KnobMaxQueueDelay, "0us")
	}
	if newSetup(c).delay > 0 {
		return newSetup(c)
	}
	for _, k := range y.space.Knobs {
		for _, v := range k.Values {
			if n, err := v.Int(); k.Name == search.KnobMaxBatchSize && err == nil && load.Concurrency <= n && n < newSetup(c).B {
				c = c.With(k.Name, v)
			}
		}
	}
	return newSetup(c)
}

// queue returns the outcome of a queue simulation on the landscape's service times.
func (y synthesis) queue(s setup, load measure.Load) outcome {
	curve := queuesim.ServiceCurve{Spread: 0.06, Overhead: y.wire}
	for size := 1; size <= y.largest; size *= 2 {
		curve.Sizes = append(curve.Sizes, size)
		curve.Alone = append(curve.Alone, y.service(s, 1, size))
		if s.instances > 1 {
			curve.Crowded = append(curve.Crowded, y.service(s, s.instances, size))
		}
	}
	batcher := queuesim.Batcher{Instances: s.instances, MaxBatch: s.B, Dynamic: s.B > 1, Delay: s.delay}
	r := queuesim.Simulate(batcher, curve, load, queuesim.Options{Requests: max(2000, 20*load.Concurrency), Seed: y.seed})
	return outcome{throughput: r.Throughput, latency: quantiles(r.Mean, r.P50, r.P90, r.P95, r.P99), queue: r.Queue, batch: r.MeanBatch, busy: r.Busy}
}

func knob(name string, values ...search.Value) search.Knob {
	scope, _ := search.KnobScope(name)
	return search.Knob{Name: name, Scope: scope, Values: values}
}

// cpuSpace returns the space of the landscapes on processors without some knobs.
func cpuSpace(cores int, knobs ...search.Knob) search.Space {
	precisions := []string{"fp32"}
	for _, k := range knobs {
		if k.Name == search.KnobPrecision {
			precisions = []string{"fp32", "int8"}
		}
	}
	return search.Space{
		Knobs: knobs,
		Load:  search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64}, BatchSize: 1},
		Facts: search.Facts{
			Cores: cores, Batching: true, BaseMaxBatchSize: 4, BaseInstances: 2, Precisions: precisions,
			Base: map[string]search.Value{
				search.KnobPrecision: "fp32", sessionoption.GraphOptimization: "all", search.KnobIntraOpThreads: search.IntValue(cores),
				search.KnobInstanceCount: "2", search.KnobMaxBatchSize: "4", search.KnobMaxQueueDelay: "0us",
			},
		},
	}
}

// cpuService returns the time of a batch on a processor. It falls with the threads. It rises with
// the memory bandwidth that other busy instances use and, beyond the cores, with their use of the
// cores.
func cpuService(cores int, fixed, perItem float64) func(setup, int, int) float64 {
	return func(s setup, concurrency, batch int) float64 {
		t := (fixed + perItem*math.Pow(float64(batch), 0.97)) / math.Pow(float64(s.threads), 0.8)
		if s.precision == "int8" {
			t *= 0.6
		}
		if v, _ := s.candidate.Get(sessionoption.GraphOptimization); v == "basic" {
			t *= 1.12
		}
		busy := float64(min(concurrency, s.instances))
		t *= 1 + 0.06*(busy-1)
		if used := busy * float64(s.threads); used > float64(cores) {
			t *= used / float64(cores) / 0.85
		}
		return t
	}
}

// cpuCosts returns the costs of the bundled engine with a model of some 100 MB.
func cpuCosts() costs {
	return costs{reconfigure: 400 * time.Millisecond, warmUp: 500 * time.Millisecond, settle: 300 * time.Millisecond, other: 100 * time.Millisecond}
}

func cpu() synthesis {
	y := synthesis{
		name: "cpu", seed: 11, noise: noiseOf(0.05), costs: cpuCosts(), wire: 0.0004, largest: 32,
		space: cpuSpace(8,
			knob(search.KnobPrecision, "fp32", "int8"),
			knob(sessionoption.GraphOptimization, "all", "basic"),
			knob(search.KnobIntraOpThreads, "1", "2", "4", "8"),
			knob(search.KnobInstanceCount, "1", "2", "3", "4", "6", "8"),
			knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
			knob(search.KnobMaxQueueDelay, "0us", "1000us", "4000us"),
		),
		service: cpuService(8, 0.004, 0.006),
	}
	return y.onProcessor()
}

func noisy() synthesis {
	y := synthesis{
		name: "noisy", seed: 12, noise: noiseOf(0.10), costs: cpuCosts(), wire: 0.0004, largest: 32,
		space: cpuSpace(4,
			knob(search.KnobPrecision, "fp32", "int8"),
			knob(search.KnobIntraOpThreads, "1", "2", "4"),
			knob(search.KnobInstanceCount, "1", "2", "3", "4"),
			knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
			knob(search.KnobMaxQueueDelay, "0us", "1000us", "4000us"),
		),
		service: cpuService(4, 0.003, 0.004),
	}
	y.noise.Burst = 0.25
	return y.onProcessor()
}

// onProcessor completes a landscape whose engine runs on the cores.
func (y synthesis) onProcessor() synthesis {
	y.launch = func(s setup) float64 { return 0.6 + 0.2*float64(s.instances) }
	y.memory = func(s setup) float64 { return 120e6 + 90e6*float64(s.instances) }
	y.serve = y.simulated
	return y
}

// slow returns a detector: 12 to 37 ms per inference, and only slightly less in larger batches.
func slow() synthesis {
	y := synthesis{
		name: "slow", seed: 15, noise: noiseOf(0.05), costs: cpuCosts(), wire: 0.002, largest: 32,
		space: cpuSpace(2,
			knob(search.KnobPrecision, "fp32", "int8"),
			knob(search.KnobIntraOpThreads, "1", "2"),
			knob(search.KnobInstanceCount, "1", "2"),
			knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
			knob(search.KnobMaxQueueDelay, "0us", "1000us", "4000us"),
		),
		service: cpuService(2, 0.008, 0.030),
	}
	y = y.onProcessor()
	y.costs.warmUp = 2 * time.Second // batches of each size, and a queue that fills
	y.launch = func(s setup) float64 { return 1.5 + 0.5*float64(s.instances) }
	return y
}

// gpu returns a GPU that instances share. Their computations take turns, but their launches and
// copies overlap.
func gpu() synthesis {
	y := synthesis{
		name: "gpu", seed: 13, noise: noiseOf(0.04), costs: cpuCosts(), wire: 0.0006, largest: 128,
		space: search.Space{
			Knobs: []search.Knob{
				knob(search.KnobExecutionProvider, "cuda", "tensorrt"),
				knob(search.KnobPrecision, "fp32", "fp16"),
				knob(search.KnobInstanceCount, "1", "2", "3", "4"),
				knob(search.KnobMaxBatchSize, "1", "4", "8", "16", "32", "64", "128"),
				knob(search.KnobMaxQueueDelay, "0us", "500us", "2000us", "5000us"),
			},
			Load: search.LoadAxis{Levels: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}, BatchSize: 1},
			Facts: search.Facts{
				Batching: true, BaseMaxBatchSize: 4, BaseInstances: 1, Precisions: []string{"fp16", "fp32"},
				Base: map[string]search.Value{
					search.KnobExecutionProvider: "cuda", search.KnobPrecision: "fp32", search.KnobInstanceCount: "1",
					search.KnobMaxBatchSize: "4", search.KnobMaxQueueDelay: "0us",
				},
			},
		},
	}
	y.launch = func(s setup) float64 {
		if s.provider == "tensorrt" {
			return 25
		}
		return 5 + 0.5*float64(s.instances)
	}
	y.memory = func(s setup) float64 { return 900e6 + 250e6*float64(s.instances) }
	y.service = gpuService
	y.serve = y.simulated
	return y
}

// gpuService returns the time of a batch on a GPU. It is constant until the batch fills the GPU,
// then proportional, with a step where the working set exceeds the cache.
func gpuService(s setup, concurrency, batch int) float64 {
	overhead, perItem, floor := 0.0009, 0.00022, 0.0024 // s
	if s.precision == "fp16" {
		perItem, floor = 0.55*perItem, 0.7*floor
	}
	if s.provider == "tensorrt" {
		overhead, perItem, floor = 0.6*overhead, 0.8*perItem, 0.75*floor
	}
	compute := math.Cbrt(math.Pow(floor, 3) + math.Pow(perItem*float64(batch), 3))
	if batch > 64 {
		compute *= 1.12
	}
	busy := float64(min(concurrency, s.instances))
	filled := min(1, 0.35+float64(batch)/16) // share of the GPU that the batch keeps busy
	return overhead + compute*(1+filled*(busy-1))
}

// past returns a machine whose instances have a memory.
func past() synthesis {
	base := cpuService(4, 0.003, 0.002)
	y := synthesis{
		name: "past", seed: 14, noise: noiseOf(0.05), costs: cpuCosts(), wire: 0.0004, largest: 32,
		space: cpuSpace(4,
			knob(search.KnobIntraOpThreads, "1", "2", "4"),
			knob(search.KnobInstanceCount, "1", "2", "3", "4"),
			knob(search.KnobMaxBatchSize, "1", "2", "4", "8", "16", "32"),
			knob(search.KnobMaxQueueDelay, "0us", "1000us", "4000us"),
		),
	}
	y = y.onProcessor()
	y.service = func(s setup, concurrency, batch int) float64 { return base(s, concurrency, batch) * warmest }
	y.serve = func(s setup, load measure.Load) outcome {
		return memory{setup: s, wire: y.wire, base: base}.serve(load, y.seed)
	}
	return y
}
