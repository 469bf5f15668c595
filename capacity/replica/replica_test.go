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
	return measuredOf(truth, batcher, config, concurrencies...)
}

func measuredOf(truth queuesim.ServiceCurve, batcher queuesim.Batcher, config string, concurrencies ...int) (result.Result, result.Configuration) {
	two := 2
	c := result.Configuration{Name: "m_config_1", Setup: result.Setup{Precision: "int8", Instances: &two}, Config: config}
	for _, n := range concurrencies {
		load := measure.Load{Concurrency: n, BatchSize: 1}
		r := queuesim.Simulate(batcher, truth, load, queuesim.Options{Requests: 50_000, Seed: 3})
		values := map[measure.Metric]result.Estimate{
			measure.Throughput: {Value: r.Throughput}, measure.LatencyAvg: {Value: r.Mean}, measure.LatencyP99: {Value: r.P99},
			measure.QueueTime: {Value: r.Queue}, measure.ComputeInfer: {Value: r.Mean - r.Queue - truth.Overhead}, measure.CPU: {Value: 1 + float64(n)/100},
		}
		c.Points = append(c.Points, result.Point{Load: load, Sample: result.Sample{Values: values, MeanBatch: r.MeanBatch, BatchTime: r.BatchTime(), Launch: 1.5}})
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

// quick is a server that takes microseconds, of which most are client, wire and front end.
var quick = queuesim.ServiceCurve{
	Sizes: []int{1, 8}, Alone: []float64{10e-6, 17e-6}, Crowded: []float64{10e-6, 17e-6}, Spread: 0.35, Overhead: 100e-6,
	Path: 20e-6, PathSpread: 0.35, Cores: 2, Threads: 1,
}

// quickBatcher never waits for more requests.
var quickBatcher = queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}

const quickConfig = `name: "m"
backend: "onnxruntime"
max_batch_size: 8
dynamic_batching {}
`

// quickResult is the result of a campaign on the quick server, whose service trials are off by some factors.
func quickResult(batches, path float64, concurrencies ...int) (result.Result, result.Configuration) {
	r, c := measuredOf(quick, quickBatcher, quickConfig, concurrencies...)
	one := 1
	c.Setup.IntraOpThreads = &one
	r.Machine = []byte(`{"cpu": {"logical": 2}}`)
	r.Explanation = &result.Explanation{Subjects: []result.Subject{{Name: c.Name, ServiceCurve: &result.ServiceCurve{
		Sizes: quick.Sizes, Alone: scaled(quick.Alone, batches), Crowded: scaled(quick.Crowded, batches), Overhead: quick.Overhead, Path: path * quick.Path,
	}}}}
	return r, c
}

// A replica of a server that takes microseconds has the true capacity and the true latencies, also where the
// trials were somewhat off.
func TestAPathServesAsMeasured(t *testing.T) {
	t.Parallel()
	simulate := func(c queuesim.ServiceCurve, l measure.Load) queuesim.Result {
		l.BatchSize = 1
		return queuesim.Simulate(quickBatcher, c, l, queuesim.Options{Requests: 50_000, Within: []float64{300e-6}})
	}
	full := simulate(quick, measure.Load{Concurrency: 1000}).Throughput
	for _, off := range []struct{ batches, path float64 }{{1, 1}, {1.3, 0.8}, {0.7, 1.1}} {
		r, c := quickResult(off.batches, off.path, 1, 8, 64)
		x, err := Of("c7i", r, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(x.Capacity/full-1) > 0.1 {
			t.Errorf("%+v: capacity %.0f/s, the server has %.0f/s", off, x.Capacity, full)
		}
		idle, want := simulate(x.Curve, measure.Load{RequestRate: 10}), simulate(quick, measure.Load{RequestRate: 10})
		if math.Abs(idle.P50/want.P50-1) > 0.1 {
			t.Errorf("%+v: a lone request takes %.0f µs, of the server %.0f µs", off, 1e6*idle.P50, 1e6*want.P50)
		}
		for _, share := range []float64{0.3, 0.6, 0.8} {
			load := measure.Load{RequestRate: share * full}
			got, want := simulate(x.Curve, load).Within[0], simulate(quick, load).Within[0]
			if math.Abs(got-want) > 0.06 {
				t.Errorf("%+v: at %g of the capacity a share of %.3f, the server has %.3f", off, share, got, want)
			}
		}
	}
}

// Instances that slow each other down have no long path: what they lack is in the times of crowded batches. The search
// cannot tell the two apart, and a lone request can.
func TestCrowdingIsNoPath(t *testing.T) {
	t.Parallel()
	slow := queuesim.ServiceCurve{
		Sizes: []int{1, 2, 4}, Alone: []float64{7.4e-3, 11.8e-3, 23.2e-3}, Crowded: []float64{8.8e-3, 16.6e-3, 31.9e-3}, Spread: 0.2, Overhead: 0.5e-3,
		Path: 0.2e-3, PathSpread: 0.2, Cores: 2, Threads: 1,
	}
	b := queuesim.Batcher{Instances: 2, MaxBatch: 4, Dynamic: true}
	r, c := measuredOf(slow, b, strings.Replace(quickConfig, "8", "4", 1), 1, 6, 16)
	one := 1
	c.Setup.IntraOpThreads = &one
	r.Machine = []byte(`{"cpu": {"logical": 2}}`)
	r.Explanation = &result.Explanation{Subjects: []result.Subject{{Name: c.Name, ServiceCurve: &result.ServiceCurve{
		Sizes: slow.Sizes, Alone: slow.Alone, Crowded: slow.Crowded, Overhead: slow.Overhead, Path: slow.Crowded[0] - slow.Alone[0] + slow.Path,
	}}}}
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0.1, 0.3, 0.6, 0.8} {
		load := measure.Load{RequestRate: share * x.Capacity, BatchSize: 1}
		o := queuesim.Options{Requests: 50_000}
		got, want := queuesim.Simulate(b, x.Curve, load, o), queuesim.Simulate(b, slow, load, o)
		if math.Abs(got.P50/want.P50-1) > 0.1 || math.Abs(got.P99/want.P99-1) > 0.1 {
			t.Errorf("at %g of the capacity a median of %.2f ms and a p99 of %.2f ms, the server has %.2f and %.2f ms", share, 1e3*got.P50, 1e3*got.P99, 1e3*want.P50, 1e3*want.P99)
		}
	}
}

// A path is never longer than a lone request is outside of its instance, and as long as the result says below that.
func TestThePathIsWithinALoneRequest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		outside, path := random.ExpFloat64(), random.ExpFloat64()
		got := pathWithin(outside, path)
		if got > outside || got > path || got < path && got < outside {
			t.Fatalf("%g within %g of a path of %g", got, outside, path)
		}
		if pathWithin(0, path) != path || pathWithin(outside, 0) != 0 {
			t.Fatal("what is unknown bounds nothing")
		}
	}
}

