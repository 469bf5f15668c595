package snippet

import (
	"maps"
	"slices"

	"tuner/modelconfig"
)

// Given returns what the engine gives ONNX Runtime for a configuration's session options, without what that does unasked. On a GPU the CUDA
// provider stands behind TensorRT, for what that does not take, as ONNX Runtime's documentation of TensorRT advises.
func Given(o modelconfig.Options, at modelconfig.Place) (modelconfig.Options, []modelconfig.Provider, error) {
	given, providers, err := o.Given(at)
	if err != nil {
		return given, nil, err
	}
	usual, err := modelconfig.Options{}.CUDAOptions()
	if err != nil {
		return given, nil, err
	}
	usual["device_id"], usual["trt_fp16_enable"] = "0", "0"
	providers = slices.DeleteFunc(providers, func(p modelconfig.Provider) bool { return p.Name == "cpu" }) // always there
	for _, p := range providers {
		maps.DeleteFunc(p.Options, func(key, value string) bool { return usual[key] == value })
	}
	return given, providers, nil
}
