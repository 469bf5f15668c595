package predict

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/search"
	"tuner/search/footprint"
	"tuner/search/guided/pools"
	"tuner/search/guided/service"
	"tuner/search/guided/tuning"
	"tuner/search/queuesim"
	"tuner/search/standings"
)

// settings returns a space with one batcher and engines with the given thread numbers, each with
// one to three instances.
func settings(threads ...search.Value) search.Settings {
	return search.Settings{Space: search.Space{
		Knobs: []search.Knob{
			{Name: search.KnobIntraOpThreads, Scope: search.ScopeEngine, Values: threads},
			{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1", "2", "3"}},
			{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"4"}},
		},
		Load:  search.LoadAxis{Levels: []float64{1, 64}, Any: true, BatchSize: 1},
		Facts: search.Facts{Cores: 16, Batching: true, BaseMaxBatchSize: 4, BaseInstances: 1},
	}}
}

func newPredictor(s search.Settings) *Predictor {
	n := tuning.Default()
	return New(s, pools.New(s.Space, standings.NewLedger(s.Goal), s.Space.Candidates(), footprint.New(s.Space), n), n)
}

// opens makes a pool ready with one instance's service times: seconds for a batch of 1, 2 and 4.
// All instances together take the same time.
func (x *Predictor) opens(p *pools.Pool, seconds ...float64) {
	sizes := []int{1, 2, 4}[:len(seconds)]
	*p.Engine().Alone() = service.New(sizes, seconds, []float64{0.05}, 1)
	*p.Together() = service.New(sizes, seconds, []float64{0.05}, 1)
	x.pools.Open(p)
	x.open(p)
}

// A trial shows the path as the processor time beyond the service times of its batches. Here a
// batch of 2 takes 30 µs.
func TestPathOfTrials(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	window := func(engine, client time.Duration) measure.Window {
		return measure.Window{Duration: 100 * ms, Requests: 1000, EngineCPU: engine, ClientCPU: client,
			Server: measure.ServerStats{Requests: 1000, Inferences: 1000, Executions: 500, ComputeInfer: time.Hour}}
	}
	for _, tc := range []struct {
		name    string
		threads search.Value // "": a device computes
		windows []measure.Window
		want    float64 // s; 0: too little to measure
		unknown bool
	}{
		{"two windows", "2", []measure.Window{window(50*ms, 20*ms), window(30*ms, 20*ms)}, 30e-6, false},
		{"a device computes", "", []measure.Window{window(50*ms, 20*ms)}, 70e-6, false},
		{"nearly all is computing", "2", []measure.Window{window(30*ms, 3*ms)}, 0, false},
		{"more was computed than used", "4", []measure.Window{window(30*ms, 20*ms)}, 0, false},
		{"the server is on another machine", "2", []measure.Window{window(0, 20*ms)}, 0, true},
		{"nothing was executed", "2", []measure.Window{{EngineCPU: ms, ClientCPU: ms}}, 0, true},
	} {
		s := settings(tc.threads)
		if tc.threads == "" {
			s = settings("1")
			s.Space.Facts.Base = map[string]search.Value{search.KnobExecutionProvider: "cuda"}
		}
		x := newPredictor(s)
		p := x.pools.All()[0]
		x.opens(p, 20e-6, 30e-6, 50e-6)
		rate, path, ok := x.pathOf(p, x.Curve(p), measure.Measurement{Windows: tc.windows})
		if ok == tc.unknown || ok && (rate != 10_000 || math.Abs(path-tc.want) > 1e-9*tc.want) {
			t.Errorf("%s: %v at %v requests/s (%t), want %v", tc.name, path, rate, ok, tc.want)
		}
	}
}

// Threads that spin or switch add to the processor time of a trial. If two in three trials are
// disturbed, the others show the path. Trials with few requests do not count.
func TestPathIsOfUndisturbedTrials(t *testing.T) {
	t.Parallel()
	x := newPredictor(settings("1"))
	p := x.pools.All()[0]
	x.opens(p, 100e-6, 150e-6)
	if _, ok := x.MeasuredPath(); ok {
		t.Error("a path is known without a trial")
	}
	enter := func(i, requests int, path time.Duration) {
		w := measure.Window{Duration: time.Second, Requests: requests, EngineCPU: time.Duration(requests) * (100*time.Microsecond + path), ClientCPU: 1,
			Server: measure.ServerStats{Requests: requests, Inferences: requests, Executions: requests}}
		p.Record(fmt.Sprint(i, " ", requests), 1, measure.Measurement{Windows: []measure.Window{w}})
	}
	for i := range 5 {
		enter(i, 1000, 40*time.Microsecond)
		enter(i, 1100, 70*time.Microsecond)
		enter(i, 900, 90*time.Microsecond)
		enter(i, 500, 20*time.Microsecond)
	}
	path, ok := x.MeasuredPath()
	if !ok || math.Abs(path/40e-6-1) > x.tuning.Path.Step {
		t.Errorf("the path takes %.1f µs, want 40", 1e6*path)
	}
	for i := range 5 { // the least disturbed of as many show none
		enter(i, 1050, 0)
	}
	if path, ok := x.MeasuredPath(); !ok || path != 0 {
		t.Errorf("%v s (%t), want too little to measure", path, ok)
	}
	x.SetPath(path)
	if most := 16 / path; x.passable() != most || x.Curve(p).Path != path {
		t.Errorf("%v/s can pass, want %v; the curve's path is %v", x.passable(), most, x.Curve(p).Path)
	}
}

