package onnxruntime_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// The messages are those observed on a real Triton. A model that served before still serves.
func TestRefusedSettings(t *testing.T) {
	s := serve(t, build.Simple(), "")
	parameter := func(key, value string) string {
		return fmt.Sprintf(`{"parameters":{%q:{"string_value":%q}}}`, key, value)
	}
	for config, want := range map[string]string{
		parameter("intra_op_thread_count", "abc"): "Invalid argument: failed to convert 'abc' to integral number",
		parameter("inter_op_thread_count", ""):    "Invalid argument: failed to convert '' to integral number",
		parameter("execution_mode", "2"):          "Invalid argument: Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 2 .",
		parameter("enable_mem_arena", "maybe"):    "Invalid argument: failed to convert 'maybe' to boolean",
		parameter("enable_mem_pattern", "2"):      "Invalid argument: failed to convert '2' to boolean",
		`{"optimization":{"execution_accelerators":{"cpu_execution_accelerator":[{"name":"nope"}]}}}`: "Invalid argument: unknown Execution Accelerator 'nope' is requested",
		`{"instance_group":[{"kind":"KIND_GPU"}]}`:                                                    "Invalid argument: instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
	} {
		err := s.http.LoadModel(t.Context(), s.model, config)
		var got *api.StatusError
		if want := "load failed for model 'm': version 1 is at UNAVAILABLE state: " + want + ";\n"; !errors.As(err, &got) || got.Status != 400 || got.Text != want {
			t.Errorf("%s:\n got %v\nwant 400 %s", config, err, want)
		}
		if err := checkSimple(t.Context(), s.grpc, 1, 7); err != nil {
			t.Errorf("%s: after the failed load: %v", config, err)
		}
	}
}

// Every setting serves. A setting that ONNX Runtime refuses only at run time fails only the
// request.
func TestAcceptedSettings(t *testing.T) {
	s := serve(t, build.Simple(), "")
	for _, config := range []string{
		`{"parameters":{"intra_op_thread_count":{"string_value":"2"},"inter_op_thread_count":{"string_value":"2"},"execution_mode":{"string_value":"1"}}}`,
		`{"parameters":{"enable_mem_arena":{"string_value":"0"},"enable_mem_pattern":{"string_value":"0"}}}`,
		`{"parameters":{"memory.enable_memory_arena_shrinkage":{"string_value":"cpu:0"},"session.use_device_allocator_for_initializers":{"string_value":"1"}}}`,
		`{"parameters":{"session.intra_op.allow_spinning":{"string_value":"0"}},"optimization":{"graph":{"level":2}}}`,
		`{"instance_group":[{"kind":"KIND_MODEL","count":1}]}`,
	} {
		if err := s.http.LoadModel(t.Context(), s.model, config); err != nil {
			t.Errorf("%s: %v", config, err)
		}
		if err := checkSimple(t.Context(), s.http, 2, 5); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
	if err := s.http.LoadModel(t.Context(), s.model, `{"parameters":{"memory.enable_memory_arena_shrinkage":{"string_value":"gpu"}}}`); err != nil {
		t.Fatal(err)
	}
	want := "onnx runtime error 2: Did not find an arena based allocator registered for device-id combination in the memory arena shrink list: gpu"
	var got *api.StatusError
	if err := checkSimple(t.Context(), s.http, 1, 0); !errors.As(err, &got) || got.Status != 500 || got.Text != want {
		t.Errorf("shrinkage of an arena that is not there:\n got %v\nwant 500 %s", err, want)
	}
}

// External data must lie beside the model. ONNX Runtime itself refuses a location outside the
// folder, even if the file exists. The engine refuses a link beside the model.
func TestExternalDataStaysInside(t *testing.T) {
	s := serve(t, build.Simple(), "")
	path := filepath.Join(s.dir, "1", "model.onnx")
	if err := build.MLP().Write(path, 1); err != nil { // weights in model.onnx.data
		t.Fatal(err)
	}
	if err := s.http.LoadModel(t.Context(), s.model, ""); err != nil {
		t.Fatalf("external data beside the model: %v", err)
	}
	model, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const beside, outside = "model.onnx.data", "../../../m.data" // of equal length
	target := filepath.Join(filepath.Dir(path), outside)
	if err := errors.Join(os.Link(path+".data", target), os.WriteFile(path, bytes.ReplaceAll(model, []byte(beside), []byte(outside)), 0o644)); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(target)
	if err := s.http.LoadModel(t.Context(), s.model, ""); err == nil || !strings.Contains(err.Error(), "External data path") {
		t.Errorf("location with ..: got %v, want a refusal by ONNX Runtime", err)
	}
	if err := errors.Join(os.WriteFile(path, model, 0o644), os.Remove(path+".data"), os.Symlink(filepath.Clean(target), path+".data")); err != nil {
		t.Fatal(err)
	}
	if err := s.http.LoadModel(t.Context(), s.model, ""); err == nil || !strings.Contains(err.Error(), "leads out of the model repository") {
		t.Errorf("link out of the repository: got %v, want a refusal", err)
	}
}

// A small file that expands to millions of nodes is refused at once. ONNX Runtime would take hours.
func TestUnfoldingModelIsRefused(t *testing.T) {
	s := serve(t, build.Simple(), "")
	node := func(domain, op, in, out string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{Domain: &domain, OpType: &op, Input: []string{in}, Output: []string{out}}
	}
	m := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{node("d", "F0", "x", "y")}}}
	for i := range 25 { // each calls the next one twice
		next := fmt.Sprint("F", i+1)
		m.Functions = append(m.Functions, &onnxpb.FunctionProto{Domain: proto.String("d"), Name: proto.String(fmt.Sprint("F", i)),
			Input: []string{"x"}, Output: []string{"y"}, Node: []*onnxpb.NodeProto{node("d", next, "x", "t"), node("d", next, "t", "y")}})
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "1", "model.onnx"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	var got *api.StatusError
	if err := s.http.LoadModel(t.Context(), s.model, ""); !errors.As(err, &got) || got.Status != 400 || !strings.Contains(got.Text, "its functions unfold into") {
		t.Errorf("got %v, want 400 and a refusal", err)
	}
	if err := checkSimple(t.Context(), s.grpc, 1, 7); err != nil {
		t.Errorf("after the failed load: %v", err)
	}
}
