package measure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPercentileNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[Metric]float64{"latency_p50": 0.5, "latency_p75": 0.75, "latency_p99": 0.99, "latency_p99.9": 0.999,
		"latency_p99.99": 0.9999, "latency_p0.5": 0.005} {
		info, ok := name.Info()
		if q, isQuantile := name.Quantile(); q != want || !isQuantile || !ok || info != (Info{Seconds, false}) {
			t.Errorf("%s is the quantile %v, %t, described as %+v, %t; want %v in seconds", name, q, isQuantile, info, ok, want)
		}
	}
	for _, name := range []Metric{"latency_p", "latency_p0", "latency_p100", "latency_p-1", "latency_p+9", "latency_p099", "latency_p99.0", "latency_p1e1",
		"latency_pNaN", "latency_pInf", "latency_p0x1", "latency_p9_9", "latency_p99 ", "latency_avg", "latency", "p99", "throughput"} {
		if q, ok := name.Quantile(); ok {
			t.Errorf("%q is the quantile %v", name, q)
		}
	}
	// All of n requests lie below the 99.9th percentile with a probability of 0.999^n, which is 2.5
	// % at n = 3687.03.
	if n := Metric("latency_p99.9").Samples(); n != 3688 {
		t.Errorf("the 99.9th percentile needs %d requests, want 3688", n)
	}
}

func TestPercentilesAreMetrics(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	m := Measurement{Windows: []Window{steady(t, 1, repeat(ms, 75), repeat(9*ms, 25))}}
	for metric, want := range map[Metric]float64{"latency_p75": 0.001, "latency_p75.5": 0.009, "latency_p99.9": 0.009} {
		if e, ok := m.Estimate(metric); !ok || !near(e.Value, want, 0.001) {
			t.Errorf("%s is %+v, %t, want %v", metric, e, ok, want)
		}
	}
}

