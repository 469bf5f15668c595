package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/model/modelconfig/configpb"
)

// Of 12 requests at the same time, as many run each step as the limit allows: the four instances of the
// model run twice as many, since it is the model of both steps. A request that is cancelled leaves the
// queue of its step, and no memory stays charged.
func TestEnsembleLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]int32{"": 4, "max_inflight_requests: 1": 2, "max_inflight_requests: 5": 4} {
		synctest.Test(t, func(t *testing.T) {
			var most atomic.Int32
			backend := &enginetest.Backend{ServiceTime: func(_, busy int) time.Duration {
				most.Store(max(most.Load(), int32(busy)))
				return time.Second
			}}
			root := t.TempDir()
			enginetest.WriteModel(t, root, "m", "max_batch_size: 1 instance_group { count: 4 kind: KIND_CPU }")
			config := crossed(1, "m", "m")
			enginetest.WriteModel(t, root, "e", config[:len(config)-2]+limit+" }")
			s := server(t, backend, engine.Options{Repositories: []string{root}, ExitOnError: true, Timer: scheduler.GoTimer})
			memory := budget.New(1 << 20)
			account := memory.Open(func() {})
			cancelled, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			var answered, refused atomic.Int32
			for i := range 12 {
				ctx := t.Context()
				if i%3 == 2 {
					ctx = cancelled
				}
				clients.Go(func() {
					r := &engine.Request{Model: "e", Memory: account, Inputs: []engine.Tensor{filled("INPUT0", 1, uint32(i)), filled("INPUT1", 1, uint32(i+100))}}
					response, err := s.Infer(ctx, r)
					if err != nil {
						refused.Add(1)
						return
					}
					defer response.Release()
					if out, ok := byName(response, "OUTPUT0"); !ok || numberOf(out) != uint32(i) {
						t.Errorf("request %d has another one's answer", i)
					}
					answered.Add(1)
				})
				synctest.Wait() // so that they come in order
			}
			time.Sleep(time.Millisecond)
			cancel()
			clients.Wait()
			if most.Load() != want {
				t.Errorf("%q: %d at the same time, want %d", limit, most.Load(), want)
			}
			if answered.Load()+refused.Load() != 12 || refused.Load() > 4 || limit != "" && refused.Load() < 3 {
				t.Errorf("%q: %d answers and %d refusals", limit, answered.Load(), refused.Load())
			}
			if n := memory.Used(); n != 0 {
				t.Errorf("%q: %d bytes stay charged", limit, n)
			}
			s.Close()
		})
	}
}

// The steps of an ensemble belong to the sequence of its request. The model has two slots.
func TestSequencesInEnsembles(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"direct { }", "oldest { max_candidate_sequences: 2 }"} {
		synctest.Test(t, func(t *testing.T) {
			root := t.TempDir()
			enginetest.WriteModel(t, root, "m", sequenceConfig[:len(sequenceConfig)-2]+strategy+" }")
			enginetest.WriteModel(t, root, "e", `platform: "ensemble" max_batch_size: 2 input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
				ensemble_scheduling { step { model_name: "m" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`)
			s := server(t, sequences(time.Second), engine.Options{Repositories: []string{root}, ExitOnError: true, Timer: scheduler.GoTimer})
			var clients sync.WaitGroup
			var mu sync.Mutex
			got := map[string]string{}
			send := func(ctx context.Context, name string, id uint64, start, end bool) {
				r := &engine.Request{Model: "e", Sequence: sequence.ID{Number: id}, Start: start, End: end,
					Inputs: []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte(name)}}}
				clients.Go(func() {
					response, err := s.Infer(ctx, r)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						got[name] = err.Error()
						return
					}
					got[name] = string(response.Outputs[0].Data)
					if response.Sequence.Number != id || response.Start != start || response.End != end {
						t.Errorf("%s: the answer belongs to %v %v %v", name, response.Sequence, response.Start, response.End)
					}
					response.Release()
				})
				synctest.Wait()
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			send(t.Context(), "a__1", 1, true, false)
			send(t.Context(), "b__1", 2, true, false)
			send(t.Context(), "a__2", 1, false, true)
			send(short, "c__1", 3, true, false) // in the backlog
			send(t.Context(), "d__1", 4, false, false)
			send(t.Context(), "e__1", 0, true, false)
			clients.Wait()
			want := map[string]string{
				"a__1": "a__1", "a__2": "a__2", "b__1": "b__1",
				"c__1": "in ensemble 'e', [request id: <id_unknown>] request was cancelled",
				"d__1": "in ensemble 'e', inference request for sequence 4 to model 'm' must specify the START flag on the first request of the sequence",
				"e__1": "in ensemble 'e', inference request to model 'm' must specify a non-zero or non-empty correlation ID",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", strategy, d)
			}
			s.Close()
		})
	}
}

