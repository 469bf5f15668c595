package posterior_test

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
)

// loop returns a window of one client whose requests take a time, of which they wait in the queue of
// a free instance for another. Others take a share of the CPU time.
func loop(start, length, latency, queue time.Duration, foreign float64) measure.Window {
	n := int(length / latency)
	w := measure.Window{
		Start: start, Duration: length, Requests: n, Inferences: n, InFlight: 1, Foreign: foreign, Cores: 2,
		EngineCPU: time.Duration(n) * (latency - queue),
		Server: measure.ServerStats{Requests: n, Inferences: n, Executions: n, Queue: time.Duration(n) * queue,
			ComputeInfer: time.Duration(n) * (latency - queue)},
	}
	const parts = 5
	for p := range parts {
		latencies := make([]time.Duration, (p+1)*n/parts-p*n/parts)
		for i := range latencies {
			latencies[i] = latency
		}
		w.Sub = append(w.Sub, measure.SubWindow{Requests: len(latencies), Duration: length / parts, Latency: measure.NewHistogram(latencies),
			Sum: time.Duration(len(latencies)) * latency})
	}
	return w
}

// The default's batcher lets each request wait for 50 ms, on a machine that is full of other
// programs. They take nothing from it. Another configuration is 300 times faster and loses half of
// its CPU time. Both figures stay as they were measured, since the machine is the average one.
func TestPatientRequestsAreNotCorrected(t *testing.T) {
	t.Parallel()
	other := search.Candidate{}.With(search.KnobInstanceCount, search.IntValue(2))
	event := func(c search.Candidate, launch int, w measure.Window) search.Event {
		return search.Event{
			Trial:       search.Trial{Candidate: c, Load: measure.Load{Concurrency: 1, BatchSize: 1}, Phase: search.PhaseSearch},
			Measurement: measure.Measurement{Windows: []measure.Window{w}, Launch: launch}, Elapsed: w.Start + w.Duration,
		}
	}
	events := []search.Event{
		event(search.Candidate{}, 1, loop(0, 301*time.Millisecond, 50*time.Millisecond, 49900*time.Microsecond, 0.95)),
		event(other, 2, loop(time.Second, 100*time.Millisecond, 160*time.Microsecond, 0, 0.5)),
		event(other, 3, loop(2*time.Second, 300*time.Millisecond, 160*time.Microsecond, 0, 0.5)),
	}
	p := posterior.New(posterior.Options{
		Space: search.Space{Facts: search.Facts{Cores: 2}},
		Goal:  search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}},
	}, events)
	for _, c := range []struct {
		candidate search.Candidate
		want      float64
	}{{search.Candidate{}, 20}, {other, 1 / 160e-6}} {
		x, ok := p.At(posterior.Cell{Candidate: c.candidate, Load: measure.Load{Concurrency: 1, BatchSize: 1}}, measure.Throughput)
		got := x.Estimate()
		if !ok || math.Abs(math.Log(got.Value/c.want)) > 0.05 || got.Lo > c.want || got.Hi < c.want || got.Hi > 1.5*got.Lo {
			t.Errorf("%s: %.4g infer/s [%.4g, %.4g], measured %.4g", c.candidate.Key(), got.Value, got.Lo, got.Hi, c.want)
		}
	}
}
