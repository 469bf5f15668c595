package landscape

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// visited returns a point with visits of two windows of a second each. Their rates identify them:
// 10·visit + window, doubled in the second half.
func visited(visits int) *Point {
	p := &Point{}
	for v := range visits {
		var windows []window
		for w := range 2 {
			rate := float64(10*v + w)
			windows = append(windows, window{seconds: 1, rates: []float64{rate, 2 * rate}, isMeasured: true})
		}
		p.visits = append(p.visits, windows)
	}
	return p
}

// A trial replays whole visits. After the first window of a visit comes its second, and then any
// visit's first.
func TestWholeVisitsAreDrawn(t *testing.T) {
	t.Parallel()
	s := stay{point: visited(3)}
	random := rand.New(rand.NewPCG(61, 62))
	seen := map[int]int{}
	for range 100 {
		first, from, to := s.draw(random, 1)
		if from != 0 || to != 1 {
			t.Fatalf("from %g to %g of a whole window", from, to)
		}
		second, _, _ := s.draw(random, 1)
		visit := int(first.rates[0]) / 10
		if int(first.rates[0])%10 != 0 || second.rates[0] != first.rates[0]+1 {
			t.Fatalf("windows %g and %g are not a visit", first.rates[0], second.rates[0])
		}
		seen[visit]++
	}
	if len(seen) != 3 || min(seen[0], seen[1], seen[2]) < 15 {
		t.Errorf("visits are drawn %v times", seen)
	}
}

// Short windows are parts of a recorded one while it lasts. Of two with 0.4 s, the second begins
// where the first ends.
func TestShortWindowsArePartsOfAVisit(t *testing.T) {
	t.Parallel()
	s := stay{point: visited(1)}
	random := rand.New(rand.NewPCG(63, 64))
	for i, want := range []struct{ rate, from, to float64 }{{0, 0, 0.4}, {0, 0.4, 0.8}, {1, 0, 0.4}, {1, 0.4, 0.8}, {0, 0, 0.4}} {
		w, from, to := s.draw(random, 0.4)
		if w.rates[0] != want.rate || !near(from, want.from, 1e-9) || !near(to, want.to, 1e-9) {
			t.Errorf("window %d is %g from %.2f to %.2f, want %+v", i, w.rates[0], from, to, want)
		}
	}
	if late := s.point.visits[0][1].part(0.5, 1); len(late.rates) != 1 || late.rates[0] != 2 {
		t.Errorf("the second half has rates %v", late.rates)
	}
}

// Means of two windows vary as visits do, not as two windows that are drawn one by one. Visits
// differ by 10 %, and the windows of each do not differ.
func TestNoiseOfAVisitIsCommonToItsWindows(t *testing.T) {
	t.Parallel()
	f := recording()
	latency := record.NewSketch(func(float64) float64 { return 0.01 })
	random := rand.New(rand.NewPCG(65, 66))
	f.Points = append(f.Points[:0], f.Points[len(f.Points)-1]) // the pool that does not start
	for i := range 60 {
		n := int(1e5 * math.Exp(0.1*random.NormFloat64()))
		w := record.Window{Duration: time.Second, Requests: []int{n}, Executions: n, Latency: latency}
		f.Points = append(f.Points, record.Point{Level: 4, Trial: record.Trial{Candidate: candidateOf("1"), Launch: 2 + i, At: time.Duration(i) * time.Minute,
			Times: measure.Times{Launch: time.Second}}, Windows: []record.Window{w, w}})
	}
	l, err := FromRecord(f)
	if err != nil {
		t.Fatal(err)
	}
	m := l.NewMachine(1)
	var logs []float64
	for range 400 {
		e := m.Measure(search.Trial{Candidate: candidateOf("1"), Load: measure.Load{Concurrency: 4, BatchSize: 1}, Windows: 2, Window: time.Second})
		x, _ := e.Measurement.Estimate(measure.Throughput)
		logs = append(logs, math.Log(x.Value))
	}
	// The spread of the 60 visits is 10 % within a tenth of itself. Drawn one by one it would be 7
	// %.
	if d := record.StandardError(logs) * math.Sqrt(float64(len(logs))); d < 0.083 || d > 0.12 {
		t.Errorf("means of two windows vary by %.3f, want 0.1", d)
	}
}

// Windows of two points in turn, less than a second apart, meet the same machine. So their ratio
// varies less than either.
func TestTurnsShareTheCourse(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = Noise{Flicker: 0.2}
	l := y.make()
	a, b := stay{point: l.Find(candidate("1", "4"), 16)}, stay{point: l.Find(candidate("2", "4"), 16)}
	m := l.NewMachine(5)
	load := measure.Load{Concurrency: 16, BatchSize: 1}
	var own, ratios []float64
	for i := range 300 {
		begin := 3 * time.Second * time.Duration(i)
		first := m.window(&a, begin, 400*time.Millisecond, 1, load)
		second := m.window(&b, begin+500*time.Millisecond, 400*time.Millisecond, 1, load)
		if first.Start != begin || m.clock != 0 || first.InFlight != 16 {
			t.Fatalf("a window at %v begins at %v with %g in flight, and the clock is at %v", begin, first.Start, first.InFlight, m.clock)
		}
		rate := func(w measure.Window) float64 { return float64(w.Requests) / w.Duration.Seconds() }
		own, ratios = append(own, math.Log(rate(first))), append(ratios, math.Log(rate(second)/rate(first)))
	}
	deviation := func(logs []float64) float64 { return record.StandardError(logs) * math.Sqrt(float64(len(logs))) }
	// Half a second apart, flicker of 1.5 s has a correlation of exp(−⅓) = 0.72. The difference has
	// √(2·0.28) = 0.75 of its deviation for instants, and less for means.
	if d, r := deviation(own), deviation(ratios); r > 0.85*d {
		t.Errorf("ratios vary by %.3f, windows by %.3f", r, d)
	}
	if x := math.Exp(stats.Mean(ratios).Value); !near(x, 2, 0.02) {
		t.Errorf("the ratio is %.3f, want 2", x)
	}
}
