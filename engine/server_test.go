package engine_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// open starts a server in explicit mode with the model "m", whose sessions are fake.
func open(t *testing.T, backend *enginetest.Backend, config string) (*engine.Server, string) {
	t.Helper()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "m", config)
	s, err := engine.Open(t.Context(), engine.Options{
		ID: "triton", Repositories: []string{root}, Explicit: true, LoadModels: []string{"m"}, StrictReadiness: true,
		ExitOnError: true, Backend: backend, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if n := backend.Open(); n != 0 {
			t.Errorf("%d sessions are open after Close", n)
		}
	})
	return s, root
}

func tensor(name string, shape ...int64) engine.Tensor {
	n := int64(4)
	for _, d := range shape {
		n *= d
	}
	return engine.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Shape: shape, Data: make([]byte, max(n, 0))}
}

func request(rows int64) *engine.Request {
	return &engine.Request{Model: "m", Inputs: []engine.Tensor{tensor("INPUT0", rows, 16), tensor("INPUT1", rows, 16)}}
}

// The texts are those observed on a real Triton.
func TestRequestValidation(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{}, "")
	const note = " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size."
	for _, tc := range []struct {
		name   string
		change func(r *engine.Request)
		code   fault.Code
		want   string
	}{
		{"input missing", func(r *engine.Request) { r.Inputs = r.Inputs[:1] }, fault.InvalidArgument,
			"[request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['INPUT0'], but missing required input(s) ['INPUT1']. Please provide all required input(s)."},
		{"input too many", func(r *engine.Request) { r.Inputs = append(r.Inputs, tensor("X", 1)) }, fault.InvalidArgument,
			"[request id: <id_unknown>] expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['X','INPUT1','INPUT0'], but missing required input(s) ]. Please provide all required input(s)."},
		{"input unknown, with id", func(r *engine.Request) { r.ID, r.Inputs[1].Name = "7", "X" }, fault.InvalidArgument,
			"unexpected inference input 'X' for model 'm'"},
		{"input twice", func(r *engine.Request) { r.Inputs[1].Name = "INPUT0" }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' already exists in request"},
		{"output twice", func(r *engine.Request) { r.Outputs = []string{"OUTPUT1", "OUTPUT0", "OUTPUT1"} }, fault.InvalidArgument,
			"[request id: <id_unknown>] output 'OUTPUT1' already exists in request"},
		{"output twice before output unknown", func(r *engine.Request) { r.ID, r.Outputs = "7", []string{"bar", "OUTPUT0", "OUTPUT0"} }, fault.InvalidArgument,
			"[request id: 7] output 'OUTPUT0' already exists in request"},
		{"output unknown twice", func(r *engine.Request) { r.Outputs = []string{"bar", "bar"} }, fault.InvalidArgument,
			"[request id: <id_unknown>] output 'bar' already exists in request"},
		{"input twice before output twice", func(r *engine.Request) { r.Inputs[1].Name, r.Outputs = "INPUT0", []string{"bar", "bar"} }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' already exists in request"},
		{"output unknown", func(r *engine.Request) { r.Outputs = []string{"bar"} }, fault.InvalidArgument,
			"unexpected inference output 'bar' for model 'm'"},
		{"data type", func(r *engine.Request) { r.Inputs[0].DataType = configpb.DataType_TYPE_INT64 }, fault.InvalidArgument,
			"[request id: <id_unknown>] inference input 'INPUT0' data-type is 'INT64', but model 'm' expects 'INT32'"},
		{"shape", func(r *engine.Request) { r.Inputs[0] = tensor("INPUT0", 1, 17) }, fault.InvalidArgument,
			"[request id: <id_unknown>] unexpected shape for input 'INPUT0' for model 'm'. Expected [-1,16], got [1,17]." + note},
		{"batch sizes differ", func(r *engine.Request) { r.Inputs[1] = tensor("INPUT1", 2, 16) }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' batch size does not match other inputs for 'm'"},
		{"batch sizes differ, other order", func(r *engine.Request) { r.Inputs[0], r.Inputs[1] = tensor("INPUT1", 2, 16), tensor("INPUT0", 1, 16) }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT1' batch size does not match other inputs for 'm'"},
		{"batch sizes before data types", func(r *engine.Request) {
			r.Inputs[0].DataType, r.Inputs[1] = configpb.DataType_TYPE_FP32, tensor("INPUT1", 2, 16)
		}, fault.InvalidArgument, "[request id: <id_unknown>] input 'INPUT0' batch size does not match other inputs for 'm'"},
		{"outputs before inputs", func(r *engine.Request) { r.Inputs, r.Outputs = r.Inputs[:1], []string{"nope"} }, fault.InvalidArgument,
			"unexpected inference output 'nope' for model 'm'"},
		{"no inputs", func(r *engine.Request) { r.Inputs = nil }, fault.InvalidArgument,
			"[request id: <id_unknown>] expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) ['INPUT0','INPUT1']. Please provide all required input(s)."},
		{"negative batch", func(r *engine.Request) { r.Inputs[0].Shape, r.Inputs[1].Shape = []int64{-1, 16}, []int64{-1, 16} }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' batch size does not match other inputs for 'm'"},
		{"batch of more than 32 bits", func(r *engine.Request) {
			r.Inputs[0].Shape, r.Inputs[1].Shape = []int64{1<<32 + 1, 16}, []int64{1<<32 + 1, 16}
		}, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' batch size does not match other inputs for 'm'"},
		{"batch 0 with data", func(r *engine.Request) { r.Inputs[0].Shape, r.Inputs[1].Shape = []int64{0, 16}, []int64{0, 16} }, fault.InvalidArgument,
			"[request id: <id_unknown>] input byte size mismatch for input 'INPUT1' for model 'm'. Expected 0, got 64"},
		{"batch 0", func(r *engine.Request) { r.Inputs[0], r.Inputs[1] = tensor("INPUT0", 0, 16), tensor("INPUT1", 0, 16) }, fault.InvalidArgument,
			"[request id: <id_unknown>] input byte size mismatch for input 'INPUT1' for model 'm'. Expected 64, got 0"},
		{"batch too large", func(r *engine.Request) { r.Inputs = request(5).Inputs }, fault.InvalidArgument,
			"[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'"},
		{"too little data", func(r *engine.Request) { r.Inputs[1].Data = r.Inputs[1].Data[:60] }, fault.InvalidArgument,
			"[request id: <id_unknown>] input byte size mismatch for input 'INPUT1' for model 'm'. Expected 64, got 60"},
		{"negative dimension", func(r *engine.Request) { r.Inputs[0].Shape = []int64{1, -1} }, fault.InvalidArgument,
			"[request id: <id_unknown>] All input dimensions should be specified for input 'INPUT0' for model 'm', got [1,-1]"},
		{"no shape", func(r *engine.Request) { r.Inputs[0].Shape = nil }, fault.InvalidArgument,
			"[request id: <id_unknown>] input 'INPUT0' has no shape but model requires batch dimension for 'm'"},
		{"model unknown", func(r *engine.Request) { r.Model = "x" }, fault.NotFound, "Request for unknown model: 'x' is not found"},
		{"version unknown", func(r *engine.Request) { r.Version = 3 }, fault.NotFound, "Request for unknown model: 'm' version 3 is not found"},
	} {
		r := request(1)
		tc.change(r)
		_, err := s.Infer(t.Context(), r)
		if err == nil || err.Error() != tc.want || fault.CodeOf(err) != tc.code {
			t.Errorf("%s:\n got %v (%v)\nwant %s (%v)", tc.name, err, fault.CodeOf(err), tc.want, tc.code)
		}
	}
	if stats, err := s.Statistics("m", 0); err != nil || stats.ModelStats[0].InferenceStats.Fail.Count != 0 {
		t.Errorf("requests that are refused before they are queued count as failed: %v, %v", stats, err)
	}
}

// A shape whose product overflows must not pass as a small one: 2^62 · 4 rows of 4 bytes are 0
// bytes in 64 bits.
func TestShapeProductOverflow(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{IO: modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1, -1, -1}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1}}},
	}}
	s, _ := open(t, b, "")
	for _, shape := range [][]int64{{4, 1 << 62, 1}, {1, 1 << 32, 1 << 32}, {1, 1 << 62, 1}} {
		r := &engine.Request{Model: "m", Inputs: []engine.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Shape: shape}}}
		if _, err := s.Infer(t.Context(), r); fault.CodeOf(err) != fault.InvalidArgument || err == nil {
			t.Errorf("shape %v: got %v, want an invalid argument", shape, err)
		}
	}
}

