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
	"tuner/model/onnx/extent"
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
	o := boundFolding(ort.SessionOptions{}, &modelconfig.Config{}, filepath.Join(dir, "model.onnx"), extent.Constants{})
	if got, want := o.Entries[foldingKey], fmt.Sprint(400<<20+40); got != want {
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
		if left := operators(t, path, c); slices.Contains(left, "Expand") != unfolded {
			t.Errorf("%q: left are %v, is one of them Expand: want %t", text, left, unfolded)
		}
	}
}

// operators returns the operators of a model that ONNX Runtime has not computed while it loaded it.
func operators(t *testing.T, path string, c *modelconfig.Config) []string {
	t.Helper()
	constants, err := extent.Check(path)
	if err != nil {
		t.Fatal(err)
	}
	o := boundFolding(ort.SessionOptions{OptimizedModelPath: filepath.Join(t.TempDir(), "optimized.onnx")}, c, path, constants)
	orttest.Open(t, path, o)
	optimized, err := onnx.Read(o.OptimizedModelPath)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, n := range optimized.Nodes() {
		all = append(all, n.GetOpType())
	}
	return all
}

// A bound of the configuration does not lift the one of the work.
func TestFoldingWorkIsBoundedForEveryConfiguration(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("works")
	zeros := func(name string, shape ...int64) string {
		return g.Node("ConstantOfShape", []string{g.Int64s(name, shape, int64(len(shape)))})
	}
	image := g.Node("Conv", []string{zeros("s", 1, 1, 34, 34), zeros("w", 1, 1, 3, 3)}) // short if it is computed
	flat := g.Node("Reshape", []string{image, g.Int64s("flat", []int64{-1}, 1)})
	g.OutputAs("y", g.Node("Add", []string{g.Input("x", onnx.Float, onnx.Fixed(1)), flat}), onnx.Float, onnx.Symbol("n"))
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := g.Model().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	for bound, want := range map[string]bool{"100000": false, "1000000000": true, "0": true, "": true, "99999999999999999999": true, "-1": true} {
		c, err := modelconfig.Parse("config.pbtxt", []byte(`parameters { key: "`+foldingKey+`" value { string_value: "`+bound+`" } }`))
		if err != nil {
			t.Fatal(err)
		}
		constants, err := extent.Check(path)
		if err != nil {
			t.Fatal(err)
		}
		o := boundFolding(ort.SessionOptions{}, c, path, constants)
		if got := o.Entries[disabledKey] == foldingName; got != want || o.Entries[foldingKey] != bound {
			t.Errorf("%q: %v, is folding off: want %t", bound, o.Entries, want)
		}
		if bound == "1000000000" {
			if left := operators(t, path, c); !slices.Contains(left, "Conv") {
				t.Errorf("left are %v, want Conv to be one of them", left)
			}
		}
	}
}

// The sum of all constants is bounded, and what they take to compute. ONNX Runtime computes few
// small ones, and leaves the others to each run.
func TestFoldingOfManyIsBounded(t *testing.T) {
	t.Parallel()
	const elements = 15 << 20 // 60 MiB, which one constant may have
	zeros := func(g *build.Graph, name string, shape ...int64) string {
		return g.Node("ConstantOfShape", []string{g.Int64s(name, shape, int64(len(shape)))})
	}
	for name, tc := range map[string]struct {
		make func(g *build.Graph) []string // of shape (elements)
		want bool                          // they are left
		op   string
	}{
		"one": {func(g *build.Graph) []string { return []string{zeros(g, "s", elements)} }, false, "ConstantOfShape"},
		"small ones": {func(g *build.Graph) (all []string) {
			for i := range 100 {
				all = append(all, zeros(g, fmt.Sprint("s", i), 1))
			}
			return all
		}, false, "ConstantOfShape"},
		"20, together 1.2 GiB": {func(g *build.Graph) (all []string) {
			for i := range 20 {
				all = append(all, zeros(g, fmt.Sprint("s", i), elements))
			}
			return all
		}, true, "ConstantOfShape"},
		"a norm": {func(g *build.Graph) []string {
			return []string{g.Node("Flatten", []string{g.Node("ReduceL2", []string{zeros(g, "s", 1<<20)})})}
		}, false, "ReduceL2"},
		"a convolution": {func(g *build.Graph) []string {
			weights := zeros(g, "w", 1, 1, 3, 3)
			image := g.Node("Conv", []string{zeros(g, "s", 1, 1, 1026, 1026), weights})
			return []string{g.Node("Reshape", []string{image, g.Int64s("flat", []int64{-1}, 1)})}
		}, true, "Conv"},
	} {
		g := build.NewGraph("constants")
		sum := g.Input("x", onnx.Float, onnx.Fixed(1))
		for _, c := range tc.make(g) {
			sum = g.Node("Add", []string{sum, c})
		}
		g.OutputAs("y", sum, onnx.Float, onnx.Symbol("n"))
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := g.Model().Write(path, 0); err != nil {
			t.Fatal(err)
		}
		if left := operators(t, path, &modelconfig.Config{}); slices.Contains(left, tc.op) != tc.want {
			t.Errorf("%s: left are %v, is one of them %s: want %t", name, left, tc.op, tc.want)
		}
	}
}
