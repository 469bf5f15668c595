package landscape

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"tuner/lab/landscape/record"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/search/plan"
)

// small is a landscape of 2 pools × 2 batch sizes × 3 loads in closed form. A batch takes 4 ms + 1
// ms for each item. Another instance makes everything proportionally faster, and every request
// takes N/X.
func small() synthesis {
	space := search.Space{
		Knobs: []search.Knob{knob(search.KnobInstanceCount, "1", "2"), knob(search.KnobMaxBatchSize, "1", "4")},
		Load:  search.LoadAxis{Levels: []float64{1, 4, 16}, BatchSize: 1},
		Facts: search.Facts{Cores: 4, Batching: true, BaseMaxBatchSize: 4, BaseInstances: 1,
			Base: map[string]search.Value{search.KnobInstanceCount: "1", search.KnobMaxBatchSize: "4"}},
	}
	return synthesis{
		name: "small", space: space, largest: 4,
		costs:   costs{reconfigure: 200 * time.Millisecond, warmUp: 300 * time.Millisecond, settle: 50 * time.Millisecond},
		launch:  func(setup) float64 { return 2 },
		memory:  func(s setup) float64 { return 1e8 * float64(s.instances) },
		service: func(_ setup, concurrency, batch int) float64 { return 0.001 * float64(3+concurrency+batch) },
		serve: func(s setup, load measure.Load) outcome {
			k, n := float64(s.instances), float64(load.Concurrency)
			b := min(float64(s.B), max(1, n/k))
			x := min(k, n) * b / (0.004 + 0.001*b)
			return outcome{throughput: x, latency: func(float64) float64 { return n / x }, queue: n/x - (0.004 + 0.001*b), batch: b, busy: min(k, n)}
		},
	}
}

func candidate(instances, batch search.Value) search.Candidate {
	return search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: instances}, search.Setting{Knob: search.KnobMaxBatchSize, Value: batch})
}

func trial(c search.Candidate, concurrency int) search.Trial {
	return search.Trial{Candidate: c, Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch}
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

func TestRegret(t *testing.T) {
	t.Parallel()
	l := small().make()
	// Two instances with batches of 4 at 16: X = 2·4/8 ms = 1000/s, R = 16 ms. At 4: batches of 2,
	// X = 2·2/6 ms, R = 6 ms.
	none := Limit{"none", math.Inf(1)}
	tight := Limit{"tight", 0.0061}
	check := func(instances, batch search.Value, level float64, limit Limit, want float64) {
		t.Helper()
		if got := l.Regret(candidate(instances, batch), level, limit); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s instances, batch %s at %g: regret is %g, want %g", instances, batch, level, got, want)
		}
	}
	check("2", "4", 16, none, 0)
	check("1", "4", 16, none, 0.5)
	check("2", "4", 16, tight, 1)
	check("2", "4", 4, tight, 0)
	check("2", "4", 4, Limit{"within 2 %", 0.006 / 1.01}, 0) // tolerated, and better than all that keep the limit
	check("2", "4", 5, none, 1)                              // not a point
	check("1", "4", 16, Limit{"impossible", 1e-6}, 1)
	if _, ok := l.Best(Limit{"impossible", 1e-6}); ok {
		t.Error("a point keeps an impossible limit")
	}
	// The twelve p99, ascending: 5 5 5 5 6 8 10 16 20 32 40 80 ms. A quarter of them is within the
	// third, 60 % within the seventh.
	limits := l.Limits()
	if len(limits) != 3 || !near(limits[0].P99, 0.005, 1e-3) || !near(limits[1].P99, 0.010, 1e-3) || !math.IsInf(limits[2].P99, 1) {
		t.Errorf("limits are %v", limits)
	}
}

