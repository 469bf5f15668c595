package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

// fake is a server that counts requests, and keeps the configurations that it got.
type fake struct {
	arrived uint64
	missing bool
	got     []string
	fail    error
}

func (f *fake) Arrived(string) (uint64, bool) { return f.arrived, !f.missing }
func (f *fake) Reconfigure(_ context.Context, _, config string) error {
	if f.fail == nil {
		f.got = append(f.got, config)
	}
	return f.fail
}

func newFake(t *testing.T, f *fake, x *adaptive.Table) *adapter {
	t.Helper()
	a, err := newAdapter(t.Context(), f, x, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The model gets the static configuration, and another one when its load asks for it.
func TestAdapterFollowsTheRule(t *testing.T) {
	t.Parallel()
	x, f := table(true), &fake{arrived: 500}
	a := newFake(t, f, x)
	small, large := string(x.Configurations[0].Config), string(x.Configurations[1].Config)
	for range 20 {
		f.arrived += 30
		a.tick(t.Context())
	}
	for range 5 {
		f.arrived += 900
		a.tick(t.Context())
	}
	if want := []string{large, small, large}; !slices.Equal(f.got, want) {
		t.Errorf("%q, want %q", f.got, want)
	}
}

// A count that falls, since a request has begun to execute, is no request, and none is counted twice.
func TestAdapterCountsOnce(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newFake(t, f, table(true))
	f.arrived = 100
	a.tick(t.Context())
	f.arrived = 95
	a.tick(t.Context())
	f.arrived = 110
	a.tick(t.Context())
	if a.seen != 110 {
		t.Errorf("%d requests seen, want 110", a.seen)
	}
}

// A change that fails leaves the configuration, and is tried again.
func TestAdapterTriesAgain(t *testing.T) {
	t.Parallel()
	x, f := table(true), &fake{}
	a := newFake(t, f, x)
	f.fail = errors.New("no memory")
	for range 3 {
		a.tick(t.Context())
	}
	if got := a.rule.Current().Name; got != "large" || len(f.got) != 1 {
		t.Errorf("the rule has %s after %d changes", got, len(f.got))
	}
	f.fail = nil
	a.tick(t.Context())
	if got := a.rule.Current().Name; got != "small" || len(f.got) != 2 {
		t.Errorf("the rule has %s after %d changes", got, len(f.got))
	}
}

// Where changing does not pay nothing happens, and a table of another model is refused.
func TestAdapterIsLeftOut(t *testing.T) {
	t.Parallel()
	f := &fake{}
	if a := newFake(t, f, table(false)); a != nil || len(f.got) != 0 {
		t.Errorf("%v after %d changes", a, len(f.got))
	}
	if a := newFake(t, f, nil); a != nil {
		t.Error("an adapter without a table")
	}
	_, err := newAdapter(t.Context(), &fake{missing: true}, table(true), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `--adaptive: its model "m" is not served`) {
		t.Errorf("%v", err)
	}
}

// While the configuration changes to and fro, under requests of several clients, each request is
// answered.
func TestAdapterLosesNoRequest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", "max_batch_size: 4")
	log := slog.New(slog.DiscardHandler)
	b := &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return 200 * time.Microsecond }}
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, ExitOnError: true, Log: log, Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	x := table(true)
	a, err := newAdapter(t.Context(), s, x, log)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := a.change(t.Context(), x.Configurations[i%2]); err != nil {
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
