package float16_test

import (
	"errors"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/float16"
	"tuner/model/onnx/rewrite/rewritetest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

func toFloat16(t *testing.T, m *onnx.Model, o float16.Options) (*onnx.Model, rewrite.Summary) {
	t.Helper()
	half, summary, err := float16.Convert(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return half, summary
}

// Every sample model in fp16 loads and runs, and computes about the same, with both types of inputs
// and outputs.
func TestFloat16Runs(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for name, m := range rewritetest.Samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := orttest.InferFloats(t, orttest.LoadOneThread(t, m), orttest.Random(t, m, 3, 1))
			for _, keep := range []bool{false, true} {
				half, _, err := float16.Convert(m, float16.Options{KeepIO: keep})
				if errors.Is(err, rewrite.ErrNothing) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got := orttest.InferFloats(t, orttest.LoadOneThread(t, half), orttest.Random(t, half, 3, 1)) // the same numbers; rounded if the input is fp16
				orttest.CheckAgreement(t, want, got, 0.999)
			}
		})
	}
}

// OpenVINO runs fp16 models too.
func TestOpenVINORunsFloat16(t *testing.T) {
	t.Parallel()
	orttest.OpenVINO(t)
	models := rewritetest.Samples()
	delete(models, "constant_time") // OpenVINO has no Loop in fp32 either
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			half, _, err := float16.Convert(m, float16.Options{KeepIO: true})
			if errors.Is(err, rewrite.ErrNothing) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			orttest.CheckConverted(t, m, orttest.LoadOpenVINO(t, half), 0.999)
		})
	}
}

// MiniLM's embeddings of real sentences hardly change, and the file has half the size.
func TestFloat16OfMiniLM(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	m := orttest.ReadMiniLM(t)
	in := orttest.Sentences(t, "../../../../testdata/minilm/reference.json")
	want := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["embedding"]
	const width = 384
	for _, keep := range []bool{false, true} {
		half, _ := toFloat16(t, m, float16.Options{KeepIO: keep})
		got := orttest.InferFloats(t, orttest.LoadOneThread(t, half), in)["embedding"]
		for i := 0; i < len(want); i += width {
			if c := orttest.Cosine(want[i:i+width], got[i:i+width]); !(c >= 0.9999) {
				t.Errorf("keep %v: sentence %d: cosine %v", keep, i/width, c)
			}
		}
	}
}

// Both branches of an If run in fp16, also if the If stays in fp32.
func TestFloat16RunsBranches(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for _, keep := range [][]string{nil, {"node_If_0"}} {
		half, _ := toFloat16(t, branching(), float16.Options{KeepIO: true, Keep: keep})
		s := orttest.LoadOneThread(t, half)
		for branch, want := range [][]float32{{6, 7, 8, 9}, {1, 3, 6, 10}} { // (1, 2, 3, 4) + 5; its running sum
			in := map[string]inputs.Tensor{
				"x":  orttest.FloatTensor([]float32{1, 1, 1, 1}, 1, 4),
				"go": {Type: onnx.Bool, Data: []byte{byte(branch)}},
			}
			if diff := cmp.Diff(want, orttest.InferFloats(t, s, in)["y"]); diff != "" {
				t.Errorf("kept %q, branch %d (-want +got):\n%s", keep, branch, diff)
			}
		}
	}
}

