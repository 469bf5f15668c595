// Package searchtest provides a machine in closed form and a conformance suite for tests of
// strategies. On the machine a campaign runs in milliseconds, and its best configuration is known.
// Every strategy passes the suite. The package replaces the campaign loop and the runner, and
// imports neither.
package searchtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tuner/measure"
	"tuner/search"
)

// Landscape is a serving machine in closed form. An instance takes (Fixed + PerItem·b) /
// threads^0.8 for a batch of b; int8 takes 0.6 of that. More threads than cores slow all down in
// proportion, and by a tenth.
//
// With n requests in flight on k instances, batches have n/k requests, at most max_batch_size.
// Beyond that requests wait, and latency grows with n. At a request rate batches are as large as
// the rate needs, and requests wait as for one server with constant service times.
//
// The engine takes 40 MB. Each instance takes 30 MB, plus Row for each row of its largest batch,
// which its process keeps.
type Landscape struct {
	Cores       int
	Fixed       time.Duration
	PerItem     time.Duration
	Instances   int // of the default configuration
	MaxBatch    int // of the default configuration
	Launch      time.Duration
	Reconfigure time.Duration
	WarmUp      time.Duration
	Noise       float64 // standard deviation of a window's log throughput
	Seed        uint64  // of the noise
	// Path: largest throughput in inferences/s at a request rate, for all configurations, because
	// of the path to the server; 0: unlimited
	Path float64
	Row  int64 // bytes that an instance takes for each row of its largest batch
	// Fail makes trials fail; nil: none fails.
	Fail func(search.Trial) *measure.Failure
	// Starts returns the launch time of a candidate's engine process; nil: Launch for all.
	Starts func(search.Candidate) time.Duration

	histograms *sync.Map // time.Duration → measure.Histogram: making one takes longer than the rest of a trial
}

// Small returns a machine with 4 cores on which batching pays.
func Small() Landscape {
	return Landscape{
		Cores: 4, Fixed: 4 * time.Millisecond, PerItem: 2 * time.Millisecond, Instances: 2, MaxBatch: 4,
		Launch: 800 * time.Millisecond, Reconfigure: 200 * time.Millisecond, WarmUp: 300 * time.Millisecond,
		histograms: &sync.Map{},
	}
}

// Facts returns the machine's facts for folding, with precisions fp32 and int8.
func (l Landscape) Facts() search.Facts {
	return search.Facts{
		Cores: l.Cores, Batching: true, TritonOnly: true, BaseMaxBatchSize: l.MaxBatch, BaseInstances: l.Instances,
		Precisions: []string{"fp32", "int8"},
		Base: map[string]search.Value{
			search.KnobPrecision: "fp32", search.KnobIntraOpThreads: search.IntValue(l.Cores), search.KnobInstanceCount: search.IntValue(l.Instances),
			search.KnobMaxBatchSize: search.IntValue(l.MaxBatch), search.KnobMaxQueueDelay: search.DurationValue(0),
		},
	}
}

// Serve returns throughput (inferences/s) and latency of a configuration at a load.
func (l Landscape) Serve(c search.Candidate, load measure.Load) (float64, time.Duration) {
	if load.RequestRate > 0 {
		return l.serveRate(c, load.RequestRate)
	}
	instances := setting(c, search.KnobInstanceCount, l.Instances)
	k, n := float64(instances), float64(load.Concurrency)
	b := min(float64(l.maxBatch(c)), max(1, n/k))
	throughput := min(k, n) * b / l.service(c, b, instances)
	return throughput, time.Duration(n / throughput * float64(time.Second))
}

// overloaded is the latency at a rate beyond a configuration's capacity.
const overloaded = 10 * time.Second

