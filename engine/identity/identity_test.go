package identity_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/enginetest"
	"tuner/engine/identity"
	"tuner/engine/scheduler"
	"tuner/engine/trace"
	"tuner/model/modelconfig/configpb"
)

// open loads one identity model. hold is the number of requests that its batcher waits for.
func open(t *testing.T, config string, hold int) (*engine.Server, error) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "m", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "m", "config.pbtxt"), []byte(`backend: "identity" `+config), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Backend: identity.Beside(&enginetest.Backend{}), Log: slog.New(slog.DiscardHandler),
		ExitOnError: true, Hold: hold, Timer: scheduler.GoTimer,
	})
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

func tensor(name string, t engine.DataType, data string, shape ...int64) engine.Tensor {
	return engine.Tensor{Name: name, DataType: t, Shape: shape, Data: []byte(data)}
}

// infer returns the outputs of one request with their data as text.
func infer(t *testing.T, s *engine.Server, inputs ...engine.Tensor) []engine.Tensor {
	t.Helper()
	r, err := s.Infer(t.Context(), &engine.Request{Model: "m", Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	return slices.Clone(r.Outputs)
}

func TestEachOutputIsItsInput(t *testing.T) {
	t.Parallel()
	s, err := open(t, `max_batch_size: 8
		input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ 2 ] }, { name: "INPUT1" data_type: TYPE_BOOL dims: [ 2, 2 ] reshape { shape: [ 4 ] } } ]
		output [ { name: "OUTPUT1" data_type: TYPE_BOOL dims: [ 4 ] }, { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 2 ] } ]`, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := "\x01\x00\x00\x00a\x00\x00\x00\x00"
	got := infer(t, s, tensor("INPUT0", configpb.DataType_TYPE_STRING, text, 1, 2), tensor("INPUT1", configpb.DataType_TYPE_BOOL, "\x01\x00\x01\x01", 1, 2, 2))
	want := []engine.Tensor{tensor("OUTPUT0", configpb.DataType_TYPE_STRING, text, 1, 2), tensor("OUTPUT1", configpb.DataType_TYPE_BOOL, "\x01\x00\x01\x01", 1, 4)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// An optional input that is missing counts as zeros, with a size of 1 where the dimension is open.
func TestMissingInputIsZeros(t *testing.T) {
	t.Parallel()
	s, err := open(t, `max_batch_size: 4
		input [ { name: "INPUT0" data_type: TYPE_INT8 dims: [ -1 ] }, { name: "INPUT1" data_type: TYPE_INT16 dims: [ -1, 3 ] optional: true } ]
		output [ { name: "OUTPUT0" data_type: TYPE_INT8 dims: [ -1 ] }, { name: "OUTPUT1" data_type: TYPE_INT16 dims: [ -1, 3 ] } ]`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := infer(t, s, tensor("INPUT0", configpb.DataType_TYPE_INT8, "ab", 2, 1))
	want := []engine.Tensor{
		tensor("OUTPUT0", configpb.DataType_TYPE_INT8, "ab", 2, 1),
		tensor("OUTPUT1", configpb.DataType_TYPE_INT16, strings.Repeat("\x00", 2*3*2), 2, 1, 3), // rows, 1, 3
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	_, err = s.Infer(t.Context(), &engine.Request{Model: "m", Inputs: []engine.Tensor{tensor("INPUT1", configpb.DataType_TYPE_INT16, "aabbcc", 1, 1, 3)}})
	if err == nil || !strings.Contains(err.Error(), "expected number of inputs between 1 and 2 but got 1 inputs") || !strings.Contains(err.Error(), "missing required input(s) ['INPUT0']") {
		t.Errorf("without a required input: %v", err)
	}
}

// Two requests of one batch: with a ragged input their shapes differ. Without it, and when only one
// has the optional input, each is a batch of its own.
func TestWhatSharesABatch(t *testing.T) {
	t.Parallel()
	const tensors = `max_batch_size: 8 dynamic_batching {}
		input [ { name: "INPUT0" data_type: TYPE_INT8 dims: [ -1 ] %s }, { name: "INPUT1" data_type: TYPE_INT8 dims: [ 1 ] optional: true } ]
		output [ { name: "OUTPUT0" data_type: TYPE_INT8 dims: [ -1 ] }, { name: "OUTPUT1" data_type: TYPE_INT8 dims: [ 1 ] } ]`
	optional := tensor("INPUT1", configpb.DataType_TYPE_INT8, "x", 1, 1)
	short, long := tensor("INPUT0", configpb.DataType_TYPE_INT8, "ab", 1, 2), tensor("INPUT0", configpb.DataType_TYPE_INT8, "cde", 1, 3)
	for _, tc := range []struct {
		name, ragged string
		first        []engine.Tensor
		second       []engine.Tensor
		executions   uint64
	}{
		{"equal", "", []engine.Tensor{short}, []engine.Tensor{short}, 1},
		{"other shape", "", []engine.Tensor{short}, []engine.Tensor{long}, 2},
		{"other shape, ragged", "allow_ragged_batch: true", []engine.Tensor{short}, []engine.Tensor{long}, 1},
		{"other inputs", "allow_ragged_batch: true", []engine.Tensor{short, optional}, []engine.Tensor{short}, 2},
		{"all inputs", "", []engine.Tensor{short, optional}, []engine.Tensor{optional, short}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t, strings.ReplaceAll(tensors, "%s", tc.ragged), 2)
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			for _, inputs := range [][]engine.Tensor{tc.first, tc.second} {
				both.Go(func() {
					r, err := s.Infer(t.Context(), &engine.Request{Model: "m", Inputs: inputs})
					if err != nil {
						t.Error(err)
						return
					}
					defer r.Release()
					for _, in := range inputs {
						if out := r.Outputs[in.Name[5]-'0']; !bytes.Equal(out.Data, in.Data) {
							t.Errorf("%s is %q, want %q", out.Name, out.Data, in.Data)
						}
					}
				})
			}
			both.Wait()
			stats, err := s.Statistics("m", 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := stats.ModelStats[0].ExecutionCount; got != tc.executions {
				t.Errorf("%d executions, want %d", got, tc.executions)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	const tensors = `input [ { name: "INPUT0" data_type: TYPE_INT8 dims: [ 1 ] } ] output [ { name: "OUTPUT0" data_type: TYPE_INT8 dims: [ 1 ] } ] `
	for _, tc := range []struct {
		name, parameters string
		want             []time.Duration // of an execution, by instance
	}{
		{"none", ``, []time.Duration{0, 0}},
		{"execution", `parameters { key: "execute_delay_ms" value: { string_value: "7" } }`, []time.Duration{7 * time.Millisecond, 7 * time.Millisecond}},
		// the multiplier times the number of the instance, but at least 1
		{"multiplier", `parameters [ { key: "execute_delay_ms" value: { string_value: "7" } }, { key: "instance_wise_delay_multiplier" value: { string_value: "3" } } ]`,
			[]time.Duration{7 * time.Millisecond, 21 * time.Millisecond}},
		{"creation", `parameters { key: "creation_delay_sec" value: { string_value: "2" } }`, []time.Duration{0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				s, err := open(t, tensors+`instance_group { count: 2 kind: KIND_CPU } `+tc.parameters, 0)
				if err != nil {
					t.Fatal(err)
				}
				if took, want := time.Since(begin), 2*time.Second; tc.name == "creation" && took != want {
					t.Errorf("the load took %v, want %v", took, want)
				}
				var got []time.Duration
				var both sync.WaitGroup
				var mu sync.Mutex
				begin = time.Now()
				for range tc.want {
					both.Go(func() {
						infer(t, s, tensor("INPUT0", configpb.DataType_TYPE_INT8, "x", 1))
						mu.Lock()
						defer mu.Unlock()
						got = append(got, time.Since(begin))
					})
					synctest.Wait() // the first instance is busy, if it takes any time
				}
				both.Wait()
				slices.Sort(got)
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Error(d)
				}
				s.Close()
			})
		})
	}
}

// A request notes the activities of the original, each of which takes 100 ms. They were seen in a trace of
// Triton's.
func TestActivities(t *testing.T) {
	t.Parallel()
	const tensors = `input [ { name: "INPUT0" data_type: TYPE_INT8 dims: [ 1 ] } ] output [ { name: "OUTPUT0" data_type: TYPE_INT8 dims: [ 1 ] } ] `
	parameters := func(pairs ...string) string {
		out := tensors
		for i := 0; i < len(pairs); i += 2 {
			out += `parameters { key: "` + pairs[i] + `" value: { string_value: "` + pairs[i+1] + `" } } `
		}
		return out
	}
	for _, tc := range []struct {
		config string
		want   []string
		took   time.Duration
	}{
		{parameters("nested_span_count", "3"), nil, 0},
		{parameters("enable_custom_tracing", "true"), []string{"CUSTOM_ACTIVITY_START", "CUSTOM_ACTIVITY_END", "CUSTOM_SINGLE_ACTIVITY"}, 100 * time.Millisecond},
		{parameters("enable_custom_tracing", "true", "nested_span_count", "3", "single_activity_frequency", "2"), []string{
			"CUSTOM_ACTIVITY_START", "CUSTOM_ACTIVITY_END", "CUSTOM_SINGLE_ACTIVITY",
			"CUSTOM_ACTIVITY0_START", "CUSTOM_SINGLE_ACTIVITY", "CUSTOM_ACTIVITY1_START", "CUSTOM_ACTIVITY2_START", "CUSTOM_SINGLE_ACTIVITY",
			"CUSTOM_ACTIVITY2_END", "CUSTOM_ACTIVITY1_END", "CUSTOM_ACTIVITY0_END",
		}, 400 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := open(t, tc.config, 0)
			if err != nil {
				t.Fatal(err)
			}
			tracer := trace.New(trace.Config{Level: trace.LevelTimestamps, Rate: 1, Count: -1, File: filepath.Join(t.TempDir(), "trace")}, nil, slog.New(slog.DiscardHandler))
			x, begin := tracer.Sample("m", nil), time.Now()
			r, err := s.Infer(t.Context(), &engine.Request{Model: "m", Inputs: []engine.Tensor{tensor("INPUT0", configpb.DataType_TYPE_INT8, "x", 1)}, Trace: x})
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
			if took := time.Since(begin); took != tc.took {
				t.Errorf("%s\ntook %v, want %v", tc.config, took, tc.took)
			}
			var got []string
			for _, a := range x.Activities() {
				got = append(got, a.Name)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s\n%s", tc.config, d)
			}
			s.Close()
			if err := tracer.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	in := func(name, rest string) string {
		return `input { name: "` + name + `" data_type: TYPE_INT8 ` + rest + ` } `
	}
	out := func(name, rest string) string {
		return `output { name: "` + name + `" data_type: TYPE_INT8 ` + rest + ` } `
	}
	one := `dims: [ 1 ]`
	for _, tc := range []struct{ config, want string }{
		{in("INPUT0", one), "model configuration must have equal input/output pairs"},
		{in("X", one) + out("OUTPUT0", one), "expected input name to follow INPUT<index> pattern, got 'X'"},
		{in("INPUT0", one) + out("X", one), "expected output name to follow OUTPUT<index> pattern, got 'X'"},
		{in("INPUT0", one) + out("OUTPUT1", one), "expected input and output indices to match"},
		{in("INPUT0", one) + `output { name: "OUTPUT0" data_type: TYPE_BOOL dims: [ 1 ] }`, "expected input and output datatype to match, got TYPE_INT8 and TYPE_BOOL"},
		{in("INPUT0", one) + out("OUTPUT0", `dims: [ 2 ]`), "expected input and output shape to match, got [1] and [2]"},
		{in("INPUT0", one) + out("OUTPUT0", one) + `parameters { key: "execute_delay_ms" value: { string_value: "soon" } }`, `parameters["execute_delay_ms"] is "soon"`},
		{in("INPUT0", one) + out("OUTPUT0", one) + `parameters { key: "enable_custom_tracing" value: { string_value: "perhaps" } }`, `parameters["enable_custom_tracing"] is "perhaps"`},
		{in("INPUT0", one) + out("OUTPUT0", one) + `parameters { key: "nested_span_count" value: { string_value: "1001" } }`, `parameters["nested_span_count"] is 1001: give a whole number from 0 to 1000`},
	} {
		if _, err := open(t, tc.config, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n got %v\nwant %s", tc.config, err, tc.want)
		}
	}
}
