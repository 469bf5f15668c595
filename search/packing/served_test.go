package packing

import (
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/queuesim"
)

func atMost(metric measure.Metric, limit float64) search.Constraint {
	return search.Constraint{Metric: metric, Max: &limit}
}

func atLeast(metric measure.Metric, limit float64) search.Constraint {
	return search.Constraint{Metric: metric, Min: &limit}
}

// single returns a model of one instance on one thread without batches, whose executions all take the
// same time.
func single(name string, seconds float64, load measure.Load, limits ...search.Constraint) Served {
	return Served{Name: name, Load: load, Limits: limits, Batcher: queuesim.Batcher{Instances: 1},
		Curve: queuesim.ServiceCurve{Sizes: []int{1}, Alone: []float64{seconds}, Threads: 1}}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tolerance) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// In an M/D/1 queue the mean latency is S·(1 + ρ/(2(1−ρ))). It is twice S at ρ = 2/3.
func TestScaleOfAQueue(t *testing.T) {
	t.Parallel()
	m := single("a", 0.010, measure.Load{RequestRate: 10}, atMost(measure.LatencyP99, 10), atMost(measure.LatencyAvg, 0.020))
	a := Alone(m, 1, Options{Requests: 100_000})
	near(t, "scale", a.Scale, 200./3/10, 0.02)
	if a.Binding != 0 || a.Limit.Metric != measure.LatencyAvg {
		t.Errorf("model %d binds by %v, want its mean latency", a.Binding, a.Limit)
	}
	near(t, "mean latency at the scale", a.Results[0].Mean, 0.020, 0.03)
}

// Without a limit the capacity binds: 100 requests/s of one inference, or 2·8/0.05 s in batches of 4
// inferences each.
func TestCapacityBinds(t *testing.T) {
	t.Parallel()
	batching := Served{Name: "b", Load: measure.Load{RequestRate: 4, BatchSize: 4}, Batcher: queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true},
		Curve: queuesim.ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.02, 0.04}, Crowded: []float64{0.025, 0.05}, Threads: 1}}
	for want, m := range map[float64]Served{100. / 10: single("a", 0.010, measure.Load{RequestRate: 10}), 2 * 8 / 0.05 / 4 / 4: batching} {
		a := Alone(m, 2, Options{Requests: 20_000})
		near(t, m.Name+": scale", a.Scale, want, 0.03)
		if a.Binding != 0 || a.Limit.Metric != "" {
			t.Errorf("%s: model %d binds by %v, want its capacity", m.Name, a.Binding, a.Limit)
		}
	}
}

// In a closed loop of one instance, n clients wait for n executions. Within 100 ms they are 10.
func TestScaleOfAClosedLoop(t *testing.T) {
	t.Parallel()
	m := single("a", 0.010, measure.Load{Concurrency: 4}, atMost(measure.LatencyAvg, 0.1001))
	a := Alone(m, 1, Options{})
	if n := math.Round(4 * a.Scale); n != 10 || a.Binding != 0 {
		t.Errorf("%v clients at scale %v, want 10", n, a.Scale)
	}
	// A goodput and a throughput are limits like others. Two clients suffice for 100/s.
	m.Limits = []search.Constraint{atLeast(measure.Throughput, 99), atMost(measure.LatencyP50, 0.0301)}
	if n := math.Round(4 * Alone(m, 1, Options{}).Scale); n != 3 {
		t.Errorf("%v clients, want 3", n)
	}
	m.Limits = []search.Constraint{atLeast("goodput_21ms", 99)}
	if n := math.Round(4 * Alone(m, 1, Options{}).Scale); n != 2 {
		t.Errorf("%v clients with all answers in time, want 2", n)
	}
}

