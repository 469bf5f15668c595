package main

import (
	"math"
	"testing"
	"time"

	"tuner/capacity/traffic"
)

// A day of 100 requests/s in its first half and 300 in the second, in 20 s: about 1,000 and 3,000 requests,
// within four standard deviations of a Poisson process.
func TestCompressed(t *testing.T) {
	t.Parallel()
	requests := make([]float64, traffic.PerDay)
	for i := range requests {
		requests[i] = 100 * traffic.Step.Seconds()
		if i >= len(requests)/2 {
			requests[i] *= 3
		}
	}
	at := compressed(requests, 20*time.Second, 1)
	counts := [2]float64{}
	for i, x := range at {
		if i > 0 && x < at[i-1] {
			t.Fatalf("instant %d goes back", i)
		}
		counts[min(1, int(x/(10*time.Second)))]++
	}
	for i, want := range []float64{1000, 3000} {
		if math.Abs(counts[i]-want) > 4*math.Sqrt(want) {
			t.Errorf("half %d has %g requests, want %g", i, counts[i], want)
		}
	}
}

// Two slots with the ratios 2 and 8 and as many requests: the geometric mean is 4. The percentile of 100
// equal latencies is that latency.
func TestGain(t *testing.T) {
	t.Parallel()
	of := func(first, second time.Duration) (x side) {
		for i := range 200 {
			latency := first
			if i >= 100 {
				latency = second
			}
			x.answers = append(x.answers, answer{time.Duration(i) * 10 * time.Millisecond, latency})
		}
		return x
	}
	p := pair{length: 2 * time.Second, slots: 2, static: of(20*time.Millisecond, 80*time.Millisecond), adaptive: of(10*time.Millisecond, 10*time.Millisecond)}
	if got := p.gain(); math.Abs(got-4) > 1e-9 {
		t.Errorf("a gain of %g, want 4", got)
	}
	if got := p.static.p99(); math.Abs(got-0.08) > 1e-9 {
		t.Errorf("p99 of %g s, want 0.08", got)
	}
}

// Latencies count from the day's instants, whatever the load's clock.
func TestBegin(t *testing.T) {
	t.Parallel()
	x := side{answers: []answer{{due: 5 * time.Second}, {due: 4 * time.Second}}}
	x.begin(time.Second)
	if x.answers[0].due != time.Second || x.answers[1].due != 2*time.Second {
		t.Errorf("%v", x.answers)
	}
}