// In iterative mode each request is a sequence of its own, and requests with identities must start.
func TestIterativeSequences(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"direct { }", "oldest { max_candidate_sequences: 2 }"} {
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", sequenceConfig[:len(sequenceConfig)-2]+"iterative_sequence: true "+strategy+" }")
		s := server(t, sequences(0), engine.Options{Repositories: []string{root}, ExitOnError: true})
		for i, one := range []struct {
			id    uint64
			start bool
			want  bool
		}{{0, false, true}, {0, false, true}, {0, true, true}, {9, true, true}, {9, false, false}, {9, true, true}, {1, false, false}, {0, false, true}} {
			response, err := s.Infer(t.Context(), &engine.Request{Model: "m", Sequence: sequence.ID{Number: one.id}, Start: one.start,
				Inputs: []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte("data")}}})
			if (err == nil) != one.want {
				t.Errorf("%s, request %d: got %v", strategy, i, err)
			}
			if err == nil {
				response.Release()
			}
		}
	}
}

// With namespaces a step means the model in the ensemble's repository, else the only one of its name.
func TestNamespacesOfSteps(t *testing.T) {
	t.Parallel()
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	for _, root := range []string{a, b} {
		enginetest.WriteModel(t, root, "m", "max_batch_size: 4")
	}
	enginetest.WriteModel(t, b, "only", "max_batch_size: 4")
	enginetest.WriteModel(t, a, "own", crossed(4, "m", "only"))
	enginetest.WriteModel(t, c, "ambiguous", crossed(4, "m", "only"))
	s := server(t, &enginetest.Backend{}, engine.Options{Repositories: []string{a, b, c}, Namespacing: true, Explicit: true})
	if err := s.Load(t.Context(), "own", engine.Override{}); err != nil {
		t.Fatal(err)
	}
	config, err := s.ModelConfig("own", 0)
	if err != nil {
		t.Fatal(err)
	}
	var namespaces []string
	for _, step := range config.GetEnsembleScheduling().GetStep() {
		namespaces = append(namespaces, step.GetModelNamespace())
	}
	if d := cmp.Diff([]string{a, b}, namespaces); d != "" {
		t.Error(d)
	}
	response, err := s.Infer(t.Context(), &engine.Request{Model: "own", Inputs: []engine.Tensor{filled("INPUT0", 1, 3), filled("INPUT1", 1, 4)}})
	if err != nil {
		t.Fatal(err)
	}
	response.Release()
	if err := s.ModelReady("m", 0); err == nil {
		t.Error("the model of the other repository is not loaded")
	}
	if err := s.UnloadDependents("own"); err != nil {
		t.Fatal(err)
	}
	if err := s.ModelReady("only", 0); err == nil {
		t.Error("a model that was loaded for the ensemble alone is still there")
	}
	id := c + "::ambiguous"
	want := "load failed for model '" + id + "': ensemble " + id + " contains models that are not available or ambiguous: m\n"
	if err := s.Load(t.Context(), "ambiguous", engine.Override{}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
