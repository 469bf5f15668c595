package child

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/golden"
	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/ort"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// The committed file is the model that its comment describes.
func TestTinyModel(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("probe")
	shape := []onnx.Dim{onnx.Fixed(1), onnx.Fixed(1), onnx.Fixed(2), onnx.Fixed(2)}
	x := g.Input("x", onnx.Float, shape...)
	product := g.Node("Conv", []string{x, g.Floats("weight", []float32{1}, 1, 1, 1, 1)}, build.IntsAttribute("kernel_shape", 1, 1))
	g.OutputAs("sum", g.Node("Add", []string{product, x}), onnx.Float, shape...)
	file, err := proto.MarshalOptions{Deterministic: true}.Marshal(g.Model().Proto())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "probe.onnx", file)
}

func TestTinyModelRuns(t *testing.T) {
	t.Parallel()
	runtime := orttest.Runtime(t)
	if err := tryTinyModel(t.Context(), runtime, ort.SessionOptions{LogSeverity: ort.LogFatal}); err != nil {
		t.Error(err)
	}
}
