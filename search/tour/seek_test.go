package tour_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/searchtest"
	"tuner/search/standings"
	"tuner/search/tour"
)

// machine is a closed loop in closed form: a lone request takes `alone`, and the server completes
// at most `peak` per second.
type machine struct {
	alone time.Duration
	peak  float64
	// failure of all loads from a level on; nil without one
	failure *measure.Failure
	from    float64
}

func (m machine) measure(load measure.Load) measure.Measurement {
	n := load.Level()
	if m.failure != nil && n >= m.from {
		return measure.Measurement{Failure: m.failure}
	}
	throughput := min(n/m.alone.Seconds(), m.peak)
	latency := time.Duration(n / throughput * float64(time.Second))
	return searchtest.Measured(search.Trial{Load: load, Windows: 1}, throughput, latency)
}

// run seeks to the end, and returns the tried levels and the best passing one (0 without one).
func run(t *testing.T, s tour.Seek, m machine, lead float64) (levels []float64, best float64) {
	t.Helper()
	var points []standings.Point
	for {
		step, more := s.Next(points, lead)
		if !more {
			break
		}
		if step.Why == "" || len(points) > 20 {
			t.Fatalf("step %d: %+v", len(points), step)
		}
		levels = append(levels, step.Level)
		load := s.Axis.At(step.Level)
		points = append(points, standings.Judge(s.Goal, load, m.measure(load)))
	}
	score := math.Inf(-1)
	for _, p := range points {
		if p.Passes() && p.Score > score {
			best, score = p.Level, p.Score
		}
	}
	return levels, best
}

var (
	none    = math.Inf(-1) // no leader
	doubled = []float64{1, 2, 4, 8, 16, 32, 64}
)

// seek looks for the highest throughput at a limited p99 in seconds, with any whole concurrency
// from 1 to 64.
func seek(knee, p99 float64) tour.Seek {
	return tour.Seek{
		Axis: search.LoadAxis{Levels: doubled, Any: true, BatchSize: 1},
		Goal: search.Goal{
			Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
			Constraints: []search.Constraint{searchtest.AtMost(measure.LatencyP99, p99)},
		},
		Knee: knee,
	}
}

