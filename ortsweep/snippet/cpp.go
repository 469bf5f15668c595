package snippet

import (
	"fmt"
	"io"

	"tuner/internal/telemetry"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// WriteCPP writes a program for ONNX Runtime's C++ interface.
func WriteCPP(to io.Writer, s Session) error {
	var w writer
	w.comments("//", append([]string{fmt.Sprintf("Measured with ONNX Runtime %s; build: c++ -std=c++17 winner.cc -lonnxruntime", s.Runtime)}, s.About...))
	for _, header := range []string{"array", "cstdint", "cstdlib", "iostream", "string", "unordered_map", "vector"} {
		w.linef("#include <%s>", header)
	}
	w.linef("#include <onnxruntime_cxx_api.h>")
	w.linef("")
	w.linef("int main() {")
	w.linef("#ifndef _WIN32")
	w.linef("  setenv(%s, %s, 0);  // else ONNX Runtime reports to its maker", quote(telemetry.Variable), quote(telemetry.Off))
	w.linef("#endif")
	w.linef("  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, \"winner\");")
	w.cppOptions(s)
	w.linef("  Ort::Session session(env, ORT_TSTR(%s), options);", quote(s.Model))
	if runnable(s) {
		w.cppRun(s)
	} else {
		w.linef("  // The inputs have types that need conversions of your own: fill them and call session.Run.")
	}
	w.linef("}")
	return w.flush(to, "C++")
}

func (w *writer) cppOptions(s Session) {
	w.linef("  Ort::SessionOptions options;")
	w.options(s, "  ", func(o sessionoption.Option) sessionoption.Line { return o.CPP }, "options.AddConfigEntry(%s, %s);")
	for _, library := range s.Operators {
		w.linef("  options.RegisterCustomOpsLibrary(ORT_TSTR(%s));", quote(library))
	}
	for _, p := range s.Providers {
		w.cppProvider(p)
	}
}

// cppProvider appends an execution provider. The CPU's is always there, last.
func (w *writer) cppProvider(p modelconfig.Provider) {
	row := provider.Of(p.Name)
	switch row.CPP.How {
	case provider.ObjectCall:
		w.linef("  Ort::%sProviderOptions %s;", row.CPP.Name, p.Name)
		if len(p.Options) > 0 {
			w.linef("  %s.Update({", p.Name)
			w.cppEntries(p)
			w.linef("  });")
		}
		w.linef("  options.AppendExecutionProvider_%s_V2(*%s);", row.CPP.Name, p.Name)
	case provider.NativeCall:
		w.cppNative(p, row.CPP.Name)
	case provider.MapCall:
		w.cppMap(p)
		w.linef("  options.AppendExecutionProvider_%s(%s);", row.CPP.Name, p.Name)
	default:
		w.cppMap(p)
		w.linef("  options.AppendExecutionProvider(%s, %s);", quote(row.GenericName()), p.Name)
	}
}

// cppMap declares the options as a map.
func (w *writer) cppMap(p modelconfig.Provider) {
	w.linef("  std::unordered_map<std::string, std::string> %s{", p.Name)
	w.cppEntries(p)
	w.linef("  };")
}

// cppNative appends a provider that only the C interface has (oneDNN).
func (w *writer) cppNative(p modelconfig.Provider, class string) {
	w.linef("  Ort%sProviderOptions* %s = nullptr;", class, p.Name)
	w.linef("  Ort::ThrowOnError(Ort::GetApi().Create%sProviderOptions(&%s));", class, p.Name)
	for _, e := range sorted(p.Options) {
		w.linef("  {")
		w.linef("    const char *key = %s, *value = %s;", quote(e.key), quote(e.value))
		w.linef("    Ort::ThrowOnError(Ort::GetApi().Update%sProviderOptions(%s, &key, &value, 1));", class, p.Name)
		w.linef("  }")
	}
	w.linef("  options.AppendExecutionProvider_%s(*%s);", class, p.Name)
	w.linef("  Ort::GetApi().Release%sProviderOptions(%s);", class, p.Name)
}

func (w *writer) cppEntries(p modelconfig.Provider) {
	for _, e := range sorted(p.Options) {
		w.linef("      {%s, %s},", quote(e.key), quote(e.value))
	}
}

// runnable reports whether all inputs have types that C++ and Go have.
func runnable(s Session) bool {
	for _, in := range s.Inputs {
		if cppType(in.Type) == "" {
			return false
		}
	}
	return len(s.Inputs) > 0
}

// cppRun runs the session on zeros.
func (w *writer) cppRun(s Session) {
	w.linef("")
	w.linef("  // Zeros: put your own values here.")
	w.linef("  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);")
	w.linef("  std::vector<Ort::Value> inputs;")
	for i, in := range s.Inputs {
		w.linef("  std::vector<%s> data%d(%d);", cppType(in.Type), i, in.elements())
		w.linef("  std::vector<int64_t> shape%d{%s};", i, shape(in.Shape))
		w.linef("  inputs.push_back(Ort::Value::CreateTensor<%s>(memory, data%d.data(), data%d.size(), shape%d.data(), shape%d.size()));",
			cppType(in.Type), i, i, i, i)
	}
	var names []string
	for _, in := range s.Inputs {
		names = append(names, in.Name)
	}
	w.linef("  std::array<const char*, %d> input_names{%s};", len(names), quoted(names))
	w.linef("  std::array<const char*, %d> output_names{%s};", len(s.Outputs), quoted(s.Outputs))
	w.linef("  auto outputs = session.Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.data(), inputs.size(), output_names.data(), output_names.size());")
	w.linef("  for (auto& output : outputs) {")
	w.linef("    std::cout << output.GetTensorTypeAndShapeInfo().GetElementCount() << \" elements\\n\";")
	w.linef("  }")
}

// cppType returns the C++ type of an element. It returns "" for types that C++ lacks, and for bool,
// whose vectors are packed.
func cppType(t onnx.DataType) string {
	switch t {
	case onnx.Int8:
		return "int8_t"
	case onnx.Uint8:
		return "uint8_t"
	case onnx.Int16:
		return "int16_t"
	case onnx.Uint16:
		return "uint16_t"
	case onnx.Int32:
		return "int32_t"
	case onnx.Uint32:
		return "uint32_t"
	case onnx.Int64:
		return "int64_t"
	case onnx.Uint64:
		return "uint64_t"
	case onnx.Float:
		return "float"
	case onnx.Double:
		return "double"
	}
	return ""
}
