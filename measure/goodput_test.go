package measure

import (
	"testing"
	"time"
)

func TestGoodputNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[Metric]time.Duration{"goodput_50ms": 50 * time.Millisecond, "goodput_2.5ms": 2500 * time.Microsecond,
		"goodput_0.001ms": time.Microsecond, "goodput_600000ms": 10 * time.Minute} {
		info, ok := name.Info()
		if limit, isGoodput := name.Within(); limit != want || !isGoodput || !ok || info != (Info{InferPerSecond, true}) || Goodput(want) != name {
			t.Errorf("%s has the limit %v, %t, is described as %+v, %t, and named %s; want %v", name, limit, isGoodput, info, ok, Goodput(want), want)
		}
	}
	for _, name := range []Metric{"goodput", "goodput_", "goodput_ms", "goodput_50", "goodput_2s", "goodput_0ms", "goodput_-1ms", "goodput_050ms", "goodput_50.0ms",
		"goodput_1e1ms", "goodput_NaNms", "goodput_Infms", "goodput_600001ms", "goodput_0.0005ms", "goodput_1e300ms", "throughput", "latency_p99"} {
		if limit, ok := name.Within(); ok {
			t.Errorf("%q has the limit %v", name, limit)
		}
	}
}

// Of four sub-windows with 10 requests of batch 2 each, 10, 8, 10 and 8 are in time: 36 of 40
// requests in 1 s are 72 inferences/s. The rates by sub-window are 40, 32, 40, 32 requests/s: mean
// 36, standard deviation 8/√3. Half the interval is 3.182·(8/√3)/√4 = 7.349 requests/s.
func TestGoodputCountsAnswersInTime(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	late := append(repeat(ms, 8), repeat(80*ms, 2)...)
	m := Measurement{Windows: []Window{steady(t, 2, repeat(ms, 10), late, repeat(ms, 10), late)}}
	e, ok := m.Estimate("goodput_50ms")
	if !ok || !near(e.Value, 72, 1e-9) || !near(e.Lo, 72-2*7.349, 1e-3) || !near(e.Hi, 72+2*7.349, 1e-3) {
		t.Errorf("the goodput is %+v, %t, want 72 ± 14.7", e, ok)
	}
	for metric, want := range map[Metric]float64{"goodput_50ms": 72, "goodput_100ms": 80, "goodput_0.5ms": 0} {
		if v, ok := m.Value(metric); !ok || !near(v, want, 1e-9) {
			t.Errorf("%s is %v, %t, want %v", metric, v, ok, want)
		}
	}
	if _, ok := (Measurement{}).Value("goodput_50ms"); ok {
		t.Error("a measurement without windows has a goodput")
	}
	if e, ok := m.Estimates([]Metric{"goodput_50ms"})["goodput_50ms"]; !ok || e.Value != 72 {
		t.Errorf("among several metrics it is %+v, %t", e, ok)
	}
}

// A turn's throughput is by Little's law: 4 requests in flight over a mean latency of 25 ms are
// 160/s. Half of its answers are within 20 ms.
func TestGoodputOfATurn(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	w := steady(t, 1, append(repeat(10*ms, 5), repeat(40*ms, 5)...))
	w.Turn, w.InFlight, w.Sub[0].Sum = true, 4, 250*ms
	if v, ok := (Measurement{Windows: []Window{w}}).Value("goodput_20ms"); !ok || !near(v, 80, 1e-9) {
		t.Errorf("the goodput is %v, %t, want 80", v, ok)
	}
}
