package onnxruntime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tuner/internal/orttest"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/ort"
)

// The bound follows the model's files, external data included, between our least bound and ONNX
// Runtime's.
func TestFoldingBound(t *testing.T) {
	t.Parallel()
	for files, want := range map[int64]int64{
		0: 64 << 20, 16 << 20: 64 << 20, 17 << 20: 68 << 20, 256 << 20: 1 << 30, 1 << 40: 1 << 30, 1<<63 - 1: 1 << 30,
	} {
		if got := foldingOf(files); got != want {
			t.Errorf("files of %d bytes: %d, want %d", files, got, want)
		}
	}
	dir := t.TempDir()
	for name, size := range map[string]int64{"model.onnx": 10, "weights": 100 << 20} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil { // a hole, which takes no space
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := boundFolding(ort.SessionOptions{}, &modelconfig.Config{}, filepath.Join(dir, "model.onnx")).Entries[foldingKey]
	if want := fmt.Sprint(400<<20 + 40); got != want {
		t.Errorf("external data of 100 MiB: %s, want %s", got, want)
	}
}

// ONNX Runtime does not compute a constant beyond the bound while it loads a model, unless the
// configuration allows it.
func TestFoldingIsBounded(t *testing.T) {
	t.Parallel()
	const elements = 20 << 20 // 80 MiB
	g := build.NewGraph("unfolds")
	x := g.Input("x", onnx.Float, onnx.Fixed(1))
	large := g.Node("Expand", []string{g.Floats("one", []float32{1}, 1), g.Int64s("shape", []int64{elements}, 1)})
	g.OutputAs("y", g.Node("Add", []string{x, large}), onnx.Float, onnx.Fixed(elements))
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := g.Model().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	for text, unfolded := range map[string]bool{
		"": true,
		`parameters { key: "` + foldingKey + `" value { string_value: "100000000" } }`: false,
	} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o := boundFolding(ort.SessionOptions{OptimizedModelPath: filepath.Join(t.TempDir(), "optimized.onnx")}, c, path)
		orttest.Open(t, path, o)
		optimized, err := onnx.Read(o.OptimizedModelPath)
		if err != nil {
			t.Fatal(err)
		}
		isExpand := func(n *onnxpb.NodeProto) bool { return n.GetOpType() == "Expand" }
		if got := slices.ContainsFunc(optimized.Nodes(), isExpand); got != unfolded {
			t.Errorf("%q: the node is left: %t, want %t", text, got, unfolded)
		}
	}
}
