package float16_test

import (
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/float16"
	"tuner/model/onnx/rewrite/rewritetest"
	"tuner/model/onnx/shapes"
)

// halves returns the bits of an fp16 initializer.
func halves(t *testing.T, m *onnx.Model, name string) []uint16 {
	t.Helper()
	tensor := m.Initializer(name)
	if onnx.DataType(tensor.GetDataType()) != onnx.Float16 || tensor.RawData == nil {
		t.Fatalf("%q is no FLOAT16 initializer with raw data", name)
	}
	values := make([]uint16, len(tensor.RawData)/2)
	for i := range values {
		values[i] = binary.LittleEndian.Uint16(tensor.RawData[2*i:])
	}
	return values
}

// converted returns the bits of converted weights.
func converted(t *testing.T, values []float32) ([]uint16, rewrite.Summary) {
	t.Helper()
	m := overflowing(func(g *build.Graph, x string) string {
		return g.Node("Mul", []string{x, g.Floats("w", values, int64(len(values)))})
	}, 1)
	half, summary := toFloat16(t, m, float16.Options{})
	return halves(t, half, "w"), summary
}

// single converts an fp16 number: sign, 5 bits of exponent with bias 15, 10 bits of fraction.
func single(h uint16) float32 {
	fraction, exponent := float64(h&0x3ff), int(h>>10&0x1f)
	value := math.Ldexp(1+fraction/1024, exponent-15)
	switch {
	case exponent == 0:
		value = math.Ldexp(fraction/1024, -14)
	case exponent == 31 && fraction == 0:
		value = math.Inf(1)
	case exponent == 31:
		value = math.NaN()
	}
	if h&0x8000 != 0 {
		value = -value
	}
	return float32(value)
}

// Every fp16 number is converted to itself. A value half-way between two numbers is rounded to the
// one whose last bit is 0.
func TestFloat16RoundsToNearestEven(t *testing.T) {
	t.Parallel()
	var values []float32
	var want []uint16
	for bits := range uint16(0x7c00) { // all finite non-negative numbers
		values, want = append(values, single(bits), -single(bits)), append(want, bits, bits|0x8000)
		if bits == 0 || bits == 0x7bff {
			continue // another test covers the half-way value above 0; the largest number has none
		}
		// exact, since it needs only one more bit
		middle := float32((float64(single(bits)) + float64(single(bits+1))) / 2)
		even := bits + bits&1
		values, want = append(values, middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, 1e9)), append(want, even, bits, bits+1)
	}
	if got, _ := converted(t, values); !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v became %#04x, want %#04x", values[i], got[i], want[i])
			}
		}
	}
}

