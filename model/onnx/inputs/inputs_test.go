package inputs_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
)

func derive(t *testing.T, m *onnx.Model, o inputs.Options) map[string]inputs.Input {
	t.Helper()
	list, err := inputs.Derive(m, o)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]inputs.Input{}
	for _, in := range list {
		in.Reason = "" // for people; other tests check it
		byName[in.Name] = in
	}
	return byName
}

func TestDeriveSampleModels(t *testing.T) {
	t.Parallel()
	check := func(name string, m *onnx.Model, want ...inputs.Input) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			byName := map[string]inputs.Input{}
			for _, in := range want {
				byName[in.Name] = in
			}
			if diff := cmp.Diff(byName, derive(t, m, inputs.Options{})); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		})
	}
	uniform := func(name string, hi int64, dims ...int64) inputs.Input {
		return inputs.Input{Name: name, Type: onnx.Int64, Dims: dims, Batched: true, Distribution: inputs.Uniform,
			Range: inputs.Range{Lo: 0, Hi: hi}}
	}
	normal := func(name string, dims ...int64) inputs.Input {
		return inputs.Input{Name: name, Type: onnx.Float, Dims: dims, Batched: true, Distribution: inputs.Normal}
	}
	// The tables of the generated BERT have 1000 words and 2 token types.
	check("bertsquad", build.BertSquadLike(), uniform("input_names", 1000, 256), uniform("segment_ids", 2, 256),
		inputs.Input{Name: "input_mask", Type: onnx.Int64, Dims: []int64{256}, Batched: true, Distribution: inputs.Mask,
			Range: inputs.Range{Lo: 0, Hi: 2}})
	check("recommender", build.EmbeddingRecommender(), uniform("user", 500, 1), uniform("items", 2000, 20))
	check("mlp", build.MLP(), normal("INPUT", 64))
	check("cnn", build.CNN(0), normal("input", 3, 32, 32))
	fixed := normal("input", 1, 3, 32, 32)
	fixed.Batched = false
	check("cnn with fixed batch", build.CNN(1), fixed)
	check("constant time", build.ConstantTime(3), normal("INPUT", 16))
}

// reading makes a model whose only input is x, INT64[batch, 4]. body adds nodes that read x, and
// returns the output's value.
func reading(body func(g *build.Graph, x string) string) *onnx.Model {
	g := build.NewGraph("reading")
	x := g.Input("x", onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(4))
	g.OutputAs("y", body(g, x), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	return g.Model()
}

// checkReading checks the values derived for x from its uses in body.
func checkReading(t *testing.T, name string, distribution inputs.Distribution, lo, hi int64, body func(g *build.Graph, x string) string) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		in := derive(t, reading(body), inputs.Options{})["x"]
		if in.Distribution != distribution || in.Range != (inputs.Range{Lo: lo, Hi: hi}) {
			t.Errorf("got %v %v, want %v {%d %d}", in.Distribution, in.Range, distribution, lo, hi)
		}
	})
}

func node(g *build.Graph, op string, in ...string) string { return g.Node(op, in) }

func table(g *build.Graph) string { return g.Floats("table", make([]float32, 10*3), 10, 3) }

func cast(g *build.Graph, x string) string {
	return g.Node("Cast", []string{x}, build.IntAttribute("to", int64(onnx.Float)))
}

