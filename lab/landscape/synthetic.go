package landscape

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// synthesis holds the parameters of a synthetic landscape.
type synthesis struct {
	name    string
	space   search.Space
	noise   Noise
	costs   costs
	seed    uint64 // of the differences between its pools and points
	launch  func(setup) float64
	memory  func(setup) float64
	serve   func(setup, measure.Load) outcome
	service func(s setup, concurrency, batch int) float64 // s, of a batch in the server
	wire    float64                                       // s per request outside the server
	largest int                                           // largest batch of the service trials
}

// setup is a candidate with its knobs as numbers.
type setup struct {
	candidate             search.Candidate
	precision, provider   string
	threads, instances, B int // B is max_batch_size
	delay                 time.Duration
}

func newSetup(c search.Candidate) setup {
	number := func(knob string, otherwise int) int {
		v, ok := c.Get(knob)
		n, err := v.Int()
		if !ok || err != nil {
			return otherwise
		}
		return n
	}
	precision, _ := c.Get(search.KnobPrecision)
	provider, _ := c.Get(search.KnobExecutionProvider)
	delay, _ := c.Get(search.KnobMaxQueueDelay)
	s := setup{candidate: c, precision: string(precision), provider: string(provider), threads: number(search.KnobIntraOpThreads, 1),
		instances: number(search.KnobInstanceCount, 1), B: number(search.KnobMaxBatchSize, 1)}
	if d, err := delay.Duration(); err == nil {
		s.delay = d
	}
	return s
}

// outcome is a configuration's long-run result at a load.
type outcome struct {
	throughput float64                     // inferences/s
	latency    func(level float64) float64 // s, quantile function
	queue      float64                     // s, mean
	batch      float64                     // inferences in an execution, mean
	busy       float64                     // instances, mean
}

// make computes every point, on all cores.
func (y synthesis) make() *Landscape {
	l := newLandscape(y.name, y.space)
	l.noise, l.costs = y.noise, y.costs
	candidates := y.space.Candidates().All()
	points := make([]Point, len(candidates)*len(y.space.Load.Levels))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				c, level := candidates[i/len(y.space.Load.Levels)], y.space.Load.Levels[i%len(y.space.Load.Levels)]
				points[i] = y.point(newSetup(c), level)
			}
		})
	}
	for i := range points {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, p := range points {
		p.class = record.Key(p.Candidate, p.Level)
		l.add(p)
		if k := p.Candidate.PoolKey(); l.pools[k] == nil {
			l.pools[k] = y.pool(newSetup(p.Candidate))
		}
	}
	return l
}

func (y synthesis) point(s setup, level float64) Point {
	load := y.space.Load.At(level)
	o := y.serve(s, load)
	latency := record.NewSketch(o.latency)
	requests := o.throughput / float64(load.BatchSize)
	together := max(1, o.batch/float64(load.BatchSize))
	mean := latency.Mean()
	w := window{
		rates: []float64{requests}, latency: latency, batch: together, cores: float64(s.threads) * o.busy,
		parts: parts{queue: min(o.queue, mean), infer: max(0, mean-y.wire-o.queue)},
	}
	// The runner's windows hold 30 executions of each instance and 5 of the slowest requests,
	// within three times a second.
	w.seconds = min(max(1, 5*latency.Quantile(0.99), 30*float64(s.instances)*together/requests), longestStretch)
	w.seconds = max(w.seconds, fewest*latency.Quantile(0.99))
	return Point{Candidate: s.candidate, Level: level, Throughput: o.throughput, P99: latency.Quantile(0.99),
		memory: int64(y.memory(s)), visits: [][]window{{w}}}
}

// pool makes a pool's service times, alone and with all instances busy. Batch sizes are powers of
// two.
func (y synthesis) pool(s setup) *pool {
	p := &pool{launches: durations(y.launch(s), 1.1*y.launch(s), 0.95*y.launch(s))}
	for _, concurrency := range []int{1, s.instances} {
		if concurrency == 1 && len(p.services) > 0 {
			continue // one instance
		}
		var pass []batchTime
		for size := 1; size <= y.largest; size *= 2 {
			infer := y.service(s, concurrency, size)
			pass = append(pass, batchTime{size, infer + y.wire, parts{infer: infer}})
		}
		p.services = append(p.services, service{concurrency, [][]batchTime{pass}})
	}
	return p
}

// normal returns a standard normal number that depends on a name.
func (y synthesis) normal(name string) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(y.seed, hash.Sum64())).NormFloat64()
}

// quantiles returns a quantile function through given figures with the mean of a closed loop. Its
// start, below the median, is chosen to give that mean. Its end is 15 % above the 99th percentile.
func quantiles(mean, p50, p90, p95, p99 float64) func(float64) float64 {
	end := 1.15 * p99
	above := 0.4*(p50+p90)/2 + 0.05*(p90+p95)/2 + 0.04*(p95+p99)/2 + 0.01*(p99+end)/2
	begin := min(max(4*(mean-above)-p50, 0.2*p50), p50)
	levels, values := []float64{0, 0.5, 0.9, 0.95, 0.99, 1}, []float64{begin, p50, p90, p95, p99, end}
	return func(level float64) float64 {
		for i := 1; i < len(levels); i++ {
			if level <= levels[i] {
				return values[i-1] + (values[i]-values[i-1])*(level-levels[i-1])/(levels[i]-levels[i-1])
			}
		}
		return end
	}
}

// bias multiplies an outcome's throughput by a factor, with latencies that follow by Little's law.
// It multiplies the tail of the latencies by another. Both are given as logarithms.
func (o outcome) bias(throughput, tail float64) outcome {
	factor, stretch, latency := math.Exp(throughput), math.Exp(tail), o.latency
	o.throughput *= factor
	o.queue /= factor
	o.latency = func(level float64) float64 { return latency(level) * stretched(level, stretch) / factor }
	return o
}