func TestSeekLevels(t *testing.T) {
	t.Parallel()
	check := func(name string, s tour.Seek, m machine, lead float64, want ...float64) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := run(t, s, m, lead)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("levels (-want +got):\n" + diff)
			}
		})
	}
	ms := time.Millisecond
	listed := seek(16, 0.050)
	listed.Axis.Any = false
	latency := seek(16, 1)
	latency.Goal.Objective.Terms[0].Metric = measure.LatencyP99
	least := 1500.0
	atLeast := latency
	atLeast.Goal.Constraints = []search.Constraint{{Metric: measure.Throughput, Min: &least}}
	cheapest := seek(64, 0.050)
	cheapest.Goal.Objective.Terms[0].Metric, cheapest.Goal.Price = measure.Cost, 1
	cheap := latency // at 5.4 an hour, a million costs 1 at 1500/s
	cheap.Goal.Constraints, cheap.Goal.Price = []search.Constraint{searchtest.AtMost(measure.Cost, 1)}, 5.4
	impossible := seek(16, 0.001)
	impossible.Goal.Constraints = append(impossible.Goal.Constraints, atLeast.Goal.Constraints...)
	hang := &measure.Failure{Stage: measure.StageHang}
	saturated := machine{alone: 10 * ms, peak: 1000} // 16 in flight: 1000/s at 16 ms

	check("saturated at the knee: one more level shows it", seek(16, 0.050), saturated, none, 16, 32)
	check("knee beyond the axis", seek(500, 0.100), saturated, none, 64)
	check("throughput still grows", seek(4, 1), machine{alone: 10 * ms, peak: 3000}, none, 4, 8, 16, 32, 64)
	// 64 in flight take 64 ms. Within 50 ms, 64·0.95/1.28 = 47 are possible. The throughput cannot
	// exceed the 1000/s of 64, which 47 reach.
	check("down to the limit in one step", seek(64, 0.050), saturated, none, 64, 47)
	// 32 in flight take 32 ms, and the limit of 4 ms is below the 10 ms of a lone request.
	// 32·0.95/8 = 3, then 3/1.25² = 1.
	check("nothing passes", seek(32, 0.004), saturated, none, 32, 3, 1)
	check("listed levels only", listed, machine{alone: 10 * ms, peak: 500}, none, 16, 32)
	// 1000/s is less than 0.9 of the leader, and beyond the knee it can grow by a quarter at most.
	check("given up", seek(16, 0.050), saturated, math.Log(1000*1.25/0.89), 16)
	check("not given up near the leader", seek(16, 0.050), saturated, math.Log(1000*1.25/0.91), 16, 32)
	check("given up when it fails", seek(64, 0.050), saturated, math.Log(1000/0.89), 64)
	check("lowest latency at the lowest load", latency, saturated, none, 1)
	// 1500/s need 15 in flight: 1, 2, 4, 8 have less. 16 has enough at the same latency, so a lower
	// load gains nothing.
	check("lowest load with enough throughput", atLeast, machine{alone: 10 * ms, peak: 3000}, none, 1, 2, 4, 8, 16)
	// Here 16 in flight are 3 % slower. 11 = ⌊√(8·16)⌋ and 13 = ⌊√(11·16)⌋ have too little
	// throughput, and 16/13 is fine enough.
	check("refined", atLeast, machine{alone: 10 * ms, peak: 1550}, none, 1, 2, 4, 8, 16, 11, 13)
	// Cost falls with the load. So its search is like that for throughput, and a limit on it asks
	// for more load.
	check("cheapest load within the limit", cheapest, saturated, none, 64, 47)
	check("lowest load that is cheap enough", cheap, machine{alone: 10 * ms, peak: 3000}, none, 1, 2, 4, 8, 16)
	check("constraints that exclude each other", impossible, saturated, none, 16)
	check("hang at the first load", seek(64, 1), machine{alone: 10 * ms, peak: 1000, failure: hang, from: 20}, none, 64, 16)
	check("hang at every load", seek(64, 1), machine{alone: 10 * ms, peak: 1000, failure: hang, from: 1}, none, 64, 16)
	check("hang at a higher load", seek(16, 1), machine{alone: 10 * ms, peak: 5000, failure: hang, from: 20}, none, 16, 32)
	check("crash", seek(64, 1), machine{failure: &measure.Failure{Stage: measure.StageCrash}}, none, 64)
}

// Seek's result equals that of trying all loads, for knees, limits and machines of all sizes.
func TestSeekFindsTheBestLoad(t *testing.T) {
	t.Parallel()
	windows, seeks := 0, 0
	for _, knee := range []float64{2, 8, 24, 64, 256} {
		for _, limit := range []float64{0.012, 0.020, 0.035, 0.050, 0.100, 1} {
			for _, peak := range []float64{150, 400, 1000, 2500, 10000} {
				s, m := seek(knee, limit), machine{alone: 10 * time.Millisecond, peak: peak}
				best := 0.0
				for n := 1.0; n <= 64; n++ {
					if throughput := min(n*100, peak); n/throughput <= limit {
						best = max(best, throughput)
					}
				}
				levels, level := run(t, s, m, none)
				windows, seeks = windows+len(levels), seeks+1
				// Bisection ends at a ratio of 1.25, so at most a fifth is lost of a throughput
				// that grows with the load.
				if got := min(level*100, peak); got < best/1.25 {
					t.Errorf("knee %v, limit %v s, peak %v/s: %v/s at %v, the best is %v/s; tried %v", knee, limit, peak, got, level, best, levels)
				}
			}
		}
	}
	if mean := float64(windows) / float64(seeks); mean > 4 {
		t.Errorf("%.1f trials per configuration, want at most 4 (a sweep of the axis takes 7)", mean)
	}
}