func TestDeriveFollowsIndices(t *testing.T) {
	t.Parallel()
	checkReading(t, "table's first axis", inputs.Uniform, 0, 10, func(g *build.Graph, x string) string {
		return node(g, "Gather", table(g), x)
	})
	checkReading(t, "table's last axis", inputs.Uniform, 0, 3, func(g *build.Graph, x string) string {
		columns := g.Node("Gather", []string{table(g), x}, build.IntAttribute("axis", -1)) // [10, batch, 4]
		return g.Node("Transpose", []string{columns}, build.IntsAttribute("perm", 1, 0, 2))
	})
	checkReading(t, "through shape changes", inputs.Uniform, 0, 10, func(g *build.Graph, x string) string {
		flat := node(g, "Reshape", node(g, "Identity", x), g.Int64s("flat", []int64{-1}, 1))
		return node(g, "Gather", table(g), flat)
	})
	// 0 ≤ x+2 < 10; for the column offsets 0 and 5: 0 ≤ x+0 and x+5 < 10.
	checkReading(t, "plus a constant", inputs.Uniform, -2, 8, func(g *build.Graph, x string) string {
		return node(g, "Gather", table(g), node(g, "Add", g.Int64s("two", []int64{2}), x))
	})
	checkReading(t, "minus a constant", inputs.Uniform, 2, 12, func(g *build.Graph, x string) string {
		return node(g, "Gather", table(g), node(g, "Sub", x, g.Int64s("two", []int64{2})))
	})
	checkReading(t, "plus column offsets", inputs.Uniform, 0, 5, func(g *build.Graph, x string) string {
		return node(g, "Gather", table(g), node(g, "Add", x, g.Int64s("offsets", []int64{0, 0, 0, 5}, 4)))
	})
	checkReading(t, "two tables: the smaller", inputs.Uniform, 0, 4, func(g *build.Graph, x string) string {
		small := g.Floats("small", make([]float32, 4*3), 4, 3)
		return node(g, "Add", node(g, "Gather", table(g), x), node(g, "Gather", small, x))
	})
	checkReading(t, "table that is converted first", inputs.Uniform, 0, 10, func(g *build.Graph, x string) string {
		return node(g, "Gather", g.Node("Cast", []string{table(g)}, build.IntAttribute("to", int64(onnx.Float))), x)
	})
	checkReading(t, "table of unknown size", inputs.Uniform, 0, 1, func(g *build.Graph, x string) string {
		return node(g, "Gather", node(g, "Shape", x), x)
	})
	checkReading(t, "one of the classes", inputs.Uniform, 0, 6, func(g *build.Graph, x string) string {
		return node(g, "OneHot", x, g.Int64s("depth", []int64{6}), g.Floats("values", []float32{0, 1}, 2))
	})
	checkReading(t, "contradicting demands", inputs.Uniform, 0, 1, func(g *build.Graph, x string) string {
		far := node(g, "Gather", table(g), node(g, "Sub", x, g.Int64s("far", []int64{100})))
		return node(g, "Add", node(g, "Gather", table(g), x), far)
	})
}

func TestDeriveFollowsOtherUses(t *testing.T) {
	t.Parallel()
	checkReading(t, "one minus it", inputs.Mask, 0, 2, func(g *build.Graph, x string) string {
		return node(g, "Sub", g.Floats("one", []float32{1}), cast(g, x))
	})
	checkReading(t, "scaled, not a mask", inputs.Uniform, 0, 256, func(g *build.Graph, x string) string {
		return node(g, "Mul", cast(g, x), g.Floats("scale", []float32{1.0 / 255}))
	})
	checkReading(t, "divisor", inputs.Uniform, 1, 2, func(g *build.Graph, x string) string {
		return cast(g, node(g, "Div", g.Int64s("hundred", []int64{100}), x))
	})
	checkReading(t, "nothing known", inputs.Uniform, 0, 256, cast)
}

func TestDeriveFollowsLoops(t *testing.T) {
	t.Parallel()
	checkReading(t, "captured by a loop's body", inputs.Uniform, 0, 10, func(g *build.Graph, x string) string {
		body := loopBody(g)
		body.OutputAs("row", node(body, "Gather", table(body), x), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4), onnx.Fixed(3))
		return g.Node("Loop", []string{g.Int64s("n", []int64{2}), g.True("yes")}, build.GraphAttribute("body", body))
	})
	checkReading(t, "carried by a loop", inputs.Uniform, 0, 10, func(g *build.Graph, x string) string {
		body := loopBody(g)
		state := body.Input("state", onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(4))
		body.Output(state, onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(4))
		body.OutputAs("row", node(body, "Gather", table(body), state), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4), onnx.Fixed(3))
		return g.Nodes("Loop", 2, []string{g.Int64s("n", []int64{2}), g.True("yes"), x}, build.GraphAttribute("body", body))[1]
	})
	checkReading(t, "a loop's count", inputs.Uniform, 1, 2, func(g *build.Graph, x string) string {
		body := loopBody(g)
		body.OutputAs("each", body.Floats("one", []float32{1}), onnx.Float)
		return g.Node("Loop", []string{x, g.True("yes")}, build.GraphAttribute("body", body))
	})
}

// loopBody begins the body of a Loop that ends by its trip count.
func loopBody(g *build.Graph) *build.Graph {
	body := g.Subgraph("body")
	body.Input("iteration", onnx.Int64)
	body.Output(body.Input("go_on", onnx.Bool), onnx.Bool)
	return body
}

