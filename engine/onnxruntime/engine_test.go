package onnxruntime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/onnxruntime"
	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// served is an engine with one real model.
type served struct {
	server *engine.Server
	model  string
	dir    string // of the model
	http   api.Client
	grpc   api.Client
}

// serve serves a model with ONNX Runtime, or skips the test.
func serve(t *testing.T, m *onnx.Model, config string) *served {
	t.Helper()
	r := orttest.Runtime(t)
	root := t.TempDir()
	s := &served{model: "m", dir: filepath.Join(root, "m")}
	enginetest.WriteModel(t, root, s.model, config)
	if err := m.Write(filepath.Join(s.dir, "1", "model.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	server, at := enginetest.Serve(t, engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{s.model}, Backend: onnxruntime.New(r),
	})
	s.server = server
	s.http = api.NewHTTP(at.HTTP)
	grpc, err := api.NewGRPC(at.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc = grpc
	t.Cleanup(func() {
		if err := errors.Join(s.http.Close(), s.grpc.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// infer sends one request and decodes the answer.
func infer(ctx context.Context, c api.Client, r api.InferRequest) (map[string]api.Tensor, error) {
	e, err := c.Encode(r)
	if err != nil {
		return nil, err
	}
	answer, err := c.Infer(ctx, e)
	if err != nil {
		return nil, err
	}
	outputs, err := answer.Outputs()
	named := map[string]api.Tensor{}
	for _, o := range outputs {
		named[o.Name] = o
	}
	return named, err
}

func int32s(values ...int32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}

// simple returns a request to add and subtract rows of 16: x, x+1, … and all ones.
func simple(rows int, x int32) (r api.InferRequest, sum, difference []byte) {
	var a, b, s, d []int32
	for i := range int32(rows * 16) {
		a, b = append(a, x+i), append(b, 1)
		s, d = append(s, x+i+1), append(d, x+i-1)
	}
	shape := []int64{int64(rows), 16}
	return api.InferRequest{Model: "m", Inputs: []api.Tensor{
		{Name: "INPUT0", Datatype: "INT32", Shape: shape, Data: int32s(a...)},
		{Name: "INPUT1", Datatype: "INT32", Shape: shape, Data: int32s(b...)},
	}}, int32s(s...), int32s(d...)
}

func checkSimple(ctx context.Context, c api.Client, rows int, x int32) error {
	r, sum, difference := simple(rows, x)
	got, err := infer(ctx, c, r)
	if err != nil {
		return err
	}
	shape := []int64{int64(rows), 16}
	want := map[string]api.Tensor{
		"OUTPUT0": {Name: "OUTPUT0", Datatype: "INT32", Shape: shape, Data: sum},
		"OUTPUT1": {Name: "OUTPUT1", Datatype: "INT32", Shape: shape, Data: difference},
	}
	if d := cmp.Diff(want, got); d != "" {
		return fmt.Errorf("answer to %d rows from %d (-want +got):\n%s", rows, x, d)
	}
	return nil
}

func TestInferOverBothWires(t *testing.T) {
	s := serve(t, build.Simple(), "")
	for name, c := range map[string]api.Client{"http": s.http, "grpc": s.grpc} {
		for rows := 1; rows <= 4; rows++ {
			if err := checkSimple(t.Context(), c, rows, int32(10*rows)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Requests that the dynamic batcher merges are separated again: every answer is the one that its
// request alone would get.
func TestConcurrentRequestsAreNotMixedUp(t *testing.T) {
	s := serve(t, build.Simple(), `max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 500 } instance_group { count: 2 kind: KIND_CPU }`)
	var wg sync.WaitGroup
	for worker := range 16 {
		c := []api.Client{s.http, s.grpc}[worker%2]
		wg.Go(func() {
			for i := range 40 {
				if err := checkSimple(t.Context(), c, 1+(worker+i)%5, int32(1000*worker+i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	stats, err := s.http.Statistics(t.Context(), s.model)
	if err != nil {
		t.Fatal(err)
	}
	m := stats.ModelStats[0]
	if m.InferenceStats.Success.Count != 16*40 || m.ExecutionCount >= 16*40 {
		t.Errorf("got %d answers in %d executions, want %d answers in fewer executions", m.InferenceStats.Success.Count, m.ExecutionCount, 16*40)
	}
}

func TestEveryDataType(t *testing.T) {
	text := binary.LittleEndian.AppendUint32(nil, 3)
	text = append(text, "a\"b"...)
	text = append(text, 0, 0, 0, 0) // the empty string
	for dataType, tc := range map[string]struct {
		inModel onnx.DataType
		data    []byte // two elements
	}{
		"BOOL": {onnx.Bool, []byte{0, 1}}, "INT8": {onnx.Int8, []byte{1, 255}}, "UINT8": {onnx.Uint8, []byte{1, 255}},
		"INT16": {onnx.Int16, []byte{1, 2, 3, 255}}, "UINT16": {onnx.Uint16, []byte{1, 2, 3, 255}},
		"INT32": {onnx.Int32, int32s(1, -2)}, "UINT32": {onnx.Uint32, int32s(1, -2)},
		"INT64": {onnx.Int64, int32s(1, 2, 3, -4)}, "UINT64": {onnx.Uint64, int32s(1, 2, 3, -4)},
		"FP16": {onnx.Float16, []byte{0, 60, 0, 188}}, "BF16": {onnx.BFloat16, []byte{128, 63, 128, 191}},
		"FP32": {onnx.Float, int32s(int32(math.Float32bits(1.5)), 0)}, "FP64": {onnx.Double, int32s(1, 2, 3, 4)},
		"BYTES": {onnx.String, text},
	} {
		t.Run(dataType, func(t *testing.T) {
			s := serve(t, build.Identity(tc.inModel), "")
			meta, err := s.http.ModelMetadata(t.Context(), s.model)
			if err != nil {
				t.Fatal(err)
			}
			shape := []int64{2}
			for range meta.Inputs[0].Shape[1:] {
				shape = append(shape, 1)
			}
			in := api.Tensor{Name: meta.Inputs[0].Name, Datatype: dataType, Shape: shape, Data: tc.data}
			for name, c := range map[string]api.Client{"http": s.http, "grpc": s.grpc} {
				got, err := infer(t.Context(), c, api.InferRequest{Model: s.model, Inputs: []api.Tensor{in}})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				out := got[meta.Outputs[0].Name]
				if d := cmp.Diff(in.Data, out.Data); d != "" || out.Datatype != dataType {
					t.Errorf("%s: %s (-want +got):\n%s", name, out.Datatype, d)
				}
			}
		})
	}
}

// A change of batching keeps the sessions; any other change makes new ones. In both cases no
// request is lost.
func TestReloadUnderLoad(t *testing.T) {
	s := serve(t, build.Simple(), "")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var done atomic.Int64
	for worker := range 4 {
		c := []api.Client{s.http, s.grpc}[worker%2]
		wg.Go(func() {
			for i := int32(0); ctx.Err() == nil; i++ {
				if err := checkSimple(t.Context(), c, 1, i); err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	config, err := s.http.ModelConfig(t.Context(), s.model)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		next := modelconfig.Clone(config)
		next.MaxBatchSize = int32(1 + i%6)
		next.SchedulingChoice = nil
		next.InstanceGroup[0].Count = int32(1 + i/4) // every fourth is a full reload
		text, err := modelconfig.FormatJSON(next)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.http.LoadModel(t.Context(), s.model, string(text)); err != nil {
			t.Fatal(err)
		}
		got, err := s.grpc.ModelConfig(t.Context(), s.model)
		if err != nil || got.GetMaxBatchSize() != next.MaxBatchSize || got.GetInstanceGroup()[0].GetCount() != next.InstanceGroup[0].GetCount() {
			t.Fatalf("reload %d: %v, max_batch_size %d, count %d", i, err, got.GetMaxBatchSize(), got.GetInstanceGroup()[0].GetCount())
		}
		for seen := done.Load(); done.Load() < seen+8 && !t.Failed(); { // the new configuration really serves
			if err := checkSimple(t.Context(), s.http, 1, 5); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	wg.Wait()
}

// A model that fails at run time answers with ONNX Runtime's message. It counts as failed, not as
// executed.
func TestFailingModel(t *testing.T) {
	s := serve(t, build.Failing(), "")
	meta, err := s.http.ModelMetadata(t.Context(), s.model)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{"INT64": 8, "FP32": 4, "INT32": 4}
	var inputs []api.Tensor
	for _, in := range meta.Inputs {
		elements := int64(1)
		shape := append([]int64(nil), in.Shape...)
		for i := range shape {
			shape[i] = max(1, shape[i])
			elements *= shape[i]
		}
		inputs = append(inputs, api.Tensor{Name: in.Name, Datatype: in.Datatype, Shape: shape, Data: make([]byte, int64(sizes[in.Datatype])*elements)})
	}
	_, err = infer(t.Context(), s.http, api.InferRequest{Model: s.model, Inputs: inputs})
	var answered *api.StatusError
	if !errors.As(err, &answered) || answered.Status != 500 || !strings.HasPrefix(answered.Text, "onnx runtime error ") {
		t.Fatalf("got %v, want 500 and onnx runtime error …", err)
	}
	stats, err := s.http.Statistics(t.Context(), s.model)
	if err != nil {
		t.Fatal(err)
	}
	m := stats.ModelStats[0]
	if m.InferenceStats.Fail.Count != 1 || m.ExecutionCount != 0 || m.InferenceCount != 0 {
		t.Errorf("got %d failed, %d executions, %d inferences; want 1, 0, 0", m.InferenceStats.Fail.Count, m.ExecutionCount, m.InferenceCount)
	}
}

func TestLoadErrors(t *testing.T) {
	s := serve(t, build.Simple(), "")
	path := filepath.Join(s.dir, "1", "model.onnx")
	for _, tc := range []struct{ name, config, want string }{
		{"wrong data type", `{"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[16]},{"name":"INPUT1","data_type":"TYPE_INT32","dims":[16]}],"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[16]}],"max_batch_size":4}`,
			"Invalid argument: unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'INPUT0', model provides TYPE_INT32"},
		{"bad parameter", `{"parameters":{"intra_op_thread_count":{"string_value":"abc"}}}`, "Invalid argument: failed to convert 'abc' to integral number"},
		{"no such file", `{"backend":"onnxruntime","default_model_filename":"net.onnx"}`, "Internal: failed to stat file " + filepath.Join(s.dir, "1", "net.onnx")},
		{"unknown accelerator", `{"optimization":{"execution_accelerators":{"cpu_execution_accelerator":[{"name":"nope"}]}}}`, "Invalid argument: unknown Execution Accelerator 'nope' is requested"},
	} {
		err := s.http.LoadModel(t.Context(), s.model, tc.config)
		want := &api.StatusError{Status: 400, Text: "load failed for model 'm': version 1 is at UNAVAILABLE state: " + tc.want + ";\n"}
		var got *api.StatusError
		if !errors.As(err, &got) || *got != *want {
			t.Errorf("%s:\n got %v\nwant %v", tc.name, err, want)
		}
		if err := checkSimple(t.Context(), s.http, 1, 7); err != nil { // the earlier model still serves
			t.Errorf("%s: after the failed load: %v", tc.name, err)
		}
	}
	if err := s.http.UnloadModel(t.Context(), s.model); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("not a model"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := s.http.LoadModel(t.Context(), s.model, "")
	if want := "Internal: onnx runtime error 7: Load model from " + path + " failed:Protobuf parsing failed."; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("corrupt file:\n got %v\nwant %s", err, want)
	}
}

// Files in the load request replace those of the repository, until the next plain load.
func TestFileOverride(t *testing.T) {
	s := serve(t, build.Simple(), "")
	other := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.Identity(onnx.Int32).Write(other, 0); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]api.Client{"http": s.http, "grpc": s.grpc} {
		if err := c.LoadModel(t.Context(), s.model, `{"backend":"onnxruntime"}`, api.File{Path: "1/model.onnx", Data: data}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if meta, err := c.ModelMetadata(t.Context(), s.model); err != nil || len(meta.Inputs) != 1 {
			t.Errorf("%s: %v, inputs %v; want the one of the other model", name, err, meta.Inputs)
		}
		if err := c.LoadModel(t.Context(), s.model, ""); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := checkSimple(t.Context(), c, 2, 3); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.http.LoadModel(t.Context(), s.model, `{"backend":"onnxruntime"}`, api.File{Path: "../../evil", Data: data}); err == nil {
		t.Error("a file outside of the model's folder was accepted")
	}
}