func TestOutputsAreSliced(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &enginetest.Backend{ServiceTime: func(int, int) time.Duration { return time.Millisecond }}, `max_batch_size: 8 dynamic_batching {}`)
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			r := request(int64(1 + n%3))
			for i := range r.Inputs {
				for k := range r.Inputs[i].Data {
					r.Inputs[i].Data[k] = byte(10*n + i)
				}
			}
			r.Outputs = []string{"OUTPUT1"}
			response, err := s.Infer(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Release()
			want := []engine.Tensor{{Name: "OUTPUT1", DataType: configpb.DataType_TYPE_INT32, Shape: r.Inputs[1].Shape, Data: r.Inputs[1].Data}}
			if d := cmp.Diff(want, response.Outputs); d != "" {
				t.Errorf("request %d (-want +got):\n%s", n, d)
			}
		})
	}
	wg.Wait()
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, _ := open(t, b, "")
	for _, rows := range []int64{1, 3, 3} {
		response, err := s.Infer(t.Context(), request(rows))
		if err != nil {
			t.Fatal(err)
		}
		response.Release()
	}
	b.Fail = func(int) error { return errors.New("broken") }
	if _, err := s.Infer(t.Context(), request(1)); fault.CodeOf(err) != fault.Internal || err.Error() != "broken" {
		t.Errorf("failing execution: got %v", err)
	}
	stats, err := s.Statistics("m", 1)
	if err != nil {
		t.Fatal(err)
	}
	m := stats.ModelStats[0]
	got := map[string]uint64{
		"inferences": m.InferenceCount, "executions": m.ExecutionCount, "success": m.InferenceStats.Success.Count,
		"queue": m.InferenceStats.Queue.Count, "infer": m.InferenceStats.ComputeInfer.Count, "fail": m.InferenceStats.Fail.Count,
	}
	want := map[string]uint64{"inferences": 7, "executions": 3, "success": 3, "queue": 3, "infer": 3, "fail": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	batches := map[uint64]uint64{}
	for _, b := range m.BatchStats {
		batches[b.BatchSize] = b.ComputeInfer.Count
	}
	if d := cmp.Diff(map[uint64]uint64{1: 1, 3: 2}, batches); d != "" {
		t.Errorf("executions by batch size (-want +got):\n%s", d)
	}
	if _, err := s.Statistics("x", 0); err == nil || err.Error() != "requested model 'x' is not available" {
		t.Errorf("unknown model: got %v", err)
	}
}

