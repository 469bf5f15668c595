package analyze

import (
	"fmt"
	"math"
	"testing"

	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/search"
)

// recordingOf makes a recording with one configuration for each pair of throughput and p99 (s).
func recordingOf(figures [][2]float64) Recording {
	rec := Recording{Model: "m", Source: "a file"}
	for i, f := range figures {
		text := fmt.Sprintf("name: \"m\" max_batch_size: %d instance_group { count: %d kind: KIND_CPU }", 1<<i, 1)
		deployed, err := modelconfig.Parse("a test", []byte(text))
		if err != nil {
			panic(err)
		}
		rec.Configs = append(rec.Configs, RecordedConfig{Name: fmt.Sprint(i), Deployed: deployed, Points: []RecordedPoint{{
			Load:   measure.Load{Concurrency: 4, BatchSize: 1},
			Values: map[measure.Metric]float64{measure.Throughput: f[0], measure.LatencyP99: f[1], measure.LatencyAvg: f[1]},
		}}})
	}
	return rec
}

// With these weights, Model Analyzer's ranking runs in a circle, since it divides differences by
// each pair's mean. The first beats the second, the second the third, and the third the first.
func TestWeightedObjectiveHasNoCircles(t *testing.T) {
	t.Parallel()
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{
		{Metric: measure.Throughput, Weight: 3}, {Metric: measure.LatencyP99, Weight: 2},
	}}}
	figures := [][2]float64{{150, 0.002}, {300, 0.008}, {800, 0.080}}
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		r, err := recordingOf([][2]float64{figures[p[0]], figures[p[1]], figures[p[2]]}).Rank(goal, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// 3 ln 150 − 2 ln 0.002 = 27.46; 3 ln 300 − 2 ln 0.008 = 26.77; 3 ln 800 − 2 ln 0.080 =
		// 25.11.
		for i, want := range []float64{27.46, 26.77, 25.11} {
			if got := r.Configs[i].Score.Value; math.Abs(got-want) > 0.01 {
				t.Errorf("insertion order %v: the score of place %d is %.2f, want %.2f", p, i, got, want)
			}
		}
	}
}

// Two configurations that differ only in what no knob has, or of which the recording has only names, keep their own
// figures. So the faster one wins, wherever it stands.
func TestRecordedConfigurationsKeepTheirFigures(t *testing.T) {
	t.Parallel()
	deployed := map[string][2]string{
		"parameters": {`name: "m" max_batch_size: 8 parameters { key: "threads" value { string_value: "1" } }`, `name: "m" max_batch_size: 8 parameters { key: "threads" value { string_value: "2" } }`},
		"unknown":    {"", ""},
	}
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	for name, texts := range deployed {
		for fast := range 2 {
			figures := [][2]float64{{100, 0.010}, {100, 0.010}}
			figures[fast][0] = 200
			rec := recordingOf(figures)
			for i, text := range texts {
				var err error
				if rec.Configs[i].Deployed, err = modelconfig.Parse("a test", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			r, err := rec.Rank(goal, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for place, want := range []float64{200, 100} {
				c := r.Configs[place]
				if got := math.Round(c.Best.Values[measure.Throughput].Value); got != want || (c.Name == fmt.Sprint(fast)) != (place == 0) {
					t.Errorf("%s, %d is fast: place %d has %s with %v infer/s, want %v", name, fast, place+1, c.Name, got, want)
				}
			}
		}
	}
}

// A recording may have both kinds of loads. compareLoads still is a total order.
func TestLoadsOfBothKindsHaveAnOrder(t *testing.T) {
	t.Parallel()
	loop, rate := measure.Load{Concurrency: 4, BatchSize: 1}, measure.Load{RequestRate: 4, BatchSize: 1}
	if a, b := compareLoads(loop, rate), compareLoads(rate, loop); a*b != -1 {
		t.Errorf("%v and %v compare as %d, and the other way round as %d", loop, rate, a, b)
	}
}