// serveRate is Serve in an open loop.
func (l Landscape) serveRate(c search.Candidate, rate float64) (float64, time.Duration) {
	instances := setting(c, search.KnobInstanceCount, l.Instances)
	k, most := float64(instances), float64(l.maxBatch(c))
	capacity := k * most / l.service(c, most, instances)
	if l.Path > 0 {
		capacity = min(capacity, l.Path)
	}
	if rate >= capacity {
		return capacity, overloaded
	}
	// k·b/service(b) = rate, where service is linear: s·(Fixed + PerItem·b).
	fixed := l.service(c, 0, instances)
	each := l.service(c, 1, instances) - fixed
	b := max(1, rate*fixed/(k-rate*each))
	busy := rate / capacity
	wait := 1 + busy/(2*(1-busy)) // Pollaczek and Khinchine, in service times
	return rate, time.Duration(l.service(c, b, instances) * wait * float64(time.Second))
}

// Memory returns the bytes of an engine that serves only this configuration.
func (l Landscape) Memory(c search.Candidate) int64 { return l.holds(c, l.maxBatch(c)) }

// holds returns the memory of the configuration's engine after batches of a size.
func (l Landscape) holds(c search.Candidate, batch int) int64 {
	return 40e6 + int64(setting(c, search.KnobInstanceCount, l.Instances))*(30e6+l.Row*int64(batch))
}

func (l Landscape) maxBatch(c search.Candidate) int {
	return max(setting(c, search.KnobMaxBatchSize, l.MaxBatch), 1)
}

// service returns the seconds that a batch takes in an instance while busy instances work,
// including this one. In Serve all of them work, at any load.
func (l Landscape) service(c search.Candidate, batch float64, busy int) float64 {
	threads := setting(c, search.KnobIntraOpThreads, l.Cores)
	seconds := (l.Fixed.Seconds() + l.PerItem.Seconds()*batch) / math.Pow(float64(threads), 0.8)
	if v, _ := c.Get(search.KnobPrecision); v == "int8" {
		seconds *= 0.6
	}
	if used := busy * threads; used > l.Cores {
		seconds *= float64(used) / float64(l.Cores) / 0.9
	}
	return seconds
}

func setting(c search.Candidate, knob string, base int) int {
	v, ok := c.Get(knob)
	if !ok {
		return base
	}
	n, err := v.Int()
	if err != nil {
		return base
	}
	return n
}

// Run runs a campaign to its end, or for limit trials plus the rest of a started block, and returns
// its events.
func (l Landscape) Run(s search.Strategy, limit int) []search.Event {
	var run session
	for len(run.events) < limit {
		next := s.Ask()
		if next.Stop {
			break
		}
		for _, t := range next.Trials() {
			e := run.trial(l, t)
			run.events = append(run.events, e)
			s.Tell(e)
		}
	}
	return run.events
}

// session is the state of a campaign: its clock, and the running engine process.
type session struct {
	events   []search.Event
	elapsed  time.Duration
	launches int
	held     int // the process's largest batch so far
	last     search.Candidate
}

func (s *session) trial(l Landscape, t search.Trial) search.Event {
	m := measure.Measurement{Times: measure.Times{WarmUp: l.WarmUp, Windows: time.Duration(t.Windows) * t.Window}}
	switch {
	case s.launches == 0 || t.Fresh || t.Candidate.PoolKey() != s.last.PoolKey():
		s.launches++
		s.held = 0
		m.Times.Launch = l.Launch
		if l.Starts != nil {
			m.Times.Launch = l.Starts(t.Candidate)
		}
	case t.Candidate.Key() != s.last.Key():
		m.Times.Reconfigure = l.Reconfigure
	}
	m.Launch, s.last = s.launches, t.Candidate
	if l.Fail != nil {
		m.Failure = l.Fail(t)
	}
	random := rand.New(rand.NewPCG(l.Seed, uint64(len(s.events))))
	noise := func() float64 { return math.Exp(l.Noise * random.NormFloat64()) }
	switch {
	case m.Failure != nil:
		m.Times.WarmUp, m.Times.Windows = 0, 0
	case t.Phase == search.PhaseService:
		m = l.curve(m, t, s.held, noise)
		size, _ := t.SizeOf(len(m.Windows) - 1)
		s.held = max(s.held, size)
	default:
		throughput, latency := l.Serve(t.Candidate, t.Load)
		factor := noise()
		latency = time.Duration(float64(latency) / factor).Round(time.Microsecond)
		if t.Load.RequestRate > 0 {
			factor = 1 // all requests are answered, however slowly
		}
		m = withWindows(m, t, throughput*factor, l.histogram(latency))
		if t.IsFutile(m.Windows[0]) {
			m.Windows, m.Cut, m.Times.Windows = m.Windows[:1], true, time.Duration(measure.Look*float64(t.Window))
		}
		for i := range m.Windows {
			m.Windows[i].Turn, m.Windows[i].Start = t.Block > 0, s.elapsed+m.Times.Launch+time.Duration(i)*t.Window
		}
		s.held = max(s.held, l.maxBatch(t.Candidate))
		m.Memory = l.holds(t.Candidate, s.held)
	}
	s.elapsed += m.Times.Total()
	return search.Event{Trial: t, Measurement: m, Elapsed: s.elapsed}
}