// A load that changes only the batching of requests keeps the sessions. It resets the statistics,
// as any load does.
func TestBatchingIsChangedWithoutNewSessions(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, root := open(t, b, "")
	for _, tc := range []struct {
		config  string
		created int // sessions made so far
	}{
		{`{"max_batch_size":8,"dynamic_batching":{}}`, 2},
		{`{"max_batch_size":"1"}`, 2},
		{`{"max_batch_size":8,"dynamic_batching":{"max_queue_delay_microseconds":"100","preferred_batch_size":[2,4]}}`, 2},
		{`{"max_batch_size":8,"parameters":{"intra_op_thread_count":{"string_value":"1"}}}`, 4},
		{`{"max_batch_size":8,"parameters":{"intra_op_thread_count":{"string_value":"1"}},"instance_group":[{"name":"m","count":3,"kind":"KIND_CPU"}]}`, 7},
	} {
		if err := s.Load(t.Context(), "m", engine.Override{Config: tc.config}); err != nil {
			t.Fatalf("%s: %v", tc.config, err)
		}
		if got := b.Created(); got != tc.created {
			t.Errorf("%s: %d sessions were made, want %d", tc.config, got, tc.created)
		}
	}
	file := filepath.Join(root, "m", "1", "model.onnx")
	if err := os.WriteFile(file, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), "m", engine.Override{Config: `{"max_batch_size":4,"parameters":{"intra_op_thread_count":{"string_value":"1"}},"instance_group":[{"name":"m","count":3,"kind":"KIND_CPU"}]}`}); err != nil {
		t.Fatal(err)
	}
	if got := b.Created(); got != 10 {
		t.Errorf("new model file: %d sessions were made, want 10", got)
	}
}

