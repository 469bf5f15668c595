package probe

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/internal/hostinfo"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
)

// fullGPU is the error of ONNX Runtime 1.31.1 on an H100 whose memory another program holds.
const fullGPU = `onnx runtime error 1: /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:154 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:146 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] CUDA failure 2: out of memory ; GPU=0 ; hostname=vm ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_execution_provider.cc ; line=355 ; expr=cudaSetDevice(info_.device_id);`

func TestVerdict(t *testing.T) {
	t.Parallel()
	taken := func(provider string, ops map[string]int) Nodes {
		n := 0
		for _, count := range ops {
			n += count
		}
		return Nodes{provider, n, ops}
	}
	for _, tt := range []struct {
		name      string
		answer    Answer
		out, took string
	}{
		{"no session", Answer{Error: "failed: signal: aborted"}, "failed: signal: aborted", ""},
		{"a library is missing", Answer{Error: "cannot use it: Failed to load shared library", Log: "libcublas.so.13: no such file"},
			"cannot use it: Failed to load shared library: libcublas.so.13: no such file", ""},
		{"the log repeats it", Answer{Error: "it fails:\n  for no reason", Log: "fails: for no reason"}, "it fails: for no reason", ""},
		{"a long story", Answer{Error: "it fails " + strings.Repeat("x", 300) + "\nfor a reason"},
			"it fails " + strings.Repeat("x", 91) + " … " + strings.Repeat("x", 187) + " for a reason", ""},
		{"a CUDA error", Answer{Error: fullGPU}, "CUDA failure 2: out of memory", ""},
		{"all", Answer{Assigned: []Nodes{taken("openvino", map[string]int{"MatMul": 2}), taken("cpu", nil)}}, "", "all 2 nodes"},
		{"one node", Answer{Assigned: []Nodes{taken("openvino", map[string]int{"MatMul": 1}), taken("cpu", nil)}}, "", "all 1 node"},
		{"some", Answer{Assigned: []Nodes{taken("openvino", map[string]int{"MatMul": 4}),
			taken("cpu", map[string]int{"Loop": 1, "Einsum": 3, "A": 1, "B": 1})}}, "", "4 of 10 nodes; cpu runs 6 (Einsum × 3, A, B, …)"},
		{"none: the session is there, but cpu alone works in it",
			Answer{Assigned: []Nodes{taken("openvino", nil), taken("cpu", map[string]int{"Einsum": 3})}},
			"it takes none of the model's 3 nodes; cpu runs 3 (Einsum × 3)", ""},
		{"none, but another one", Answer{Assigned: []Nodes{taken("openvino", nil), taken("cuda", map[string]int{"Add": 1}), taken("cpu", nil)}},
			"it takes none of the model's 1 node; cuda runs 1 (Add)", ""},
		{"unknown", Answer{Unassigned: "the library is silent"}, "", "an unknown part of the model: the library is silent"},
		{"unknown without a reason", Answer{}, "", "an unknown part of the model: ONNX Runtime does not report it"},
	} {
		out, took := tt.answer.Verdict("openvino")
		if diff := cmp.Diff([]string{tt.out, tt.took}, []string{out, took}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Providers are tried in child processes. Here the child is a script that reads the provider from
// its fifth argument.
func TestTryAll(t *testing.T) {
	t.Parallel()
	p := script(t, `case "$5" in
openvino) echo '{"providers": ["openvino", "cpu"], "assigned": [{"provider": "openvino", "nodes": 2, "ops": {"Add": 2}}, {"provider": "cpu", "nodes": 0}]}' ;;
xnnpack) echo '{"providers": ["openvino", "xnnpack", "cpu"], "assigned": [{"provider": "xnnpack", "nodes": 0}, {"provider": "cpu", "nodes": 1, "ops": {"Add": 1}}]}' ;;
dnnl) echo '{"providers": ["openvino", "cpu"], "error": "it is not there"}' ;;
*) echo "tried $5" >&2; exit 1 ;;
esac`)
	build := ortlib.Build{Flavour: "openvino", Version: "1.24.1"}
	out, took, err := p.TryAll(t.Context(), build, []string{"cpu", "openvino", "xnnpack", "dnnl", "abacus"}, "m.onnx")
	if err != nil {
		t.Fatal(err)
	}
	wantOut := map[string]string{
		"xnnpack": "it takes none of the model's 1 node; cpu runs 1 (Add)",
		"dnnl":    "the ONNX Runtime build openvino@1.24.1 has only openvino, cpu; name one that has it with --ort-library (in a search, the knob runtime does too)",
		"abacus":  "failed: exit status 1: tried abacus",
	}
	if diff := cmp.Diff(wantOut, out); diff != "" {
		t.Errorf("unavailable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"openvino": "all 2 nodes"}, took); diff != "" {
		t.Errorf("assigned (-want +got):\n%s", diff)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.TryAll(ended, build, []string{"openvino"}, "m.onnx"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
}

// FuzzNativeReason checks that the reason is one line of a library's output, for any output.
func FuzzNativeReason(f *testing.F) {
	f.Add("\x1b[1;31m2026-11-21 03:20:30.335938932 [E:onnxruntime:a name, b.cc:1 c()] d\x1b[m\n")
	f.Add("2026-11-21 03:20:30.3 [F:onnxruntime:, b.cc:1 c()] [ONNXRuntimeError] : 1 : FAIL : e")
	f.Fuzz(func(t *testing.T, stderr string) {
		defer alloctest.Bound(t, len(stderr))()
		if got := nativeReason(stderr); strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("%q", got)
		}
	})
}

func TestNativeReason(t *testing.T) {
	t.Parallel()
	const (
		place   = "\x1b[1;31m2026-11-21 03:20:30.335938932 [E:onnxruntime:a name, provider_bridge_ort.cc:2210 operator()] "
		library = place + "/src/provider_bridge_ort.cc:2043 Provider& Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library a.so " +
			"with error: libcublasLt.so.13: cannot open shared object file\n\x1b[m\n"
		warning = "\x1b[0;93m2026-11-21 03:20:31.000000000 [W:onnxruntime:, session_state.cc:1] all is well\x1b[m\n"
	)
	for in, want := range map[string]string{
		"":                        "",
		warning:                   "",
		library + warning:         "Failed to load library a.so with error: libcublasLt.so.13: cannot open shared object file",
		library + place + "b\nc":  "b c",
		"no log\n" + place + "it": "it",
	} {
		if got := nativeReason(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Without a GPU, the missing GPU comes first, before the missing libraries that ONNX Runtime
// reports.
func TestExplainGPU(t *testing.T) {
	t.Parallel()
	const reason = "cannot use execution provider \"cuda\": libcublas.so.13: cannot open shared object file"
	got := explainGPU(provider.Of("cuda"), nil, "no NVIDIA driver: libnvidia-ml.so.1 is missing", reason)
	want := "no NVIDIA GPU (no NVIDIA driver: libnvidia-ml.so.1 is missing); ONNX Runtime: " + reason + "; " + Remedy("cuda")
	if got != want {
		t.Errorf("without a GPU:\n got %s\nwant %s", got, want)
	}
	if got := explainGPU(provider.Of("tensorrt"), []hostinfo.GPU{{Name: "Example GPU"}}, "", reason); !strings.HasPrefix(got, reason) || !strings.Contains(got, "TensorRT 10") {
		t.Errorf("with a GPU: %s", got)
	}
}
