package record

import (
	"math"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
)

// drifting returns a recording of a machine that is half as fast from 100 s on. One configuration
// is measured in each half, another fails.
func drifting() File {
	f := File{Header: Header{Space: search.Space{Load: search.LoadAxis{Levels: []float64{4}, BatchSize: 2}}}}
	add := func(instances search.Value, at, requests float64, launch int, reference bool) {
		if at > 100 {
			requests /= 2
		}
		f.Points = append(f.Points, Point{Level: 4, Reference: reference,
			Trial: Trial{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: instances}), Launch: launch,
				At: time.Duration(at * float64(time.Second)), Memory: int64(launch)},
			Windows: []Window{{Duration: time.Second, Requests: []int{int(requests)}, Latency: NewSketch(func(float64) float64 { return 4 / requests })}}})
	}
	for at := 0.0; at <= 200; at += 10 {
		add("1", at, 400, 1, true)
	}
	add("1", 30, 1000, 2, false)
	add("1", 160, 1000, 3, false)
	add("2", 170, 1200, 4, false)
	f.Points = append(f.Points, Point{Level: 4, Trial: Trial{Failure: &measure.Failure{Stage: measure.StageStart}}})
	return f
}

func TestDriftIsTakenOut(t *testing.T) {
	t.Parallel()
	f := drifting()
	course := NewCourse(f)
	truths := Truths(f, course)
	if len(truths) != 3 {
		t.Fatalf("%d points", len(truths))
	}
	// Speed is relative to its mean on log scale, over 11 references at full and 10 at half speed:
	// 2 inferences × 1000/s × 0.719.
	want := 2000 * math.Exp(10*math.Log(0.5)/21)
	one, two, broken := truths[0], truths[1], truths[2]
	if math.Abs(one.Throughput/want-1) > 0.01 || one.Error > 0.01 || one.Launches != 2 || len(one.Visits) != 2 || one.Memory != 3 {
		t.Errorf("%+v, want %g inferences/s", one, want)
	}
	if math.Abs(one.P99*one.Throughput/8-1) > 0.01 { // 4 requests of 2 in flight
		t.Errorf("p99 is %g s", one.P99)
	}
	if math.Abs(two.Throughput/want-1.2) > 0.02 || !math.IsInf(two.Error, 1) || broken.Failure == nil || broken.Throughput != 0 {
		t.Errorf("%+v, %+v", two, broken)
	}
	if d := course.Deviation(); math.Abs(d-math.Ln2/2) > 0.03 {
		t.Errorf("drift of %g, want ln 2 / 2", d)
	}
	best := Best(truths, math.Inf(1), 5)
	if len(best) != 2 || best[0].Throughput != two.Throughput || len(Best(truths, math.Inf(1), 1)) != 1 || len(Best(truths, 1e-6, 5)) != 0 {
		t.Errorf("best are %+v", best)
	}
}

// twins returns a recording of three configurations at 4 in flight, on a steady machine. Batches of
// 4 and of 8 hold all requests in flight, so they are one server. Batches of 2 are another.
func twins() File {
	base := map[string]search.Value{search.KnobMaxBatchSize: "4", search.KnobMaxQueueDelay: "0us"}
	f := File{Header: Header{Space: search.Space{
		Knobs: []search.Knob{{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"2", "4", "8"}}},
		Load:  search.LoadAxis{Levels: []float64{4}, BatchSize: 1}, Facts: search.Facts{Batching: true, BaseMaxBatchSize: 4, Base: base},
	}}}
	add := func(batch search.Value, launch, requests int, failure *measure.Failure) {
		p := Point{Level: 4, Trial: Trial{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: batch}), Launch: launch,
			At: time.Duration(len(f.Points)) * time.Minute, Memory: int64(requests), Failure: failure}}
		for range 2 {
			p.Windows = append(p.Windows, Window{Duration: time.Second, Requests: []int{requests}, Latency: NewSketch(func(float64) float64 { return 4 / float64(requests) })})
		}
		f.Points = append(f.Points, p)
	}
	add("4", 1, 900, nil)
	add("8", 1, 1000, nil)
	add("2", 1, 970, nil)
	add("4", 2, 1000, nil)
	add("8", 3, 1100, nil)
	add("8", 3, 0, &measure.Failure{Stage: measure.StageHang})
	return f
}

func TestOneServerHasOneTruth(t *testing.T) {
	t.Parallel()
	truths := Truths(twins(), Course{})
	four, eight, two := truths[0], truths[1], truths[2]
	// Launches of √(900·1000), 1000 and 1100.
	want := math.Cbrt(math.Sqrt(900*1000) * 1000 * 1100)
	if math.Abs(four.Throughput/want-1) > 1e-9 || four.Launches != 3 || len(four.Visits) != 4 || len(four.Visits[0].Windows) != 2 {
		t.Errorf("%g after %d launches, want %g", four.Throughput, four.Launches, want)
	}
	if four.Class != eight.Class || eight.Throughput != four.Throughput || eight.P99 != four.P99 || eight.Error != four.Error || eight.Failure != nil {
		t.Errorf("batches of 8 are %+v, of 4 %+v", eight, four)
	}
	if four.Memory != 1000 || eight.Memory != 1100 { // each process has its own memory
		t.Errorf("memory is %d and %d", four.Memory, eight.Memory)
	}
	if two.Class == four.Class || math.Abs(two.Throughput-970) > 1e-9 || !math.IsInf(two.Error, 1) {
		t.Errorf("batches of 2 are %+v", two)
	}
	if best := Best(truths, math.Inf(1), 5); len(best) != 2 || best[0].Candidate.Key() != four.Candidate.Key() || best[1].Candidate.Key() != two.Candidate.Key() {
		t.Errorf("best are %+v", best)
	}
}

func TestWithoutReference(t *testing.T) {
	t.Parallel()
	c := NewCourse(File{})
	if c.Speed(time.Hour) != 1 || c.Deviation() != 0 {
		t.Error("there is drift without a reference")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	if tight, middle := Limits([]float64{5, 0.03456, 1, 0.0123, 4}); math.Abs(tight-0.035) > 1e-12 || middle != 1 {
		t.Errorf("limits are %g and %g, want 0.035 and 1", tight, middle)
	}
}

func TestStandardError(t *testing.T) {
	t.Parallel()
	// Standard deviation 1 of three.
	if got := StandardError([]float64{1, 2, 3}); math.Abs(got-1/math.Sqrt(3)) > 1e-12 {
		t.Errorf("%g", got)
	}
}