func TestFloat16ExtremeValues(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	got, summary := converted(t, []float32{65504, 65519, 65520, -3.4e38, inf, -inf, 1e-12, -1e-45, 0, float32(math.Copysign(0, -1))})
	want := []uint16{0x7bff, 0x7bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 1, 0x8001, 0, 0x8000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// 65519, 65520 and -3.4e38 exceed 65504. Infinity stays infinity.
	if diff := cmp.Diff([]string{`the constant "w" had 3 values beyond ±65504, the largest number of fp16; each became that number`}, summary.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestFloat16RefusesNaN(t *testing.T) {
	t.Parallel()
	m := overflowing(func(g *build.Graph, x string) string {
		return g.Node("Mul", []string{x, g.Floats("w", []float32{1, float32(math.NaN())}, 2)})
	}, 2)
	_, _, err := float16.Convert(m, float16.Options{})
	want := `cannot convert the model to fp16: its weight "w" holds NaN (element 1 of 2); export the model again from a sound checkpoint`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// topOfTwo makes a model with nodes that stay in fp32 by default: TopK, and Max, which shares its
// weight with a Mul.
func topOfTwo() *onnx.Model {
	g := build.NewGraph("top")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	w := g.Floats("w", []float32{1, 2, 3, 4}, 4)
	a := g.Node("Mul", []string{x, w})
	top := g.Nodes("TopK", 2, []string{a, g.Int64s("k", []int64{2}, 1)})
	most := g.Node("Max", []string{a, w})
	g.OutputAs("y", g.Node("Add", []string{top[0], top[0]}), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(2))
	g.OutputAs("z", most, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	g.OutputAs("i", top[1], onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(2))
	return g.Model()
}

// One Cast serves both nodes that stay in fp32. A weight that both kinds of nodes need exists
// twice. Inputs and outputs have the requested type under their own names.
func TestFloat16Wiring(t *testing.T) {
	t.Parallel()
	m := topOfTwo()
	before := rewritetest.Digest(t, m)
	check := func(keep bool, wantInterfaces, want []string) {
		t.Helper()
		half, summary := toFloat16(t, m, float16.Options{KeepIO: keep})
		if diff := cmp.Diff(want, rewritetest.Wiring(half)); diff != "" {
			t.Errorf("keep %v: nodes (-want +got):\n%s", keep, diff)
		}
		if diff := cmp.Diff(wantInterfaces, rewritetest.Interfaces(half)); diff != "" {
			t.Errorf("keep %v: interfaces (-want +got):\n%s", keep, diff)
		}
		if diff := cmp.Diff([]float32{1, 2, 3, 4}, rewritetest.Floats(t, half, "w_fp32")); diff != "" {
			t.Errorf("keep %v: the fp32 weight (-want +got):\n%s", keep, diff)
		}
		// 1, 2, 1.5·2, 4
		if diff := cmp.Diff([]uint16{0x3c00, 0x4000, 0x4200, 0x4400}, halves(t, half, "w")); diff != "" {
			t.Errorf("keep %v: the fp16 weight (-want +got):\n%s", keep, diff)
		}
		reason := "fp16 spoils its operator's results, or runtimes do not have it in fp16"
		wantSummary := rewrite.Summary{
			Converted: []string{"node_Mul_0", "node_Add_0", "node_Identity_0", "node_Identity_1"},
			Kept:      []rewrite.Kept{{Node: "node_TopK_0", Op: "TopK", Reason: reason}, {Node: "node_Max_0", Op: "Max", Reason: reason}},
		}
		if diff := cmp.Diff(wantSummary, summary); diff != "" {
			t.Errorf("keep %v: summary (-want +got):\n%s", keep, diff)
		}
	}
	check(false, []string{"x FLOAT16[batch,4]", "y FLOAT16[batch,2]", "z FLOAT16[batch,4]", "i INT64[batch,2]"}, []string{
		"Mul_0 = Mul(x, w)",
		"Mul_0_fp32 = Cast(Mul_0)",
		"TopK_0_0, TopK_0_1 = TopK(Mul_0_fp32, k)",
		"Max_0 = Max(Mul_0_fp32, w_fp32)",
		"TopK_0_0_fp16 = Cast(TopK_0_0)",
		"Add_0 = Add(TopK_0_0_fp16, TopK_0_0_fp16)",
		"y = Identity(Add_0)",
		"Max_0_fp16 = Cast(Max_0)",
		"z = Identity(Max_0_fp16)",
		"i = Identity(TopK_0_1)",
	})
	check(true, []string{"x FLOAT[batch,4]", "y FLOAT[batch,2]", "z FLOAT[batch,4]", "i INT64[batch,2]"}, []string{
		"x_fp16_cut = Clip(x, fp16_lowest, fp16_highest)",
		"x_fp16 = Cast(x_fp16_cut)",
		"Mul_0 = Mul(x_fp16, w)",
		"Mul_0_fp32 = Cast(Mul_0)",
		"TopK_0_0, TopK_0_1 = TopK(Mul_0_fp32, k)",
		"Max_0 = Max(Mul_0_fp32, w_fp32)",
		"TopK_0_0_fp16 = Cast(TopK_0_0)",
		"Add_0 = Add(TopK_0_0_fp16, TopK_0_0_fp16)",
		"y_fp16 = Identity(Add_0)",
		"Max_0_fp16 = Cast(Max_0)",
		"z_fp16 = Identity(Max_0_fp16)",
		"i = Identity(TopK_0_1)",
		"y = Cast(y_fp16)",
		"z = Cast(z_fp16)",
	})
	if rewritetest.Digest(t, m) != before {
		t.Error("the source was changed")
	}
}

// Only the requested nodes stay in fp32.
func TestFloat16Keeps(t *testing.T) {
	t.Parallel()
	m := topOfTwo()
	_, summary := toFloat16(t, m, float16.Options{BlockOps: []string{"Add"}, Keep: []string{"node_Identity_0"}})
	var got []string
	for _, k := range summary.Kept {
		got = append(got, k.Node)
	}
	if diff := cmp.Diff([]string{"node_Add_0", "node_Identity_0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, _, err := float16.Convert(m, float16.Options{Keep: []string{"misspelt"}})
	if err == nil || !strings.Contains(err.Error(), `it has no nodes ["misspelt"]`) {
		t.Errorf("got %v", err)
	}
}

// A second conversion converts nothing. The same model gives the same bytes.
func TestFloat16Twice(t *testing.T) {
	t.Parallel()
	for name, m := range rewritetest.Samples() {
		for _, keep := range []bool{false, true} {
			o := float16.Options{KeepIO: keep}
			half, _, err := float16.Convert(m, o)
			if errors.Is(err, rewrite.ErrNothing) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			again, _ := toFloat16(t, m, o)
			if rewritetest.Digest(t, half) != rewritetest.Digest(t, again) {
				t.Errorf("%s, keep %v: two conversions differ", name, keep)
			}
			for _, keepThen := range []bool{false, true} {
				if _, summary, err := float16.Convert(half, float16.Options{KeepIO: keepThen}); !errors.Is(err, rewrite.ErrNothing) {
					t.Errorf("%s, keep %v, then %v: converted again %q, error %v", name, keep, keepThen, summary.Converted, err)
				}
			}
		}
	}
}

func TestFloat16FindsNothing(t *testing.T) {
	t.Parallel()
	check := func(m *onnx.Model, want string) {
		t.Helper()
		if _, _, err := float16.Convert(m, float16.Options{}); !errors.Is(err, rewrite.ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check(build.Simple(), "none of its nodes computes in fp32")
	g := build.NewGraph("ranges")
	x := g.Input("x", onnx.Float, onnx.Symbol("n"))
	g.Output(g.Node("CumSum", []string{x, g.Int64s("axis", []int64{0})}), onnx.Float, onnx.Symbol("n"))
	check(g.Model(), `its 1 nodes that compute in fp32 must stay in fp32; the first is "node_CumSum_0" (CumSum):`)
}

// typesOf returns the types of named values. For subgraphs, the name of the graph comes first.
func typesOf(t *testing.T, m *onnx.Model, names ...string) []string {
	t.Helper()
	graphs, err := shapes.All(m)
	if err != nil {
		t.Fatal(err)
	}
	types := make([]string, len(names))
	for i, name := range names {
		graph, value, inside := strings.Cut(name, "/")
		for g, infos := range graphs {
			if inside == (g.GetName() == graph) {
				if info, ok := infos[strings.TrimPrefix(name, graph+"/")]; ok && (inside || value == "") {
					types[i] = info.Type.String()
				}
			}
		}
	}
	return types
}

// A loop computes in fp16 inside. A loop that stays in fp32 uses the fp32 form of captured values.
func TestFloat16Subgraphs(t *testing.T) {
	t.Parallel()
	m := build.ConstantTime(3)
	half, summary := toFloat16(t, m, float16.Options{})
	want := []string{"FLOAT16", "FLOAT16", "FLOAT16", "FLOAT16"}
	if diff := cmp.Diff(want, typesOf(t, half, "body/matrix", "body/rotation", "body/matrix_next", "OUTPUT")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(summary.Converted, "node_Loop_0/node_MatMul_0") {
		t.Errorf("the summary does not name the product inside: %q", summary.Converted)
	}
	pinned, _ := toFloat16(t, m, float16.Options{Keep: []string{"node_Loop_0"}})
	want = []string{"FLOAT", "FLOAT", "FLOAT", "FLOAT16"}
	if diff := cmp.Diff(want, typesOf(t, pinned, "body/matrix", "body/rotation", "body/matrix_next", "OUTPUT")); diff != "" {
		t.Errorf("with the loop kept (-want +got):\n%s", diff)
	}
}

// branching makes an If whose branches capture the product of x and w. In one branch a node that
// stays in fp32 captures it.
func branching() *onnx.Model {
	g := build.NewGraph("if")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	a := g.Node("Mul", []string{x, g.Floats("w", []float32{1, 2, 3, 4}, 4)})
	one, two := g.Subgraph("one"), g.Subgraph("two")
	b := one.Node("CumSum", []string{a, one.Int64s("axis", []int64{1})})
	one.Output(b, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	c := two.Node("Add", []string{a, two.Floats("bias", []float32{5}, 1)})
	two.Output(c, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	y := g.Node("If", []string{g.Input("go", onnx.Bool)}, build.GraphAttribute("then_branch", one), build.GraphAttribute("else_branch", two))
	g.OutputAs("y", y, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	return g.Model()
}

// In a branch, nodes that stay in fp32 have Casts around them. The Cast of a captured value is
// before the If, so that every branch can use it.
func TestFloat16Branches(t *testing.T) {
	t.Parallel()
	half, _ := toFloat16(t, branching(), float16.Options{})
	want := []string{"Mul_0 = Mul(x, w)", "Mul_0_fp32 = Cast(Mul_0)", "If_0 = If(go)", "y = Identity(If_0)"}
	if diff := cmp.Diff(want, rewritetest.Wiring(half)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var inside []string
	for _, g := range onnx.Subgraphs(half.Nodes()[2]) {
		inside = append(inside, rewritetest.Wiring(onnx.New(&onnxpb.ModelProto{Graph: g}))...)
		inside = append(inside, "return "+g.GetOutput()[0].GetName())
	}
	want = []string{
		"CumSum_0 = CumSum(Mul_0_fp32, axis)",
		"CumSum_0_fp16_cut = Clip(CumSum_0, fp16_lowest, fp16_highest)",
		"CumSum_0_fp16 = Cast(CumSum_0_fp16_cut)",
		"return CumSum_0_fp16",
		"Add_0 = Add(Mul_0, bias)",
		"return Add_0",
	}
	if diff := cmp.Diff(want, inside); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	kept, _ := toFloat16(t, branching(), float16.Options{Keep: []string{"node_If_0"}})
	for _, g := range onnx.Subgraphs(kept.Nodes()[2]) {
		if got := g.GetNode()[0].GetInput()[0]; got != "Mul_0_fp32" || len(g.GetNode()) != 1 {
			t.Errorf("%s of the kept If takes %q, want the fp32 form, and has %d nodes", g.GetName(), got, len(g.GetNode()))
		}
	}
}

// Inputs that the operator's schema requires to be FLOAT do not change, such as the factors of
// Resize.
func TestFloat16KeepsWhatSchemasFix(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("resize")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Fixed(4), onnx.Fixed(4))
	y := g.Node("Resize", []string{x, "", g.Floats("scales", []float32{1, 1, 2, 2}, 4)})
	g.OutputAs("y", y, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Fixed(8), onnx.Fixed(8))
	half, _ := toFloat16(t, g.Model(), float16.Options{})
	if diff := cmp.Diff([]string{"FLOAT", "FLOAT16"}, typesOf(t, half, "scales", "Resize_0")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Positions, and their sines and cosines, are computed in fp32, since fp16 cannot represent 2049. A
// mask is not a position.
func TestFloat16Positions(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("positions")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Symbol("s"), onnx.Fixed(4))
	positions := g.Node("Cast", []string{g.Input("positions", onnx.Int64, onnx.Symbol("s"), onnx.Fixed(1))}, build.IntAttribute("to", 1))
	angles := g.Node("MatMul", []string{positions, g.Floats("frequencies", []float32{1, .1, .01, .001}, 1, 4)})
	turned := g.Node("Mul", []string{x, g.Node("Cos", []string{angles})})
	mask := g.Node("Cast", []string{g.Input("mask", onnx.Int64, onnx.Symbol("s"), onnx.Fixed(1))}, build.IntAttribute("to", 1))
	bias := g.Node("Mul", []string{g.Node("Sub", []string{g.Floats("one", []float32{1}), mask}), g.Floats("lowest", []float32{-1e30})})
	g.OutputAs("y", g.Node("Add", []string{turned, bias}), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("s"), onnx.Fixed(4))
	half, summary := toFloat16(t, g.Model(), float16.Options{})
	want := []string{"FLOAT", "FLOAT", "FLOAT", "FLOAT16", "FLOAT16", "FLOAT16"}
	if diff := cmp.Diff(want, typesOf(t, half, positions, angles, "Cos_0", mask, bias, turned)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	reason := "it computes with whole numbers, and fp16 has no odd ones beyond 2048"
	wantKept := []rewrite.Kept{{Node: "node_MatMul_0", Op: "MatMul", Reason: reason}, {Node: "node_Cos_0", Op: "Cos", Reason: reason}}
	if diff := cmp.Diff(wantKept, summary.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// An unknown operator stays in fp32. So does a node with values of unknown type.
func TestFloat16LeavesTheUnknown(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("unknown")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	a := g.Node("Mul", []string{x, g.Floats("w", []float32{2}, 1)})
	strange := g.Node("Strange", []string{a})
	after := g.Node("Relu", []string{strange})
	g.Output(after, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	m := rewritetest.Changed(g.Model(), func(p *onnxpb.ModelProto) { p.Graph.Node[1].Domain = proto.String("com.example") })
	half, summary := toFloat16(t, m, float16.Options{})
	want := []string{"Mul_0 = Mul(x, w)", "Mul_0_fp32 = Cast(Mul_0)", "Strange_0 = Strange(Mul_0_fp32)", "Relu_0_fp32 = Relu(Strange_0)",
		"Relu_0_cut = Clip(Relu_0_fp32, fp16_lowest, fp16_highest)", "Relu_0 = Cast(Relu_0_cut)"}
	if diff := cmp.Diff(want, rewritetest.Wiring(half)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	reason := "the types of its values are not known"
	wantKept := []rewrite.Kept{{Node: "node_Strange_0", Op: "Strange", Reason: reason}, {Node: "node_Relu_0", Op: "Relu", Reason: reason}}
	if diff := cmp.Diff(wantKept, summary.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// A Scatter that adds to existing values stays in fp32. One that overwrites them does not.
func TestFloat16Scatter(t *testing.T) {
	t.Parallel()
	check := func(reduction string, want ...string) {
		t.Helper()
		m := overflowing(func(g *build.Graph, x string) string {
			how := &onnxpb.AttributeProto{Name: proto.String("reduction"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(reduction)}
			index := g.Int64s("index", []int64{0, 0}, 1, 2)
			x = g.Node("Mul", []string{x, g.Floats("w", []float32{2}, 1)})
			return g.Node("ScatterND", []string{x, index, g.Floats("update", []float32{1}, 1)}, how)
		}, 4)
		_, summary := toFloat16(t, m, float16.Options{})
		var kept []string
		for _, k := range summary.Kept {
			kept = append(kept, k.Node)
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("%s: kept (-want +got):\n%s", reduction, diff)
		}
	}
	check("add", "node_ScatterND_0")
	check("none")
}

// External weights are read. In the model they have half the size.
func TestFloat16ReadsExternalData(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := build.MLP().Write(path, 1); err != nil { // a limit of one byte moves all larger tensors outside
		t.Fatal(err)
	}
	m, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	outside, _ := toFloat16(t, m, float16.Options{})
	inside, _ := toFloat16(t, build.MLP(), float16.Options{})
	if rewritetest.Digest(t, outside) != rewritetest.Digest(t, inside) {
		t.Error("with external data it becomes another model")
	}
}

// ConstantOfShape has the default value FLOAT 0. A value attribute makes its result fp16.
func TestFloat16ConstantOfShape(t *testing.T) {
	t.Parallel()
	m := overflowing(func(g *build.Graph, x string) string {
		return g.Node("Add", []string{x, g.Node("ConstantOfShape", []string{g.Node("Shape", []string{x})})})
	}, 4)
	half, _ := toFloat16(t, m, float16.Options{})
	value := onnx.Attribute(half.Nodes()[1], "value").GetT()
	if onnx.DataType(value.GetDataType()) != onnx.Float16 || !slices.Equal(value.GetRawData(), []byte{0, 0}) {
		t.Errorf("the value is %v", value)
	}
}

// A sparse constant stays in fp32; the rest of the model is converted.
func TestFloat16KeepsSparseConstants(t *testing.T) {
	t.Parallel()
	sparse := &onnxpb.SparseTensorProto{Dims: []int64{4},
		Values:  &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{1}, FloatData: []float32{2}},
		Indices: &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Int64)), Dims: []int64{1}, Int64Data: []int64{3}}}
	m := overflowing(func(g *build.Graph, x string) string {
		value := &onnxpb.AttributeProto{Name: proto.String("sparse_value"), Type: onnxpb.AttributeProto_SPARSE_TENSOR.Enum(), SparseTensor: sparse}
		return g.Node("Add", []string{x, g.Node("Constant", nil, value)})
	}, 4)
	half, summary := toFloat16(t, m, float16.Options{})
	want := []rewrite.Kept{{Node: "node_Constant_0", Op: "Constant", Reason: "its value is a sparse tensor"}}
	if diff := cmp.Diff(want, summary.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(summary.Converted) == 0 || onnx.Attribute(half.Nodes()[0], "sparse_value") == nil && onnx.Attribute(half.Nodes()[1], "sparse_value") == nil {
		t.Errorf("converted %v; nodes %v", summary.Converted, rewritetest.Wiring(half))
	}
}

// A cast from bfloat16, which has the range of fp32, is cut to fp16's range.
func TestFloat16CutsCastsFromBFloat16(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("wide")
	x := g.Input("x", onnx.BFloat16, onnx.Symbol("batch"), onnx.Fixed(4))
	float := g.Node("Cast", []string{x}, build.IntAttribute("to", int64(onnx.Float)))
	g.OutputAs("y", g.Node("Mul", []string{float, g.Floats("w", []float32{0.5}, 1)}), onnx.Float)
	half, _ := toFloat16(t, g.Model(), float16.Options{})
	if !slices.Contains(rewritetest.Operators(half), "Clip") {
		t.Errorf("the cast is not cut to fp16's range: %v", rewritetest.Wiring(half))
	}
}
