package onnxruntime_test

import (
	"bytes"
	"errors"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx/build"
)

// Idle open sessions take none of Go's processors. They may be closed twice.
func TestOpenSessionsTakeNoProcessors(t *testing.T) {
	r := orttest.Runtime(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	backend, before := onnxruntime.New(r), goruntime.GOMAXPROCS(0)
	var sessions []engine.Session
	for range 2 * before {
		s, err := backend.NewSession(t.Context(), engine.ModelFiles{Path: path}, &modelconfig.Config{}, engine.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if got := goruntime.GOMAXPROCS(0); got != before {
		t.Errorf("with %d idle sessions: GOMAXPROCS %d, want %d as before", len(sessions), got, before)
	}
	for _, s := range append(sessions, sessions...) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An index outside an embedding's table makes ONNX Runtime throw. Only the requests of that batch
// fail, with its message. The session still works.
func TestFailureStaysInItsBatch(t *testing.T) {
	s := serve(t, build.EmbeddingRecommender(), `max_batch_size: 2 dynamic_batching { } instance_group { count: 1 kind: KIND_CPU }`)
	request := func(user byte) api.InferRequest {
		return api.InferRequest{Model: s.model, Inputs: []api.Tensor{
			{Name: "user", Datatype: "INT64", Shape: []int64{1, 1}, Data: []byte{user, 0, 0, 0, 0, 0, user / 255, 0}},
			{Name: "items", Datatype: "INT64", Shape: []int64{1, 20}, Data: make([]byte, 160)},
		}}
	}
	alone, err := infer(t.Context(), s.grpc, request(1))
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for client := range 4 {
		c := []api.Client{s.http, s.grpc}[client%2]
		clients.Go(func() {
			for i := range 50 {
				wrong := client == 0 && i%5 == 0
				user := byte(1)
				if wrong {
					user = 255
				}
				got, err := infer(t.Context(), c, request(user))
				var refused *api.StatusError
				switch {
				case wrong && err == nil:
					t.Error("an index outside of the table was answered")
				case err != nil && (!errors.As(err, &refused) || !strings.Contains(refused.Text, "onnx runtime error 2: ")):
					t.Errorf("got %v, want ONNX Runtime's error 2", err)
				case err == nil && !bytes.Equal(got["scores"].Data, alone["scores"].Data):
					t.Error("the answer differs from that of the request alone")
				}
			}
		})
	}
	clients.Wait()
	stats, err := s.http.Statistics(t.Context(), s.model)
	if err != nil {
		t.Fatal(err)
	}
	m := stats.ModelStats[0].InferenceStats
	if failed := m.Fail.Count; failed < 10 || failed > 20 || m.Success.Count+failed != 201 {
		t.Errorf("%d of 201 failed, %d were answered; want the 10 wrong ones and those in their batches of two", failed, m.Success.Count)
	}
}

// All instances of a model run one session, which is closed with the last of them.
func TestInstancesShareASession(t *testing.T) {
	r := orttest.Runtime(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	backend := onnxruntime.New(r)
	open := func(share string) engine.Session {
		t.Helper()
		config, err := modelconfig.Parse("config.pbtxt", []byte(`parameters { key: "share_session_between_instances" value { string_value: "`+share+`" } }`))
		if err != nil {
			t.Fatal(err)
		}
		s, err := backend.NewSession(t.Context(), engine.ModelFiles{Path: path}, config, engine.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	alone := open("false")
	if other := alone.(engine.Sharing).Share(); other != nil {
		t.Error("a session is shared without being asked to")
	}
	first := open("true")
	instances := []engine.Session{first, first.(engine.Sharing).Share(), first.(engine.Sharing).Share()}
	row := int32s(make([]int32, 16)...)
	batch := &engine.Batch{Outputs: []string{"OUTPUT0"}}
	for _, in := range first.IO().Inputs {
		batch.Inputs = append(batch.Inputs, engine.BatchInput{Name: in.Name, DataType: in.DataType, Shape: []int64{1, 16}, Parts: [][]byte{row}})
	}
	for _, closing := range instances { // each in turn, twice: the others go on
		for range 2 {
			if err := closing.Close(); err != nil {
				t.Error(err)
			}
		}
		instances = instances[1:]
		for _, s := range instances {
			result, err := s.Execute(batch)
			if err != nil {
				t.Fatalf("with %d instances left: %v", len(instances), err)
			}
			result.Free()
		}
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
}

// Concurrent requests to instances on one session, each with its own numbers, get their own answers,
// with threads of the callers and with a pool that they share.
func TestSharedSessionAnswersEach(t *testing.T) {
	for _, threads := range []string{"1", "2"} {
		s := serve(t, build.Simple(), `max_batch_size: 4 dynamic_batching { } instance_group { count: 4 kind: KIND_CPU }
			parameters { key: "share_session_between_instances" value { string_value: "1" } }
			parameters { key: "intra_op_thread_count" value { string_value: "`+threads+`" } }`)
		var clients sync.WaitGroup
		for client := range 8 {
			clients.Go(func() {
				for i := range 100 {
					if err := checkSimple(t.Context(), s.grpc, 1+i%4, int32(1000*client+i)); err != nil {
						t.Errorf("%s threads: %v", threads, err)
						return
					}
				}
			})
		}
		clients.Wait()
	}
}
