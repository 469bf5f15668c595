package queuesim

import (
	"math"
	"testing"

	"tuner/measure"
)

// Over time the speed has the mean 1, its logarithm the deviation, and after the time constant 1/e of a difference is left.
func TestSpeedIsTheProcess(t *testing.T) {
	t.Parallel()
	of := measure.Speed{Deviation: 0.2, Time: 0.5}
	var s speed
	s.reset(of, 1)
	const n, step = 400_000, 0.1
	logs := make([]float64, n)
	mean := 0.0
	for i := range logs {
		slowness := s.slowness(step * float64(i))
		mean += 1 / slowness / n
		logs[i] = math.Log(slowness)
	}
	check(t, "mean speed", mean, 1, 0.01)
	centre, variance, near := 0.0, 0.0, 0.0
	for _, x := range logs {
		centre += x / n
	}
	lag := int(math.Round(of.Time / step))
	for i := range logs[lag:] {
		x, y := logs[i]-centre, logs[i+lag]-centre
		variance, near = variance+x*x, near+x*y
	}
	check(t, "deviation", math.Sqrt(variance/float64(n-lag)), of.Deviation, 0.02)
	check(t, "correlation", near/variance, math.Exp(-1), 0.03)
}

// A closed loop answers as many requests as with a constant speed. In an open loop the latencies grow with the
// time for which the machine stays slow, towards those of queues each of which has a speed of its own.
func TestSpeedCountsInOpenLoops(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{1}}
	simulate := func(l measure.Load, of measure.Speed) Result {
		c.Speed = of
		return Simulate(Batcher{}, c, l, Options{Requests: 400_000, Seed: 3})
	}
	check(t, "throughput of a closed loop", simulate(measure.Load{Concurrency: 2}, measure.Speed{Deviation: 0.15, Time: 30}).Throughput, 1, 0.02)
	const rate, deviation = 0.6, 0.1
	last := 0.0
	for _, time := range []float64{0.1, 10, 300} {
		queue := simulate(measure.Load{RequestRate: rate}, measure.Speed{Deviation: deviation, Time: time}).Queue
		if queue <= last {
			t.Errorf("with a time constant of %v requests wait for %v, and for %v with a shorter one", time, queue, last)
		}
		last = queue
	}
	// M/D/1, ρ/(2(1−ρ)) service times, over the speeds
	want, weights := 0.0, 0.0
	for x := -4.0; x <= 4; x += 0.01 {
		service := math.Exp(deviation*x + deviation*deviation/2)
		weight := math.Exp(-x * x / 2)
		want, weights = want+weight*service*rate*service/(2*(1-rate*service)), weights+weight
	}
	check(t, "wait at speeds that last", last, want/weights, 0.05)
}

// On a slow machine the path takes longer, too.
func TestSpeedSlowsThePath(t *testing.T) {
	t.Parallel()
	c := ServiceCurve{Sizes: []int{1}, Alone: []float64{1e-5}, Overhead: 1e-3, Path: 1e-3, Cores: 1, Threads: 1, Speed: measure.Speed{Deviation: 0.3, Time: 1}}
	r := Simulate(Batcher{}, c, measure.Load{Concurrency: 1}, Options{Requests: 100_000, Seed: 1})
	check(t, "p99", r.P99, r.P50*math.Exp(0.3*2.326), 0.05)
}