// Little's law and the capacity bound a closed loop, the offered rate an open one.
func TestBound(t *testing.T) {
	t.Parallel()
	o := Outline{Sizes: []int{1, 4}, Seconds: []float64{0.010, 0.020}, Most: []float64{100, 200}, Overhead: 0.002, Least: 0.010}
	x := newPredictor(settings("1"))
	for _, c := range []struct {
		i     int
		level float64
		want  Bound
	}{
		{0, 1, Bound{1 / 0.012, 0.012, 0.012}},
		{0, 3, Bound{100, 0.030, 0.012}},
		{1, 3, Bound{200, 0.015, 0.012}},
	} {
		if got := x.Bound(o, c.i, c.level); got != c.want {
			t.Errorf("batches up to %d with %v in flight: %+v, want %+v", o.Sizes[c.i], c.level, got, c.want)
		}
	}
	x.load.Rate = true
	if got, want := x.Bound(o, 1, 50), (Bound{50, 0.012, 0.012}); got != want {
		t.Errorf("at 50 requests/s: %+v, want %+v", got, want)
	}
}

// With one open engine the others are expected to have its times, with unknown effects of the
// values that differ. The conditional variance of two normal numbers is k(e,e) − k(e,o)²/k(o,o).
func TestForecastFromOneEngine(t *testing.T) {
	t.Parallel()
	x := newPredictor(settings("1", "2"))
	open, other := x.pools.Engines()[0], x.pools.Engines()[1]
	if _, ok := x.Forecast(other); ok {
		t.Error("something is expected of an engine while none is open")
	}
	x.opens(open.Pools()[0], 0.010, 0.012, 0.016)
	x.ForecastEngines()
	f, ok := x.Forecast(other)
	n := x.tuning.Engines
	own, common := n.Common+n.Effect+n.Rest, n.Common
	want := math.Sqrt(own - common*common/own)
	if !ok || math.Abs(f.Deviation-want) > 1e-12 || f.Last != 4 {
		t.Errorf("the forecast is %+v, want a deviation of %v", f, want)
	}
	for i, seconds := range []float64{0.010, 0.012, 0.016} {
		if math.Abs(f.Curve.Alone[i]/seconds-1) > 1e-12 {
			t.Errorf("a batch of %d is expected to take %v s, want %v", f.Curve.Sizes[i], f.Curve.Alone[i], seconds)
		}
	}
}

// The contention of one pool predicts that of others. The more the numbers of instances differ, the
// less it does. By normal correlation, from one observation, it is k(p,o)/k(o,o) of its logarithm.
func TestContentionFromOnePool(t *testing.T) {
	t.Parallel()
	x := newPredictor(settings("1"))
	two, three := x.pools.All()[1], x.pools.All()[2]
	*two.Engine().Alone() = service.New([]int{1, 4}, []float64{0.010, 0.020}, []float64{0.05}, 1)
	*two.Together() = service.New([]int{1, 4}, []float64{0.012, 0.025}, []float64{0.05}, 1) // a quarter longer together
	x.pools.Open(two)
	x.open(two)
	x.ForecastContention()
	n := x.tuning.Contention
	d := math.Log(1.5)
	own, shared := n.Alike+n.Own, n.Alike*math.Exp(-d*d)
	got := x.Contention(three)
	if want := shared / own * math.Log(0.8); math.Abs(got.Mean-want) > 1e-12 {
		t.Errorf("three instances are expected to do e^%v of what they would undisturbed, want e^%v", got.Mean, want)
	}
	if want := own - shared*shared/own; math.Abs(got.Variance-want) > 1e-12 {
		t.Errorf("the variance is %v, want %v", got.Variance, want)
	}
}

// The factor of a 2×2 matrix, and the solution of its equations, in closed form.
func TestMatrix(t *testing.T) {
	t.Parallel()
	factor := cholesky([][]float64{{4}, {2, 5}})
	if factor[0][0] != 2 || factor[1][0] != 1 || factor[1][1] != 2 {
		t.Errorf("the factor is %v", factor)
	}
	v := solve(factor, []float64{8, 9}) // 4a + 2b = 8, 2a + 5b = 9
	if math.Abs(v[0]-1.375) > 1e-12 || math.Abs(v[1]-1.25) > 1e-12 {
		t.Errorf("the solution is %v, want 1.375 and 1.25", v)
	}
}