// An idle server answers in the time of a batch and of the path; a full one answers no more than the processors
// pass and compute.
func TestBoundsOfAPath(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		c := quick
		c.Spread, c.PathSpread = 0.02, 0.02
		c.Cores = 1 + random.IntN(4)
		c.Threads = min(random.IntN(3), c.Cores)
		c.Crowded = scaled(c.Alone, max(1, 2*float64(c.Threads)/float64(c.Cores))) // two instances share the cores
		c.Path = 5e-6 * math.Exp(3*random.Float64())
		c.Overhead = c.Path * (1 + 4*random.Float64())
		x := Replica{Rows: 1, Batcher: queuesim.Batcher{Instances: 2, MaxBatch: 1}, Curve: c, Cores: float64(c.Cores)}
		f := fitter{Replica: &x, seed: 1, measured: c, alone: 1, crowded: 1, path: 1}
		most := float64(c.Cores) / (c.Path + float64(c.Threads)*c.Alone[0])
		if got := f.saturated(); got > 1.02*most || got > 1.02*2/c.Alone[0] {
			t.Errorf("%+v: %.0f requests/s, the processors allow %.0f", c, got, most)
		}
		idle := f.simulate(result.Point{Load: measure.Load{RequestRate: 1}}, fitRequests).P50
		if want := c.Alone[0] + c.Overhead; math.Abs(idle/want-1) > 0.02 {
			t.Errorf("%+v: a lone request takes %.1f µs, want %.1f µs", c, 1e6*idle, 1e6*want)
		}
	}
}

