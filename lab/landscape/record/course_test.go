package record

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tuner/measure/stats"
	"tuner/search"
)

// restlessRates are the requests per second of its configurations, by instances.
var restlessRates = map[search.Value]float64{"1": 1e5, "2": 1.02e5, "3": 0.5e5}

// restless returns a recording of a machine whose speed changes by 30 % within half a minute. The
// reference does not show it, since it is always measured when the machine is at its mean. Three
// configurations are measured in turn, in random order.
func restless(noise float64) File {
	f := File{Header: Header{Space: search.Space{Load: search.LoadAxis{Levels: []float64{4}, BatchSize: 1}}}}
	random := rand.New(rand.NewPCG(31, 32))
	add := func(instances search.Value, at, rate float64, reference bool) {
		rate *= math.Exp(0.3*math.Sin(2*math.Pi*at/30) + noise*random.NormFloat64())
		f.Points = append(f.Points, Point{Level: 4, Reference: reference,
			Trial: Trial{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: instances}), Launch: len(f.Points),
				At: time.Duration(at * float64(time.Second))},
			Windows: []Window{{Duration: time.Second, Requests: []int{int(rate)}, Latency: NewSketch(func(float64) float64 { return 4 / rate })}}})
	}
	for at := 0.0; at < 600; at += 6 {
		if math.Mod(at, 120) == 0 {
			add("1", at, 1e5, true)
		}
		for i, k := range random.Perm(3) {
			instances := []search.Value{"1", "2", "3"}[k]
			add(instances, at+1.5*float64(i)+1, restlessRates[instances], false)
		}
	}
	return f
}

func TestSpeedWithinMinutesIsTakenOut(t *testing.T) {
	t.Parallel()
	f := restless(0.01)
	for _, truth := range Truths(f, NewCourse(f)) {
		instances, _ := truth.Candidate.Get(search.KnobInstanceCount)
		want := restlessRates[instances]
		// Without correcting the speed, the machine's deviation of 21 % leaves a standard error of
		// 2.1 % after a hundred visits.
		if truth.Error > 0.005 || math.Abs(truth.Throughput/want-1) > 0.015 {
			t.Errorf("%s instances: %g ± %.2f %%, want %g", instances, truth.Throughput, 100*truth.Error, want)
		}
	}
	if d := NewCourse(f).Deviation(); d > 0.01 {
		t.Errorf("the reference drifts by %g", d)
	}
}

// A kernel of half a second follows a machine whose speed changes within two seconds. The
// recordings of this repository choose neither end of the widths, so they need neither a narrower
// nor a wider one.
func TestWidthsAreNotEndsOfTheirGrid(t *testing.T) {
	t.Parallel()
	f := File{Header: Header{Space: search.Space{Load: search.LoadAxis{Levels: []float64{4}, BatchSize: 1}}}}
	random := rand.New(rand.NewPCG(37, 38))
	for i := range 2000 {
		at := 0.25 * float64(i)
		rate := 1e5 * math.Exp(0.3*math.Sin(2*math.Pi*at/4)+0.01*random.NormFloat64())
		f.Points = append(f.Points, Point{Level: 4, Reference: i%500 == 0, Trial: Trial{Launch: 1 + i, At: time.Duration(at * float64(time.Second))},
			Windows: []Window{{Duration: time.Second, Requests: []int{int(rate)}}}})
	}
	if got := NewCourse(f).seconds.width; got != leastWidth {
		t.Errorf("a width of %g s, want %g", got, leastWidth)
	}
	paths, err := filepath.Glob("../../testdata/landscapes/*.jsonl.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	for _, path := range paths {
		f, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := NewCourse(f).seconds.width; got <= leastWidth || got >= math.Ldexp(leastWidth, widths-1) {
			t.Errorf("%s: a width of %g s is an end of the grid", f.Header.Name, got)
		}
	}
}

// On a steady machine, a trial's own noise does not count as the machine's speed: the errors are
// those of the noise.
func TestNoiseIsNotTakenForSpeed(t *testing.T) {
	t.Parallel()
	f := restless(0)
	random := rand.New(rand.NewPCG(33, 34))
	var errors []float64
	for range 10 {
		for i := range f.Points {
			f.Points[i].Windows[0].Requests[0] = int(1e6 * math.Exp(0.05*random.NormFloat64()))
		}
		for _, truth := range Truths(f, NewCourse(f)) {
			errors = append(errors, truth.Error)
		}
	}
	if mean := stats.Mean(errors).Value; math.Abs(mean-0.005) > 0.0003 { // 5 % / √100
		t.Errorf("standard errors of %.2f %% in the mean, want 0.5 %%", 100*mean)
	}
}

// The hypervisor takes a twentieth of the machine in the mean, and a quarter from the fifth minute
// on. Each percent costs two. The truth is the configurations' performance at the mean share.
func TestWhatTheHypervisorTookIsTakenOut(t *testing.T) {
	t.Parallel()
	f := restless(0.01)
	random := rand.New(rand.NewPCG(35, 36))
	sum := 0.0
	for i := range f.Points {
		p := &f.Points[i]
		steal := 0.1 * random.Float64()
		if p.At > 5*time.Minute {
			steal += 0.2
		}
		sum += steal
		w := &p.Windows[0]
		w.Steal, w.Requests[0] = steal, int(float64(w.Requests[0])*math.Exp(-2*steal))
	}
	mean := sum / float64(len(f.Points))
	course := NewCourse(f)
	for _, truth := range Truths(f, course) {
		instances, _ := truth.Candidate.Get(search.KnobInstanceCount)
		want := restlessRates[instances] * math.Exp(-2*mean)
		if truth.Error > 0.006 || math.Abs(truth.Throughput/want-1) > 0.025 {
			t.Errorf("%s instances: %g ± %.2f %%, want %g", instances, truth.Throughput, 100*truth.Error, want)
		}
	}
	early, late := course.Steal(2*time.Minute), course.Steal(8*time.Minute)
	if math.Abs(early-0.05) > 0.03 || math.Abs(late-0.25) > 0.03 {
		t.Errorf("%.3f and %.3f are taken, want 0.05 and 0.25", early, late)
	}
	// at equal phases of the fast part
	if ratio := course.Speed(8*time.Minute) / course.Speed(2*time.Minute); math.Abs(math.Log(ratio)+0.4) > 0.1 {
		t.Errorf("the machine is %.2f times as fast while more is taken, want %.2f", ratio, math.Exp(-0.4))
	}
}