func TestLoadOfAnUnchangedModelDoesNothing(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, root := open(t, b, "max_batch_size: 2")
	load := func(want int32) {
		t.Helper()
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Fatal(err)
		}
		if c, err := s.ModelConfig("m", 0); err != nil || c.GetMaxBatchSize() != want {
			t.Errorf("max_batch_size %d, %v; want %d", c.GetMaxBatchSize(), err, want)
		}
	}
	load(2)
	if got := b.Created(); got != 2 {
		t.Errorf("%d sessions were made, want the first 2", got)
	}
	if err := s.Load(t.Context(), "m", engine.Override{Config: `{"max_batch_size":4}`}); err != nil {
		t.Fatal(err)
	}
	load(4) // as in Triton, a plain load keeps an override until a file changes
	enginetest.WriteModel(t, root, "m", "max_batch_size: 3")
	load(3)
}

// A plain load finds what has changed beside the folders of versions, and makes new sessions for it: a warm-up
// may use it, and instances read it. The configuration does not count there.
func TestChangedFilesBesideTheVersions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	config := strings.Replace(enginetest.FakeConfig(4), `"OUTPUT0"`, `"OUTPUT0" label_filename: "labels.txt"`, 1)
	enginetest.WriteModel(t, root, "fake", config)
	in := func(parts ...string) string { return filepath.Join(append([]string{root, "fake"}, parts...)...) }
	write(t, in("labels.txt"), "old")
	b := &enginetest.Backend{}
	s := server(t, b, engine.Options{Repositories: []string{root}, ExitOnError: true})
	for i, step := range []struct {
		name    string
		act     func()
		label   string
		created int // sessions made so far
	}{
		{"nothing", func() {}, "old", 1},
		{"labels", func() { write(t, in("labels.txt"), "new one") }, "new one", 2},
		{"the configuration", func() { write(t, in("config.pbtxt"), config+"# a comment") }, "new one", 2},
		{"another configuration", func() { write(t, in("configs", "h100.pbtxt"), config) }, "new one", 2},
		{"a state", func() { write(t, in("initial_state", "h"), "data") }, "new one", 3},
		{"a file that is removed", func() {
			if err := os.Remove(in("initial_state", "h")); err != nil {
				t.Fatal(err)
			}
		}, "new one", 4},
		{"nothing again", func() {}, "new one", 4},
	} {
		step.act()
		if err := s.Refresh(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		r := request(1)
		r.Model, r.Inputs[0].Data[0] = "fake", 1 // the highest element is the first one
		r.AddOutput([]byte("OUTPUT0"))
		r.Classify(1)
		response, err := s.Infer(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		// the text stands behind its length
		if got, want := string(response.Outputs[0].Data[4:]), "1:0:"+step.label; got != want || b.Created() != step.created {
			t.Errorf("step %d, %s: the class is %q, want %q; %d sessions were made, want %d", i, step.name, got, want, b.Created(), step.created)
		}
		response.Release()
	}
}

// A link without a target, which editors make to lock a file, does not hide that the model has
// changed.
func TestChangedModelBesideALinkToNothing(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, root := open(t, b, "max_batch_size: 2")
	version := filepath.Join(root, "m", "1")
	if err := os.Symlink("nothing", filepath.Join(version, ".#model.onnx")); err != nil {
		t.Fatal(err)
	}
	for i, content := range []string{"new", "newer"} {
		if err := os.WriteFile(filepath.Join(version, "model.onnx"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
			t.Fatal(err)
		}
		if got, want := b.Created(), 2*(i+2); got != want {
			t.Errorf("%s: %d sessions were made, want %d", content, got, want)
		}
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{}
	s, root := open(t, b, "")
	enginetest.WriteModel(t, root, "other", "")
	index := func() []api.IndexEntry {
		t.Helper()
		entries, err := s.Index(false)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	check := func(what string, ready bool, want ...api.IndexEntry) {
		t.Helper()
		if d := cmp.Diff(want, index()); d != "" {
			t.Errorf("%s: index (-want +got):\n%s", what, d)
		}
		if s.Ready() != ready {
			t.Errorf("%s: ready %v, want %v", what, s.Ready(), ready)
		}
	}
	m := api.IndexEntry{Name: "m", Version: "1", State: "READY"}
	check("at first", true, m, api.IndexEntry{Name: "other"})

	b.FailLoad = func(*modelconfig.Config) error { return errors.New("out of order") }
	err := s.Load(t.Context(), "other", engine.Override{})
	if want := "load failed for model 'other': version 1 is at UNAVAILABLE state: Internal: out of order;\n"; err == nil || err.Error() != want {
		t.Errorf("failing load: got %v, want %s", err, want)
	}
	check("after a failed load", false, m, api.IndexEntry{Name: "other", Version: "1", State: "UNAVAILABLE", Reason: "Internal: out of order"})
	if _, err := s.Infer(t.Context(), &engine.Request{Model: "other", Version: 1}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("failed version: got %v, want unavailable", err)
	}

	b.FailLoad = nil
	if err := errors.Join(s.Unload("m"), s.Unload("other"), s.Unload("never heard of")); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); b.Open() > 0 || index()[0].State == "UNLOADING"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the model is not freed")
		}
	}
	check("after unloading", true, api.IndexEntry{Name: "m", Version: "1", State: "UNAVAILABLE", Reason: "unloaded"},
		api.IndexEntry{Name: "other", Version: "1", State: "UNAVAILABLE", Reason: "unloaded"})
	if _, err := s.Infer(t.Context(), request(1)); fault.CodeOf(err) != fault.NotFound || err.Error() != "Request for unknown model: 'm' has no available versions" {
		t.Errorf("unloaded model: got %v", err)
	}
	if err := s.Load(t.Context(), "m", engine.Override{}); err != nil {
		t.Error(err)
	}
}

func TestLoadRefusals(t *testing.T) {
	t.Parallel()
	s, root := open(t, &enginetest.Backend{}, "")
	enginetest.WriteModel(t, root, "text", "no_such_field: 1")
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	const poll = "failed to load '%', failed to poll from model repository"
	for _, tc := range []struct {
		model    string
		override engine.Override
		code     fault.Code
		want     string
	}{
		{"nosuch", engine.Override{}, fault.Internal, poll},
		{"text", engine.Override{}, fault.Internal, poll},
		{"m", engine.Override{Config: `{"max_batch_size":-1}`}, fault.Internal, poll},
		{"m", engine.Override{Config: `{"nonsense":1}`}, fault.Internal, poll},
		{"m", engine.Override{Config: `not json`}, fault.Internal, poll},
		{"m", engine.Override{Config: strings.Repeat(" ", 5<<20)}, fault.Internal, poll},
		{"m", engine.Override{Config: `{"platform":"ensemble"}`}, fault.Internal, poll},
		{"m", engine.Override{Config: `{"platform":"ensemble","ensemble_scheduling":{"step":[]}}`}, fault.Internal, poll},
		{"m", engine.Override{Config: `{"backend":"python"}`}, fault.InvalidArgument, "unable to find backend library for backend 'python'"},
		{"m", engine.Override{Config: `{"instance_group":[{"kind":"KIND_GPU"}]}`}, fault.InvalidArgument, "has kind KIND_GPU but no GPUs are available"},
		{"m", engine.Override{Config: `{"instance_group":[{"count":1,"passive":true}]}`}, fault.InvalidArgument, "all of its instance groups are passive"},
		{"m", engine.Override{Config: `{"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[16],"label_filename":"../../labels"}]}`}, fault.InvalidArgument, "leaves the folder of model 'm'"},
		{"m", engine.Override{Config: `{"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[16],"label_filename":"none"}]}`}, fault.InvalidArgument, "state: Internal: failed to open text file for read " + filepath.Join(root, "m", "none") + ": No such file or directory"},
		{"m", engine.Override{Config: warmupFrom("../../x")}, fault.InvalidArgument, "leaves the model's warmup folder"},
		{"m", engine.Override{Config: strings.Replace(warmupFrom("x"), `"dims":[16],"input`, `"dims":[999999999999],"input`, 1)}, fault.InvalidArgument, "failed to open text file"},
		{"m", engine.Override{Config: strings.Replace(warmupFrom("x"), `"dims":[16],"input_data_file":"x"`, `"dims":[4611686018427387904],"zero_data":true`, 1)}, fault.InvalidArgument, "takes the samples over 1073741824 bytes"},
		{"m", engine.Override{Config: warmupFrom("x")}, fault.InvalidArgument, "state: Internal: failed to open text file for read " + filepath.Join(root, "m", "warmup", "x") + ": No such file or directory"},
		{"m", engine.Override{Config: `{"version_policy":{"specific":{"versions":[5]}}}`}, fault.InvalidArgument, "at least one version must be available under the version policy of model 'm'"},
		{"m", engine.Override{Config: `{"input":[{"name":"INPUT0","data_type":"TYPE_INT32","dims":[16],"optional":true}]}`}, fault.InvalidArgument, "configuration expects 0 inputs, model provides 2"},
		{"m", engine.Override{Config: `{"sequence_batching":{"state":[{"use_growable_memory":true}]}}`}, fault.InvalidArgument, "sequence_batching.state[0].use_growable_memory"},
		{"m", engine.Override{Config: `{"model_transaction_policy":{"decoupled":true}}`}, fault.InvalidArgument, "decoupled"},
		{"m", engine.Override{Config: `{"backend":"onnxruntime","default_model_filename":"../../../etc/passwd"}`}, fault.InvalidArgument, "leaves the version folder"},
		{"m", engine.Override{Files: map[string][]byte{"1/model.onnx": nil}}, fault.Internal, poll},
		{"m", engine.Override{Config: `{}`, Files: map[string][]byte{"../x": nil}}, fault.Internal, poll},
		{"../m", engine.Override{}, fault.Internal, poll},
		{"a/b", engine.Override{}, fault.Internal, poll},
		{"", engine.Override{}, fault.Internal, poll},
		{"..", engine.Override{}, fault.Internal, poll},
		{"m\x00", engine.Override{}, fault.Internal, poll},
		{" ", engine.Override{}, fault.Internal, poll},
		{"link", engine.Override{}, fault.InvalidArgument, "leads out of the model repository"},
	} {
		err := s.Load(t.Context(), tc.model, tc.override)
		want := strings.ReplaceAll(tc.want, "%", tc.model)
		// for the messages below
		tc.override.Config = tc.override.Config[:min(len(tc.override.Config), 300)]
		if err == nil || fault.CodeOf(err) != tc.code || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %+v:\n got %v (%v)\nwant %s (%v)", tc.model, tc.override, err, fault.CodeOf(err), want, tc.code)
		}
		if err := s.ModelReady("m", 0); err != nil || !s.Ready() {
			t.Errorf("after the refused load of %q: %v, ready %v", tc.model, err, s.Ready())
		}
	}
	err := s.Load(t.Context(), "empty", engine.Override{Config: `{"backend":"onnxruntime"}`})
	if want := "load failed for model 'empty': at least one version must be available under the version policy of model 'empty'\n"; err == nil || err.Error() != want {
		t.Errorf("no version: got %v, want %s", err, want)
	}
}