// A cell is simulated with its batcher, its pool's curve and the load.
func TestSimulate(t *testing.T) {
	t.Parallel()
	s := settings("1")
	s.Seed = 7
	x := newPredictor(s)
	p := x.pools.All()[1]
	x.opens(p, 0.010, 0.012, 0.016)
	c := pools.Cell{Pool: p, Setting: pools.Setting{Level: 8}}
	want := queuesim.Simulate(p.Batchers()[0].Queue, x.Curve(p), measure.Load{Concurrency: 8, BatchSize: 1}, queuesim.Options{Seed: 7})
	for range 2 {
		if got := x.Simulate(c); !reflect.DeepEqual(got, want) {
			t.Errorf("the result is %+v, want %+v", got, want)
		}
	}
}

// In an open loop the simulation follows the course of the arrivals, for whole periods.
func TestSimulateArrivals(t *testing.T) {
	t.Parallel()
	s := settings("1")
	s.Space.Load = search.LoadAxis{Rate: true, Levels: []float64{20}, BatchSize: 1, Arrivals: arrivals.Pattern{Kind: arrivals.OnOffKind, On: time.Second, Off: 9 * time.Second}}
	x := newPredictor(s)
	p := x.pools.All()[0]
	x.opens(p, 0.010, 0.012, 0.016)
	c := pools.Cell{Pool: p, Setting: pools.Setting{Level: 20}}
	bursty := x.Simulate(c)
	schedule, requests, err := s.Space.Load.Arrivals.Course(20, s.Seed, mostSimulated)
	if err != nil {
		t.Fatal(err)
	}
	load := measure.Load{RequestRate: 20, BatchSize: 1}
	if want := queuesim.Simulate(p.Batchers()[0].Queue, x.Curve(p), load, queuesim.Options{Arrivals: schedule, Requests: requests}); !reflect.DeepEqual(bursty, want) {
		t.Errorf("the result is %+v, want %+v", bursty, want)
	}
	// 200/s in the second on: ten times the mean rate makes queues that Poisson arrivals do not have.
	if poisson := queuesim.Simulate(p.Batchers()[0].Queue, x.Curve(p), load, queuesim.Options{}); bursty.P99 < 1.2*poisson.P99 {
		t.Errorf("bursts have a p99 of %v s, Poisson arrivals %v s", bursty.P99, poisson.P99)
	}
}

// A kind between the measured ones has times between theirs, also beside other instances, and the
// curve's own times are the means.
func TestCurvesOfKinds(t *testing.T) {
	t.Parallel()
	s := settings("1")
	s.Space.Facts.Mix = []search.Kind{{Share: 0.5, Elements: 10}, {Share: 0.25, Elements: 55}, {Share: 0.25, Elements: 100}}
	x := newPredictor(s)
	p := x.pools.All()[1]
	trial := search.Trial{Sizes: []int{1, 4}, Kinds: x.pools.Kinds(), Load: measure.Load{Concurrency: 1}}
	record := func(factor float64) search.Event {
		e := search.Event{Trial: trial}
		for _, seconds := range []float64{0.010, 0.055, 0.100, 0.020, 0.110, 0.200} {
			n := time.Duration(seconds * factor * 1e9)
			e.Measurement.Windows = append(e.Measurement.Windows, measure.Window{Duration: time.Second, Requests: 1,
				Sub:    []measure.SubWindow{{Requests: 1, Latency: measure.NewHistogram([]time.Duration{n})}},
				Server: measure.ServerStats{Requests: 1, Executions: 1, ComputeInfer: n}})
		}
		return e
	}
	p.Engine().Alone().Record(record(1))
	p.Together().Record(record(2))
	x.pools.Open(p)
	x.open(p)
	c := x.Curve(p)
	if len(c.Kinds) != 3 || math.Abs(c.Kinds[1].Alone[1]-0.110) > 1e-9 || math.Abs(c.Kinds[2].Crowded[0]-0.200) > 1e-9 {
		t.Errorf("the kinds are %+v", c.Kinds)
	}
	if math.Abs(c.Alone[0]-(0.5*0.010+0.25*0.055+0.25*0.100)) > 1e-9 {
		t.Errorf("the mean times are %v", c.Alone)
	}
	// Times that fall from the middle kind to the largest, by noise, fall no further than to the
	// smallest kind's: the line of 0.110 and 0.010 s would be at 0.010 − 10·0.100 s.
	noisy := []queuesim.ServiceCurve{{Alone: []float64{0.010}, Crowded: []float64{0.010}}, {Alone: []float64{0.110}, Crowded: []float64{0.110}}, {Alone: []float64{0.010}, Crowded: []float64{0.010}}}
	if k := x.kinds(p, noisy, []int{1}, []search.Kind{{Share: 1, Elements: 550}}); k[0].Alone[0] != 0.010 {
		t.Errorf("a kind beyond the measured ones takes %v s", k[0].Alone[0])
	}
	// The smallest kind has 10 of 43.75 elements in the mean.
	if o := x.Outline(p); math.Abs(o.Least-c.Alone[0]*10/43.75) > 1e-9 {
		t.Errorf("a lone row takes %v s at least", o.Least)
	}
	if math.Abs(x.Bound(x.Outline(p), 0, 1).Wait-c.Alone[0]-c.Overhead) > 1e-9 {
		t.Error("the mean latency is bounded by another time than the mean one")
	}
}