// The activations fit into fp16, but their squares do not. The cases are a layer normalisation in
// single operators, a sum of squares, and a masked softmax. The softmax has the mask of the
// frameworks, which is the smallest FLOAT.
func TestFloat16DoesNotOverflow(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	const width = 64
	row := make([]float32, width)
	for i := range row {
		row[i] = float32(1000*math.Sin(float64(i))) + 300 // squares of up to 1.7e6
	}
	check := func(name string, build func(g *build.Graph, x string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := overflowing(build, width)
			half, _ := toFloat16(t, m, float16.Options{KeepIO: true})
			in := map[string]inputs.Tensor{"x": orttest.FloatTensor(row, 1, width)}
			want, got := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in)["y"], orttest.InferFloats(t, orttest.LoadOneThread(t, half), in)["y"]
			for i := range want {
				if d := math.Abs(float64(want[i] - got[i])); !(d <= 2e-3*math.Max(1, math.Abs(float64(want[i])))) {
					t.Fatalf("element %d: %v became %v", i, want[i], got[i])
				}
			}
		})
	}
	scaled := func(g *build.Graph, x string) string { // has something to convert
		return g.Node("Mul", []string{x, g.Floats("gamma", []float32{0.5}, 1)})
	}
	check("layer normalisation", func(g *build.Graph, x string) string {
		mean := g.Node("ReduceMean", []string{x}, build.IntsAttribute("axes", -1))
		centred := g.Node("Sub", []string{x, mean})
		squares := g.Node("Pow", []string{centred, g.Floats("two", []float32{2})})
		variance := g.Node("ReduceMean", []string{squares}, build.IntsAttribute("axes", -1))
		deviation := g.Node("Sqrt", []string{g.Node("Add", []string{variance, g.Floats("epsilon", []float32{1e-12})})})
		return scaled(g, g.Node("Div", []string{centred, deviation}))
	})
	check("root mean square", func(g *build.Graph, x string) string {
		squares := g.Node("Mul", []string{x, x})
		mean := g.Node("ReduceMean", []string{squares}, build.IntsAttribute("axes", -1))
		root := g.Node("Sqrt", []string{g.Node("Add", []string{mean, g.Floats("epsilon", []float32{1e-6})})})
		return scaled(g, g.Node("Mul", []string{x, g.Node("Reciprocal", []string{root})}))
	})
	check("unit length", func(g *build.Graph, x string) string {
		length := g.Node("ReduceL2", []string{x}, build.IntsAttribute("axes", -1))
		least := g.Node("Clip", []string{length, g.Floats("least", []float32{1e-12})})
		return scaled(g, g.Node("Div", []string{x, least}))
	})
	check("masked softmax", func(g *build.Graph, x string) string {
		mask := g.Floats("mask", append(make([]float32, width-2), -math.MaxFloat32, -math.MaxFloat32), 1, width)
		return scaled(g, g.Node("Softmax", []string{g.Node("Add", []string{x, mask})}))
	})
	check("sum", func(g *build.Graph, x string) string { // 64·300 and 64·300·10 exceed fp16's range before the division
		ten := g.Node("Mul", []string{x, g.Floats("ten", []float32{10}, 1)})
		sum := g.Node("ReduceSum", []string{ten, g.Int64s("axis", []int64{1}, 1)})
		return g.Node("Div", []string{sum, g.Floats("count", []float32{width})})
	})
}

// overflowing makes a model x FLOAT[batch, width] → y.
func overflowing(make func(g *build.Graph, x string) string, width int64) *onnx.Model {
	g := build.NewGraph("overflowing")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(width))
	g.OutputAs("y", make(g, x), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("width"))
	return g.Model()
}

// Request values beyond fp16's range are clipped to its limits, and do not become infinite.
func TestFloat16CutsInputs(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	for _, opset := range []int64{10, 17} { // Clip's limits were attributes, and later inputs
		m := rewritetest.Changed(overflowing(func(g *build.Graph, x string) string {
			return g.Node("Mul", []string{x, g.Floats("half", []float32{0.5}, 1)})
		}, 4), func(p *onnxpb.ModelProto) { p.OpsetImport[0].Version = &opset })
		half, _ := toFloat16(t, m, float16.Options{KeepIO: true})
		got := orttest.InferFloats(t, orttest.LoadOneThread(t, half), map[string]inputs.Tensor{"x": orttest.FloatTensor([]float32{1e6, -1e30, 3, float32(math.Inf(1))}, 1, 4)})["y"]
		for i, want := range []float32{32752, -32752, 1.5, 32752} { // 65504/2
			if got[i] != want {
				t.Errorf("opset %d: element %d: got %v, want %v", opset, i, got[i], want)
			}
		}
	}
}