// warmupFrom returns a configuration whose warm-up reads a file.
func warmupFrom(file string) string {
	return `{"max_batch_size":4,"model_warmup":[{"name":"w","batch_size":1,"inputs":{"INPUT0":{"data_type":"TYPE_INT32","dims":[16],"input_data_file":"` + file +
		`"},"INPUT1":{"data_type":"TYPE_INT32","dims":[16],"zero_data":true}}}]}`
}

func TestVersionPolicies(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string][]string{
		"": {"3"},
		"version_policy { latest { num_versions: 2 } }":    {"2", "3"},
		"version_policy { all {} }":                        {"1", "2", "3"},
		"version_policy { specific { versions: [1, 9] } }": {"1"},
	} {
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", policy)
		for _, v := range []string{"2", "3", "04", "x"} {
			dir := filepath.Join(root, "m", v)
			if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "model.onnx"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler), ExitOnError: true})
		if err != nil {
			t.Fatal(err)
		}
		meta, err := s.ModelMetadata("m", 0)
		if err != nil || cmp.Diff(want, meta.Versions) != "" {
			t.Errorf("%q: versions %v, %v; want %v", policy, meta.Versions, err, want)
		}
		if err := s.Load(t.Context(), "m", engine.Override{}); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("load request in mode none: got %v, want unavailable", err)
		}
		s.Close()
	}
}

