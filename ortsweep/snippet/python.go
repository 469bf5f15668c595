package snippet

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tuner/internal/telemetry"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// WritePython writes a program for the package onnxruntime.
func WritePython(to io.Writer, s Session) error {
	var w writer
	w.comments("#", append([]string{fmt.Sprintf("Measured with ONNX Runtime %s%s", s.Runtime, pipHint(s.Runtime))}, s.About...))
	w.linef("import os")
	w.linef("")
	w.linef("os.environ.setdefault(%s, %s)  # else ONNX Runtime reports to its maker", quote(telemetry.Variable), quote(telemetry.Off))
	w.linef("")
	w.linef("import numpy as np")
	w.linef("import onnxruntime as ort")
	w.linef("")
	w.linef("options = ort.SessionOptions()")
	w.options(s, "", func(o sessionoption.Option) sessionoption.Line { return o.Python }, "options.add_session_config_entry(%s, %s)")
	for _, library := range s.Operators {
		w.linef("options.register_custom_ops_library(%s)", quote(library))
	}
	w.linef("providers = [%s]", pythonProviders(s.Providers))
	w.linef("session = ort.InferenceSession(%s, options, providers=providers)", quote(s.Model))
	w.linef("")
	if slices.ContainsFunc(s.Inputs, func(in Input) bool { return in.Type == onnx.BFloat16 }) {
		w.linef("# numpy has no bfloat16: make the inputs as ort.OrtValue, and run with session.run_with_ort_values.")
		return w.flush(to, "Python")
	}
	w.linef("inputs = {  # zeros: put your own values here")
	for _, in := range s.Inputs {
		w.linef("    %s: %s,", quote(in.Name), numpyZeros(in))
	}
	w.linef("}")
	w.linef("outputs = session.run([%s], inputs)", quoted(s.Outputs))
	w.linef("print(session.get_providers(), [output.shape for output in outputs])")
	return w.flush(to, "Python")
}

// pipHint describes how to install a build. It returns "" for a user's own library, whose Python
// package is unknown.
func pipHint(runtime string) string {
	flavour, version, found := strings.Cut(runtime, "@")
	build, known := provider.BuildOf(flavour)
	if !known || !found {
		return ""
	}
	return fmt.Sprintf("; install: pip install %s==%s numpy", build.Project, version)
}

// pythonProviders returns the list of providers, the CPU's last.
func pythonProviders(providers []modelconfig.Provider) string {
	var list []string
	for _, p := range providers {
		class := quote(provider.Of(p.Name).ORTName())
		if len(p.Options) == 0 {
			list = append(list, class)
			continue
		}
		var options []string
		for _, e := range sorted(p.Options) {
			options = append(options, quote(e.key)+": "+quote(e.value))
		}
		list = append(list, fmt.Sprintf("(%s, {%s})", class, strings.Join(options, ", ")))
	}
	return strings.Join(append(list, quote(provider.Of(provider.CPU).ORTName())), ", ")
}

// numpyZeros returns an input of zeros.
func numpyZeros(in Input) string {
	if in.Type == onnx.String {
		return fmt.Sprintf("np.full([%s], \"\", dtype=object)", shape(in.Shape))
	}
	return fmt.Sprintf("np.zeros([%s], dtype=np.%s)", shape(in.Shape), numpyType(in.Type))
}

// numpyType returns NumPy's name of an element type.
func numpyType(t onnx.DataType) string {
	switch t {
	case onnx.Bool:
		return "bool_"
	case onnx.Int8:
		return "int8"
	case onnx.Uint8:
		return "uint8"
	case onnx.Int16:
		return "int16"
	case onnx.Uint16:
		return "uint16"
	case onnx.Int32:
		return "int32"
	case onnx.Uint32:
		return "uint32"
	case onnx.Int64:
		return "int64"
	case onnx.Uint64:
		return "uint64"
	case onnx.Float16:
		return "float16"
	case onnx.Double:
		return "float64"
	}
	return "float32"
}

// quoted returns a list of string literals.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = quote(n)
	}
	return strings.Join(list, ", ")
}
