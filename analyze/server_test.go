package analyze_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/search/queuesim"
)

// server is a machine whose explanation is known in advance. It behaves like the queue simulation
// with its service times, plus a noise of 1 %. A batch of b takes 2 ms + 1 ms · b in an instance,
// and a tenth longer while both are busy.
type server struct {
	overhead float64        // s per request in client, wire and front end
	tail     float64        // log of the factor between the true p99 and the simulated one
	finals   float64        // log of the factor by which the server is faster in the finals
	flags    []measure.Flag // flags of every window
}

// machine runs the trials of a campaign on a server.
type machine struct {
	server
	noise    *rand.Rand
	launches int
	pool     string
	times    measure.Times // total so far
}

// campaignOn runs a profile's campaign on a server, to its end.
func campaignOn(t *testing.T, profile string, s server) analyze.Campaign {
	t.Helper()
	c := analyzetest.New(t, profile).Campaign()
	p, err := plan.New(c.Profile.Search.Strategy, c.Profile.Settings(c.Facts))
	if err != nil {
		t.Fatal(err)
	}
	m := machine{server: s, noise: rand.New(rand.NewPCG(1, 2))}
	for {
		next := p.Ask()
		if next.Stop {
			c.End = &journal.End{Reason: next.Why, Elapsed: m.times.Total(), Statement: p.Statement(),
				Windows: m.times.Windows, Launches: m.times.Launch, WarmUps: m.times.WarmUp}
			return c
		}
		e := m.answer(next.Trial)
		c.Events = append(c.Events, e)
		p.Tell(e)
	}
}

func (m *machine) answer(trial search.Trial) search.Event {
	times := measure.Times{WarmUp: 300 * time.Millisecond, Windows: time.Duration(trial.Windows) * trial.Window}
	if trial.Fresh || m.pool != trial.Candidate.PoolKey() {
		m.launches++
		m.pool, times.Launch = trial.Candidate.PoolKey(), 600*time.Millisecond
	}
	batcher := batcherOf(trial.Candidate)
	result := measure.Measurement{Launch: m.launches, Memory: int64(1e8 * (1 + batcher.Instances)), Times: times}
	for i := range trial.Windows {
		if trial.Phase == search.PhaseService {
			result.Windows = append(result.Windows, m.serviceWindow(batcher, trial.Load.Concurrency, trial.Sizes[i]))
		} else {
			result.Windows = append(result.Windows, m.window(batcher, trial))
		}
	}
	m.times = m.times.Add(times)
	return search.Event{Trial: trial, Measurement: result, Elapsed: m.times.Total()}
}

// batcherOf returns a candidate's batcher. The default has 2 instances and batches of up to 4
// (analyzetest.BaseConfig).
func batcherOf(c search.Candidate) queuesim.Batcher {
	number := func(knob string, base int) int {
		v, ok := c.Get(knob)
		n, err := v.Int()
		if !ok || err != nil {
			return base
		}
		return n
	}
	b := queuesim.Batcher{Instances: number(search.KnobInstanceCount, 2), MaxBatch: number(search.KnobMaxBatchSize, 4)}
	b.Dynamic = b.MaxBatch > 1
	if v, ok := c.Get(search.KnobMaxQueueDelay); ok {
		b.Delay, _ = v.Duration() // a knob's value is always a valid duration
	}
	return b
}

// spread is the standard deviation of the logarithm of a batch's service time.
const spread = 0.05

// curve returns the server's service curve for this many instances.
func (s server) curve(instances int) queuesim.ServiceCurve {
	c := queuesim.ServiceCurve{Spread: spread, Overhead: s.overhead}
	for size := 1; size <= 16; size *= 2 {
		seconds := 0.002 + 0.001*float64(size)
		c.Sizes, c.Alone = append(c.Sizes, size), append(c.Alone, seconds)
		if instances > 1 {
			c.Crowded = append(c.Crowded, 1.1*seconds)
		}
	}
	return c
}

func (m *machine) serviceWindow(b queuesim.Batcher, busy, size int) measure.Window {
	seconds := m.curve(b.Instances).Time(size, busy, b.Instances) * math.Exp(0.01*m.noise.NormFloat64())
	const requests = 200
	latencies := make([]time.Duration, requests)
	for i := range latencies {
		latencies[i] = duration(seconds*math.Exp(spread*m.noise.NormFloat64()) + m.overhead)
	}
	return measure.Window{
		Start: m.times.Total(), Duration: 200 * time.Millisecond, Requests: requests, Inferences: requests * size,
		Sub:    []measure.SubWindow{{Requests: requests, Latency: measure.NewHistogram(latencies)}},
		Server: measure.ServerStats{Requests: requests, Inferences: requests * size, Executions: requests, ComputeInfer: duration(requests * seconds)},
	}
}

func (m *machine) window(b queuesim.Batcher, trial search.Trial) measure.Window {
	r := queuesim.Simulate(b, m.curve(b.Instances), trial.Load, queuesim.Options{Seed: 99})
	factor := math.Exp(0.01 * m.noise.NormFloat64())
	if trial.Phase == search.PhaseFinal {
		factor *= math.Exp(m.finals)
	}
	length := trial.Window.Seconds()
	requests := r.Throughput * factor * length
	mean := r.Mean / factor
	latency := histogram(mean, r.P99*math.Exp(m.tail)/factor)
	return measure.Window{
		Start: m.times.Total(), Duration: trial.Window, Requests: int(requests), Inferences: int(requests),
		EngineCPU: duration(r.Busy * length), ClientCPU: duration(0.05 * length), Flags: m.flags,
		Sub: []measure.SubWindow{{Requests: int(requests), Latency: latency, Sum: duration(mean * float64(latency.Count()))}},
		Server: measure.ServerStats{
			Requests: int(requests), Inferences: int(requests), Executions: int(requests / r.MeanBatch),
			Queue: duration(requests * r.Queue / factor), ComputeInfer: duration(requests * (r.Mean - r.Queue - m.overhead) / factor),
		},
	}
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// histogram has 400 latencies: eight are slow, the others usual.
func histogram(usual, slow float64) measure.Histogram {
	latencies := make([]time.Duration, 400)
	for i := range latencies {
		latencies[i] = duration(usual)
		if i >= 392 {
			latencies[i] = duration(slow)
		}
	}
	return measure.NewHistogram(latencies)
}
