package adaptation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/adaptive"
	"tuner/capacity"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/report/result"
	"tuner/search/queuesim"
)

// server is a configuration whose batches take a time, and a time for each inference.
type server struct {
	name      string
	batcher   queuesim.Batcher
	batch     float64 // s
	inference float64 // s
	precision string
}

// small answers single requests soon, and large ones answer many.
var (
	small = server{"m_config_0", queuesim.Batcher{Instances: 1, MaxBatch: 1}, 0.004, 0, "fp32"}
	large = server{"m_config_1", queuesim.Batcher{Instances: 1, MaxBatch: 16, Dynamic: true, Delay: 15 * time.Millisecond}, 0.012, 0.0005, "fp32"}
	other = server{"m_config_2", queuesim.Batcher{Instances: 1, MaxBatch: 1}, 0.001, 0, "int8"}
)

func (s server) configuration() result.Configuration {
	text := fmt.Sprintf("name: \"m\"\nbackend: \"onnxruntime\"\nmax_batch_size: %d\n", s.batcher.MaxBatch)
	if s.batcher.Dynamic {
		text += fmt.Sprintf("dynamic_batching { max_queue_delay_microseconds: %d }\n", s.batcher.Delay.Microseconds())
	}
	c := result.Configuration{Name: s.name, Setup: result.Setup{Precision: s.precision, Instances: &s.batcher.Instances}, Config: text}
	curve := queuesim.ServiceCurve{Sizes: []int{1, 16}, Alone: []float64{s.batch + s.inference, s.batch + 16*s.inference}, Spread: 0.05}
	for _, n := range []int{1, 8, 32} {
		load := measure.Load{Concurrency: n, BatchSize: 1}
		r := queuesim.Simulate(s.batcher, curve, load, queuesim.Options{Requests: 20_000, Seed: 3})
		exact := func(v float64) result.Estimate { return result.Estimate{Value: v, Lo: v / 1.02, Hi: v * 1.02} }
		values := map[measure.Metric]result.Estimate{
			measure.Throughput: exact(r.Throughput), measure.LatencyAvg: exact(r.Mean), measure.LatencyP99: exact(r.P99), measure.QueueTime: exact(r.Queue),
			measure.ComputeInfer: exact(r.Mean - r.Queue),
		}
		c.Points = append(c.Points, result.Point{Load: load, Sample: result.Sample{Values: values, MeanBatch: r.MeanBatch, Launch: 1.5}})
	}
	best := c.Points[2].Load
	c.BestLoad = &best
	return c
}

func question(rates ...float64) Question {
	q := Question{
		Plan:    capacity.Question{Limit: 100 * time.Millisecond, Share: 0.99, Seed: 1},
		Machine: "c7i", Chosen: large.name,
		Deployed: func(name string) (*modelconfig.Config, error) {
			for _, s := range []server{small, large, other} {
				if s.name == name {
					return modelconfig.Parse(name, []byte(s.configuration().Config))
				}
			}
			return nil, fmt.Errorf("no %s", name)
		},
	}
	for _, rate := range rates {
		q.Moments = append(q.Moments, capacity.Moment{Requests: 15 * rate, Ready: 1})
	}
	return q
}

func table(t *testing.T, q Question, servers ...server) adaptive.Table {
	t.Helper()
	r := result.Result{Model: "m"}
	for _, s := range servers {
		r.Configurations = append(r.Configurations, s.configuration())
	}
	x, err := Table(q, r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adaptive.Parse("table", text); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return x
}

// Where the load is low for most of the time, the small server's answers are far sooner, and the large one is needed for the rest.
func TestChangingPaysWhereLoadsDiffer(t *testing.T) {
	t.Parallel()
	x := table(t, question(append(slices.Repeat([]float64{20}, 90), slices.Repeat([]float64{500}, 10)...)...), small, large, other)
	if !x.Pays || x.Static != large.name || x.Gain < 1.2 || !strings.HasPrefix(x.Summary, "Changing the configuration with the load pays. ") {
		t.Errorf("%+v", x)
	}
	rule := adaptive.New(&x)
	for range 30 {
		rule.Observe(20)
	}
	if got := rule.Current().Name; got != small.name {
		t.Errorf("%s serves 20/s", got)
	}
	for range 10 {
		rule.Observe(500)
	}
	if got := rule.Current().Name; got != large.name {
		t.Errorf("%s serves 500/s", got)
	}
}

// Under one load the best configuration for it is enough, and the table says so.
func TestChangingDoesNotPayUnderOneLoad(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{20, 500} {
		x := table(t, question(slices.Repeat([]float64{rate}, 20)...), small, large)
		if x.Pays || !strings.Contains(x.Summary, "does not pay") {
			t.Errorf("%g/s: %+v", rate, x)
		}
		if want := map[float64]string{20: small.name, 500: large.name}[rate]; x.Static != want {
			t.Errorf("%g/s: %s alone, want %s", rate, x.Static, want)
		}
	}
}

// Another precision has other answers, so a server does not change to it.
func TestAnswersDoNotChange(t *testing.T) {
	t.Parallel()
	x := table(t, question(20, 500), large, other)
	if len(x.Configurations) != 1 || x.Pays {
		t.Errorf("%+v", x)
	}
}

// A configuration with other instances takes a launch; one with another batcher takes no time.
func TestTimesOfChanges(t *testing.T) {
	t.Parallel()
	two := large
	two.name, two.batcher.Instances = other.name, 2
	q := question(20, 500)
	deployed := q.Deployed
	q.Deployed = func(name string) (*modelconfig.Config, error) {
		c, err := deployed(name)
		if err == nil && name == two.name {
			c, err = modelconfig.Parse(name, []byte(two.configuration().Config+"instance_group { count: 2 kind: KIND_CPU }\n"))
		}
		return c, err
	}
	x := table(t, q, small, large, two)
	for _, c := range x.Configurations {
		if want := map[string]float64{small.name: 0, large.name: 0, two.name: 1.5}[c.Name]; c.Load != want {
			t.Errorf("%s takes %g s, want %g s", c.Name, c.Load, want)
		}
	}
}

// Steps with more load than any configuration serves have no latency, so they count for no gain. Of
// 60/s for 1,800 steps and 900/s for one, that one has 0.8 % of the requests, so the small server
// is the best for the 99 % within the limit.
func TestStepsBeyondAllCapacities(t *testing.T) {
	t.Parallel()
	x := table(t, question(append(slices.Repeat([]float64{60}, 1800), 900)...), small, large)
	if x.Static != small.name || x.Gain != 1 || x.Pays {
		t.Errorf("%+v", x)
	}
}
