package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/engine/enginetest"
)

// clients returns both clients of an engine.
func clients(t *testing.T, e *enginetest.Engine) map[string]api.Client {
	t.Helper()
	grpc, err := api.NewGRPC(e.Addresses.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]api.Client{"http": api.NewHTTP(e.Addresses.HTTP), "grpc": grpc}
	t.Cleanup(func() {
		for name, c := range all {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Errorf("%s: close: %v", name, err)
			}
		}
	})
	return all
}

func request(fill byte) api.InferRequest {
	data := make([]byte, 64)
	for i := range data {
		data[i] = fill
	}
	return api.InferRequest{Model: "fake", Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: []int64{1, 16}, Data: data},
		{Name: "INPUT1", Datatype: "INT32", Shape: []int64{1, 16}, Data: data},
	}}
}

// Both clients see the same server.
func TestControl(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	for name, c := range clients(t, e) {
		ctx := t.Context()
		ready, err := c.ServerReady(ctx)
		modelReady, err2 := c.ModelReady(ctx, "fake")
		otherReady, err3 := c.ModelReady(ctx, "other")
		if err := errors.Join(err, err2, err3); err != nil || !ready || !modelReady || otherReady {
			t.Errorf("%s: ready %v, %v, %v, %v; want true, true, false", name, ready, modelReady, otherReady, err)
		}
		if m, err := c.ServerMetadata(ctx); err != nil || m.Name != "triton" || len(m.Extensions) == 0 {
			t.Errorf("%s: server %+v, %v", name, m, err)
		}
		want := api.ModelMetadata{Name: "fake", Versions: []string{"1"}, Platform: "onnxruntime_onnx",
			Inputs:  []api.TensorMetadata{{Name: "INPUT0", Datatype: "INT32", Shape: []int64{-1, 16}}, {Name: "INPUT1", Datatype: "INT32", Shape: []int64{-1, 16}}},
			Outputs: []api.TensorMetadata{{Name: "OUTPUT0", Datatype: "INT32", Shape: []int64{-1, 16}}, {Name: "OUTPUT1", Datatype: "INT32", Shape: []int64{-1, 16}}}}
		if m, err := c.ModelMetadata(ctx, "fake"); err != nil || cmp.Diff(want, m) != "" {
			t.Errorf("%s: model %v\n%s", name, err, cmp.Diff(want, m))
		}
		if err := c.LoadModel(ctx, "fake", `{"max_batch_size":6,"dynamic_batching":{"max_queue_delay_microseconds":"50"}}`); err != nil {
			t.Errorf("%s: load: %v", name, err)
		}
		if m, err := c.ModelConfig(ctx, "fake"); err != nil || m.GetMaxBatchSize() != 6 || m.GetDynamicBatching().GetMaxQueueDelayMicroseconds() != 50 {
			t.Errorf("%s: config %v, %v", name, m, err)
		}
		if err := c.LoadModel(ctx, "fake", `{"backend":"onnxruntime"}`, api.File{Path: "2/model.onnx", Data: []byte("x")}); err != nil {
			t.Errorf("%s: load with a file: %v", name, err)
		}
		if m, err := c.ModelMetadata(ctx, "fake"); err != nil || cmp.Diff([]string{"2"}, m.Versions) != "" {
			t.Errorf("%s: versions %v, %v; want 2, which came with the load", name, m.Versions, err)
		}
		if err := errors.Join(c.UnloadModel(ctx, "fake"), c.LoadModel(ctx, "fake", "")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		index, err := c.Index(ctx)
		if err != nil || len(index) == 0 || index[0].Name != "fake" || index[0].State != api.StateReady {
			t.Errorf("%s: index %v, %v", name, index, err)
		}
		var answered *api.StatusError
		if err := c.LoadModel(ctx, "nosuch", ""); !errors.As(err, &answered) || answered.Text != "failed to load 'nosuch', failed to poll from model repository" {
			t.Errorf("%s: load of a missing model: %v", name, err)
		}
	}
}

func TestInferAndStatistics(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	for name, c := range clients(t, e) {
		r := request(7)
		r.Outputs, r.ID, r.Priority, r.Timeout = []string{"OUTPUT1"}, "x", 1, 1
		encoded, err := c.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // the same bytes again
			answer, err := c.Infer(t.Context(), encoded)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := answer.Outputs()
			want := []api.Tensor{{Name: "OUTPUT1", Datatype: "INT32", Shape: []int64{1, 16}, Data: r.Inputs[1].Data}}
			if err != nil || cmp.Diff(want, got) != "" {
				t.Errorf("%s: %v\n%s", name, err, cmp.Diff(want, got))
			}
		}
		bad := request(1)
		bad.Inputs[0].Datatype = "FP32"
		encoded, err = c.Encode(bad)
		if err != nil {
			t.Fatal(err)
		}
		var answered *api.StatusError
		if _, err := c.Infer(t.Context(), encoded); !errors.As(err, &answered) || !strings.Contains(answered.Text, "data-type is 'FP32'") {
			t.Errorf("%s: bad request: %v", name, err)
		}
	}
	var stats []api.Statistics
	for name, c := range clients(t, e) {
		s, err := c.Statistics(t.Context(), "fake")
		if err != nil || len(s.ModelStats) != 1 || s.ModelStats[0].InferenceCount != 6 || s.ModelStats[0].InferenceStats.Success.Count != 6 {
			t.Fatalf("%s: statistics %+v, %v; want 6 inferences", name, s, err)
		}
		s.ModelStats[0].ResponseStats, s.ModelStats[0].MemoryUsage = nil, nil // empty or absent
		stats = append(stats, s)
	}
	if d := cmp.Diff(stats[0], stats[1]); d != "" {
		t.Errorf("the two wires show different statistics:\n%s", d)
	}
	text, err := api.Metrics(t.Context(), e.Addresses.Metrics)
	if err != nil || !strings.Contains(string(text), `nv_inference_count{model="fake",version="1"} 6`) {
		t.Errorf("metrics: %v\n%s", err, text)
	}
}

