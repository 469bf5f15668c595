package recipe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// layered makes a model of convolutions and matrix products, in random order, with activations
// between them.
func layered(r *rand.Rand, convolutions, products int) *onnx.Model {
	g := build.NewGraph("layered")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(2), onnx.Fixed(4), onnx.Fixed(4))
	weights := func(n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			w[i] = r.Float32() - 0.5
		}
		return w
	}
	isConvolution := append(slices.Repeat([]bool{true}, convolutions), slices.Repeat([]bool{false}, products)...)
	r.Shuffle(len(isConvolution), func(i, k int) { isConvolution[i], isConvolution[k] = isConvolution[k], isConvolution[i] })
	for i, is := range isConvolution {
		if is {
			x = g.Node("Conv", []string{x, g.Floats(fmt.Sprintf("w%d", i), weights(4), 2, 2, 1, 1)})
		} else {
			x = g.Node("MatMul", []string{x, g.Floats(fmt.Sprintf("w%d", i), weights(16), 4, 4)})
		}
		x = g.Node("Relu", []string{x})
	}
	g.OutputAs("y", g.Node("Neg", []string{x}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(2), onnx.Fixed(4), onnx.Fixed(4))
	return g.Model()
}

// On CPUs, int8 converts the products, and int8_static both kinds. int8 is tried where it converts
// at least a tenth, int8_static where int8 converts less than half. What is left has a reason. Each
// precision that pays is either tried or left.
func TestChoose(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for convolutions := range 20 {
		for products := range 4 {
			c := Choose(layered(r, convolutions, products), false)
			want := []string{Original}
			if products > 0 && 10*products >= convolutions+products {
				want = append(want, Int8)
			}
			if convolutions > products {
				want = append(want, "int8_static")
			}
			if diff := cmp.Diff(want, c.Names); diff != "" {
				t.Errorf("%d convolutions, %d products (-want +got):\n%s", convolutions, products, diff)
			}
			all := slices.Clone(c.Names)
			for _, l := range c.Left {
				all = append(all, l.Name)
				if l.Reason == "" {
					t.Errorf("%d convolutions, %d products: %s is left without a reason", convolutions, products, l.Name)
				}
			}
			slices.Sort(all)
			if diff := cmp.Diff(slices.Sorted(slices.Values(Usual(false))), all); diff != "" {
				t.Errorf("%d convolutions, %d products: tried and left (-want +got):\n%s", convolutions, products, diff)
			}
		}
	}
}

// Where one precision converts nothing, the one that converts most is named.
func TestInstead(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		convolutions, products int
		of, want               string
		nodes                  int
	}{
		{5, 0, Int8, "int8_static", 5},
		{5, 2, "int8_static", Int8, 2}, // the products alone
		{0, 0, Int8, "", 0},
	} {
		if name, nodes := Instead(layered(r, c.convolutions, c.products), c.of); name != c.want || nodes != c.nodes {
			t.Errorf("%+v: %s converts %d", c, name, nodes)
		}
	}
}

// What is tried can be made: its rewrite converts the nodes that Layers names.
func TestChosenCanBeMade(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*onnx.Model{"mlp": build.MLP(), "resnet": build.ResNet(), "mobilenet": build.MobileNet()} {
		for _, precision := range Choose(m, false).Names {
			row, _ := Find(precision)
			if row.Layers == nil {
				continue
			}
			layers, err := row.Layers(m)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, precision, err)
			}
			_, summary, err := row.Convert(m, settingsFor(t, row, m))
			if diff := cmp.Diff(layers, summary.Converted); err != nil || diff != "" {
				t.Errorf("%s, %s: %v (-layers +converted):\n%s", name, precision, err, diff)
			}
		}
	}
}

func TestLeftSentences(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		convolutions, products int
		onGPU                  bool
		want                   string
	}{
		{3, 0, false, "int8 is not tried: it has no MatMul or Gemm with constant weights"},
		{1, 2, false, "int8_static is not tried: int8 converts 2 of its 3 layers, and needs no calibration"},
		{10, 1, false, "int8 is not tried: it converts 1 of the 11 layers that int8_static converts"},
		{9, 1, false, ""},
		{0, 0, false, "int8 is not tried: it has no MatMul or Gemm with constant weights\nint8_static is not tried: it has no Conv, MatMul or Gemm with constant weights"},
		{3, 0, true, ""}, // fp16 pays there, and changes the model as a whole
	} {
		var lines []string
		for _, l := range Choose(layered(r, c.convolutions, c.products), c.onGPU).Left {
			lines = append(lines, l.Sentence())
		}
		if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%d convolutions, %d products (-want +got):\n%s", c.convolutions, c.products, diff)
		}
	}
}