func TestDeriveByTypeAndName(t *testing.T) {
	t.Parallel()
	check := func(name string, typ onnx.DataType, distribution inputs.Distribution, lo, hi int64) {
		t.Helper()
		g := build.NewGraph("copy")
		x := g.Input(name, typ, onnx.Symbol("batch"), onnx.Fixed(4))
		g.OutputAs("y", x, typ, onnx.Symbol("batch"), onnx.Fixed(4))
		in := derive(t, g.Model(), inputs.Options{})[name]
		if in.Distribution != distribution || in.Range != (inputs.Range{Lo: lo, Hi: hi}) {
			t.Errorf("%s %v: got %v %v, want %v {%d %d}", name, typ, in.Distribution, in.Range, distribution, lo, hi)
		}
	}
	check("x", onnx.Float, inputs.Normal, 0, 0)
	check("x", onnx.BFloat16, inputs.Normal, 0, 0)
	check("x", onnx.Bool, inputs.Uniform, 0, 2)
	check("x", onnx.Int8, inputs.Uniform, 0, 128) // the part of 0–255 that fits
	check("x", onnx.Uint8, inputs.Uniform, 0, 256)
	check("x", onnx.Uint64, inputs.Uniform, 0, 256)
	check("x", onnx.String, inputs.Text, 0, 100)
	check("Padding_Mask", onnx.Int32, inputs.Mask, 0, 2)
	check("mask", onnx.Float, inputs.Mask, 0, 2)
}

func TestDeriveTellsWhy(t *testing.T) {
	t.Parallel()
	list, err := inputs.Derive(build.EmbeddingRecommender(), inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `row of the table "users" (500 rows)`; list[0].Reason != want {
		t.Errorf("reason %q, want %q", list[0].Reason, want)
	}
}

// twoSequences makes a model with a [batch, sequence] and b [batch, sequence, width], both FLOAT.
func twoSequences() *onnx.Model {
	g := build.NewGraph("two")
	batch, sequence := onnx.Symbol("batch"), onnx.Symbol("sequence")
	a := g.Input("a", onnx.Float, batch, sequence)
	g.Input("b", onnx.Float, batch, sequence, onnx.Symbol("width"))
	g.OutputAs("y", a, onnx.Float, batch, sequence)
	return g.Model()
}

// unranked is twoSequences without a declared shape of the input a.
func unranked() *onnx.Model {
	p := proto.Clone(twoSequences().Proto()).(*onnxpb.ModelProto)
	p.GetGraph().GetInput()[0].GetType().GetTensorType().Shape = nil
	return onnx.New(p)
}

func TestDeriveSettlesShapes(t *testing.T) {
	t.Parallel()
	check := func(name string, o inputs.Options, a, b []int64) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := derive(t, twoSequences(), o)
			if diff := cmp.Diff([][]int64{a, b}, [][]int64{got["a"].Dims, got["b"].Dims}); diff != "" {
				t.Errorf("dims (-want +got):\n%s", diff)
			}
		})
	}
	check("both given", inputs.Options{Shape: map[string][]int64{"a": {7}, "b": {7, 3}}}, []int64{7}, []int64{7, 3})
	check("symbol shared", inputs.Options{Shape: map[string][]int64{"a": {7}}, Default: 2}, []int64{7}, []int64{7, 2})
	check("symbol shared backwards", inputs.Options{Shape: map[string][]int64{"b": {7, 3}}}, []int64{7}, []int64{7, 3})
	check("default", inputs.Options{Default: 5}, []int64{5}, []int64{5, 5})
}

// Paddle's exporter names every open size "?". That is not a symbol, and the sides of an image need
// not be equal.
func TestQuestionMarksAreNoSymbol(t *testing.T) {
	t.Parallel()
	open := onnx.Dim{Size: -1, Symbol: "?"}
	g := build.NewGraph("image")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), open, open)
	g.OutputAs("y", x, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), open, open)
	got := derive(t, onnx.New(g.Model().Proto()), inputs.Options{Shape: map[string][]int64{"x": {3, 48, 192}}})
	if diff := cmp.Diff([]int64{3, 48, 192}, got["x"].Dims); diff != "" {
		t.Error(diff)
	}
}

