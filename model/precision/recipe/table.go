package recipe

import (
	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
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
			return rewrite.Float16(m, rewrite.Float16Options{KeepIO: s.KeepIO, Keep: s.Keep})
		},
	},
	{
		Name: Int8, About: "has weights of 8 bits, and quantizes activations in each run, by their own range",
		Lossy: true, PaysOnCPU: true,
		HasBits: true,
		Convert: func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error) {
			return rewrite.Int8Dynamic(m, rewrite.Int8Options{Bits: s.Bits, Keep: s.Keep})
		},
		Probe: func(m *onnx.Model, s Settings) (*onnx.Model, map[string]string, error) {
			return rewrite.Int8Sensitivity(m, rewrite.Int8Options{Bits: s.Bits, Keep: s.Keep})
		},
	},
	{
		Name: "int8_static", About: "has weights and activations of 8 bits, by ranges that calibration finds",
		Lossy: true, PaysOnCPU: true,
		Calibrated: true, HasBits: true,
		Convert: func(m *onnx.Model, s Settings) (*onnx.Model, rewrite.Summary, error) {
			return rewrite.Int8Static(m, rewrite.Int8StaticOptions{Ranges: s.Ranges, Bits: s.Bits, Keep: s.Keep})
		},
		Probe: func(m *onnx.Model, s Settings) (*onnx.Model, map[string]string, error) {
			return rewrite.Int8StaticSensitivity(m, rewrite.Int8StaticOptions{Ranges: s.Ranges, Bits: s.Bits, Keep: s.Keep})
		},
	},
}
