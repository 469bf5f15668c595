package landscape

import (
	"math"
	"testing"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/search"
)

func TestQuantilesHaveTheMean(t *testing.T) {
	t.Parallel()
	sketch := record.NewSketch(quantiles(0.0100, 0.0098, 0.0110, 0.0120, 0.0150))
	if got := sketch.Mean(); !near(got, 0.0100, 0.005) {
		t.Errorf("mean is %g s, want 10 ms", got)
	}
	for level, want := range map[float64]float64{0.5: 0.0098, 0.9: 0.0110, 0.95: 0.0120, 0.99: 0.0150} {
		if got := sketch.Quantile(level); !near(got, want, 1e-3) {
			t.Errorf("quantile %g is %g s, want %g", level, got, want)
		}
	}
}

func TestBias(t *testing.T) {
	t.Parallel()
	o := outcome{throughput: 100, latency: func(level float64) float64 { return 0.010 + 0.010*level }, queue: 0.004}
	b := o.bias(math.Log(2), math.Log(3))
	// Twice the throughput halves the latencies. In addition the 99th percentile is three times as
	// far.
	if !near(b.throughput, 200, 1e-9) || !near(b.queue, 0.002, 1e-9) || !near(b.latency(0.5), 0.0075, 1e-9) || !near(b.latency(0.99), 0.0199/2*3, 1e-9) {
		t.Errorf("throughput %g, queue %g, median %g, p99 %g", b.throughput, b.queue, b.latency(0.5), b.latency(0.99))
	}
	if got := stretched(0.9, 3); got <= 1 || got >= 3 {
		t.Errorf("the 90th percentile is stretched by %g", got)
	}
}

// The machine with a memory keeps the laws that hold for all service times.
func TestPastKeepsLittlesLaw(t *testing.T) {
	t.Parallel()
	constant := func(setup, int, int) float64 { return 0.010 }
	for _, batch := range []int{1, 4} {
		for _, concurrency := range []int{1, 2, 16} {
			m := memory{setup: setup{instances: 2, B: batch}, wire: 0.0005, base: constant}
			o := m.serve(measure.Load{Concurrency: concurrency, BatchSize: 1}, 1)
			mean := record.NewSketch(o.latency).Mean()
			if n := o.throughput * mean; !near(n, float64(concurrency), 0.05) {
				t.Errorf("batch %d at %d: X·R = %.2f", batch, concurrency, n)
			}
			if o.batch > float64(batch) || o.batch < 1 || o.busy > 2.05 {
				t.Errorf("batch %d at %d: mean batch %.2f, %.2f busy", batch, concurrency, o.batch, o.busy)
			}
			// At most two batches run at a time, each for at least 10 ms apart from the spread.
			if most := 2 * float64(batch) / 0.010; o.throughput > most*1.03 {
				t.Errorf("batch %d at %d: %.0f/s of at most %.0f", batch, concurrency, o.throughput, most)
			}
		}
	}
	wait := func(concurrency int) float64 {
		m := memory{setup: setup{instances: 1, B: 1}, base: constant}
		return m.serve(measure.Load{Concurrency: concurrency, BatchSize: 1}, 1).throughput
	}
	if few, many := wait(1), wait(32); many > 0.85*few {
		t.Errorf("%.1f/s with 31 waiting, %.1f/s with none: waiting requests slow nothing down", many, few)
	}
}

func TestDelayFillsBatches(t *testing.T) {
	t.Parallel()
	// Three of four clients are answered together. Without a delay the fourth is then served alone,
	// while the three are on their way.
	batch := func(delay search.Value) float64 {
		c := search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: "3"}, search.Setting{Knob: search.KnobMaxQueueDelay, Value: delay})
		m := memory{setup: newSetup(c), base: func(_ setup, _, n int) float64 { return 0.001 + 0.0001*float64(n) }, wire: 0.001}
		return m.serve(measure.Load{Concurrency: 4, BatchSize: 1}, 1).batch
	}
	if none, some := batch("0us"), batch("4000us"); some < none+0.5 {
		t.Errorf("batches of %.2f with a delay, %.2f without", some, none)
	}
}

// Each kind of landscape is checked with few of its points. Throughput is positive, more load never
// makes a tail much shorter, and the default exists.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, y := range []synthesis{cpu(), noisy(), gpu(), past(), slow()} {
		t.Run(y.name, func(t *testing.T) {
			t.Parallel()
			for i, k := range y.space.Knobs {
				base := y.space.Facts.Base[k.Name]
				if k.Name == search.KnobMaxBatchSize {
					y.space.Knobs[i].Values = []search.Value{"1", base}
				} else {
					y.space.Knobs[i].Values = []search.Value{base}
				}
			}
			y.space.Load.Levels = []float64{1, 16}
			l := y.make()
			if len(l.Points) != 4 || l.Find(search.Candidate{}, 16) == nil || l.pool(search.Candidate{}) == nil {
				t.Fatalf("points are %+v", l.Points)
			}
			for _, p := range l.Points {
				w := p.visits[0][0]
				if p.Throughput <= 0 || p.P99 <= 0 || p.memory <= 0 || w.seconds < 1 || w.seconds > max(longestStretch, fewest*p.P99) || w.batch < 1 {
					t.Errorf("%s at %g: %+v", p.Candidate, p.Level, p)
				}
			}
			if low, high := l.Find(search.Candidate{}, 1), l.Find(search.Candidate{}, 16); high.P99 < low.P99 || high.Throughput < low.Throughput {
				t.Errorf("at 1: %g/s, %g s; at 16: %g/s, %g s", low.Throughput, low.P99, high.Throughput, high.P99)
			}
		})
	}
}

// With 16 in flight, an instance with batches of 4 always has two full ones waiting, so its delay
// has no effect. Batches of up to 8 hold all of 4 in flight, as those of 4 do.
func TestWhatDoesTheSameHasTheSameTruth(t *testing.T) {
	t.Parallel()
	y := cpu()
	check := func(batch, delay search.Value, concurrency int, wantBatch, wantDelay search.Value) {
		t.Helper()
		c := candidate("1", batch).With(search.KnobMaxQueueDelay, delay)
		want := candidate("1", wantBatch).With(search.KnobMaxQueueDelay, wantDelay)
		if got := y.plainest(newSetup(c), measure.Load{Concurrency: concurrency}).candidate; got.Key() != want.Key() {
			t.Errorf("batch %s, delay %s at %d is the same as %s, want %s", batch, delay, concurrency, got, want)
		}
	}
	check("4", "1000us", 16, "4", "0us")
	check("4", "1000us", 8, "4", "1000us")
	check("8", "0us", 4, "4", "0us")
	check("8", "1000us", 4, "8", "1000us")
	check("32", "0us", 3, "4", "0us")
	check("1", "0us", 1, "1", "0us")
}
