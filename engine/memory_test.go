package engine_test

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/engine"
	"tuner/engine/budget"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/engine/served"
	"tuner/engine/statistics"
	"tuner/engine/trace"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// Outputs are charged to the account of their request until they are released. A request without
// room for them gets an error. Its neighbours in the batch are answered.
func TestOutputsAreCharged(t *testing.T) {
	t.Parallel()
	io := modelconfig.ModelIO{
		Inputs: []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{16}}},
		// 4000 bytes
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{1000}}},
	}
	s, _ := open(t, &enginetest.Backend{IO: io}, "")
	b := budget.New(20_000)
	client := func() *engine.Request {
		return &engine.Request{Model: "m", Memory: b.Open(nil), Inputs: []engine.Tensor{tensor("X", 16)}}
	}
	first, second := client(), client()
	var held []*engine.Response
	for range 2 { // a budget of 20000 bytes: 8000 are charged, and as much again must stay free
		response, err := s.Infer(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, response)
	}
	if b.Used() != 8000 {
		t.Errorf("%d bytes are charged for two answers of 4000", b.Used())
	}
	_, err := s.Infer(t.Context(), first)
	if want := "requests and answers take more than the 20000 bytes of memory that they may, try again later"; fault.CodeOf(err) != fault.Exhausted || err.Error() != want {
		t.Errorf("a third answer: %v, want %s", err, want)
	}
	response, err := s.Infer(t.Context(), second)
	if err != nil {
		t.Errorf("another client: %v", err)
	} else {
		held = append(held, response)
	}
	for _, r := range held {
		r.Release()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are charged at the end", b.Used())
	}
	if m := s.Metrics()[0]; m.Failures[statistics.FailureOther] != 1 {
		t.Errorf("failures: %v, want the one without memory", m.Failures)
	}
}

// The objects that a backend makes for strings are charged before the request is queued. An empty
// string takes 4 bytes on the wire and 32 there.
func TestStringsAreCharged(t *testing.T) {
	t.Parallel()
	const count = 1000
	tensors := []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_STRING, Dims: []int64{count}}}
	s, _ := open(t, &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: tensors, Outputs: tensors}}, "")
	in := engine.Tensor{Name: "X", DataType: configpb.DataType_TYPE_STRING, Shape: []int64{count}, Data: make([]byte, 4*count)}
	// the answer has 4 bytes per string; as much again must stay free
	for max, want := range map[int64]string{2*36*count - 1: "take more than the", 2 * 40 * count: ""} {
		b := budget.New(max)
		r := &engine.Request{Model: "m", Memory: b.Open(nil), Inputs: []engine.Tensor{in}}
		p, err := s.Start(r)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("of %d bytes: %v", max, err)
		}
		if err != nil {
			continue
		}
		response, err := p.Wait(t.Context())
		if err == nil {
			response.Release()
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes are charged at the end", b.Used())
		}
	}
}

// What the server makes of a request's shapes is charged before the request is queued. A shape without
// elements has no data that would bound it: 1,000,000 rows are as many values of 12 bytes.
func TestValuesOfShapesAreCharged(t *testing.T) {
	t.Parallel()
	const integer = configpb.DataType_TYPE_INT32
	io := modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: integer, Dims: []int64{-1, -1}}, {Name: "SHAPES", DataType: integer, Dims: []int64{-1, -1}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: integer, Dims: []int64{1}}},
	}
	const tensors = `input { name: "X" data_type: TYPE_INT32 dims: [ -1, -1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }
		batch_input { kind: BATCH_ITEM_SHAPE target_name: "SHAPES" data_type: TYPE_INT32 source_input: "X" } `
	s, root := open(t, &enginetest.Backend{IO: io}, tensors)
	b := budget.New(1 << 20)
	send := func(rows int64) error {
		r := &engine.Request{Model: "m", Memory: b.Open(nil), Inputs: []engine.Tensor{{Name: "X", DataType: integer, Shape: []int64{rows, 0}}}}
		response, err := s.Infer(t.Context(), r)
		if err == nil {
			response.Release()
		}
		return err
	}
	for _, rows := range []int64{1_000_000, 1 << 40, math.MaxInt64} {
		if err := send(rows); err == nil || fault.CodeOf(err) != fault.Exhausted {
			t.Fatalf("%d rows: got %v, want a refusal", rows, err)
		}
	}
	if err := send(3); err != nil || b.Used() != 0 {
		t.Errorf("3 rows: got %v, and %d bytes stay charged", err, b.Used())
	}
	for dims, want := range map[string]string{"100000000, 0": "batch_input takes the samples over 1073741824 bytes", "3, 0": ""} {
		write(t, filepath.Join(root, "m", "config.pbtxt"), tensors+
			`model_warmup { name: "w" batch_size: 1 inputs { key: "X" value { data_type: TYPE_INT32 dims: [ `+dims+` ] zero_data: true } } }`)
		got := ""
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("a warm-up with %s: got %q, want %q", dims, got, want)
		}
	}
}

// A request whose classes cannot be made leaves no outputs in its trace: their memory is another request's by
// then.
func TestTraceOfFailedClasses(t *testing.T) {
	t.Parallel()
	halves, _ := open(t, &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{16}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_FP16, Dims: []int64{16}}},
	}}, "")
	step, _ := openEnsembles(t, &enginetest.Backend{}, map[string]string{"p": part}, map[string]string{"e": ensembleConfig(8,
		[]string{"INPUT0", "INPUT1"}, []string{"OUTPUT0", "OUTPUT1"}, wiring{"p", [2]string{"INPUT0", "INPUT1"}, [2]string{"OUTPUT0", "OUTPUT1"}})})
	for name, tc := range map[string]struct {
		server  *engine.Server
		model   string
		inputs  []engine.Tensor
		output  string
		classes uint32
		memory  int64
		code    fault.Code // of the error; 0: none
		outputs int        // in the trace
	}{
		"without classes": {halves, "m", []engine.Tensor{tensor("X", 16)}, "Y", 0, 1 << 20, 0, 1},
		"without a type":  {halves, "m", []engine.Tensor{tensor("X", 16)}, "Y", 2, 1 << 20, fault.InvalidArgument, 0},
		// The step's outputs of 128 bytes fit once and not twice. They are in its own trace.
		"without room": {step, "e", two(1, 2).Inputs, "OUTPUT0", 2, 2*served.StepBytes + 2*200, fault.Exhausted, 2},
	} {
		file := filepath.Join(t.TempDir(), "trace")
		tracer := trace.New(trace.Config{Level: trace.LevelTensors, Rate: 1, Count: -1, File: file}, nil, slog.New(slog.DiscardHandler))
		b := budget.New(tc.memory)
		r := &engine.Request{Model: tc.model, Inputs: tc.inputs, Memory: b.Open(nil), Trace: tracer.Sample(tc.model, nil)}
		r.AddOutput([]byte(tc.output))
		r.Classify(tc.classes)
		if tc.model == "e" {
			r.AddOutput([]byte("OUTPUT1"))
		}
		response, err := tc.server.Infer(t.Context(), r)
		if err == nil {
			response.Release()
		}
		if (err == nil) != (tc.code == 0) || err != nil && fault.CodeOf(err) != tc.code {
			t.Errorf("%s: got %v", name, err)
		}
		r.Trace.End()
		if err := tracer.Close(t.Context()); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "TENSOR_BACKEND_OUTPUT"); n != tc.outputs || b.Used() != 0 {
			t.Errorf("%s: the trace has %d outputs, want %d; %d bytes stay charged:\n%s", name, n, tc.outputs, b.Used(), text)
		}
	}
}