func TestDeriveReportsAllShapeErrors(t *testing.T) {
	t.Parallel()
	check := func(name string, m *onnx.Model, o inputs.Options, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := inputs.Derive(m, o)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
	check("open", twoSequences(), inputs.Options{}, `dimension "sequence" of the input a`, `dimension "width" of the input b`,
		"shape: {a: […]}")
	check("contradiction", twoSequences(), inputs.Options{Shape: map[string][]int64{"a": {7}, "b": {8, 3}}},
		`gives "sequence" the size 8, but another input gives it 7`)
	check("rank", twoSequences(), inputs.Options{Shape: map[string][]int64{"a": {1, 7}}}, "has 2 dimensions instead of 1")
	check("unknown input", twoSequences(), inputs.Options{Shape: map[string][]int64{"c": {1}}, Default: 1}, `"c", which is not an input`)
	check("fixed", build.MLP(), inputs.Options{Shape: map[string][]int64{"INPUT": {65}}}, "differs from its fixed dimension 64")
	check("not positive", twoSequences(), inputs.Options{Shape: map[string][]int64{"a": {0}}}, "not positive")
	check("huge", twoSequences(), inputs.Options{Default: 1 << 40}, "would exceed")
	check("no shape", unranked(), inputs.Options{Default: 1}, "the file has no shape for the input a FLOAT[…]")
	check("no shape, not positive", unranked(), inputs.Options{Shape: map[string][]int64{"a": {-3}}, Default: 1}, "the shape [-3] given for a FLOAT[…] is not positive")
	check("no shape, huge", unranked(), inputs.Options{Shape: map[string][]int64{"a": {1 << 40, 1 << 40}}, Default: 1}, "would exceed")
	check("sequence", build.SequenceInput(), inputs.Options{}, `"INPUT" is of an unsupported type (sequence)`)
}

// mixed is a model with the first dimensions of an input, and the first one of its output.
func mixed(first, second, output string) *onnx.Model {
	g := build.NewGraph("mixed")
	x := g.Input("x", onnx.Float, onnx.Symbol(first), onnx.Symbol(second))
	g.OutputAs("y", x, onnx.Float, onnx.Symbol(output), onnx.Dim{Size: -1})
	return g.Model()
}

// transposed is a model whose output has the input's dimensions in the other order. The file says so,
// or names none of them.
func transposed(isDeclared bool) *onnx.Model {
	g := build.NewGraph("transposed")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(7))
	first, second := onnx.Symbol("steps"), onnx.Symbol("batch")
	if !isDeclared {
		first, second = onnx.Dim{Size: -1}, onnx.Dim{Size: -1}
	}
	g.OutputAs("y", g.Node("Transpose", []string{x}), onnx.Float, first, second)
	return g.Model()
}

func TestBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model *onnx.Model
		want  bool
	}{
		"symbolic":                  {build.Simple(), true},
		"fixed":                     {build.CNN(4), false},
		"identity":                  {build.Identity(onnx.String), true},
		"the time comes first":      {mixed("batch", "time", "time"), false},
		"another name comes first":  {mixed("batch", "time", "rows"), true},
		"the batch comes second":    {transposed(true), false},
		"inferred to come second":   {transposed(false), false},
		"nameless":                  {mixed("", "", ""), true},
		"all sizes have one name":   {mixed("n", "n", "n"), true},
		"rows against others' rows": {similarity(), false},
		"the batch keeps its place": {mixed("batch", "time", "batch"), true},
	} {
		if got := inputs.Batches(c.model); got != c.want {
			t.Errorf("%s: batches %v, want %v", name, got, c.want)
		}
	}
}

// similarity compares each row of one input with each of another, as models of images and texts do.
func similarity() *onnx.Model {
	g := build.NewGraph("similarity")
	images := g.Input("images", onnx.Float, onnx.Symbol("images"), onnx.Fixed(3))
	texts := g.Input("texts", onnx.Float, onnx.Symbol("texts"), onnx.Fixed(3))
	y := g.Node("MatMul", []string{images, g.Node("Transpose", []string{texts})})
	g.OutputAs("y", y, onnx.Float, onnx.Symbol("images"), onnx.Symbol("texts"))
	return g.Model()
}