// An input that the model does not have is noticed last, and reported for each row. Triton 2.51
// does the same, if it does not crash. So no conformance case tests it.
func TestWarmupWithUnknownInput(t *testing.T) {
	t.Parallel()
	const known = `inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: 16 zero_data: true } } inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: 16 zero_data: true } }`
	for inputs, want := range map[string]string{"": "expected 2 inputs but got 0 inputs", known: "'w': Failed to retrieve the ONNX input tensor info from 'nope'.; Failed to retrieve the ONNX input tensor info from 'nope'.; "} {
		root := t.TempDir()
		enginetest.WriteModel(t, root, "m", `max_batch_size: 4 model_warmup { name: "w" batch_size: 2 inputs { key: "nope" value { data_type: TYPE_INT32 dims: 16 zero_data: true } } `+inputs+` }`)
		s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Explicit: true, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context(), "m", engine.Override{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		s.Close()
	}
}

func TestWarmup(t *testing.T) {
	t.Parallel()
	const config = `max_batch_size: 4 model_warmup { name: "w" batch_size: 4 count: 2
		inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: 16 zero_data: true } }
		inputs { key: "INPUT1" value { data_type: TYPE_INT32 dims: 16 random_data: true } } }`
	var mu sync.Mutex
	var rows []int
	b := &enginetest.Backend{Fail: func(n int) error {
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, n)
		return nil
	}}
	s, _ := open(t, b, config)
	if d := cmp.Diff([]int{4, 4, 4, 4}, rows); d != "" { // twice on each of the two default instances
		t.Errorf("warm-up executions (-want +got):\n%s", d)
	}
	// As on a real Triton, the warm-up counts in the statistics, each row as a request.
	stats, _ := s.Statistics("m", 0)
	if m := stats.ModelStats[0]; m.ExecutionCount != 4 || m.InferenceCount != 16 || m.InferenceStats.Success.Count != 16 {
		t.Errorf("%d executions, %d inferences, %d requests; want 4, 16, 16", m.ExecutionCount, m.InferenceCount, m.InferenceStats.Success.Count)
	}
	err := s.Load(t.Context(), "m", engine.Override{Config: `{"max_batch_size":4,"instance_group":[{"count":1}],"model_warmup":[{"name":"w","batch_size":1,"inputs":{"INPUT0":{"data_type":"TYPE_INT32","dims":[17],"zero_data":true}}}]}`})
	if err == nil || !strings.Contains(err.Error(), "state: Invalid argument: [request id: <id_unknown>] expected 2 inputs but got 1 inputs for model 'm'.") {
		t.Errorf("bad sample: got %v", err)
	}
}

