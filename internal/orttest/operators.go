package orttest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

//go:embed testdata/twice.c
var twice []byte

// Header returns the folder with ONNX Runtime's header, which the Go binding has.
func Header(t *testing.T) string {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(folder))
}

// Compile makes the library NAME.so of C code that includes ONNX Runtime's header.
func Compile(t *testing.T, name string, code []byte) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), name+".so")
	cmd := exec.Command("cc", "-shared", "-fPIC", "-O1", "-I", Header(t), "-o", library, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(string(code))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot compile %s: %v\n%s", name, err, out)
	}
	return library
}

// TwiceLibrary compiles a library with the operator test.Twice.
func TwiceLibrary(t *testing.T) string {
	t.Helper()
	return Compile(t, "libtwice", twice)
}

// TwiceModel writes a model whose first output is twice its first input, by test.Twice.
func TwiceModel(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "twice.onnx")
	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	node := m.Graph.Node[0] // the sum
	node.OpType, node.Domain, node.Input = proto.String("Twice"), proto.String("test"), node.Input[:1]
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("test"), Version: proto.Int64(1)})
	if text, err = proto.Marshal(&m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

//go:embed testdata/letters.c
var letters []byte

// LettersLibrary compiles a library with the operator test.Letters.
func LettersLibrary(t *testing.T) string {
	t.Helper()
	return Compile(t, "libletters", letters)
}

// LettersModel returns a model that stands for a tokenizer, with the operator test.Letters: text [batch, 1] to
// tokens FLOAT [batch, 16].
func LettersModel() *onnx.Model {
	g := build.NewGraph("letters")
	text := g.Input("text", onnx.String, onnx.Symbol("batch"), onnx.Fixed(1))
	numbers := g.Node("Letters", []string{text})
	g.OutputAs("tokens", g.Node("Cast", []string{numbers}, build.IntAttribute("to", int64(onnx.Float))), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(16))
	m := g.Model().Proto()
	m.Graph.Node[0].Domain = proto.String("test")
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("test"), Version: proto.Int64(1)})
	return onnx.New(m)
}

//go:embed testdata/plugin.c
var plugIn []byte

// PlugInLibrary compiles a library with an execution provider that runs Add on int32. Without a device
// it offers none.
func PlugInLibrary(t *testing.T, hasDevice bool) string {
	t.Helper()
	if !hasDevice {
		return Compile(t, "libidle", append([]byte("#define NO_DEVICE\n"), plugIn...))
	}
	return Compile(t, "libexample", plugIn)
}