// Without a path, cores and threads change nothing: they only say what a path has to share.
func TestNoPathChangesNothing(t *testing.T) {
	t.Parallel()
	r, c := measured(1, 8, 32)
	x, err := Of("c7i", r, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if x.Curve.Path != 0 || x.Curve.PathSpread != 0 {
		t.Errorf("a path from nothing: %+v", x.Curve)
	}
	bare := x
	bare.Curve.Cores, bare.Curve.Threads = 0, 0
	around := Surroundings{Replicas: 3, Balancer: queuesim.LeastRequests, Dispersion: 2}
	got, want := x.Table(around, []float64{0.03}, 1), bare.Table(around, []float64{0.03}, 1)
	for i := range want.Rates {
		if got.Rates[i] != want.Rates[i] || got.Shares[0][i] != want.Shares[0][i] {
			t.Errorf("at %g/s a share of %g, without cores %g", got.Rates[i], got.Shares[0][i], want.Shares[0][i])
		}
	}
}

// Without the search's path, the path is the time that engine and clients use beside the instances at the best load,
// and it is the same for all configurations: 1.8 cores of which 0.6 compute, at 60,000 requests/s, are 20 µs.
func TestShownPath(t *testing.T) {
	t.Parallel()
	r, c := quickResult(1, 1, 1, 8, 64)
	c.Points[2].Values[measure.Throughput] = result.Estimate{Value: 60_000}
	r.Configurations[0] = c
	subject := &r.Explanation.Subjects[0]
	subject.Load, subject.Breakdown = c.Points[2].Load, &result.Breakdown{EngineCPU: 1.5, ClientCPU: 0.3, Busy: 0.6, Instances: 2}
	if got := pathOf(r, 2); got != quick.Path {
		t.Errorf("%g s, and the search says %g s", got, quick.Path)
	}
	subject.ServiceCurve.Path = 0
	if got := pathOf(r, 2); math.Abs(got-20e-6) > 1e-9 {
		t.Errorf("%g s, want 20 µs", got)
	}
	for name, change := range map[string]func(){
		"its points are unknown":    func() { subject.Load.Concurrency = 7 },
		"it is unknown":             func() { subject.Name = "x" },
		"its instances use it all":  func() { subject.Breakdown.Busy = 1.7 },
		"its clients are elsewhere": func() { subject.Breakdown.ClientCPU = 0 },
	} {
		before, breakdown := *subject, *subject.Breakdown
		change()
		if got := pathOf(r, 2); got != 0 {
			t.Errorf("%s: %g s", name, got)
		}
		*subject, *before.Breakdown = before, breakdown
	}
}

// The threads of an instance are the cores' unless it says fewer, and none on a GPU.
func TestThreads(t *testing.T) {
	t.Parallel()
	check := func(threads int, on string, want int) {
		t.Helper()
		if got := Threads(result.Setup{Provider: on, IntraOpThreads: &threads}, 4); got != want {
			t.Errorf("%d threads on %s: %d, want %d", threads, on, got, want)
		}
	}
	check(0, "cpu", 4)
	check(2, "cpu", 2)
	check(8, "cpu", 4)
	check(2, "cuda", 0)
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
	check("must be above 0", func(_ *result.Result, c *result.Configuration) { c.Points[0].BatchTime = 1e9 })
	check("must be above 0", func(_ *result.Result, c *result.Configuration) {
		c.Points[0].BatchTime, c.Points[0].Values[measure.ComputeInfer] = 0, result.Estimate{Value: 1e9}
	})
	for _, s := range []measure.Speed{{Deviation: -0.1, Time: 1}, {Deviation: 2, Time: 1}, {Deviation: 0.1}, {Deviation: 0.1, Time: 1e9}, {Deviation: math.NaN(), Time: 1}} {
		check("the speed of the machine", func(r *result.Result, _ *result.Configuration) { r.Speed = &s })
	}
	check("inferences at once", func(_ *result.Result, c *result.Configuration) { c.BestLoad.BatchSize = 9 })
	check("config of", func(_ *result.Result, c *result.Configuration) { c.Config = "{" })
	check("must ascend", func(r *result.Result, c *result.Configuration) {
		curve := &result.ServiceCurve{Sizes: []int{2, 1}, Alone: []float64{1, 1}}
		r.Explanation = &result.Explanation{Subjects: []result.Subject{{Name: c.Name, ServiceCurve: curve}}}
	})
}
