package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/scheduler"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/model/modelconfig/configpb"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/search/queuesim"
)

// The configurations and loads for which the predictions of package search/queuesim are compared
// with the engine.
var predicted = []struct {
	name    string
	batcher queuesim.Batcher
	load    measure.Load
}{
	{"one client", queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, measure.Load{Concurrency: 1, BatchSize: 1}},
	{"no batching", queuesim.Batcher{Instances: 1, MaxBatch: 8}, measure.Load{Concurrency: 4, BatchSize: 1}},
	{"no batching, two instances", queuesim.Batcher{Instances: 2, MaxBatch: 8}, measure.Load{Concurrency: 3, BatchSize: 1}},
	{"as many clients as a batch", queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, measure.Load{Concurrency: 8, BatchSize: 1}},
	{"full batches", queuesim.Batcher{Instances: 1, MaxBatch: 4, Dynamic: true}, measure.Load{Concurrency: 16, BatchSize: 1}},
	{"two instances", queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true}, measure.Load{Concurrency: 12, BatchSize: 1}},
	{"delay in vain", queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Delay: 20 * time.Millisecond}, measure.Load{Concurrency: 4, BatchSize: 1}},
	{"delay", queuesim.Batcher{Instances: 2, MaxBatch: 8, Dynamic: true, Delay: 5 * time.Millisecond}, measure.Load{Concurrency: 14, BatchSize: 1}},
	{"preferred size", queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true, Preferred: []int{4}}, measure.Load{Concurrency: 10, BatchSize: 1}},
	{"preferred sizes and delay", queuesim.Batcher{Instances: 2, MaxBatch: 16, Dynamic: true, Preferred: []int{4, 8}, Delay: 10 * time.Millisecond},
		measure.Load{Concurrency: 20, BatchSize: 1}},
	{"client batches", queuesim.Batcher{Instances: 1, MaxBatch: 8, Dynamic: true}, measure.Load{Concurrency: 6, BatchSize: 3}},
}

// agreement is the largest allowed error of a prediction.
const agreement = 0.02

// TestPredictions compares the simulation's predictions with the engine itself under package load,
// with a model that sleeps. The clock is fake, so no other work takes time. The simulation gets its
// data about the model from service trials.
func TestPredictions(t *testing.T) {
	t.Parallel()
	for _, c := range predicted {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				single := queuesim.Batcher{Instances: c.batcher.Instances, MaxBatch: 16}
				curve := serviceCurve(t, newSleeping(t, single), single, 2*time.Second)
				curve.Spread = sleepSpread
				seen := median(watch(t, newSleeping(t, c.batcher), c.load, 6*time.Second))
				if errors := relativeErrors(c.batcher, curve, c.load, seen); !errors.agree() {
					t.Errorf("with %+v: seen %+v, predictions are off by %+v", curve, seen, errors)
				}
			})
		})
	}
}

// deviations are the errors of predictions, relative to the measurement.
type deviations struct{ throughput, latency, batch float64 }

func relativeErrors(b queuesim.Batcher, c queuesim.ServiceCurve, l measure.Load, s sight) deviations {
	p := queuesim.Simulate(b, c, l, queuesim.Options{Requests: 20_000})
	return deviations{p.Throughput/s.throughput - 1, p.Mean/s.latency - 1, p.MeanBatch/s.batch - 1}
}

func (d deviations) agree() bool {
	return math.Abs(d.throughput) <= agreement && math.Abs(d.latency) <= agreement && math.Abs(d.batch) <= agreement
}

// server is a server with a model under load.
type server struct {
	dial       func(rows int) func(context.Context, int) (load.Conn, error)
	statistics func(context.Context) (api.Statistics, error)
}

// sight holds the figures of clients and statistics for a load in a window.
type sight struct {
	throughput float64 // inferences/s
	latency    float64 // s, mean; it includes
	compute    float64 // s, in an instance, and
	outside    float64 // s, outside instance and queue
	batch      float64 // inferences per execution
}