func TestMetricsKnowTheirUnits(t *testing.T) {
	t.Parallel()
	for _, m := range append(Metrics(), ErrorRate) {
		if info, ok := m.Info(); !ok || info.Unit == "" || m.About() == "" {
			t.Errorf("%s is described as %+v, %t, %q", m, info, ok, m.About())
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	check := func(m Metric, value float64, want string) {
		t.Helper()
		if got := m.Format(value); got != want {
			t.Errorf("%s of %v is %q, want %q", m, value, got, want)
		}
	}
	check(LatencyP99, 0.0298, "29.8 ms")
	check(LatencyP99, 0.00298, "2.98 ms")
	check(LatencyP99, 0.298, "298 ms")
	check(LatencyP99, 0.000400, "400 µs")
	check(LatencyP99, 0.0000955, "95.5 µs")
	check(LatencyP99, 0.0000015, "1.5 µs")
	check("latency_p99.9", 0.000001, "1 µs")
	check(GPUMemory, 2.5e9, "2500 MB")
	check(Memory, 64e3, "64 kB")
	check(Memory, 0, "0 MB")
	check(GPUUtilization, 0.815, "81.5 %")
	check(GPUPower, 61.23, "61.2 W")
	check(Energy, 12.345, "12.3 J")
	check(Energy, 0.0123, "12.3 mJ")
	check(Energy, 0.0000123, "12.3 µJ")
	check(Energy, 0, "0 J")
	check(Cost, 0.27134, "0.271 per million")
	check(Cost, 0.0041, "0.00410 per million")
	check(Cost, 1234.5, "1234 per million")
	check(CPU, 1.5, "1.50 cores")
	check(Throughput, 412.34, "412.3 infer/s")
	check(Throughput, 10, "10.0 infer/s")
	check(Throughput, 9.876, "9.88 infer/s")
	check(Throughput, 0.04, "0.0400 infer/s") // 25 s each
	check(Throughput, 0, "0.0 infer/s")
}

// A dropped request of an open loop counts as much as a failed one: 1 + 3 of 40.
func TestErrorRateCountsWhatWasDropped(t *testing.T) {
	t.Parallel()
	m := Measurement{Windows: []Window{{Requests: 30, Errors: 1}, {Requests: 6, Dropped: 3}}}
	if e, ok := m.Estimate(ErrorRate); !ok || !near(e.Value, 0.1, 1e-12) {
		t.Errorf("the error rate is %+v, %t, want 0.1", e, ok)
	}
}

// Two windows of 1 s and 3 s with two GPUs. The second GPU appears in the second window only.
func TestGPUsAndEnergy(t *testing.T) {
	t.Parallel()
	m := Measurement{Windows: []Window{
		{Duration: time.Second, Inferences: 100, CPUEnergy: 20, GPUs: []GPUWindow{{UUID: "A", Utilization: 0.2, Power: 100, MemoryUsed: 5e9, MemoryTotal: 8e9, Energy: 100}}},
		{Duration: 3 * time.Second, Inferences: 300, CPUEnergy: 60, GPUs: []GPUWindow{{UUID: "A", Utilization: 0.6, Power: 200, MemoryUsed: 4e9, MemoryTotal: 8e9, Energy: 600}, {UUID: "B", Utilization: 0, Power: 50, MemoryUsed: 2e9, MemoryTotal: 8e9, Energy: 150}}},
	}}
	for metric, want := range map[Metric]float64{
		GPUMemory:      6e9,                         // the second window's 4 + 2 GB
		GPUUtilization: (0.2 + 3*0.6 + 0) / (1 + 6), // over 1 s of one GPU and 3 s of two
		GPUPower:       (100 + 3*250) / 4.0,         // 100 W over 1 s, 250 W over 3 s
		Energy:         (120 + 810) / 400.0,         // 20 + 100 J and 60 + 600 + 150 J
	} {
		if e, ok := m.Estimate(metric); !ok || !near(e.Value, want, 1e-9) || e.Lo > e.Value || e.Hi < e.Value {
			t.Errorf("%s is %+v, %t, want %v", metric, e, ok, want)
		}
	}
	want := []GPUWindow{{UUID: "A", Utilization: 0.5, Power: 175, MemoryUsed: 5e9, MemoryTotal: 8e9, Energy: 700}, {UUID: "B", Utilization: 0, Power: 50, MemoryUsed: 2e9, MemoryTotal: 8e9, Energy: 150}}
	if diff := cmp.Diff(want, m.GPUs(), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("each GPU (-want +got):\n%s", diff)
	}
	idle := Measurement{Windows: []Window{{Duration: time.Second, Inferences: 1, GPUs: []GPUWindow{{UUID: "A"}}}}}
	if e, ok := idle.Estimate(GPUUtilization); !ok || e.Value != 0 {
		t.Errorf("an idle GPU computes %+v, %t, want 0", e, ok)
	}
	for _, metric := range []Metric{GPUMemory, GPUPower, Energy, Cost} {
		if e, ok := idle.Estimate(metric); ok {
			t.Errorf("%s is %+v where nothing tells it", metric, e)
		}
	}
}

// Energy counts also when a counter shows it in another window than the inferences.
func TestEnergyIsPooledOverWindows(t *testing.T) {
	t.Parallel()
	window := func(inferences int, joules float64) Window {
		return Window{Duration: time.Second, Inferences: inferences, GPUs: []GPUWindow{{UUID: "A", Energy: joules}}}
	}
	for name, c := range map[string]struct {
		windows []Window
		want    float64
	}{
		// 1200 J for 400 inferences
		"a counter that is renewed every other window": {[]Window{window(100, 0), window(100, 600), window(100, 0), window(100, 600)}, 3},
		// 400 J for 100 inferences
		"a window in which nothing was inferred": {[]Window{window(100, 200), window(0, 200)}, 4},
		// 300 J for 100 inferences
		"a window in which nobody looked": {[]Window{window(100, 300), {Duration: time.Second, Inferences: 100}}, 3},
	} {
		if e, ok := (Measurement{Windows: c.windows}).Estimate(Energy); !ok || !near(e.Value, c.want, 1e-9) || e.Lo > e.Value || e.Hi < e.Value {
			t.Errorf("%s: %+v, %t, want %v J", name, e, ok, c.want)
		}
	}
}

// The interval of a rate in an open loop ends at the offered rate. That of a closed loop and those of
// other metrics stay.
func TestBounded(t *testing.T) {
	t.Parallel()
	e := Estimate{Value: 99, Lo: 95, Hi: 103}
	open, batched, closed := Load{RequestRate: 100}, Load{RequestRate: 25, BatchSize: 4}, Load{Concurrency: 4}
	for _, c := range []struct {
		load   Load
		metric Metric
		e      Estimate
		want   float64 // upper end
	}{
		{open, Throughput, e, 100},
		{batched, Throughput, e, 100}, // 25 requests of 4 inferences
		{batched, Goodput(50e6), e, 100},
		{open, Throughput, Estimate{Value: 101, Lo: 97, Hi: 105}, 101}, // the schedule had more than its mean
		{open, Throughput, Estimate{Value: 90, Lo: 88, Hi: 92}, 92},
		{closed, Throughput, e, 103},
		{open, LatencyP99, e, 103},
		{Load{}, Throughput, e, 103}, // unknown
	} {
		got := c.load.Bounded(c.metric, c.e)
		if got.Hi != c.want || got.Value != c.e.Value || got.Lo != c.e.Lo {
			t.Errorf("%s at %s: %+v, want an end at %g", c.metric, c.load, got, c.want)
		}
	}
}
