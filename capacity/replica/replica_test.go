package replica

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tuner/measure"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// truth is a server that takes 2 ms and 1 ms for each inference of a batch.
var truth = queuesim.ServiceCurve{Sizes: []int{1, 8}, Alone: []float64{0.003, 0.010}, Spread: 0.1, Overhead: 0.0005}

const config = `name: "m"
backend: "onnxruntime"
max_batch_size: 8
dynamic_batching { preferred_batch_size: [4, 8] max_queue_delay_microseconds: 500 }
`

var batcher = queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true, Preferred: []int{4, 8}, Delay: 500_000}

// measured is a result whose figures the true server has.
func measured(concurrencies ...int) (result.Result, result.Configuration) {
	two := 2
	c := result.Configuration{Name: "m_config_1", Setup: result.Setup{Precision: "int8", Instances: &two}, Config: config}
	for _, n := range concurrencies {
		load := measure.Load{Concurrency: n, BatchSize: 1}
		r := queuesim.Simulate(batcher, truth, load, queuesim.Options{Requests: 50_000, Seed: 3})
		values := map[measure.Metric]result.Estimate{
			measure.Throughput: {Value: r.Throughput}, measure.LatencyAvg: {Value: r.Mean}, measure.LatencyP99: {Value: r.P99},
			measure.QueueTime: {Value: r.Queue}, measure.ComputeInfer: {Value: r.Mean - r.Queue - truth.Overhead}, measure.CPU: {Value: 1 + float64(n)/100},
		}
		c.Points = append(c.Points, result.Point{Load: load, Sample: result.Sample{Values: values, MeanBatch: r.MeanBatch, Launch: 1.5}})
	}
	best := c.Points[len(c.Points)-1].Load
	c.BestLoad = &best
	return result.Result{Configurations: []result.Configuration{c}, Goal: result.Goal{Price: 0.5}}, c
}

// A replica that is made from measured loads serves as the true server does, also in an open loop.
func TestAReplicaServesAsMeasured(t *testing.T) {
	t.Parallel()
	r, c := measured(1, 8, 32)
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	full := queuesim.Simulate(batcher, truth, measure.Load{Concurrency: 64, BatchSize: 1}, queuesim.Options{Requests: 50_000}).Throughput
	if math.Abs(x.Capacity/full-1) > 0.05 {
		t.Errorf("capacity %.0f/s, the server has %.0f/s", x.Capacity, full)
	}
	table := x.Table(Surroundings{Replicas: 1, Balancer: queuesim.Random, Dispersion: 1}, []float64{0.03}, 1)
	for _, rate := range []float64{0.5 * full, 0.8 * full} {
		o := queuesim.Options{Requests: 50_000, Within: []float64{0.03}}
		want := queuesim.Simulate(batcher, truth, measure.Load{RequestRate: rate, BatchSize: 1}, o).Within[0]
		if got := table.Within(0, rate); math.Abs(got-want) > 0.02 {
			t.Errorf("at %.0f/s a share of %.3f, the server has %.3f", rate, got, want)
		}
	}
	for _, k := range x.Checks {
		if math.Abs(k.Simulated/k.Measured-1) > 0.25 {
			t.Errorf("%v: p99 %.4f s simulated, %.4f s measured", k.Load, k.Simulated, k.Measured)
		}
	}
	if x.Price != 0.5 || x.Launch.Seconds() != 1.5 || x.Batcher.Delay != batcher.Delay || !slices.Equal(x.Batcher.Preferred, batcher.Preferred) {
		t.Errorf("%+v", x)
	}
}

// More requests never make the share larger, and the safe rate keeps the share.
func TestSharesFall(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		shares := make([]float64, 1+random.IntN(20))
		sum := 0.0
		for i := range shares {
			shares[i] = random.Float64()
			sum += shares[i]
		}
		fall(shares)
		after := 0.0
		for i, s := range shares {
			after += s
			if i > 0 && s > shares[i-1]+1e-12 {
				t.Fatalf("%v rises", shares)
			}
		}
		if math.Abs(after-sum) > 1e-9 {
			t.Fatalf("the mean changed from %g to %g", sum, after)
		}
	}
	table := Table{Rates: []float64{10, 20, 30}, Limits: []float64{1}, Shares: [][]float64{{1, 0.99, 0.5}}}
	if got := table.Safe(0, 0.745); math.Abs(got-25) > 1e-9 {
		t.Errorf("safe rate %g, want 25", got)
	}
	if table.Safe(0, 1.1) != 0 || table.Safe(0, 0.4) != 30 || table.Within(0, 5) != 1 || table.Within(0, 50) != 0.5 {
		t.Error("the ends of the table")
	}
}

