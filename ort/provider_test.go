package ort

import (
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openVINO skips a test unless the library has OpenVINO. `make test` runs the tests named
// …OpenVINO… with the flavour that has it.
func openVINO(t *testing.T) {
	t.Helper()
	if !slices.Contains(testRuntime(t).Providers(), "openvino") {
		t.Skip("this ONNX Runtime build has no OpenVINO: 'make test' runs this test with the flavour that has it")
	}
}

// sums runs add_sub with a provider.
func sums(t *testing.T, p Provider) []byte {
	t.Helper()
	s := testSession(t, "add_sub", SessionOptions{Providers: []Provider{p}})
	x := testTensor(t, Float32, []int64{2, 4}, floats(1, 2, 3, 4, 5, 6, 7, 8))
	return slices.Clone(run(t, s, []*Tensor{x, x}, "sum")[0].Bytes())
}

// TestOpenVINO runs a model on OpenVINO and on the CPU provider of the same build. The answers must
// be equal for all options.
func TestOpenVINO(t *testing.T) {
	openVINO(t)
	want := sums(t, Provider{Name: "cpu"})
	for _, options := range []map[string]string{
		nil, {"num_of_threads": "1"}, {"num_of_threads": "2", "num_streams": "1"}, {"num_of_threads": "2", "num_streams": "2"},
		{"device_type": "CPU", "precision": "ACCURACY"}, {"precision": "FP32"}, {"disable_dynamic_shapes": "true"},
		{"cache_dir": t.TempDir()}, {"load_config": `{"CPU": {"ENABLE_CPU_PINNING": "NO"}}`}, {"model_priority": "HIGH"},
		{"enable_opencl_throttling": "false"}, {"enable_qdq_optimizer": "false"}, {"reshape_input": "x[2,4],y[2,4]"},
	} {
		if diff := cmp.Diff(want, sums(t, Provider{"openvino", options})); diff != "" {
			t.Errorf("%v: OpenVINO answers differently from the CPU provider (-cpu +openvino):\n%s", options, diff)
		}
	}
}

// An option that OpenVINO lacks, or a value that it refuses, fails the session. The error names it.
func TestOpenVINORefusesOptions(t *testing.T) {
	openVINO(t)
	for key, value := range map[string]string{"num_of_treads": "2", "num_of_threads": "two", "precision": "bf16", "device_type": "GPU.7"} {
		_, err := testRuntime(t).NewSession(model("add_sub"), SessionOptions{Providers: []Provider{{"openvino", map[string]string{key: value}}}})
		if want := `cannot use execution provider "openvino" with ` + key + "=" + value; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
	}
}

// OpenVINO takes all of add_sub, and one of 14 types in identities. On a missing device it takes
// nothing and reports no error. The CPU provider runs instead, and only the assignment shows it.
func TestOpenVINOAssignment(t *testing.T) {
	openVINO(t)
	for _, tt := range []struct {
		model, device string
		want          []Assigned
	}{
		{"add_sub", "CPU", []Assigned{{"openvino", 2, map[string]int{"Add": 1, "Sub": 1}}, {"cpu", 0, map[string]int{}}}},
		{"identities", "CPU", []Assigned{{"openvino", 1, map[string]int{"Identity": 1}}, {"cpu", 13, map[string]int{"Identity": 13}}}},
		{"add_sub", "ABACUS", []Assigned{{"openvino", 0, map[string]int{}}, {"cpu", 2, map[string]int{"Add": 1, "Sub": 1}}}},
	} {
		s := testSession(t, tt.model, SessionOptions{RecordAssignment: true, Providers: []Provider{{"openvino", map[string]string{"device_type": tt.device}}}})
		got, err := s.Assignment()
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s on %s: %v (-want +got):\n%s", tt.model, tt.device, err, diff)
		}
	}
}

// The signal stack that OpenVINO gives a thread must not outlast the call, since another thread may
// free that stack.
func TestOpenVINOLeavesTheSignalStack(t *testing.T) {
	openVINO(t)
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	before := threadSignalStack()
	for _, options := range []map[string]string{nil, {"device_type": "CPU"}, {"disable_dynamic_shapes": "true"}} {
		// with disable_dynamic_shapes OpenVINO compiles in the run
		sums(t, Provider{"openvino", options})
		if threadSignalStack() != before {
			t.Errorf("%v: the thread has another signal stack", options)
		}
	}
}

// A provider whose requirements this machine may lack is refused when the session is made. It is
// never silently replaced.
func TestProviderThatIsNotCompiledIn(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	for _, name := range []string{"dnnl", "cuda", "tensorrt", "xnnpack", "coreml", "openvino"} {
		if slices.Contains(r.Providers(), name) {
			continue
		}
		_, err := r.NewSession(model("add_sub"), SessionOptions{Providers: []Provider{{Name: name}}})
		if err == nil || !strings.Contains(err.Error(), `cannot use execution provider "`+name+`"`) || !strings.Contains(err.Error(), "compiled with") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