// A call ends when its context does. The client can still be used.
func TestCancel(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{ServiceTime: func(int, int) time.Duration {
		<-release
		return 0
	}}})
	for name, c := range clients(t, e) {
		encoded, err := c.Encode(request(1))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := c.Infer(ctx, encoded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want deadline exceeded", name, err)
		}
		if _, err := c.Infer(ctx, encoded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: a context that has ended: got %v", name, err)
		}
	}
	close(release)
	for name, c := range clients(t, e) {
		var wg sync.WaitGroup
		for n := range byte(20) {
			wg.Go(func() {
				r := request(n)
				encoded, err := c.Encode(r)
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				answer, err := c.Infer(ctx, encoded)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if got, err := answer.Outputs(); err != nil || got[0].Data[0] != n {
					t.Errorf("%s: %v, %v", name, got, err)
				}
			})
		}
		wg.Wait()
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	grpc, err := api.NewGRPC("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]api.Client{"http": api.NewHTTP("127.0.0.1:1"), "grpc": grpc} {
		encoded, err := c.Encode(request(1))
		if err != nil {
			t.Fatal(err)
		}
		if ready, err := c.ServerReady(t.Context()); ready || err == nil {
			t.Errorf("%s: ready %v, %v; want an error", name, ready, err)
		}
		if _, err := c.Infer(t.Context(), encoded); err == nil {
			t.Errorf("%s: inference without a server", name)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Infer(t.Context(), encoded); err == nil {
			t.Errorf("%s: inference on a closed client", name)
		}
	}
}

// A page of another web server is not printed. Its status is.
func TestPageOfAnotherServer(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<!DOCTYPE HTML>\n<html>nothing here</html>"))
	}))
	defer web.Close()
	client := api.NewHTTP(strings.TrimPrefix(web.URL, "http://"))
	defer client.Close()
	if _, err := client.ServerMetadata(t.Context()); err == nil || err.Error() != "server answered 404: Not Found" {
		t.Errorf("error %v", err)
	}
}

func TestAnnouncementIsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(api.Announcement{PID: 1, HTTP: "a:1", GRPC: "b:2", Metrics: "c:3", ORTVersion: "1.31.1", ORTLibrary: "/x"})
	want := `{"pid":1,"http":"a:1","grpc":"b:2","metrics":"c:3","ort_version":"1.31.1","ort_library":"/x"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}
