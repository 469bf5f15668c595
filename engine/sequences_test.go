package engine_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	requests "tuner/engine/request"
	"tuner/engine/scheduler"
	"tuner/engine/sequence"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// sequences is a backend whose model gets X and READY, and returns Y = X.
func sequences(service time.Duration) *enginetest.Backend {
	one := func(name string) modelconfig.Tensor {
		return modelconfig.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1, 1}}
	}
	return &enginetest.Backend{
		IO:          modelconfig.ModelIO{Inputs: []modelconfig.Tensor{one("X"), one("READY")}, Outputs: []modelconfig.Tensor{one("Y")}},
		ServiceTime: func(int, int) time.Duration { return service },
	}
}

const sequenceConfig = `max_batch_size: 2 input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
	instance_group { count: 1 kind: KIND_CPU }
	sequence_batching { max_sequence_idle_microseconds: 5000000 control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } } }`

// The rows of vacant slots count in the batch, and nowhere else. A sequence that waits for a slot
// longer than its timeout is rejected, and one that is cancelled counts as such.
func TestSequencesAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", sequenceConfig)
		s, err := engine.Open(t.Context(), engine.Options{
			Repositories: []string{root}, ExitOnError: true, Backend: sequences(time.Second), Log: slog.New(slog.DiscardHandler), Timer: scheduler.GoTimer,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var clients sync.WaitGroup
		var mu sync.Mutex
		got := map[string]string{}
		send := func(ctx context.Context, name string, r engine.Request) {
			r.Model, r.Inputs = "m", []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte(name)}}
			clients.Go(func() {
				response, err := s.Infer(ctx, &r)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					got[name] = err.Error()
					return
				}
				got[name] = string(response.Outputs[0].Data)
				response.Release()
			})
			synctest.Wait()
		}
		id := func(n uint64) sequence.ID { return sequence.ID{Number: n} }
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		send(t.Context(), "a__1", engine.Request{Sequence: id(1), Start: true})
		send(t.Context(), "b__1", engine.Request{Sequence: id(2), Start: true})
		send(t.Context(), "c__1", engine.Request{Sequence: id(3), Start: true, Timeout: 100 * time.Millisecond})
		send(short, "d__1", engine.Request{Sequence: id(4), Start: true})
		send(t.Context(), "d__2", engine.Request{Sequence: id(4), ID: "second"})
		send(t.Context(), "e__1", engine.Request{Start: true})
		send(t.Context(), "f__1", engine.Request{Sequence: sequence.ID{Text: "six"}})
		time.Sleep(2 * time.Second)
		send(t.Context(), "b__2", engine.Request{Sequence: id(2), End: true}) // alone, in slot 1
		clients.Wait()
		want := map[string]string{
			"a__1": "a__1", "b__1": "b__1", "b__2": "b__2",
			"c__1": "timeout of the corresponding sequence has been expired",
			"d__1": "[request id: <id_unknown>] request was cancelled",
			"d__2": "[request id: second] request was cancelled",
			"e__1": "inference request to model 'm' must specify a non-zero or non-empty correlation ID",
			"f__1": "inference request for sequence six to model 'm' must specify the START flag on the first request of the sequence",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		figures := s.Metrics()[0]
		rows := map[uint64]uint64{}
		for _, b := range figures.Statistics.BatchStats {
			rows[b.BatchSize] = b.ComputeInfer.Count
		}
		// a__1 alone, b__1 in slot 1 behind a vacant row, b__2 too
		if d := cmp.Diff(map[uint64]uint64{1: 1, 2: 2}, rows); d != "" {
			t.Errorf("rows of the executions (-want +got):\n%s", d)
		}
		if d := cmp.Diff(map[statistics.Failure]uint64{statistics.FailureRejected: 1, statistics.FailureCanceled: 2}, figures.Failures); d != "" {
			t.Error(d)
		}
		if figures.Statistics.InferenceCount != 3 || figures.Pending != 0 {
			t.Errorf("%d inferences and %d pending requests, want 3 and none", figures.Statistics.InferenceCount, figures.Pending)
		}
	})
}

// A request that is refused after its execution leaves the state of its sequence as it was, so that it may
// come again: its client has no place for the answer, or holds too much memory.
func TestRefusedRequestKeepsItsState(t *testing.T) {
	t.Parallel()
	one := func(name string) modelconfig.Tensor {
		return modelconfig.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1, 1}}
	}
	// the next state is X, and Y is the state
	b := &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: []modelconfig.Tensor{one("X"), one("OLD")}, Outputs: []modelconfig.Tensor{one("NEW"), one("Y")}}}
	s, _ := open(t, b, `max_batch_size: 2 input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
		instance_group { count: 1 kind: KIND_CPU }
		sequence_batching { state { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } }`)
	send := func(x string, r engine.Request) (string, error) {
		r.Model, r.Sequence = "m", sequence.ID{Number: 1}
		r.Inputs = []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte(x)}}
		response, err := s.Infer(t.Context(), &r)
		if err != nil {
			return "", err
		}
		defer response.Release()
		return string(response.Outputs[0].Data), nil
	}
	if y, err := send("one ", engine.Request{Start: true}); err != nil || y != "\x00\x00\x00\x00" {
		t.Fatalf("got %q, %v", y, err)
	}
	full := budget.New(100)
	account := full.Open(func() {})
	account.Force(50) // as much as stays free
	for what, r := range map[string]engine.Request{
		"no place":        {Rooms: []requests.Room{{Output: "Y", Bytes: 1}}},
		"too much memory": {Memory: account},
	} {
		if y, err := send("lost", r); err == nil {
			t.Errorf("%s: got %q, want an error", what, y)
		}
	}
	if y, err := send("two ", engine.Request{}); err != nil || y != "one " {
		t.Errorf("after refused requests: the state is %q, %v; want that of the last answer", y, err)
	}
	for _, tc := range []struct {
		memory *budget.Account
		want   string
	}{
		{account, "try again later, from the start of sequence 1, which has ended"},
		{nil, "must specify the START flag"},
	} {
		if y, err := send("last", engine.Request{End: true, Memory: tc.memory}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("the last request: got %q, %v; want an error that says %q", y, err, tc.want)
		}
	}
	if n := full.Used(); n != 50 {
		t.Errorf("%d bytes are charged, want 50", n)
	}
}

