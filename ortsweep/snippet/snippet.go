// Package snippet writes a session's settings as programs that are ready to be pasted: Python, C++ and Go, each with ONNX
// Runtime's own interface and nothing of tuner. Each creates the session and runs it once on zeros. It is a function of
// values: no clock, no file, no ONNX Runtime.
package snippet

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tuner/modelconfig"
	"tuner/onnx"
)

// Session is what a program shall set up.
type Session struct {
	About    []string // comment lines on top
	Model    string   // path of the ONNX file
	Runtime  string   // flavour@version of the build that was measured
	Options  modelconfig.Options
	Provider Provider
	Inputs   []Input  // of one request
	Outputs  []string // names
}

// Provider is the execution provider before that of the CPU. The zero value is the CPU's alone.
type Provider struct {
	Name    string            // openvino, cuda, tensorrt …
	Options map[string]string // by ONNX Runtime's own names
}

// Input is one input of a request.
type Input struct {
	Name  string
	Type  onnx.DataType
	Shape []int64 // batch dimension included
}

// elements is the number of the input's elements.
func (in Input) elements() int64 {
	n := int64(1)
	for _, d := range in.Shape {
		n *= d
	}
	return n
}

// setting is a session configuration entry or a provider's option.
type setting struct{ key, value string }

func sorted(m map[string]string) []setting {
	var list []setting
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, setting{key, m[key]})
	}
	return list
}

// writer collects lines of a program; the first error of writing is kept for the end.
type writer struct{ strings.Builder }

func (w *writer) linef(format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

// comments writes comment lines with a prefix. Line breaks inside of a line cannot end the comment.
func (w *writer) comments(prefix string, lines []string) {
	for _, line := range lines {
		w.linef("%s %s", prefix, strings.NewReplacer("\n", " ", "\r", " ").Replace(line))
	}
}

func (w *writer) flush(to io.Writer, what string) error {
	if _, err := io.WriteString(to, w.String()); err != nil {
		return fmt.Errorf("cannot write the %s program: %w", what, err)
	}
	return nil
}

// quote is a string literal of Python, C++ and Go alike: the escapes that Go uses for text outside of ASCII (\u00e9) mean the
// same in all three.
func quote(text string) string { return strconv.QuoteToASCII(text) }

// shape is a list of numbers: 1, 32.
func shape(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = strconv.FormatInt(d, 10)
	}
	return strings.Join(parts, ", ")
}

// isOff tells a switch that must be turned off; on is what ONNX Runtime does by itself.
func isOff(s modelconfig.Switch) bool { return s == modelconfig.Off }

// Accelerated finds the execution provider that a configuration names for its instances, with its options by ONNX Runtime's
// own names: those of config.pbtxt differ for TensorRT, and four of CUDA's are codes there.
func Accelerated(o modelconfig.Options, onGPU bool) Provider {
	switch {
	case onGPU && len(o.GPUAccelerators) > 0:
		a := o.GPUAccelerators[0]
		if a.Name == "tensorrt" {
			return Provider{a.Name, tensorRT(a.Parameters)}
		}
		return Provider{a.Name, maps.Clone(a.Parameters)}
	case onGPU:
		return Provider{"cuda", cuda(o.CUDA)}
	case len(o.CPUAccelerators) > 0:
		return Provider{o.CPUAccelerators[0].Name, maps.Clone(o.CPUAccelerators[0].Parameters)}
	}
	return Provider{}
}

// tensorRT translates the names of Triton's onnxruntime backend.
func tensorRT(parameters map[string]string) map[string]string {
	options := map[string]string{}
	for key, value := range parameters {
		switch key {
		case "precision_mode":
			switch value {
			case "FP16":
				options["trt_fp16_enable"] = "1"
			case "BF16":
				options["trt_bf16_enable"] = "1"
			case "INT8":
				options["trt_int8_enable"] = "1"
			}
		case "max_workspace_size_bytes":
			options["trt_max_workspace_size"] = value
		case "int8_calibration_table_name":
			options["trt_int8_calibration_table_name"] = value
		case "int8_use_native_calibration_table":
			options["trt_int8_use_native_calibration_table"] = value
		default:
			options[key] = value
		}
	}
	return options
}

// cuda writes out the codes of the four options that stand among the parameters.
func cuda(parameters map[string]string) map[string]string {
	words := map[string][]string{
		"cudnn_conv_algo_search": {"EXHAUSTIVE", "HEURISTIC", "DEFAULT"},
		"arena_extend_strategy":  {"kNextPowerOfTwo", "kSameAsRequested"},
	}
	options := map[string]string{}
	for key, value := range parameters {
		options[key] = value
		if code, err := strconv.Atoi(value); err == nil && code >= 0 && code < len(words[key]) {
			options[key] = words[key][code]
		}
	}
	return options
}