// reshaped is a model whose rows have seven numbers, which a Reshape puts into the target.
func reshaped(target ...int64) *onnx.Model {
	g := build.NewGraph("reshaped")
	x := g.Input("x", onnx.Float, onnx.Symbol("rows"), onnx.Fixed(7))
	y := g.Node("Reshape", []string{g.Node("Relu", []string{x}), g.Int64s("target", target, int64(len(target)))})
	g.OutputAs("y", y, onnx.Float, onnx.Symbol("out"), onnx.Dim{Size: -1})
	return g.Model()
}

// A Reshape demands that its target's sizes divide the elements: 7 a row.
func TestGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model *onnx.Model
		want  int64
	}{
		"any number of rows":             {reshaped(-1, 7), 1},
		"each row is split":              {reshaped(7, -1), 1},
		"four rows make one":             {reshaped(4, -1), 4},
		"28 = 4 rows of 7 numbers":       {reshaped(28, -1), 4},
		"the least multiple of 6 and 7":  {reshaped(6, -1), 6},
		"a fixed batch of 32":            {reshaped(32, 7), 32},
		"0 copies the size":              {reshaped(0, 7), 1},
		"more rows than anybody batches": {reshaped(4099, -1), 1}, // 4099 is a prime above the limit
		"no Reshape":                     {build.Simple(), 1},
		"a fixed first dimension":        {build.CNN(4), 1},
	} {
		if got := inputs.Groups(c.model); got.Size != c.want || (got.Reason != "") != (c.want > 1) {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
		if got := inputs.Batches(c.model); got && c.want > 1 {
			t.Errorf("%s: it batches", name)
		}
	}
}