// A reload with another max_batch_size changes the slots, so it ends the open sequences, and as many others
// fit then. One with another text alone keeps both.
func TestReloadOfSequencesWithOtherBatches(t *testing.T) {
	t.Parallel()
	b := sequences(0)
	s, root := open(t, b, sequenceConfig)
	send := func(id uint64, start bool) error {
		response, err := s.Infer(t.Context(), &engine.Request{Model: "m", Sequence: sequence.ID{Number: id}, Start: start,
			Inputs: []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte("data")}}})
		if err == nil {
			response.Release()
		}
		return err
	}
	if err := send(1, true); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		config  string
		created int // sessions made so far
		isOpen  bool
	}{
		{sequenceConfig + " # another text", 1, true},
		{strings.Replace(sequenceConfig, "max_batch_size: 2", "max_batch_size: 3", 1), 2, false},
	} {
		write(t, filepath.Join(root, "m", "config.pbtxt"), tc.config)
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Fatal(err)
		}
		if err := send(1, false); b.Created() != tc.created || (err == nil) != tc.isOpen {
			t.Errorf("%s: %d sessions were made, and the open sequence gets %v", tc.config, b.Created(), err)
		}
	}
	for id := range uint64(3) { // two of them would leave the third in the backlog
		if err := send(10+id, true); err != nil {
			t.Error(err)
		}
	}
}

// An unload and a reload end the open sequences, so that the requests behind them are answered at once, and the
// old sessions are freed. A request that a batcher holds back is answered, too.
func TestRetiredModelWaitsForNobody(t *testing.T) {
	t.Parallel()
	const plain = `max_batch_size: 8 input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } input { name: "READY" data_type: TYPE_INT32 dims: [ 1 ] }
		output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } dynamic_batching { } instance_group { count: 1 kind: KIND_CPU }`
	one := strings.Replace(sequenceConfig, "max_batch_size: 2", "max_batch_size: 1", 1)
	unload := func(_ *testing.T, s *engine.Server, _ string) error { return s.Unload("m") }
	reload := func(t *testing.T, s *engine.Server, root string) error {
		write(t, filepath.Join(root, "m", "config.pbtxt"), sequenceConfig)
		return s.Load(t.Context(), "m", engine.Override{})
	}
	for name, tc := range map[string]struct {
		config string
		hold   int
		retire func(t *testing.T, s *engine.Server, root string) error
		open   int // sessions afterwards
	}{
		"unload":          {one, 0, unload, 0},
		"reload":          {one, 0, reload, 1},
		"unload of held":  {sequenceConfig, 5, unload, 0},
		"held by batcher": {plain, 5, unload, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			root, b := t.TempDir(), sequences(time.Second)
			enginetest.WriteModel(t, root, "m", tc.config)
			s, err := engine.Open(t.Context(), engine.Options{
				Repositories: []string{root}, Explicit: true, LoadModels: []string{"m"}, ExitOnError: true, Backend: b, Log: slog.New(slog.DiscardHandler),
				Timer: scheduler.GoTimer, Hold: tc.hold,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var clients sync.WaitGroup
			for id := range uint64(3) { // one gets the slot and stays open, two wait behind it
				r := &engine.Request{Model: "m", Sequence: sequence.ID{Number: 1 + id}, Start: true}
				for _, in := range []string{"X", "READY"}[:1+strings.Count(tc.config, "dynamic_batching")] {
					r.Inputs = append(r.Inputs, engine.Tensor{Name: in, DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 1}, Data: []byte("data")})
				}
				clients.Go(func() {
					response, err := s.Infer(t.Context(), r)
					if err != nil {
						t.Errorf("%s: request %d: %v", name, id, err)
						return
					}
					response.Release()
				})
				synctest.Wait()
			}
			time.Sleep(2 * time.Second)
			begin := time.Now()
			if err := tc.retire(t, s, root); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			clients.Wait()
			synctest.Wait()
			if took := time.Since(begin); took > 3*time.Second || b.Open() != tc.open {
				t.Errorf("%s: the requests were answered after %v, want at most 3s; %d sessions are open, want %d", name, took, b.Open(), tc.open)
			}
		})
	}
}