// A request takes 10 ms / (1 − rate/capacity), so it stays within 50 ms up to four fifths of the
// capacity.
func TestSeekFindsTheRate(t *testing.T) {
	t.Parallel()
	for _, best := range []float64{60, 333, 800, 1500} {
		s := seek(1, 0.050)
		s.Axis = search.LoadAxis{Rate: true, Any: true, Levels: []float64{50, 100, 200, 400, 800, 1600}, BatchSize: 1}
		var points []standings.Point
		found := 0.0
		for step, more := s.Next(points, none); more; step, more = s.Next(points, none) {
			load, capacity, latency := s.Axis.At(step.Level), best/0.8, 10*time.Second
			if step.Level < capacity {
				latency = time.Duration(0.010 / (1 - step.Level/capacity) * float64(time.Second))
			}
			p := standings.Judge(s.Goal, load, searchtest.Measured(search.Trial{Load: load, Windows: 1}, min(step.Level, capacity), latency))
			if points = append(points, p); p.Passes() {
				found = max(found, p.Level)
			}
		}
		if found > best || found < best/1.06 { // the search ends at a ratio of 1.05, and rates are whole
			t.Errorf("found %v of %v requests/s, by %+v", found, best, points)
		}
	}
}

func TestSeekAnyOrderOfObjectives(t *testing.T) {
	t.Parallel()
	// Throughput minus half the latency, on log scale. The best load is where throughput stops
	// growing, at 10 in flight.
	s := seek(32, 1)
	s.Goal.Objective.Terms = []search.Term{{Metric: measure.Throughput, Weight: 2}, {Metric: measure.LatencyP99, Weight: 1}}
	levels, best := run(t, s, machine{alone: 10 * time.Millisecond, peak: 1000}, none)
	if best != 8 && best != 16 {
		t.Errorf("best load is %v of %v, want one next to 10", best, levels)
	}
}

func TestSeekGivesMemoryOneLowerLoad(t *testing.T) {
	t.Parallel()
	s := seek(64, 1)
	s.Goal.Constraints = []search.Constraint{searchtest.AtMost(measure.Memory, 1e6)} // measurements have 100 MB
	levels, best := run(t, s, machine{alone: 10 * time.Millisecond, peak: 1000}, none)
	if !slices.Equal(levels, []float64{64, 16}) || best != 0 {
		t.Errorf("tried %v, best %v; want 64 and a quarter of it", levels, best)
	}
}

// At a low rate a window may have no request, by chance. Its load is tried again, up to the most points of a seek.
func TestSeekRepeatsEmptyWindows(t *testing.T) {
	t.Parallel()
	s := seek(1, 0.050)
	s.Axis = search.LoadAxis{Rate: true, Levels: []float64{0.5, 1, 2}, BatchSize: 1}
	empty := standings.Judge(s.Goal, s.Axis.At(1), measure.Measurement{Windows: []measure.Window{{Duration: time.Second}}})
	var points []standings.Point
	for step, more := s.Next(points, none); more; step, more = s.Next(points, none) {
		if step.Level != 1 || len(points) == 20 {
			t.Fatalf("after %d empty windows it tries %v", len(points), step.Level)
		}
		points = append(points, empty)
	}
	if len(points) != 8 {
		t.Errorf("it ends after %d empty windows, want 8", len(points))
	}
	measured := standings.Judge(s.Goal, s.Axis.At(1), searchtest.Measured(search.Trial{Windows: 1}, 1, 10*time.Millisecond))
	if step, more := s.Next([]standings.Point{empty, measured}, none); !more || step.Level != 2 {
		t.Errorf("after a window with requests it tries %v, want 2", step.Level)
	}
}