// With limits that no load keeps, the scale is 0 and the limit is named. Without a load it is unbounded.
func TestScalesWithoutAnswer(t *testing.T) {
	t.Parallel()
	a := Alone(single("a", 0.010, measure.Load{RequestRate: 10}, atMost(measure.LatencyP50, 0.009)), 1, Options{})
	if a.Scale != 0 || a.Binding != 0 || a.Limit.Metric != measure.LatencyP50 {
		t.Errorf("%+v", a)
	}
	if a := Alone(single("a", 0.010, measure.Load{}), 1, Options{}); !math.IsInf(a.Scale, 1) || a.Binding != -1 {
		t.Errorf("without load: %+v", a)
	}
}

// encoder and ranker are two models that compete for two cores.
func encoder() Served {
	return Served{Name: "encoder", Load: measure.Load{RequestRate: 100, BatchSize: 1}, Limits: []search.Constraint{atMost(measure.LatencyP99, 0.060)},
		Batcher: queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true},
		Curve:   queuesim.ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.006, 0.030}, Crowded: []float64{0.007, 0.034}, Spread: 0.1, Threads: 1}}
}

func ranker() Served {
	return Served{Name: "ranker", Load: measure.Load{RequestRate: 500, BatchSize: 1}, Limits: []search.Constraint{atMost(measure.LatencyP99, 0.012)},
		Batcher: queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true},
		Curve:   queuesim.ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.001, 0.003}, Spread: 0.1, Threads: 1}}
}

// With a core for each instance, the scale of two models is the least of those alone. With fewer cores
// it is less, and at the scale all limits are kept, just above it one is missed.
func TestScaleOfSharedCores(t *testing.T) {
	t.Parallel()
	o := Options{Requests: 40_000, Step: 0.02}
	models := []Served{encoder(), ranker()}
	least := min(Alone(models[0], 3, o).Scale, Alone(models[1], 3, o).Scale)
	near(t, "three cores", Shared(models, 3, o).Scale, least, 0.04)
	a := Shared(models, 2, o)
	if a.Scale > 0.97*least || a.Scale < 0.5*least {
		t.Errorf("two cores carry %v, three %v", a.Scale, least)
	}
	for i, m := range models {
		if p99 := a.Results[i].P99; p99 > *m.Limits[0].Max {
			t.Errorf("%s: p99 is %v at the scale", m.Name, p99)
		}
	}
	if a.Limit.Metric != measure.LatencyP99 {
		t.Errorf("%v binds, want a p99", a.Limit)
	}
}

// Names and order have no influence, and a model without load changes nothing.
func TestOrderOfServedModels(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Seed: 5}} {
		a := Shared([]Served{encoder(), ranker()}, 2, o)
		renamed := []Served{{Name: "idle", Curve: encoder().Curve}, ranker(), encoder()}
		renamed[1].Name, renamed[2].Name = renamed[2].Name, renamed[1].Name
		b := Shared(renamed, 2, o)
		b.Results = []queuesim.Result{b.Results[2], b.Results[1]}
		b.Binding = 2 - b.Binding
		same := gocmp.Comparer(func(x, y search.Constraint) bool { return x.Metric == y.Metric })
		if d := gocmp.Diff(a, b, same); d != "" {
			t.Errorf("seed %d (-listed +shuffled):\n%s", o.Seed, d)
		}
	}
}

// A rare model beside a frequent one is judged by few of its requests, and its limit still binds.
func TestScaleOfARareModel(t *testing.T) {
	t.Parallel()
	often := single("often", 0.0002, measure.Load{RequestRate: 1000}, atMost(measure.LatencyP99, 1))
	rare := single("rare", 0.1, measure.Load{RequestRate: 1}, atMost(measure.LatencyAvg, 0.15))
	a := Shared([]Served{often, rare}, 2, Options{})
	// M/D/1: 0.1·(1 + ρ/(2(1−ρ))) = 0.15 at ρ = 1/2, 5 requests/s; often has its capacity there.
	if a.Scale < 3.5 || a.Scale > 5.6 {
		t.Errorf("scale %v, want 5 or a little less", a.Scale)
	}
}

