package landscape

import (
	"math"
	"slices"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

// service holds the times of requests of each client batch in a pool's process at a concurrency, in
// one pass or several.
type service struct {
	concurrency int
	passes      [][]batchTime // each ascending by size
}

// batchTime is the time of a request of a client batch.
type batchTime struct {
	size    int
	latency float64 // s, measured by the client
	parts   parts   // of the latency, in the server
}

// at returns a pass's time for a size: linear between sizes, affine beyond the last two.
func at(pass []batchTime, size int) batchTime {
	i, exact := slices.BinarySearchFunc(pass, size, func(b batchTime, size int) int { return b.size - size })
	if exact || len(pass) == 1 {
		return pass[min(i, len(pass)-1)]
	}
	i = min(max(i, 1), len(pass)-1)
	a, b := pass[i-1], pass[i]
	share := float64(size-a.size) / float64(b.size-a.size)
	mix := func(x, y float64) float64 { return max(0, x+(y-x)*share) }
	return batchTime{size, mix(a.latency, b.latency), parts{mix(a.parts.queue, b.parts.queue), mix(a.parts.input, b.parts.input),
		mix(a.parts.infer, b.parts.infer), mix(a.parts.output, b.parts.output)}}
}

// nearest returns the pool's service times at a concurrency, or at the nearest one.
func (p *pool) nearest(concurrency int) (service, bool) {
	distance := func(s service) float64 {
		return math.Abs(math.Log(float64(s.concurrency) / float64(max(concurrency, 1))))
	}
	if p == nil || len(p.services) == 0 {
		return service{}, false
	}
	return slices.MinFunc(p.services, func(a, b service) int { return int(math.Copysign(1, distance(a)-distance(b))) }), true
}

// The windows of service trials have at least this number of executions, within three times the
// requested length, but never fewer than two. Each window follows three executions (package
// runner).
const (
	leastExecutions = 10
	longestStretch  = 3
	fewest          = 2
	before          = 3
)

// serviceSpread is the standard deviation of the logarithms of a service trial's latencies.
const serviceSpread = 0.05

// service measures a service trial: one window for each size.
func (m *Machine) service(t search.Trial, result *measure.Measurement) {
	s, ok := m.landscape.pool(t.Candidate).nearest(t.Load.Concurrency)
	if !ok {
		result.Failure = &measure.Failure{Stage: measure.StageLoad, Reason: "the landscape does not have this pool's service times"}
		return
	}
	var times []time.Duration
	pass := s.passes[m.random.IntN(len(s.passes))]
	for _, size := range t.Sizes {
		b := at(pass, size)
		settle := max(m.landscape.costs.settle, time.Duration(before*b.latency*float64(time.Second)))
		result.Times.WarmUp += settle
		m.clock += settle
		seconds := min(max(t.Window.Seconds(), leastExecutions*b.latency), longestStretch*t.Window.Seconds())
		seconds = max(seconds, fewest*b.latency)
		w := window{
			seconds: seconds, rates: []float64{float64(t.Load.Concurrency) / b.latency}, batch: 1, parts: b.parts, isMeasured: true,
			latency: spreadSketch(b.latency), cores: m.landscape.cores(t.Candidate, float64(t.Load.Concurrency)*b.parts.infer/b.latency),
		}
		played := m.play(w, m.clock, seconds, m.launch, size)
		result.Windows = append(result.Windows, played)
		result.Times.Windows += played.Duration
		m.clock += played.Duration
		times = append(times, time.Duration(b.latency*float64(time.Second)))
		if t.EndsAfter(times) {
			break
		}
	}
	if p := m.landscape.Find(t.Candidate, m.landscape.Space.Load.Levels[0]); p != nil {
		result.Memory = p.memory
	}
}

// cores returns the assumed number of cores that an engine uses while `busy` of its instances
// compute. It is the threads of each, limited by the machine's cores. Service trials did not record
// it.
func (l *Landscape) cores(c search.Candidate, busy float64) float64 {
	all := l.Space.Facts.Cores
	threads, err := l.Space.Value(c, search.KnobIntraOpThreads).Int()
	if err != nil || threads == 0 { // ONNX Runtime's default
		threads = all
	}
	return min(busy*float64(threads), float64(all))
}

// spreadSketch returns a narrow distribution around a latency.
func spreadSketch(latency float64) record.Sketch {
	return record.NewSketch(func(level float64) float64 {
		return latency * math.Exp(serviceSpread*(level-0.5)*math.Sqrt(12)) // uniform, with the same standard deviation
	})
}

// durations converts seconds to durations.
func durations(seconds ...float64) []time.Duration {
	list := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		list[i] = time.Duration(s * float64(time.Second))
	}
	return list
}
