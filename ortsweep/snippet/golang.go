package snippet

import (
	"bytes"
	"fmt"
	"go/format"
	"io"
	"slices"
	"strings"

	"tuner/internal/telemetry"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
)

// WriteGo writes a program for the module github.com/yalue/onnxruntime_go.
func WriteGo(to io.Writer, s Session) error {
	var w writer
	w.comments("//", append([]string{fmt.Sprintf("Measured with ONNX Runtime %s; go get github.com/yalue/onnxruntime_go, and set ORT_LIBRARY to libonnxruntime.so", s.Runtime)}, s.About...))
	w.linef("package main")
	w.linef("")
	w.linef("import (\n\"fmt\"\n\"log\"\n\"os\"\n\nort \"github.com/yalue/onnxruntime_go\"\n)")
	w.linef("")
	w.linef("func main() {")
	w.linef("if _, isSet := os.LookupEnv(%[1]s); !isSet {\ncheck(os.Setenv(%[1]s, %[2]s)) // else ONNX Runtime reports to its maker\n}", quote(telemetry.Variable), quote(telemetry.Off))
	w.linef("ort.SetSharedLibraryPath(os.Getenv(\"ORT_LIBRARY\"))")
	w.linef("check(ort.InitializeEnvironment())")
	w.linef("defer ort.DestroyEnvironment()")
	w.linef("options := sessionOptions()")
	w.linef("defer options.Destroy()")
	w.goRun(s)
	w.linef("}")
	w.linef("")
	w.goOptions(s)
	w.linef("")
	w.linef("func check(err error) {\nif err != nil {\nlog.Fatal(err)\n}\n}")
	w.linef("")
	w.linef("func must[T any](value T, err error) T {\ncheck(err)\nreturn value\n}")
	text, err := format.Source([]byte(w.String()))
	if err != nil {
		return fmt.Errorf("cannot format the Go program: %w", err)
	}
	if _, err := io.Copy(to, bytes.NewReader(text)); err != nil {
		return fmt.Errorf("cannot write the Go program: %w", err)
	}
	return nil
}

// goOptions writes the function that sets the options.
func (w *writer) goOptions(s Session) {
	w.linef("// sessionOptions are the settings that were measured; what is not set is ONNX Runtime's default.")
	w.linef("func sessionOptions() *ort.SessionOptions {")
	w.linef("options := must(ort.NewSessionOptions())")
	w.options(s, "", func(o sessionoption.Option) sessionoption.Line { return o.Go }, "check(options.AddSessionConfigEntry(%s, %s))")
	for _, library := range s.Operators {
		w.linef("log.Fatal(\"github.com/yalue/onnxruntime_go has no way to open \" + %s + \": take winner.py or winner.cc\")", quote(library))
	}
	for _, p := range s.Providers {
		w.goProvider(p)
	}
	w.linef("return options")
	w.linef("}")
}

// goProvider appends an execution provider. The CPU's is always there, last.
func (w *writer) goProvider(p modelconfig.Provider) {
	row := provider.Of(p.Name)
	switch row.Go.How {
	case provider.ObjectCall:
		w.linef("%s := must(ort.New%sProviderOptions())", p.Name, row.Go.Name)
		w.linef("defer %s.Destroy()", p.Name)
		if len(p.Options) > 0 {
			w.linef("check(%s.Update(%s))", p.Name, goMap(p.Options))
		}
		w.linef("check(options.AppendExecutionProvider%s(%s))", row.Go.Name, p.Name)
	case provider.MapCall:
		w.linef("check(options.AppendExecutionProvider%s(%s))", row.Go.Name, goMap(p.Options))
	case provider.NoCall:
		w.linef("log.Fatal(\"github.com/yalue/onnxruntime_go has no way to add %s: take winner.py or winner.cc\")", row.Title)
	default:
		w.linef("check(options.AppendExecutionProvider(%s, %s))", quote(row.GenericName()), goMap(p.Options))
	}
}

// goMap returns a map literal with one entry per line.
func goMap(m map[string]string) string {
	var b strings.Builder
	b.WriteString("map[string]string{\n")
	for _, e := range sorted(m) {
		fmt.Fprintf(&b, "%s: %s,\n", quote(e.key), quote(e.value))
	}
	b.WriteString("}")
	return b.String()
}

// goRun creates the session and runs it on zeros.
func (w *writer) goRun(s Session) {
	var names []string
	for _, in := range s.Inputs {
		names = append(names, in.Name)
	}
	w.linef("session := must(ort.NewDynamicAdvancedSession(%s,\n[]string{%s}, []string{%s}, options))", quote(s.Model), quoted(names), quoted(s.Outputs))
	w.linef("defer session.Destroy()")
	isForeign := func(name string) bool {
		t, isScalar := s.Scalars[name]
		return isScalar && cppType(t) == ""
	}
	if !runnable(s) || slices.ContainsFunc(s.Outputs, isForeign) {
		w.linef("// Some tensors have types that need conversions of your own: make them and call session.Run.")
		w.linef("fmt.Println(\"session created\")")
		return
	}
	w.linef("inputs := []ort.Value{ // zeros: put your own values here")
	for _, in := range s.Inputs {
		if len(in.Shape) == 0 { // of which the binding makes no tensor
			w.linef("must(ort.NewScalar[%s](0)),", goType(in.Type))
			continue
		}
		w.linef("must(ort.NewTensor(ort.NewShape(%s), make([]%s, %d))),", shape(in.Shape), goType(in.Type), in.elements())
	}
	w.linef("}")
	w.linef("outputs := make([]ort.Value, %d) // nil: ONNX Runtime makes them", len(s.Outputs))
	for i, name := range s.Outputs {
		if t, isScalar := s.Scalars[name]; isScalar {
			w.linef("outputs[%d] = must(ort.NewScalar[%s](0))", i, goType(t))
		}
	}
	w.linef("check(session.Run(inputs, outputs))")
	w.linef("for _, value := range append(inputs, outputs...) {")
	w.linef("fmt.Println(value.GetShape())")
	w.linef("check(value.Destroy())")
	w.linef("}")
}

// goType returns the Go type of an element. Every type of cppType has one.
func goType(t onnx.DataType) string {
	switch t {
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
	case onnx.Double:
		return "float64"
	}
	return "float32"
}