func TestDefaultIsFound(t *testing.T) {
	t.Parallel()
	l := small().make()
	p := l.Find(search.Candidate{}, 4)
	if p == nil || p.Candidate.Key() != candidate("1", "4").Key() {
		t.Errorf("the default is %+v", p)
	}
	if p := l.Find(search.Candidate{}.With(search.KnobInstanceCount, "2"), 4); p == nil || p.Candidate.Key() != candidate("2", "4").Key() {
		t.Errorf("the default with 2 instances is %+v", p)
	}
	if l.Find(candidate("3", "4"), 4) != nil || l.Find(search.Candidate{}, 5) != nil {
		t.Error("unknown points are found")
	}
}

func TestMachineKeepsTheTruth(t *testing.T) {
	t.Parallel()
	l := small().make()
	m := l.NewMachine(1)
	e := m.Measure(trial(candidate("2", "4"), 16))
	x, _ := e.Measurement.Estimate(measure.Throughput)
	p99, _ := e.Measurement.Estimate(measure.LatencyP99)
	queue, _ := e.Measurement.Estimate(measure.QueueTime)
	w := e.Measurement.Windows[0]
	// X = 1000/s, R = 16 ms including 8 ms in the queue; batches of 4.
	if !near(x.Value, 1000, 0.01) || !near(p99.Value, 0.016, 0.01) || !near(queue.Value, 0.008, 0.01) || !near(w.Server.MeanBatch(), 4, 0.01) ||
		e.Measurement.Memory != 2e8 || len(w.Sub) != subWindows {
		t.Errorf("throughput %v, p99 %v, queue %v, batch %g, memory %d", x, p99, queue, w.Server.MeanBatch(), e.Measurement.Memory)
	}
}

// A cut window has the same share of all figures as of its time, and advances the clock by no more.
func TestMachineCutsWindows(t *testing.T) {
	t.Parallel()
	least := 1100.0
	futile := trial(candidate("2", "4"), 16)
	futile.Windows, futile.Worth = 3, []search.Constraint{{Metric: measure.Throughput, Min: &least}}
	m := small().make().NewMachine(1)
	whole := m.Measure(trial(candidate("2", "4"), 16)).Measurement
	e := m.Measure(futile)
	part := e.Measurement
	if whole.Cut || !part.Cut || len(part.Windows) != 1 || part.Times.Windows != part.Windows[0].Duration {
		t.Fatalf("whole cut: %t; part cut: %t, %d windows in %v", whole.Cut, part.Cut, len(part.Windows), part.Times.Windows)
	}
	w, all := part.Windows[0], whole.Windows[0]
	x, _ := part.Estimate(measure.Throughput)
	queue, _ := part.Estimate(measure.QueueTime)
	if w.Duration != time.Duration(measure.Look*float64(all.Duration)) || len(w.Sub) != 4 || !near(x.Value, 1000, 0.01) || !near(queue.Value, 0.008, 0.01) ||
		!near(w.Server.MeanBatch(), 4, 0.02) || !near(float64(w.Server.Executions), 0.4*float64(all.Server.Executions), 0.02) {
		t.Errorf("%v with %d parts, %v infer/s, queue %v, batch %g", w.Duration, len(w.Sub), x, queue, w.Server.MeanBatch())
	}
	least = 900
	if e := m.Measure(futile); e.Measurement.Cut || len(e.Measurement.Windows) != 3 {
		t.Errorf("what is worth it is cut: %d windows", len(e.Measurement.Windows))
	}
}

func TestMachineCosts(t *testing.T) {
	t.Parallel()
	m := small().make().NewMachine(1)
	check := func(name string, t2 search.Trial, launches int, launch, reconfigure bool) {
		t.Helper()
		before := m.clock
		e := m.Measure(t2)
		times := e.Measurement.Times
		if (times.Launch > 0) != launch || (times.Reconfigure > 0) != reconfigure || e.Measurement.Launch != launches {
			t.Errorf("%s: launch %d, times %+v", name, e.Measurement.Launch, times)
		}
		if got := e.Elapsed - before; got != times.Total() || e.Elapsed != m.clock {
			t.Errorf("%s: took %v of %v", name, got, times.Total())
		}
	}
	check("first", trial(candidate("1", "4"), 4), 1, true, false)
	check("same configuration", trial(candidate("1", "4"), 16), 1, false, false)
	check("same pool", trial(candidate("1", "1"), 16), 1, false, true)
	check("other pool", trial(candidate("2", "1"), 16), 2, true, false)
	fresh := trial(candidate("2", "1"), 16)
	fresh.Fresh = true
	check("fresh", fresh, 3, true, false)
	unknown := m.Measure(trial(candidate("2", "1"), 5))
	if unknown.Measurement.Failure == nil {
		t.Error("a point that the landscape does not have is measured")
	}
}

