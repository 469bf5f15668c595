package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/alloctest"
	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// Ten times as many inputs take ten times the work of `tuner init`, not a hundred times.
func TestInitManyInputs(t *testing.T) {
	work := func(n int) float64 {
		g := build.NewGraph("many")
		for i := range n {
			in := g.Input(fmt.Sprintf("i%d", i), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("s"))
			g.OutputAs(fmt.Sprintf("o%d", i), g.Node("Identity", []string{in}), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("s"))
		}
		dir := t.TempDir()
		writeModel(t, filepath.Join(dir, "many.onnx"), g.Model())
		return float64(alloctest.Bytes(func() {
			if code, _, message := initModel(t, filepath.Join(dir, "many.onnx"), "-o", dir); code != exit.OK {
				t.Fatalf("exit code %d: %s", code, message)
			}
		}))
	}
	if small, large := work(400), work(4000); large > 20*small {
		t.Errorf("400 inputs take %.0f bytes, 4000 take %.0f, %.1f times as many", small, large, large/small)
	}
}

// A size that no request can have is a mistake in the model.
func TestInitImpossibleSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1 << 62, 1<<63 - 1} {
		g := build.NewGraph("huge")
		shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(size), onnx.Symbol("s")}
		g.OutputAs("y", g.Node("Identity", []string{g.Input("x", onnx.Float, shape...)}), onnx.Float, shape...)
		dir := t.TempDir()
		writeModel(t, filepath.Join(dir, "huge.onnx"), g.Model())
		code, _, message := initModel(t, filepath.Join(dir, "huge.onnx"), "-o", dir)
		if code != exit.Usage || !strings.Contains(message, fmt.Sprint(size)) || !strings.Contains(message, filepath.Join(dir, "huge.onnx")) {
			t.Errorf("size %d: exit code %d: %s", size, code, message)
		}
	}
}