// Two models of little load fit on one core, and need one each apart.
func TestLeastCores(t *testing.T) {
	t.Parallel()
	models := []Served{
		single("a", 0.010, measure.Load{RequestRate: 10}, atMost(measure.LatencyP99, 0.050)),
		single("b", 0.010, measure.Load{RequestRate: 10}, atMost(measure.LatencyP99, 0.050)),
	}
	on := func(int) []Served { return models }
	if n, ok := LeastCores(on, 2, 1, Options{}); !ok || n != 1 {
		t.Errorf("together %d cores, %v; want 1", n, ok)
	}
	var tables []Model
	for _, m := range models {
		tables = append(tables, Tabulate(m, 2, func(int) (Served, float64, bool) { return m, 0.05, true }, Options{}))
	}
	apart, err := Apart(tables, 1)
	if d := gocmp.Diff([]int{1, 1}, apart); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, ok := LeastCores(on, 2, 100, Options{}); ok {
		t.Error("a hundred times the load fits")
	}
}

// A table has the highest loads alone, and none on cores on which the model is not served.
func TestTabulate(t *testing.T) {
	t.Parallel()
	m := single("a", 0.010, measure.Load{RequestRate: 10}, atMost(measure.LatencyAvg, 0.020))
	table := Tabulate(m, 3, func(cores int) (Served, float64, bool) {
		faster := m
		faster.Curve.Alone = []float64{0.010 / float64(cores)}
		return faster, 0.1, cores > 1
	}, Options{Requests: 20_000})
	// M/D/1 with S = 5 and 3.3 ms: S·(1 + ρ/(2(1−ρ))) = 20 ms at ρ = 6/7 and 10/11.
	want := []Highest{{}, {6. / 7 * 200, 0.1}, {10. / 11 * 300, 0.1}}
	for i, h := range table.Highest {
		if math.Abs(h.Load-want[i].Load) > 0.05*want[i].Load || h.Deviation != want[i].Deviation {
			t.Errorf("on %d cores %+v, want %+v", i+1, h, want[i])
		}
	}
	if none := Tabulate(single("idle", 1, measure.Load{}), 2, func(int) (Served, float64, bool) { return m, 0, true }, Options{}); none.Load != 0 {
		t.Errorf("a model without load has %+v", none)
	}
}

// On one core, two models that each keep their limit alone miss it together, and are named. A third
// model that fits with both is not.
func TestSharedConflict(t *testing.T) {
	t.Parallel()
	models := []Served{
		single("a", 1, measure.Load{RequestRate: 0.25}, atMost(measure.LatencyAvg, 1.25)), // alone 1 + 1/6
		single("tiny", 1e-6, measure.Load{RequestRate: 1}),
		single("b", 1, measure.Load{RequestRate: 0.25}, atMost(measure.LatencyAvg, 1.25)),
	}
	want := `cannot keep the limits of "a" and "b" together: on 1 core they do not hold at 1 × the load; allow longer latencies, or send fewer requests`
	for range 2 {
		if c := SharedConflict(models, 1, 1, Options{Requests: 20_000}); c == nil || c.Error() != want {
			t.Errorf("got %v\nwant %s", c, want)
		}
		slices.Reverse(models)
		models[0].Name, models[2].Name = "a", "b"
	}
	if c := SharedConflict(models, 3, 1, Options{Requests: 20_000}); c != nil {
		t.Errorf("with enough cores: %v", c)
	}
	c := SharedConflict([]Served{models[1], single("slow", 1, measure.Load{RequestRate: 2})}, 3, 1, Options{})
	if want := `cannot keep the limits of "slow": on 3 cores they do not hold at 1 × the load; allow longer latencies, or send fewer requests`; fmt.Sprint(c) != want {
		t.Errorf("got %v\nwant %s", c, want)
	}
}