// The processor time is linear between measured rates, and never falls.
func TestUsage(t *testing.T) {
	t.Parallel()
	x := Replica{Usage: []Usage{{50, 1}, {100, 0.9}, {150, 2}}}
	for rate, want := range map[float64]float64{0: 0, 25: 0.5, 50: 1, 75: 1, 125: 1.5, 1000: 2} {
		if got := x.UsageAt(rate); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g cores at %g/s, want %g", got, rate, want)
		}
	}
	if none := new(Replica); none.UsageAt(10) != 0 {
		t.Error("a processor time from nothing")
	}
}

// A campaign that measured only the full server still knows the processor time at low rates: the true server's
// busy instances, of which each takes 0.9 of a core.
func TestUsageOfLowRates(t *testing.T) {
	t.Parallel()
	const each = 0.9
	r, c := measured(32, 64)
	for i, p := range c.Points {
		busy := queuesim.Simulate(batcher, truth, p.Load, queuesim.Options{Requests: 50_000, Seed: 3}).Busy
		c.Points[i].Values[measure.CPU] = result.Estimate{Value: each * busy}
	}
	curved := c // what the service trials of the same pool, with smaller batches, say
	curved.Name, curved.Config = "m_config_2", strings.NewReplacer("max_batch_size: 8", "max_batch_size: 4", "[4, 8]", "[4]").Replace(c.Config)
	r.Configurations = append(r.Configurations, curved)
	r.Explanation = &result.Explanation{Subjects: []result.Subject{{
		Name: curved.Name, ServiceCurve: &result.ServiceCurve{Sizes: truth.Sizes, Alone: truth.Alone, Overhead: truth.Overhead},
	}}}
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0.15, 0.45, 0.8} {
		rate := share * x.Capacity
		want := each * queuesim.Simulate(batcher, truth, measure.Load{RequestRate: rate, BatchSize: 1}, queuesim.Options{Requests: 50_000, Seed: 5}).Busy
		if got := x.UsageAt(rate); math.Abs(got/want-1) > 0.07 {
			t.Errorf("%.3f cores at %.0f/s, the server uses %.3f", got, rate, want)
		}
	}
	other := c
	other.Setup.Precision = "fp32"
	if _, has := serviceCurve(r, other); has {
		t.Error("the times of another precision are taken")
	}
	other = c
	other.Config += "instance_group { count: 4 kind: KIND_CPU }\n"
	if _, has := serviceCurve(r, other); has {
		t.Error("the times of other instances are taken")
	}
}

// Files of strangers do not stop the program.
func TestImpossibleFigures(t *testing.T) {
	t.Parallel()
	check := func(want string, change func(*result.Result, *result.Configuration)) {
		t.Helper()
		r, c := measured(8)
		change(&r, &c)
		if _, err := Of("c7i", r, c, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	check("how long a batch takes", func(_ *result.Result, c *result.Configuration) { c.Points = nil })
	check("how long a batch takes", func(_ *result.Result, c *result.Configuration) { c.Points[0].MeanBatch = 0 })
	check("must be above 0", func(_ *result.Result, c *result.Configuration) {
		c.Points[0].Values[measure.ComputeInfer] = result.Estimate{Value: 1e9}
	})
	check("inferences at once", func(_ *result.Result, c *result.Configuration) { c.BestLoad.BatchSize = 9 })
	check("config of", func(_ *result.Result, c *result.Configuration) { c.Config = "{" })
	check("must ascend", func(r *result.Result, c *result.Configuration) {
		curve := &result.ServiceCurve{Sizes: []int{2, 1}, Alone: []float64{1, 1}}
		r.Explanation = &result.Explanation{Subjects: []result.Subject{{Name: c.Name, ServiceCurve: curve}}}
	})
}