// watch puts a load on a server for five windows.
func watch(t *testing.T, s server, l measure.Load, window time.Duration) []sight {
	t.Helper()
	var readings []meter.Counters
	part := load.Part{Load: l, Dial: s.dial(l.BatchSize), WarmUp: 3 * time.Second, Patience: 10 * time.Second}
	result, err := load.Run(t.Context(), load.Options{Part: part, Windows: load.Windows{
		Length: func([]time.Duration) time.Duration { return window },
		More:   func(windows [][]measure.Window) bool { return len(windows[0]) < 5 },
		Edge: func(ctx context.Context, _ int) error {
			now, err := s.statistics(ctx)
			readings = append(readings, meter.Counters{Own: now.ModelStats})
			return err
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var seen []sight
	for i, w := range result.Windows {
		served := meter.Served(readings[i], readings[i+1])
		perRequest := func(d time.Duration) float64 { return d.Seconds() / float64(served.Requests) }
		var sum time.Duration
		for _, sub := range w.Sub {
			sum += sub.Sum
		}
		latency := sum.Seconds() / float64(w.Requests)
		compute := perRequest(served.ComputeInput + served.ComputeInfer + served.ComputeOutput)
		seen = append(seen, sight{
			throughput: float64(w.Inferences) / w.Duration.Seconds(),
			latency:    latency,
			compute:    compute,
			outside:    latency - compute - perRequest(served.Queue),
			batch:      float64(served.Inferences) / float64(served.Executions),
		})
	}
	return seen
}

// median returns the median of each figure over windows.
func median(seen []sight) sight {
	of := func(figure func(sight) float64) float64 {
		var values []float64
		for _, s := range seen {
			values = append(values, figure(s))
		}
		return stats.Median(values)
	}
	return sight{
		throughput: of(func(s sight) float64 { return s.throughput }),
		latency:    of(func(s sight) float64 { return s.latency }),
		compute:    of(func(s sight) float64 { return s.compute }),
		outside:    of(func(s sight) float64 { return s.outside }),
		batch:      of(func(s sight) float64 { return s.batch }),
	}
}

// serviceCurve measures the times of batches: client batches of each size, from a single client and
// from one for each instance.
func serviceCurve(t *testing.T, s server, b queuesim.Batcher, window time.Duration) queuesim.ServiceCurve {
	t.Helper()
	c := queuesim.ServiceCurve{Sizes: []int{1, 4, 16}}
	for _, size := range c.Sizes {
		alone := median(watch(t, s, measure.Load{Concurrency: 1, BatchSize: size}, window))
		c.Alone = append(c.Alone, alone.compute)
		if size == 1 {
			c.Overhead = alone.outside
		}
		if b.Instances > 1 {
			c.Crowded = append(c.Crowded, median(watch(t, s, measure.Load{Concurrency: b.Instances, BatchSize: size}, window)).compute)
		}
	}
	return c
}

// configuration returns a config.pbtxt with these settings. The tensors are necessary, since a
// missing one is completed together with a batcher.
func configuration(b queuesim.Batcher, tensors string) string {
	text := fmt.Sprintf("backend: \"onnxruntime\"\nmax_batch_size: %d\ninstance_group { count: %d kind: KIND_CPU }\n%s\n", b.MaxBatch, b.Instances, tensors)
	if !b.Dynamic {
		return text
	}
	preferred := strings.ReplaceAll(fmt.Sprint(b.Preferred), " ", ", ")
	return text + fmt.Sprintf("dynamic_batching { preferred_batch_size: %s max_queue_delay_microseconds: %d }\n", preferred, b.Delay.Microseconds())
}

// The time of a batch of n in the model that sleeps: 4 ms, 1 ms for each inference, and a random
// part.
const (
	sleepFixed  = 4 * time.Millisecond
	sleepEach   = time.Millisecond
	sleepSpread = 0.1

	sleepTensors = `input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]`
)

// newSleeping returns the engine, without its front ends, with a model that sleeps.
func newSleeping(t *testing.T, b queuesim.Batcher) server {
	t.Helper()
	const name = "sleeping"
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	backend := &enginetest.Backend{ServiceTime: func(rows, _ int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		factor := math.Exp(sleepSpread*random.NormFloat64() - sleepSpread*sleepSpread/2)
		return time.Duration(factor * float64(sleepFixed+time.Duration(rows)*sleepEach))
	}}
	root := t.TempDir()
	enginetest.WriteModel(t, root, name, configuration(b, sleepTensors))
	e, err := engine.Open(t.Context(), engine.Options{
		ID: "triton", Repositories: []string{root}, ExitOnError: true, Backend: backend, Timer: scheduler.GoTimer, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return server{
		dial: func(rows int) func(context.Context, int) (load.Conn, error) {
			return func(_ context.Context, number int) (load.Conn, error) { return newDirect(e, name, rows, number), nil }
		},
		statistics: func(context.Context) (api.Statistics, error) { return e.Statistics(name, 0) },
	}
}

// direct is a connection to an engine in the same process.
type direct struct {
	infer     func() error
	interrupt context.CancelFunc
	broken    func() bool
}

// newDirect makes a connection that delays a request by 200 µs plus some µs. So requests of
// different clients arrive one after the other, as over a network.
func newDirect(e *engine.Server, model string, rows, number int) *direct {
	ctx, cancel := context.WithCancel(context.Background())
	tensor := func(name string) engine.Tensor {
		return engine.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Shape: []int64{int64(rows), 16}, Data: make([]byte, rows*16*4)}
	}
	request := &engine.Request{Model: model, Inputs: []engine.Tensor{tensor("INPUT0"), tensor("INPUT1")}}
	return &direct{interrupt: cancel, broken: func() bool { return ctx.Err() != nil }, infer: func() error {
		time.Sleep(200*time.Microsecond + time.Duration(number)*1009*time.Nanosecond)
		response, err := e.Infer(ctx, request)
		if err == nil {
			response.Release()
		}
		return err
	}}
}

// Send leaves everything to Receive.
func (d *direct) Send(int, int) {}

func (d *direct) Receive() (slot int, final, null bool, err error) { return 0, true, false, d.infer() }

func (d *direct) Slots() int { return 1 }

func (d *direct) Broken() bool { return d.broken() }

func (d *direct) Interrupt() { d.interrupt() }

func (d *direct) Close() error {
	d.interrupt()
	return nil
}
