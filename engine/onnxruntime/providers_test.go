package onnxruntime

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/hostpolicy"
	"tuner/model/modelconfig"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

func accelerators(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(`optimization { execution_accelerators { `+text+` } }`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// everything returns a backend of a library with all providers that tuner can set up.
func everything() *Backend {
	return &Backend{compiled: []string{"tensorrt", "cuda", "dnnl", "openvino", "xnnpack", "cpu"}}
}

// The accelerators of a configuration reach ONNX Runtime, in Triton's order and under ONNX
// Runtime's names.
func TestProviders(t *testing.T) {
	t.Parallel()
	// The options that Triton's backend sets for CUDA by default.
	cuda := func(more ...string) map[string]string {
		out := map[string]string{"device_id": "1", "cudnn_conv_algo_search": "EXHAUSTIVE", "gpu_mem_limit": "18446744073709551615",
			"arena_extend_strategy": "kNextPowerOfTwo", "do_copy_in_default_stream": "1"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	onGPU := engine.Instance{OnGPU: true, GPU: 1, Policy: hostpolicy.Any()}
	onCPU := engine.Instance{Policy: hostpolicy.Any()}
	for _, test := range []struct {
		name, text string
		in         engine.Instance
		want       []ort.Provider
	}{
		{"a GPU has CUDA", ``, onGPU, []ort.Provider{{Name: "cuda", Options: cuda()}}},
		{"CUDA comes behind the others",
			`gpu_execution_accelerator [ { name: "cuda" parameters { key: "prefer_nhwc" value: "1" } },
				{ name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } parameters { key: "max_workspace_size_bytes" value: "1024" } } ]`,
			onGPU, []ort.Provider{{Name: "tensorrt", Options: map[string]string{"device_id": "1", "trt_fp16_enable": "1", "trt_max_workspace_size": "1024"}},
				{Name: "cuda", Options: cuda("prefer_nhwc", "1")}}},
		{"OpenVINO's threads and streams",
			`cpu_execution_accelerator { name: "openvino" parameters { key: "num_of_threads" value: "2" } parameters { key: "num_streams" value: "1" } }`,
			onCPU, []ort.Provider{{Name: "openvino", Options: map[string]string{"device_type": "CPU", "num_of_threads": "2", "num_streams": "1"}}}},
		{"OpenVINO under a host policy", `cpu_execution_accelerator { name: "openvino" }`, engine.Instance{Policy: hostpolicy.Policy{Node: 0}},
			[]ort.Provider{{Name: "openvino", Options: map[string]string{"device_type": "CPU", "num_of_threads": strconv.Itoa(hostpolicy.Cores())}}}},
		{"oneDNN", `cpu_execution_accelerator { name: "dnnl" parameters { key: "use_arena" value: "0" } }`, onCPU,
			[]ort.Provider{{Name: "dnnl", Options: map[string]string{"use_arena": "0"}}}},
	} {
		got, err := everything().options(accelerators(t, test.text), test.in)
		if diff := cmp.Diff(test.want, got.Providers); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

// XNNPACK has its own thread pool. It gets ONNX Runtime's threads, and no thread spins.
func TestXNNPACKThreads(t *testing.T) {
	t.Parallel()
	const name = `cpu_execution_accelerator { name: "xnnpack" }`
	session := func(intra int, spinning, threads string) ort.SessionOptions {
		return ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: strconv.Itoa(intra)}, Entries: map[string]string{"session.intra_op.allow_spinning": spinning},
			Providers: []ort.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": threads}}}}
	}
	parameters := func(pairs ...string) string {
		var b strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			b.WriteString(` parameters { key: "` + pairs[i] + `" value { string_value: "` + pairs[i+1] + `" } }`)
		}
		return b.String()
	}
	for _, test := range []struct {
		name, text string
		want       ort.SessionOptions
	}{
		{"all cores", `optimization { execution_accelerators { ` + name + ` } }`, session(1, "0", strconv.Itoa(hostpolicy.Cores()))},
		{"three", parameters("intra_op_thread_count", "3") + `optimization { execution_accelerators { ` + name + ` } }`, session(1, "0", "3")},
		{"as it is told", parameters("intra_op_thread_count", "3", "session.intra_op.allow_spinning", "1") + `optimization { execution_accelerators {
			cpu_execution_accelerator { name: "xnnpack" parameters { key: "intra_op_num_threads" value: "2" } } } }`, session(3, "1", "2")},
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := everything().options(c, engine.Instance{Policy: hostpolicy.Any()})
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

// A provider that the library lacks, and an option that the provider lacks, are refused as invalid
// arguments.
func TestProviderErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`gpu_execution_accelerator { name: "nope" }`: "unknown Execution Accelerator 'nope' is requested",
		`gpu_execution_accelerator { name: "tensorrt" parameters { key: "trt_fp16_enable" value: "1" } }`: "unknown parameter 'trt_fp16_enable' " +
			"is provided for TensorRT Execution Accelerator",
		`gpu_execution_accelerator { name: "cuda" parameters { key: "use_tf32" value: "perhaps" } }`: `cannot set option "use_tf32" of execution provider cuda to "perhaps"`,
	} {
		_, err := everything().options(accelerators(t, text), engine.Instance{OnGPU: true, Policy: hostpolicy.Any()})
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("%s:\n got %v (code %v)\nwant %s", text, err, fault.CodeOf(err), want)
		}
	}
}
