package snippet

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/golden"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/ort/sessionoption"
)

// sessions returns one session for each kind of provider. Together they use every option.
func sessions() map[string]Session {
	ids := []Input{{"input_ids", onnx.Int64, []int64{1, 32}}}
	return map[string]Session{
		"default": {About: []string{"minilm: default."}, Model: "minilm.onnx", Runtime: "cpu@1.31.1", Inputs: ids, Outputs: []string{"embedding"}},
		"cpu": {
			About: []string{"minilm: 2 threads,\nparallel."}, Model: "out/minilm \"int8\".onnx", Runtime: "cpu@1.31.1",
			Options: modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "2", sessionoption.InterOpThreads: "4", sessionoption.ExecutionMode: sessionoption.Parallel, sessionoption.MemoryArena: sessionoption.Off, sessionoption.MemoryPattern: sessionoption.Off, sessionoption.GraphOptimization: "extended"}, Session: map[string]string{"session.intra_op.allow_spinning": "0", "session.dynamic_block_base": "4"}},
			Inputs:  append(ids, Input{"image", onnx.Float, []int64{1, 3, 8, 8}}), Outputs: []string{"a", "b"},
		},
		"openvino": {Model: "m.onnx", Runtime: "openvino@1.24.1", Options: modelconfig.Options{Settings: sessionoption.Settings{sessionoption.GraphOptimization: sessionoption.Disabled}},
			Providers: []modelconfig.Provider{{Name: "openvino", Options: map[string]string{"device_type": "CPU", "num_of_threads": "2", "load_config": `{"CPU": {}}`}}}, Inputs: ids, Outputs: []string{"y"}},
		"tensorrt": {Model: "m.onnx", Runtime: "cuda@1.31.1", Options: modelconfig.Options{Settings: sessionoption.Settings{sessionoption.GraphOptimization: "basic"}},
			Providers: []modelconfig.Provider{{Name: "tensorrt", Options: map[string]string{"trt_fp16_enable": "1"}}, {Name: "cuda", Options: nil}}, Inputs: ids, Outputs: []string{"y"}},
		"cuda": {Model: "m.onnx", Runtime: "cuda@1.31.1", Providers: []modelconfig.Provider{{Name: "cuda", Options: map[string]string{"device_id": "1"}}}, Inputs: ids, Outputs: []string{"y"}},
		"xnnpack": {Model: "m.onnx", Runtime: "built@1.31.1", Options: modelconfig.Options{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}, Session: map[string]string{"session.intra_op.allow_spinning": "0"}},
			Providers: []modelconfig.Provider{{Name: "xnnpack", Options: map[string]string{"intra_op_num_threads": "4"}}}, Inputs: ids, Outputs: []string{"y"}},
		"dnnl":   {Model: "m.onnx", Runtime: "built@1.31.1", Providers: []modelconfig.Provider{{Name: "dnnl", Options: map[string]string{"use_arena": "0"}}}, Inputs: ids, Outputs: []string{"y"}},
		"coreml": {Model: "m.onnx", Runtime: "built@1.31.1", Providers: []modelconfig.Provider{{Name: "coreml"}}, Inputs: ids, Outputs: []string{"y"}},
		"scalars": {Model: "vad.onnx", Runtime: "cpu@1.31.1", Inputs: []Input{{"input", onnx.Float, []int64{1, 512}}, {"sr", onnx.Int64, nil}}, Outputs: []string{"output", "mean"},
			Scalars: map[string]onnx.DataType{"mean": onnx.Float}},
		"a scalar of another type": {Model: "m.onnx", Runtime: "cpu@1.31.1", Inputs: ids, Outputs: []string{"y"}, Scalars: map[string]onnx.DataType{"y": onnx.Bool}},
		"strings":                  {Model: "m.onnx", Runtime: "cpu@1.31.1", Inputs: []Input{{"text", onnx.String, []int64{1}}, {"half", onnx.Float16, []int64{1}}}, Outputs: []string{"y"}},
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	writers := map[string]func(io.Writer, Session) error{".py": WritePython, ".cc": WriteCPP, ".go.txt": WriteGo}
	for _, name := range []string{"cpu", "openvino", "tensorrt", "xnnpack", "dnnl"} {
		for extension, write := range writers {
			var b bytes.Buffer
			if err := write(&b, sessions()[name]); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+extension), b.Bytes())
		}
	}
}

// Every Go program is type-checked against the binding that this module uses.
func TestGoProgramsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the binding's source")
	}
	t.Parallel()
	files := token.NewFileSet()
	// The checker reads packages from source. It needs the binding's interface, but not its cgo
	// part.
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil), FakeImportC: true}
	for name, s := range sessions() {
		var b bytes.Buffer
		if err := WriteGo(&b, s); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file, err := parser.ParseFile(files, name+".go", b.Bytes(), parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := config.Check("main", files, []*ast.File{file}, nil); err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

// The binding makes no tensors without dimensions, neither of inputs nor of outputs.
func TestGoScalars(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"scalars":                  {"must(ort.NewTensor(ort.NewShape(1, 512), make([]float32, 512)))", "must(ort.NewScalar[int64](0)),", "outputs[1] = must(ort.NewScalar[float32](0))"},
		"a scalar of another type": {`fmt.Println("session created")`},
	} {
		var b bytes.Buffer
		if err := WriteGo(&b, sessions()[name]); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(b.String(), line) {
				t.Errorf("%s: %q is missing:\n%s", name, line, b.String())
			}
		}
	}
}

func TestDefaultSetsNothing(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, Session) error{"Python": WritePython, "C++": WriteCPP, "Go": WriteGo} {
		var b bytes.Buffer
		if err := write(&b, sessions()["default"]); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"num_threads", "NumThreads", "ConfigEntry", "config_entry", "Execution", "optimization_level", "OptimizationLevel"} {
			if strings.Contains(strings.ReplaceAll(b.String(), "CPUExecutionProvider", ""), word) {
				t.Errorf("the default in %s sets %s:\n%s", name, word, b.String())
			}
		}
	}
}

// Text in a comment cannot end it.
func TestCommentsStayComments(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WritePython(&b, Session{About: []string{"a\nimport evil"}, Model: "m"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\nimport evil") {
		t.Errorf("a comment became code:\n%s", b.String())
	}
}