// The example has as many rows as the model takes.
func TestExampleOfGroups(t *testing.T) {
	t.Parallel()
	m := reshaped(4, -1)
	want := []inputs.Size{{Size: 4, Reason: `rows by 4, as the node "node_Reshape_0" takes them`}, {Size: 7}}
	if diff := cmp.Diff(want, inputs.Examples(m)["x"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !inputs.Unbatched(m) {
		t.Error("its configuration would batch")
	}
}

// A sampling rate and the length of a sequence are stated by an input's value.
func TestValuesByName(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("sound")
	for _, name := range []string{"sr", "x_lengths", "other"} {
		g.Output(g.Node("Identity", []string{g.Input(name, onnx.Int64, onnx.Fixed(1))}), onnx.Int64, onnx.Fixed(1))
	}
	g.Output(g.Node("Identity", []string{g.Input("x", onnx.Float, onnx.Fixed(1), onnx.Symbol("samples"))}), onnx.Float, onnx.Fixed(1), onnx.Symbol("samples"))
	list, err := inputs.Derive(g.Model(), inputs.Options{Shape: map[string][]int64{"x": {1, 40}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []inputs.Range{{Lo: 16_000, Hi: 16_001}, {Lo: 40, Hi: 41}, {Lo: 0, Hi: 256}} {
		if list[i].Range != want {
			t.Errorf("%s: %v, want %v", list[i].Name, list[i].Range, want)
		}
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	t.Parallel()
	list, err := inputs.Derive(build.BertSquadLike(), inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := inputs.Generate(list, 3, 1)
	if diff := cmp.Diff(first, inputs.Generate(list, 3, 1)); diff != "" {
		t.Errorf("the same seed gives other values:\n%s", diff)
	}
	if cmp.Equal(first["input_names"], inputs.Generate(list, 3, 2)["input_names"]) {
		t.Error("another seed gives the same values")
	}
	if cmp.Equal(first["input_names"].Data, first["segment_ids"].Data) {
		t.Error("two inputs have the same values")
	}
	if diff := cmp.Diff([]int64{3, 256}, first["input_mask"].Shape); diff != "" {
		t.Error(diff)
	}
}

func TestGenerateKeepsToRangesAndMasks(t *testing.T) {
	t.Parallel()
	list, err := inputs.Derive(build.BertSquadLike(), inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tensors := inputs.Generate(list, 50, 7)
	ids := int64s(tensors["input_names"].Data)
	least, greatest := ids[0], ids[0]
	for _, v := range ids {
		least, greatest = min(least, v), max(greatest, v)
	}
	// Among 12800 numbers from [0, 1000), a given one is missing with probability (1-1/1000)^12800
	// ≈ 3·10⁻⁶.
	if least != 0 || greatest != 999 {
		t.Errorf("ids lie in [%d, %d], want [0, 999]", least, greatest)
	}
	mask := int64s(tensors["input_mask"].Data)
	for row := range 50 {
		before := int64(1)
		for i, v := range mask[row*256 : (row+1)*256] {
			if v < 0 || v > before || i == 0 && v != 1 {
				t.Fatalf("row %d is not ones, then zeros: %v", row, mask[row*256:(row+1)*256])
			}
			before = v
		}
	}
}

func TestGenerateEveryType(t *testing.T) {
	t.Parallel()
	for _, typ := range onnx.ServableTypes() {
		list, err := inputs.Derive(build.Identity(typ), inputs.Options{Default: 5})
		if err != nil {
			t.Fatal(err)
		}
		tensor := inputs.Generate(list, 2, 1)["INPUT0"]
		if typ == onnx.String {
			if len(tensor.Strings) != 10 || tensor.Data != nil {
				t.Errorf("STRING: %d strings and %d bytes, want 10 and 0", len(tensor.Strings), len(tensor.Data))
			}
		} else if got, want := int64(len(tensor.Data)), 10*typ.Size(); got != want {
			t.Errorf("%v: %d bytes, want %d", typ, got, want)
		}
	}
}

func TestGenerateHalfPrecision(t *testing.T) {
	t.Parallel()
	in := []inputs.Input{{Name: "x", Dims: []int64{4000}, Distribution: inputs.Normal}}
	in[0].Type = onnx.Float
	exact := inputs.Generate(in, 1, 1)["x"].Data
	in[0].Type = onnx.Float16
	half := inputs.Generate(in, 1, 1)["x"].Data
	in[0].Type = onnx.BFloat16
	brain := inputs.Generate(in, 1, 1)["x"].Data
	for i := range 4000 {
		want := float64(math.Float32frombits(binary.LittleEndian.Uint32(exact[4*i:])))
		// Half precision has 11 bits down to 2⁻¹⁴, bfloat16 has 8. Rounding errs by at most half of
		// the last bit.
		if got := halfValue(binary.LittleEndian.Uint16(half[2*i:])); math.Abs(got-want) > math.Abs(want)/2048+1.0/(1<<14) {
			t.Errorf("half of %v is %v", want, got)
		}
		got := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(brain[2*i:])) << 16))
		if math.Abs(got-want) > math.Abs(want)/256 {
			t.Errorf("bfloat16 of %v is %v", want, got)
		}
	}
}

// halfValue is the definition of a normal IEEE 754 half: (-1)^s · 2^(e-15) · (1 + m/1024).
func halfValue(bits uint16) float64 {
	exponent := int(bits>>10&31) - 15
	if exponent == -15 {
		return 0
	}
	return math.Copysign(math.Ldexp(1+float64(bits&1023)/1024, exponent), float64(1-int(bits>>15)*2))
}

func int64s(data []byte) []int64 {
	var values []int64
	for ; len(data) > 0; data = data[8:] {
		values = append(values, int64(binary.LittleEndian.Uint64(data)))
	}
	return values
}

// A configuration writes a scalar as one element. Its shape still is that of a scalar.
func TestScalarThatIsConfiguredAsOneElement(t *testing.T) {
	t.Parallel()
	for _, given := range [][]int64{{1}, {1, 1}, {}, nil} {
		got := derive(t, build.Scalar(), inputs.Options{Shape: map[string][]int64{"sr": given}})
		if in := got["sr"]; len(in.Dims) != 0 || in.Batched {
			t.Errorf("given %v: %+v", given, in)
		}
	}
	_, err := inputs.Derive(build.Scalar(), inputs.Options{Shape: map[string][]int64{"sr": {2}}})
	if err == nil || !strings.Contains(err.Error(), "has 1 dimensions instead of 0") {
		t.Errorf("two elements: %v", err)
	}
}

// An index may be chosen between two values by factors of 0 and 1, as tf2onnx writes Keras' embeddings
// of negative indices.
func TestIndexThatIsChosen(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("chosen")
	shape := []onnx.Dim{onnx.Fixed(1), onnx.Fixed(4)}
	x, c := g.Input("x", onnx.Int64, shape...), g.Input("c", onnx.Int64, shape...)
	other := g.Node("Mul", []string{g.Node("Abs", []string{x}), g.Node("Neg", []string{c})})
	index := g.Node("Add", []string{other, g.Node("Mul", []string{x, c})})
	table := g.Floats("table", make([]float32, 49), 49, 1)
	g.OutputAs("y", g.Node("Gather", []string{table, index}), onnx.Float, onnx.Fixed(1), onnx.Fixed(4), onnx.Fixed(1))
	list, err := inputs.Derive(g.Model(), inputs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (inputs.Range{Lo: 0, Hi: 49}); list[0].Range != want {
		t.Errorf("%v, want %v", list[0].Range, want)
	}
}

// Numbers that bound something have the order that their names say. Without its opposite, with several
// elements or in whole numbers a name is no bound.
func TestBounds(t *testing.T) {
	t.Parallel()
	scalar := func(g *build.Graph, name string, kind onnx.DataType, dims ...onnx.Dim) string {
		return g.Node("Cast", []string{g.Input(name, kind, dims...)}, build.IntAttribute("to", int64(onnx.Float)))
	}
	one := onnx.Fixed(1)
	for name, c := range map[string]struct {
		kind onnx.DataType
		dims []onnx.Dim
		ends []string
		want map[string]int64 // nil: random
	}{
		"frequency":       {onnx.Float, nil, []string{"fmin", "fmax"}, map[string]int64{"fmin": 50, "fmax": 8000}}, // half of 16 kHz
		"in words":        {onnx.Float, []onnx.Dim{one}, []string{"Max_Frequency", "min_frequency"}, map[string]int64{"min_frequency": 50, "Max_Frequency": 8000}},
		"any":             {onnx.Double, nil, []string{"clip_low", "clip_high"}, map[string]int64{"clip_low": 0, "clip_high": 1}},
		"no opposite":     {onnx.Float, nil, []string{"fmin", "limit"}, nil},
		"several numbers": {onnx.Float, []onnx.Dim{onnx.Fixed(3)}, []string{"fmin", "fmax"}, nil},
		"whole numbers":   {onnx.Int64, nil, []string{"fmin", "fmax"}, nil},
	} {
		g := build.NewGraph("bounds")
		first := scalar(g, c.ends[0], c.kind, c.dims...)
		g.OutputAs("y", g.Node("Add", []string{first, scalar(g, c.ends[1], c.kind, c.dims...)}), onnx.Float, c.dims...)
		for input, in := range derive(t, g.Model(), inputs.Options{}) {
			value, isFixed := in.Value()
			if want, isBound := c.want[input]; isFixed != isBound || isBound && value != want {
				t.Errorf("%s: %s has %v %v, want %v", name, input, in.Distribution, in.Range, c.want)
			}
		}
	}
}

// Strings are texts for an operator that reads language, and digits for all others.
func TestTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		domain, op string
		want       inputs.Distribution
	}{
		"a tokenizer of a library":      {"ai.onnx.contrib", "BertTokenizer", inputs.Sentences},
		"ONNX Runtime's tokenizer":      {"com.microsoft", "Tokenizer", inputs.Sentences},
		"another one of ONNX Runtime's": {"com.microsoft", "StringNormalizer", inputs.Text},
		"a look-up of ONNX":             {"ai.onnx.ml", "LabelEncoder", inputs.Text},
		"a conversion to numbers":       {"", "Cast", inputs.Text},
	} {
		g := build.NewGraph("texts")
		x := g.Input("text", onnx.String, onnx.Symbol("batch"))
		g.OutputAs("y", g.Node("Identity", []string{x}), onnx.Int64, onnx.Symbol("batch"))
		m := g.Model()
		node := m.Proto().Graph.Node[0]
		node.Domain, node.OpType = &c.domain, &c.op
		in := derive(t, m, inputs.Options{})["text"]
		if in.Distribution != c.want {
			t.Errorf("%s: %v, want %v", name, in.Distribution, c.want)
		}
		texts := inputs.Texts(m)
		if text, ok := texts["text"]; ok != (c.want == inputs.Sentences) || ok && !strings.HasSuffix(text, "for "+c.op) {
			t.Errorf("%s: texts are %v", name, texts)
		}
		a, b := inputs.Generate([]inputs.Input{in}, 8, 1)["text"], inputs.Generate([]inputs.Input{in}, 8, 1)["text"]
		if diff := cmp.Diff(a, b); diff != "" || len(a.Strings) != 8 {
			t.Errorf("%s: %d texts; another draw from the same seed differs: %s", name, len(a.Strings), diff)
		}
	}
}
