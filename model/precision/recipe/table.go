package recipe

import (
	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/float16"
	"tuner/model/onnx/rewrite/quantization"
)

// table has a row for each precision, in the order in which lists name them. The original is first.
var table = []Recipe{
	{
		Name: Original, About: "is the model as given",
		PaysOnCPU: true, PaysOnGPU: true,
		Convert: func(m *onnx.Model, _ Settings) (*onnx.Model, rewrite.Summary, error) {
			return m, rewrite.Summary{}, nil
		},
	},
	{
		// Most CPUs compute it by way of fp32.
		Name: "fp16", About: "has weights and activations in half precision",
		Lossy: true, PaysOnGPU: true,
		KeepsIO: true,
		Convert: func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error) {
			return float16.Convert(m, float16.Options{KeepIO: s.KeepIO, Keep: s.Keep})
		},
	},
	{
		Name: Int8, About: "has weights of 8 bits, and quantizes activations in each run, by their own range",
		Lossy: true, PaysOnCPU: true,
		HasBits: true,
		Convert: func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error) {
			return quantization.Dynamic(m, quantization.Options{Bits: s.Bits, Keep: s.Keep})
		},
		Probe: func(m *onnx.Model, s Settings) (*onnx.Model, map[string]string, error) {
			return quantization.Sensitivity(m, quantization.Options{Bits: s.Bits, Keep: s.Keep})
		},
		Layers: quantization.Products,
	},
	{
		Name: "int8_static", About: "has weights and activations of 8 bits, by ranges that calibration finds",
		Lossy: true, PaysOnCPU: true,
		Calibrated: true, HasBits: true,
		Convert: func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error) {
			return quantization.Static(m, quantization.StaticOptions{Ranges: s.Ranges, Bits: s.Bits, Keep: s.Keep})
		},
		Probe: func(m *onnx.Model, s Settings) (*onnx.Model, map[string]string, error) {
			return quantization.StaticSensitivity(m, quantization.StaticOptions{Ranges: s.Ranges, Bits: s.Bits, Keep: s.Keep})
		},
		Layers: quantization.Layers,
	},
}
