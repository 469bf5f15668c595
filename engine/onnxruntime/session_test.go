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
