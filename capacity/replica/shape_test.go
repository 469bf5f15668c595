package replica

import (
	"math"
	"math/rand/v2"
	"testing"

	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// shown returns a point in which batches of some sizes took some times, each for a time in s.
func shown(clients int, each float64, sizes []int, times []float64) result.Point {
	p := result.Point{Load: measure.Load{Concurrency: clients, BatchSize: 1}}
	for i, size := range sizes {
		p.Batches = append(p.Batches, measure.BatchTime{Size: size, Executions: int(math.Round(each / times[i])), Seconds: times[i]})
	}
	return p
}

// The times of sizes that were measured for long have the ratios of the measured times, whatever the service trials say, and
// the mean ratio to the trials stays. They never fall with the size.
func TestShapeIsThatOfMeasuredBatches(t *testing.T) {
	t.Parallel()
	b := queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}
	sizes := []int{1, 2, 3, 5, 8}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		times := []float64{0.010, 0.017, 0.025, 0.040, 0.060}
		trials := queuesim.ServiceCurve{Sizes: []int{1, 2, 4}, Speed: measure.Speed{Deviation: 0.1, Time: 0.5}}
		for i, x := range []float64{0.010, 0.017, 0.032} {
			trials.Crowded = append(trials.Crowded, x*(0.8+0.4*r.Float64()))
			if i > 0 {
				trials.Crowded[i] = max(trials.Crowded[i], trials.Crowded[i-1])
			}
			trials.Alone = append(trials.Alone, 0.9*trials.Crowded[i])
		}
		pace := 0.8 + 0.4*r.Float64() // of the machine in the minute of the loads
		got := shaped(trials, []result.Point{shown(16, 1000, sizes, scaled(times, pace))}, b)
		level := got.Time(1, 2, 2) / times[0]
		for i, size := range sizes {
			if x := got.Time(size, 2, 2) / times[i] / level; math.Abs(x-1) > 0.01 {
				t.Errorf("seed %d: a batch of %d takes %.3f times as long as its share", seed, size, x)
			}
		}
		last := 0.0
		for size := 1; size <= b.MaxBatch; size++ {
			if x := got.Time(size, 2, 2); x < last {
				t.Errorf("seed %d: a batch of %d takes %v, and a smaller one %v", seed, size, x, last)
			} else {
				last = x
			}
		}
	}
}

// A single batch says little, one in a loop of few clients nothing, and neither do impossible ones.
func TestShapeOfFewBatches(t *testing.T) {
	t.Parallel()
	b := queuesim.Batcher{Instances: 2, MaxBatch: 4, Dynamic: true}
	trials := queuesim.ServiceCurve{Sizes: []int{1, 4}, Alone: []float64{0.01, 0.03}, Crowded: []float64{0.01, 0.03}, Speed: measure.Speed{Deviation: 0.1, Time: 5}}
	few := shaped(trials, []result.Point{shown(8, 100, []int{1}, []float64{0.01}), shown(8, 0.06, []int{4}, []float64{0.06})}, b)
	if x := few.Time(4, 2, 2) / 0.03; x < 1 || x > 1.02 {
		t.Errorf("one batch of twice the time changes it to %.3f", x)
	}
	for name, p := range map[string]result.Point{
		"few clients": shown(3, 100, []int{1, 4}, []float64{0.01, 0.06}), "larger than allowed": shown(8, 100, []int{8}, []float64{0.06}),
		"no time": {Load: measure.Load{Concurrency: 8}, Sample: result.Sample{Batches: []measure.BatchTime{{Size: 4, Executions: 5}}}},
	} {
		if got := shaped(trials, []result.Point{p}, b); len(got.Sizes) != 2 || got.Time(4, 2, 2) != 0.03 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// On a machine whose speed varies, an open loop is predicted from closed ones and the learned speed.
func TestSpeedOfTheMachineCounts(t *testing.T) {
	t.Parallel()
	varying := truth
	varying.Spread, varying.Speed = 0.05, measure.Speed{Deviation: 0.12, Time: 0.1} // s: the server answers thousands a second
	r, c := measuredOf(varying, batcher, config, 1, 8, 32)
	r.Speed = &varying.Speed
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	checkOpenLoops(t, x, varying, 200_000)
}
