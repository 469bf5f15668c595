package onnxruntime_test

import (
	"errors"
	"strings"
	"testing"

	"tuner/engine/api"
	"tuner/internal/orttest"
	"tuner/model/onnx/build"
)

// openVINO returns the configuration of an instance on OpenVINO, with a parameter of its
// accelerator.
func openVINO(key, value string) string {
	return `{"optimization":{"execution_accelerators":{"cpu_execution_accelerator":[{"name":"openvino","parameters":{"` + key + `":"` + value + `"}}]}}}`
}

// OpenVINO serves with its parameters. A parameter that it lacks, or a wrong value, fails the load
// with its name. A model that served before still serves. `make test` runs this test with the
// flavour that has OpenVINO.
func TestOpenVINO(t *testing.T) {
	orttest.OpenVINO(t)
	s := serve(t, build.Simple(), "")
	for _, parameter := range [][2]string{{"device_type", "CPU"}, {"num_of_threads", "1"}, {"num_of_threads", "2"}, {"num_streams", "2"},
		{"precision", "ACCURACY"}, {"load_config", `{\"CPU\":{\"ENABLE_CPU_PINNING\":\"NO\"}}`}} {
		if err := s.http.LoadModel(t.Context(), s.model, openVINO(parameter[0], parameter[1])); err != nil {
			t.Errorf("%v: %v", parameter, err)
		}
		if err := checkSimple(t.Context(), s.grpc, 2, 7); err != nil {
			t.Errorf("%v: %v", parameter, err)
		}
	}
	for _, bad := range [][3]string{
		{"num_threads", "2", `option "num_threads" of execution provider openvino: its options are `},
		{"num_of_threads", "0", `option "num_of_threads" of execution provider openvino to "0": expected a whole number from 1 to 1024`},
		// refused by ONNX Runtime
		{"device_type", "GPU.7", `cannot use execution provider "openvino" with device_type=GPU.7`},
	} {
		err := s.http.LoadModel(t.Context(), s.model, openVINO(bad[0], bad[1]))
		var got *api.StatusError
		if !errors.As(err, &got) || got.Status != 400 || !strings.Contains(got.Text, bad[2]) {
			t.Errorf("%v:\n got %v\nwant 400 with %s", bad[:2], err, bad[2])
		}
		if err := checkSimple(t.Context(), s.grpc, 1, 7); err != nil {
			t.Errorf("%v: after the failed load: %v", bad[:2], err)
		}
	}
}