func TestReshape(t *testing.T) {
	t.Parallel()
	b := &enginetest.Backend{IO: modelconfig.ModelIO{ // rank 1: requests have [n,1], the model has [n]
		Inputs:  []modelconfig.Tensor{{Name: "X", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1}}},
		Outputs: []modelconfig.Tensor{{Name: "Y", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{-1}}},
	}}
	s, _ := open(t, b, "")
	r := &engine.Request{Model: "m", Inputs: []engine.Tensor{tensor("X", 3, 1)}}
	response, err := s.Infer(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Release()
	if d := cmp.Diff([]int64{3, 1}, response.Outputs[0].Shape); d != "" {
		t.Errorf("output shape (-want +got):\n%s", d)
	}
}

// A scalar has the shape of the configuration in answers, as a real Triton answers it.
func TestScalarOutput(t *testing.T) {
	t.Parallel()
	io := modelconfig.ModelIO{
		Inputs:  []modelconfig.Tensor{{Name: "INPUT0", DataType: configpb.DataType_TYPE_INT32, Dims: []int64{2}}},
		Outputs: []modelconfig.Tensor{{Name: "OUTPUT0", DataType: configpb.DataType_TYPE_INT32}},
	}
	for config, want := range map[string][]int64{
		"": {1},
		`input { name: "INPUT0" data_type: TYPE_INT32 dims: 2 } output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [1, 1] }`: {1, 1},
	} {
		s, _ := open(t, &enginetest.Backend{IO: io}, config)
		response, err := s.Infer(t.Context(), &engine.Request{Model: "m", Inputs: []engine.Tensor{tensor("INPUT0", 2)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := response.Outputs[0].Shape; !slices.Equal(got, want) {
			t.Errorf("%q: shape %v, want %v", config, got, want)
		}
		response.Release()
	}
}
