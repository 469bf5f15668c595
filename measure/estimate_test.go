package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// steady makes a window of 1 s in 10 sub-windows. Each has the given number of requests with the
// given latencies.
func steady(t *testing.T, batch int, sub ...[]time.Duration) Window {
	t.Helper()
	w := Window{Duration: time.Second}
	for _, latencies := range sub {
		w.Sub = append(w.Sub, SubWindow{Requests: len(latencies), Latency: histogram(latencies...)})
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
	// Sub-windows with 10, 12, 10, 12 requests of batch 2 in 1 s: 88 inferences/s. The rates by
	// sub-window are 40, 48, 40, 48 requests/s: mean 44, standard deviation 8/√3. So half the
	// interval is 3.182·(8/√3)/√4 = 7.349 requests/s.
	w := steady(t, 2, repeat(ms, 10), repeat(ms, 12), repeat(ms, 10), repeat(ms, 12))
	e, ok := Measurement{Windows: []Window{w}}.Estimate(Throughput)
	if !ok || !near(e.Value, 88, 1e-9) || !near(e.Lo, 88-2*7.349, 1e-3) || !near(e.Hi, 88+2*7.349, 1e-3) {
		t.Errorf("throughput is %+v, %t, want 88 ± 14.7", e, ok)
	}
}

// Windows of different lengths: the rate is requests over time, not the mean of rates.
func TestThroughputPoolsUnequalWindows(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	short := steady(t, 1, repeat(ms, 10), repeat(ms, 10))
	long := steady(t, 1, repeat(ms, 30), repeat(ms, 30))
	long.Duration = 3 * time.Second // 20 requests per second throughout
	e, ok := Measurement{Windows: []Window{short, long}}.Estimate(Throughput)
	if !ok || !near(e.Value, 20, 1e-9) || !near(e.Lo, 20, 1e-9) || !near(e.Hi, 20, 1e-9) {
		t.Errorf("throughput is %+v, %t, want 20 exactly", e, ok)
	}
	// The sub-windows need not be equal either.
	w := steady(t, 1, repeat(ms, 10), repeat(ms, 30))
	w.Sub[0].Duration, w.Sub[1].Duration = 250*ms, 750*ms
	e, ok = Measurement{Windows: []Window{w}}.Estimate(Throughput)
	if !ok || !near(e.Value, 40, 1e-9) || !near(e.Lo, 40, 1e-9) || !near(e.Hi, 40, 1e-9) {
		t.Errorf("throughput of unequal sub-windows is %+v, %t, want 40 exactly", e, ok)
	}
}

func TestMeanLatencyIsExactWhereSumsAreKnown(t *testing.T) {
	t.Parallel()
	w := steady(t, 1, repeat(3*time.Millisecond, 3), repeat(5*time.Millisecond, 1))
	// If sums are unknown, the mean comes from the histograms: (3·3 + 5)/4. Half the interval:
	// residuals 9 − 10.5 and 5 − 3.5 = ∓1.5, standard deviation 2.1213, 12.706·2.1213/√2 = 19.06
	// over the mean of 2 requests. The lower end is cut at zero.
	e, ok := Measurement{Windows: []Window{w}}.Estimate(LatencyAvg)
	if !ok || !near(e.Value, 0.0035, 0.001) || e.Lo != 0 || !near(e.Hi, 0.0035+0.00953, 0.001) {
		t.Errorf("from histograms is %+v, %t, want 3.5 ms, to 13.03 ms", e, ok)
	}
	w.Sub[0].Sum, w.Sub[1].Sum = 9*time.Millisecond+7, 5*time.Millisecond+1
	e, ok = Measurement{Windows: []Window{w}}.Estimate(LatencyAvg)
	if !ok || math.Abs(e.Value-0.003500002) > 1e-12 {
		t.Errorf("from sums is %+v, %t, want 3.500002 ms", e, ok)
	}
}

func TestOfferedAndStd(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	m := Measurement{Windows: []Window{steady(t, 1, repeat(2*ms, 1), repeat(4*ms, 1)), steady(t, 1, repeat(6*ms, 1))}}
	m.Windows[0].Scheduled, m.Windows[1].Scheduled, m.Windows[1].Duration = 30, 60, 2*time.Second
	if got := m.Offered(); got != 30 {
		t.Errorf("%g requests/s offered, want 90 in 3 s", got)
	}
	if got := m.Std(); !near(float64(got), float64(2*ms), 0.001) {
		t.Errorf("the standard deviation of 2, 4, 6 ms is %v", got)
	}
	if got := (Measurement{}).Offered(); got != 0 {
		t.Errorf("%g requests/s offered in no time", got)
	}
}

func TestPercentileWithoutAnUpperBound(t *testing.T) {
	t.Parallel()
	// 367 requests cannot bound the 99th percentile from above (0.99^367 = 2.502 %). 368 can.
	ms := time.Millisecond
	for _, requests := range []int{0, 1, 367, 368} {
		m := Measurement{Windows: []Window{steady(t, 1, repeat(ms, max(0, requests-1)), repeat(9*ms, min(requests, 1)))}}
		e, ok := m.Percentile(0.99)
		if bounded := m.Bounded(0.99); bounded != (requests == 368) {
			t.Errorf("%d requests bound the 99th percentile: %t", requests, bounded)
		}
		if ok != (requests > 0) || ok && !near(e.Hi, 0.009, 0.001) {
			t.Errorf("of %d requests is %+v, %t", requests, e, ok)
		}
	}
	// No metric has this percentile.
	if e, ok := (Measurement{Windows: []Window{steady(t, 1, repeat(ms, 10), repeat(7*ms, 1))}}).Percentile(0.999); !ok || !near(e.Value, 0.007, 0.001) {
		t.Errorf("the 99.9th percentile is %+v, %t, want 7 ms", e, ok)
	}
}

func TestPercentileCountsBatchesNotRequests(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	latencies := make([]time.Duration, 1000)
	for i := range latencies {
		latencies[i] = 10*time.Millisecond + time.Duration(random.Int64N(int64(10*time.Millisecond)))
	}
	w := steady(t, 1, latencies) // one sub-window shows no clusters, so only the batches count
	single, ok := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	// The latencies are uniform between 10 and 20 ms, so the 90th percentile is 19 ms.
	if !ok || single.Lo > 0.019 || single.Hi < 0.019 || !near(single.Value, 0.019, 0.02) {
		t.Fatalf("p90 is %+v, %t, want an interval around 19 ms", single, ok)
	}
	w.Server = ServerStats{Requests: 1000, Executions: 100}
	batched, _ := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	// With a tenth of the observations the interval is √10 ≈ 3.2 times as wide.
	widened := (batched.Hi - batched.Lo) / (single.Hi - single.Lo)
	if widened < 2 || widened > 5 {
		t.Errorf("batches of 10 widen the interval %.1f times, want about 3.2", widened)
	}
	// Ten batches cannot bound a 90th percentile from above (0.9^10 = 0.35). Hi is the largest
	// latency.
	w.Server.Executions = 10
	few, _ := Measurement{Windows: []Window{w}}.Estimate(LatencyP90)
	if want := w.Sub[0].Latency; few.Hi < want.Rank(want.Count()).Seconds() {
		t.Errorf("upper bound %v is below the largest latency", few.Hi)
	}
}

// Batches of 8 requests end together. The interval must cover the true quantile in about 95 % of
// the cases. If the requests counted as independent, it would cover far less often.
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

// The test goes from requests to intervals: 50 sub-windows of a throughput that wanders, with
// log-normal latencies that wander from request to request. The intervals of throughput and of the
// 99th percentile cover the truth in 93 to 97 % of 1,000 runs.
func TestIntervalsCoverAutocorrelatedLoad(t *testing.T) {
	t.Parallel()
	const runs, perSub, rho, sigma, median = 1000, 100, 0.5, 0.5, 0.010
	p99 := median * math.Exp(sigma*2.326348)
	random := rand.New(rand.NewPCG(6, 6))
	innovation := math.Sqrt(1 - rho*rho)
	throughput, percentile := 0, 0
	for range runs {
		var m Measurement
		rate, latency := random.NormFloat64(), random.NormFloat64()
		for range 5 {
			w := Window{Duration: time.Second}
			for range 10 {
				rate = rho*rate + innovation*random.NormFloat64()
				latencies := make([]time.Duration, int(math.Round(perSub*(1+0.1*rate))))
				for i := range latencies {
					latency = rho*latency + innovation*random.NormFloat64()
					latencies[i] = time.Duration(median * math.Exp(sigma*latency) * float64(time.Second))
				}
				w.Sub = append(w.Sub, SubWindow{Requests: len(latencies), Latency: NewHistogram(latencies)})
				w.Inferences += len(latencies)
			}
			m.Windows = append(m.Windows, w)
		}
		if e, _ := m.Estimate(Throughput); e.Lo <= 10*perSub && 10*perSub <= e.Hi {
			throughput++
		}
		if e, _ := m.Percentile(0.99); e.Lo <= p99 && (p99 <= e.Hi || !m.Bounded(0.99)) {
			percentile++
		}
	}
	t.Logf("of %d runs covered: throughput %d, p99 %d", runs, throughput, percentile)
	for name, covered := range map[string]int{"throughput": throughput, "p99": percentile} {
		if covered < runs*93/100 || covered > runs*97/100 {
			t.Errorf("the interval of %s covers in %d of %d runs", name, covered, runs)
		}
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

// Estimates and Value equal Estimate to the last bit.
func TestEstimatesAndValuesAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(51, 52))
	var m Measurement
	for range 2 {
		var sub [][]time.Duration
		for range 10 {
			sub = append(sub, logNormal(random, 80+random.IntN(20), 10*time.Millisecond, 0.3))
		}
		w := steady(t, 1, sub...)
		w.EngineCPU = 2 * time.Second
		w.Server = ServerStats{Requests: w.Requests, Executions: w.Requests / 4, Queue: time.Second, ComputeInfer: 3 * time.Second}
		m.Windows = append(m.Windows, w)
	}
	for _, m := range []Measurement{m, {Windows: m.Windows, Memory: 1e8}, {}, {Windows: make([]Window, 1)}} {
		metrics := append(Metrics(), ErrorRate, "latency_p99.9", "no such metric")
		estimates := m.Estimates(metrics)
		for _, metric := range metrics {
			want, known := m.Estimate(metric)
			if e, ok := estimates[metric]; ok != known || ok && e != want {
				t.Errorf("%s is %+v, %t; want %+v, %t", metric, e, ok, want, known)
			}
			if v, ok := m.Value(metric); ok != known || ok && v != want.Value {
				t.Errorf("the value of %s is %v, %t; want %v, %t", metric, v, ok, want.Value, known)
			}
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

// Windows without a request are empty in an open loop alone: in a closed one the clients wait. Of
// several models one is enough.
func TestWindowsWithoutARequestAreEmpty(t *testing.T) {
	t.Parallel()
	mix, err := NewMix(Part{Model: "a", RequestRate: 0.5, BatchSize: 1}, Part{Model: "b", Concurrency: 2, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	open, closed, both := Load{RequestRate: 0.5, BatchSize: 1}, Load{Concurrency: 2, BatchSize: 1}, Load{Scale: 1, Mix: mix}
	for _, c := range []struct {
		load    Load
		windows []Window
		want    bool
	}{
		{open, []Window{{}, {}}, true},
		{open, []Window{{}, {Scheduled: 1}}, false},
		{open, []Window{{Requests: 1}}, false}, // it began before the window
		{open, []Window{{Errors: 1}}, false},
		{open, nil, false}, // the trial failed
		{closed, []Window{{}}, false},
		{both, []Window{{Model: "a"}, {Model: "b", Requests: 9}}, true},
		{both, []Window{{Model: "a", Scheduled: 1}, {Model: "b"}}, false},
	} {
		if got := (Measurement{Windows: c.windows}).IsEmpty(c.load); got != c.want {
			t.Errorf("%v with %d windows: %v, want %v", c.load, len(c.windows), got, c.want)
		}
	}
}
