package snippet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig"
	"tuner/ort/sessionoption"
)

// Programs create the measured session, including the settings that the engine adds.
func TestGiven(t *testing.T) {
	t.Parallel()
	accelerated := func(name string, parameters ...string) []modelconfig.Accelerator {
		a := modelconfig.Accelerator{Name: name, Parameters: map[string]string{}}
		for i := 0; i < len(parameters); i += 2 {
			a.Parameters[parameters[i]] = parameters[i+1]
		}
		return []modelconfig.Accelerator{a}
	}
	const spinning = "session.intra_op.allow_spinning"
	onCPU, onGPU, onSecond := modelconfig.Device{Cores: 4}, modelconfig.Device{OnGPU: true, Cores: 4}, modelconfig.Device{OnGPU: true, GPU: 1, Cores: 4}
	for name, c := range map[string]struct {
		options       modelconfig.Options
		at            modelconfig.Device
		want          modelconfig.Options
		wantProviders []modelconfig.Provider
	}{
		"the CPU alone": {modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2"}}, onCPU, modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2"}}, nil},
		"OpenVINO has a device": {modelconfig.Options{CPUAccelerators: accelerated("openvino", "num_streams", "1")}, onCPU, modelconfig.Options{},
			[]modelconfig.Provider{{Name: "openvino", Options: map[string]string{"device_type": "CPU", "num_streams": "1"}}}},
		"CUDA's codes are words, and defaults are left out": {
			modelconfig.Options{CUDA: map[string]string{"cudnn_conv_algo_search": "1", "do_copy_in_default_stream": "1", "gpu_mem_limit": "1000"}}, onGPU,
			modelconfig.Options{}, []modelconfig.Provider{{Name: "cuda", Options: map[string]string{"cudnn_conv_algo_search": "HEURISTIC", "gpu_mem_limit": "1000"}}}},
		"CUDA stands behind TensorRT": {
			modelconfig.Options{GPUAccelerators: append(accelerated("cuda", "use_tf32", "0"),
				accelerated("tensorrt", "precision_mode", "FP16", "max_workspace_size_bytes", "1", "trt_dla_enable", "0")...)}, onSecond, modelconfig.Options{},
			[]modelconfig.Provider{{Name: "tensorrt", Options: map[string]string{"trt_fp16_enable": "1", "trt_max_workspace_size": "1", "trt_dla_enable": "0", "device_id": "1"}},
				{Name: "cuda", Options: map[string]string{"use_tf32": "0", "device_id": "1"}}}},
		"XNNPACK's pool has all cores": {modelconfig.Options{CPUAccelerators: accelerated("xnnpack")}, onCPU,
			modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Session: map[string]string{spinning: "0"}},
			[]modelconfig.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": "4"}}}},
		"XNNPACK's pool has the threads": {modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "3"}, CPUAccelerators: accelerated("xnnpack")}, onCPU,
			modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Session: map[string]string{spinning: "0"}},
			[]modelconfig.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": "3"}}}},
		"XNNPACK as it is told": {
			modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "3"}, Session: map[string]string{spinning: "1"}, CPUAccelerators: accelerated("xnnpack", "intra_op_num_threads", "2")},
			onCPU, modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "3"}, Session: map[string]string{spinning: "1"}},
			[]modelconfig.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": "2"}}}},
	} {
		got, providers, err := Given(c.options, c.at)
		if diff := cmp.Diff(c.want, got) + cmp.Diff(c.wantProviders, providers); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, _, err := Given(modelconfig.Options{CUDA: map[string]string{"arena_extend_strategy": "7"}}, onGPU); err == nil {
		t.Error("a code that CUDA does not have is taken")
	}
}