// curve adds a service trial's windows in a process that held batches of a size. Each client's
// batches go to their own instance, as long as there are enough instances. All kinds of requests take
// the same time.
func (l Landscape) curve(m measure.Measurement, t search.Trial, held int, noise func() float64) measure.Measurement {
	busy := min(t.Load.Concurrency, setting(t.Candidate, search.KnobInstanceCount, l.Instances))
	var times []time.Duration
	for _, size := range t.Sizes {
		seconds := l.service(t.Candidate, float64(size), busy) / noise()
		service := max(time.Duration(seconds*float64(time.Second)).Round(time.Microsecond), time.Microsecond)
		n := int(windowLength / service * time.Duration(busy))
		compute := time.Duration(n) * service
		m.Memory = l.holds(t.Candidate, max(held, size))
		window := measure.Window{
			Duration: windowLength, Requests: n, Inferences: n * size, Memory: m.Memory,
			Sub: []measure.SubWindow{{Requests: 1, Latency: l.histogram(service)}},
			Server: measure.ServerStats{Requests: n, Inferences: n * size, Executions: n, ComputeInfer: compute,
				Batches: []measure.BatchStat{{Size: size, Executions: n, ComputeInfer: compute}}},
		}
		m.Windows = append(m.Windows, slices.Repeat([]measure.Window{window}, max(len(t.Kinds), 1))...)
		if times = append(times, service); t.EndsAfter(times) {
			break
		}
	}
	return m
}

// Measured makes the measurement of a trial with constant throughput and latency.
func Measured(t search.Trial, throughput float64, latency time.Duration) measure.Measurement {
	return withWindows(measure.Measurement{Launch: 1}, t, throughput, histogram(latency))
}

const (
	memory = 100e6 // bytes, of Measured
	// windowLength is the length of a window: so long that counts of whole inferences do not round
	// the throughput.
	windowLength = 1000 * time.Second
	// sampled is the number of latencies in a window, all equal: enough for a 99th percentile.
	sampled = 400
)

func withWindows(m measure.Measurement, t search.Trial, throughput float64, latency measure.Histogram) measure.Measurement {
	m.Memory = memory
	for range t.Windows {
		m.Windows = append(m.Windows, measure.Window{
			Duration:   windowLength,
			Requests:   int(throughput * windowLength.Seconds()),
			Inferences: int(throughput * windowLength.Seconds()),
			Sub:        []measure.SubWindow{{Requests: sampled, Latency: latency}},
		})
	}
	return m
}

func (l Landscape) histogram(latency time.Duration) measure.Histogram {
	if l.histograms == nil {
		return histogram(latency)
	}
	if known, ok := l.histograms.Load(latency); ok {
		return known.(measure.Histogram)
	}
	h := histogram(latency)
	l.histograms.Store(latency, h)
	return h
}

// histogram returns the distribution of a single latency.
func histogram(latency time.Duration) measure.Histogram {
	return measure.NewHistogram(slices.Repeat([]time.Duration{latency}, sampled))
}
