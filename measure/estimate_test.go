package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// steady makes a window of 1 s in 10 sub-windows, each with the given requests of the given latencies.
func steady(t *testing.T, batch int, sub ...[]time.Duration) Window {
	t.Helper()
	w := Window{Duration: time.Second}
	for _, latencies := range sub {
		w.Sub = append(w.Sub, SubWindow{Requests: len(latencies), Latency: histogram(t, latencies...)})
		w.Requests += len(latencies)
	}
	w.Inferences = w.Requests * batch
	return w
}

// repeat makes n equal latencies.
func repeat(l time.Duration, n int) []time.Duration {
	latencies := make([]time.Duration, n)
	for i := range latencies {
		latencies[i] = l
	}
	return latencies
}

func TestThroughputIsInferencesOverTime(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	// Sub-windows with 10, 12, 10, 12 requests of batch 2 in 1 s: 88 inferences/s. The rates by sub-window are 40, 48,
	// 40, 48 requests/s: mean 44, standard deviation 8/√3, so half the interval is 3.182·(8/√3)/√4 = 7.349 requests/s.
	w := steady(t, 2, repeat(ms, 10), repeat(ms, 12), repeat(ms, 10), repeat(ms, 12))
	e, ok := Measurement{Windows: []Window{w}}.Estimate(Throughput)
	if !ok || !near(e.Value, 88, 1e-9) || !near(e.Lo, 88-2*7.349, 1e-3) || !near(e.Hi, 88+2*7.349, 1e-3) {
		t.Errorf("throughput is %+v, %t, want 88 ± 14.7", e, ok)
	}
}

func TestPercentileCountsBatchesNotRequests(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	var sub [][]time.Duration
	for range 10 {
		latencies := make([]time.Duration, 100)
		for i := range latencies {
			latencies[i] = 10*time.Millisecond + time.Duration(random.Int64N(int64(10*time.Millisecond)))
		}
		sub = append(sub, latencies)
	}
	w := steady(t, 1, sub...)
	single, ok := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	// Uniform between 10 and 20 ms: the 90th percentile is 19 ms.
	if !ok || single.Lo > 0.019 || single.Hi < 0.019 || !near(single.Value, 0.019, 0.02) {
		t.Fatalf("p90 is %+v, %t, want an interval around 19 ms", single, ok)
	}
	w.Server = ServerStats{Requests: 1000, Executions: 100}
	batched, _ := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	// A tenth of the observations: the interval is √10 ≈ 3.2 times as wide.
	widened := (batched.Hi - batched.Lo) / (single.Hi - single.Lo)
	if widened < 2 || widened > 5 {
		t.Errorf("batches of 10 widen the interval %.1f times, want about 3.2", widened)
	}
	// Ten batches cannot bound a 90th percentile from above (0.9^10 = 0.35): the largest latency stands in.
	w.Server.Executions = 10
	few, _ := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	if want := w.Sub[0].Latency; few.Hi < want.Rank(want.Count()).Seconds() {
		t.Errorf("upper bound %v is below the largest latency", few.Hi)
	}
}

// Batches of 8 requests that end together: the interval must cover the true quantile about 95 % of the time. Taken for
// independent, the requests would promise an interval that covers far less often.
func TestPercentileIntervalCovers(t *testing.T) {
	t.Parallel()
	const rounds, batches, size = 200, 100, 8
	const median = 0.020
	random := rand.New(rand.NewPCG(13, 14))
	covered, naive := 0, 0
	for range rounds {
		var latencies []time.Duration
		for range batches {
			l := time.Duration(median * math.Exp(0.3*random.NormFloat64()) * float64(time.Second))
			latencies = append(latencies, repeat(l, size)...)
		}
		m := Measurement{Windows: []Window{steady(t, 1, latencies)}}
		if e, _ := m.Estimate(LatencyP50); e.Lo <= median && median <= e.Hi {
			naive++
		}
		m.Windows[0].Server = ServerStats{Requests: batches * size, Executions: batches}
		if e, _ := m.Estimate(LatencyP50); e.Lo <= median && median <= e.Hi {
			covered++
		}
	}
	if covered < rounds*92/100 || naive > rounds*70/100 {
		t.Errorf("covered %d of %d, %d when batches are ignored", covered, rounds, naive)
	}
}

func TestPartsComeFromSums(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	w1 := steady(t, 1, repeat(5*ms, 30))
	w1.EngineCPU = 2 * time.Second
	w1.Server = ServerStats{Requests: 30, Executions: 10, Queue: 60 * ms, ComputeInfer: 90 * ms}
	w2 := steady(t, 1, repeat(7*ms, 10))
	w2.EngineCPU = time.Second
	w2.Server = ServerStats{Requests: 10, Executions: 10, Queue: 10 * ms, ComputeInfer: 30 * ms}
	m := Measurement{Windows: []Window{w1, w2}, Memory: 300e6}
	for metric, want := range map[Metric]float64{
		Throughput:   20,                   // 40 requests in 2 s
		LatencyAvg:   (30*5 + 10*7) / 40e3, // pooled over requests
		LatencyP50:   0.005,                // rank 20 of 40
		LatencyP99:   0.007,                // rank 40 of 40
		QueueTime:    0.07 / 40,            // summed time over summed requests
		ComputeInfer: 0.12 / 40,            //
		CPU:          1.5,                  // 3 s in 2 s
		Memory:       300e6,                //
	} {
		e, ok := m.Estimate(metric)
		if !ok || !near(e.Value, want, 0.001) || e.Lo > e.Value || e.Hi < e.Value {
			t.Errorf("%s is %+v, %t, want %g", metric, e, ok, want)
		}
	}
}

func TestWhatIsNotKnownIsNotEstimated(t *testing.T) {
	t.Parallel()
	for _, metric := range append(Metrics(), "no such metric") {
		if e, ok := (Measurement{}).Estimate(metric); ok {
			t.Errorf("%s of no windows is %+v", metric, e)
		}
	}
	failed := Measurement{Windows: []Window{{Duration: time.Second, Errors: 3, Sub: make([]SubWindow, 10)}}}
	for _, metric := range Metrics() {
		e, ok := failed.Estimate(metric)
		if ok != (metric == Throughput) || e.Value != 0 {
			t.Errorf("%s of a window in which all requests failed is %+v, %t", metric, e, ok)
		}
	}
}

func TestFlagsAndErrorsAreGathered(t *testing.T) {
	t.Parallel()
	m := Measurement{Windows: []Window{
		{Errors: 2, Flags: []Flag{FlagSteal, FlagErrors}}, {}, {Errors: 1, Flags: []Flag{FlagErrors}},
	}}
	if diff := cmp.Diff([]Flag{FlagErrors, FlagSteal}, m.Flags()); diff != "" {
		t.Errorf("flags differ (-want +got):\n%s", diff)
	}
	if m.Errors() != 3 {
		t.Errorf("%d errors, want 3", m.Errors())
	}
}
