package serve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tuner/adaptive"
	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/model/modelconfig/configpb"
)

// table has two configurations of a model: one for low rates, one for high ones.
func table(pays bool) *adaptive.Table {
	config := func(instances, batch, delay int) []byte {
		return fmt.Appendf(nil, `{"name": "m", "backend": "onnxruntime", "max_batch_size": %d, "instance_group": [{"count": %d, "kind": "KIND_CPU"}], "dynamic_batching": {"max_queue_delay_microseconds": %d},
			"input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [16]}, {"name": "INPUT1", "data_type": "TYPE_INT32", "dims": [16]}],
			"output": [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [16]}, {"name": "OUTPUT1", "data_type": "TYPE_INT32", "dims": [16]}]}`, batch, instances, delay)
	}
	l := func(v float64) adaptive.Latency { return adaptive.Latency{Value: v, Low: 0.95 * v, High: 1.05 * v} }
	return &adaptive.Table{
		Format: adaptive.Format, Model: "m", Pays: pays, Summary: "because", Quantile: 0.99, Static: "large", Rates: []float64{100, 1000},
		Configurations: []adaptive.Configuration{
			{Name: "small", Config: config(1, 4, 0), Latencies: []adaptive.Latency{l(0.010), l(0.100)}},
			{Name: "large", Config: config(2, 8, 1000), Latencies: []adaptive.Latency{l(0.020), l(0.020)}},
		},
	}
}

// The wheel of a table begins with the static configuration. It is nil without a table, and if changing
// does not pay. A table of another model is refused.
func TestWheels(t *testing.T) {
	t.Parallel()
	s := open(t)
	check := func(x *adaptive.Table, wants bool) {
		t.Helper()
		if w, err := newWheel(t.Context(), s, x, slog.New(slog.DiscardHandler)); err != nil || (w != nil) != wants {
			t.Errorf("%v, %v", w, err)
		}
	}
	check(nil, false)
	check(table(false), false)
	check(table(true), true)
	if c, err := s.ModelConfig("m", 0); err != nil || c.GetMaxBatchSize() != 8 {
		t.Errorf("%v, %v: want the static configuration", c, err)
	}
	other := table(true)
	other.Model = "other"
	_, err := newWheel(t.Context(), s, other, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `--adaptive: its model "other" is not served`) {
		t.Errorf("%v", err)
	}
}

// open opens an engine with the model m.
func open(t *testing.T) *engine.Server {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "max_batch_size: 4")
	b := &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return 200 * time.Microsecond }}
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, ExitOnError: true, Log: slog.New(slog.DiscardHandler), Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// While the configuration changes to and fro, under requests of several clients, each request is
// answered.
func TestChangesLoseNoRequest(t *testing.T) {
	t.Parallel()
	s := open(t)
	x := table(true)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var sent, answered atomic.Int64
	for range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				sent.Add(1)
				response, err := s.Infer(t.Context(), request())
				if err != nil {
					t.Error(err)
					return
				}
				response.Release()
				answered.Add(1)
			}
		})
	}
	for i := range 40 {
		if err := (steered{s}).Reconfigure(t.Context(), "m", string(x.Configurations[i%2].Config)); err != nil {
			t.Error(err)
		}
	}
	cancel()
	clients.Wait()
	if n, serves := s.Arrived("m"); !serves || sent.Load() != answered.Load() || n != uint64(answered.Load()) || n == 0 {
		t.Errorf("%d sent, %d answered, and the server has counted %d", sent.Load(), answered.Load(), n)
	}
}

func request() *engine.Request {
	r := &engine.Request{Model: "m"}
	for _, name := range []string{"INPUT0", "INPUT1"} {
		r.Inputs = append(r.Inputs, engine.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 16}, Data: make([]byte, 64)})
	}
	return r
}