func TestEqualSeedsGiveEqualEvents(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = noiseOf(0.1)
	y.noise.Burst = 0.2
	l := y.make()
	events := func(seed uint64) string {
		m := l.NewMachine(seed)
		var list []search.Event
		for _, c := range []search.Candidate{candidate("1", "4"), candidate("2", "4"), candidate("1", "1")} {
			list = append(list, m.Measure(trial(c, 16)))
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first, again, other := events(1), events(1), events(2)
	if again != first {
		t.Error("the same seed gives different events")
	}
	if other == first {
		t.Error("different seeds give the same events")
	}
}

func TestNoiseIsAsLargeAsItSays(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = noiseOf(0.05)
	y.serve = func(setup, measure.Load) outcome {
		return outcome{throughput: 1000, latency: func(level float64) float64 { return 0.010 + 0.020*level }, batch: 4, busy: 1}
	}
	l := y.make()
	var throughput, tail []float64
	for seed := range uint64(400) { // a new machine each time, so that the figures include the drift
		e := l.NewMachine(seed).Measure(trial(candidate("2", "4"), 16))
		x, _ := e.Measurement.Estimate(measure.Throughput)
		p99, _ := e.Measurement.Estimate(measure.LatencyP99)
		throughput, tail = append(throughput, math.Log(x.Value/1000)), append(tail, math.Log(p99.Value/0.0298))
	}
	deviation := func(values []float64) float64 { return record.StandardError(values) * math.Sqrt(float64(len(values))) }
	// √(0.03² + (0.035² averaged over 1 s of 1.5 s: × 0.81) + 0.01²) = 4.5 %. The tail adds 5 % in
	// squares.
	if d := deviation(throughput); d < 0.035 || d > 0.055 {
		t.Errorf("throughput varies by %.3f", d)
	}
	if d := deviation(tail); d < 0.055 || d > 0.085 {
		t.Errorf("p99 varies by %.3f", d)
	}
	if mean := stats.Mean(throughput).Value; math.Abs(mean) > 0.01 {
		t.Errorf("throughput is off by %.3f in the mean", mean)
	}
}

func TestWeatherDoesNotDependOnTheQuestions(t *testing.T) {
	t.Parallel()
	n := noiseOf(0.1)
	n.Burst = 0.3
	a, b := newWeather(trace{}, n, 0, 7), newWeather(trace{}, n, 0, 7)
	late := a.speed(50 * time.Second)
	for at := time.Duration(0); at < 50*time.Second; at += time.Second {
		b.speed(at)
	}
	if b.speed(50*time.Second) != late || a.speed(3*time.Second) != b.speed(3*time.Second) {
		t.Error("the course depends on when it was asked")
	}
	// Over hours the neighbour does not change the mean, since the truth includes its share.
	sum, count := 0.0, 0
	long := newWeather(trace{}, Noise{Burst: 0.3}, 0, 8)
	for at := time.Duration(0); at < 10*time.Hour; at += time.Second {
		sum, count = sum+long.speed(at), count+1
	}
	if mean := sum / float64(count); !near(mean, 1, 0.02) {
		t.Errorf("the mean speed is %.3f", mean)
	}
}

func TestServiceTrials(t *testing.T) {
	t.Parallel()
	m := small().make().NewMachine(1)
	service := trial(candidate("2", "4"), 2)
	service.Phase, service.Sizes, service.Windows, service.Window = search.PhaseService, []int{1, 2, 3, 8}, 4, 200*time.Millisecond
	e := m.Measure(service)
	if e.Measurement.Failure != nil || len(e.Measurement.Windows) != 4 || e.Measurement.Memory != 2e8 {
		t.Fatalf("%+v", e.Measurement)
	}
	for i, w := range e.Measurement.Windows {
		// (3 + concurrency + batch) ms: interpolated at 3, and affine beyond 4.
		want := 0.001 * float64(5+service.Sizes[i])
		got := w.Server.ComputeInfer.Seconds() / float64(w.Server.Requests)
		if !near(got, want, 0.01) || w.Server.Executions != w.Requests || w.Inferences != w.Requests*service.Sizes[i] || w.Requests < 10 {
			t.Errorf("size %d takes %g s, want %g; %d requests, %d executions", service.Sizes[i], got, want, w.Requests, w.Server.Executions)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	step := func(seconds int, regret float64) Step {
		return Step{At: time.Duration(seconds) * time.Second, Regret: [hours]float64{Now: regret, Long: 1}}
	}
	o := Outcome{Steps: []Step{step(10, 0.5), step(20, 0.01), step(30, 0.03), step(40, 0.015), step(50, 0)}}
	for at, want := range map[time.Duration]float64{0: 1, 10 * time.Second: 0.5, 25 * time.Second: 0.01, time.Hour: 0} {
		if got := o.At(at, Now); got != want {
			t.Errorf("regret at %v is %g, want %g", at, got, want)
		}
	}
	if since, ok := o.StaysWithin(0.02, Now); !ok || since != 40*time.Second {
		t.Errorf("stays within 2 %% after %v, %t; want 40 s", since, ok)
	}
	if _, ok := (Outcome{Steps: o.Steps[:3]}).StaysWithin(0.02, Now); ok {
		t.Error("ends at 3 %, and stays within 2 %")
	}
	if _, ok := o.StaysWithin(0.02, Long); ok || o.At(time.Hour, Long) != 1 {
		t.Error("one kind of hours is taken for the other")
	}
}

func TestCampaign(t *testing.T) {
	t.Parallel()
	y := small()
	y.noise = noiseOf(0.02)
	l := y.make()
	limit := l.Limits()[2]
	strategy, err := plan.New("random", l.Settings(limit, 3*time.Minute, 1))
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	o := l.Run(strategy, limit, 1, func(search.Event, string, float64) { followed++ })
	if followed != o.Trials {
		t.Errorf("%d of %d trials are told", followed, o.Trials)
	}
	// All four configurations are measured, and the best is far better than the others.
	if o.Regret != [hours]float64{} || o.False[Now] || o.False[Long] || o.Launches < 5 || o.Measured <= 0.2 || o.Elapsed > 3*time.Minute+time.Second || !o.Value.Stated || !o.Gain.Stated {
		t.Errorf("outcome is %+v", o)
	}
	if since, ok := o.StaysWithin(0.02, Now); !ok || since >= o.Elapsed {
		t.Errorf("stays within 2 %% after %v, %t", since, ok)
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	// Mean 1, standard error 0.1·√3/3 = 0.0577, t = 4.303: ± 0.248.
	logs := []float64{0.9, 1.0, 1.1}
	for truth, want := range map[float64]bool{1.24: true, 0.76: true, 1.26: false} {
		if got := coverage(logs, truth); !got.Stated || got.Covers != want {
			t.Errorf("truth %g: %+v, want %t", truth, got, want)
		}
	}
	if coverage(logs[:2], 1).Stated {
		t.Error("two launches state an interval")
	}
	// Difference 1; pooled variance 0.01, t(4) = 2.776: ± 2.776·0.1·√(2/3) = 0.227.
	for truth, want := range map[float64]bool{1.22: true, 0.76: false} {
		if got := gainCoverage([]float64{1.9, 2.0, 2.1}, logs, truth); got.Covers != want {
			t.Errorf("gain %g: %+v, want %t", truth, got, want)
		}
	}
}
