package build

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

// Simple makes the model of Triton's examples: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 -
// INPUT1, all INT32[batch, 16].
func Simple() *onnx.Model {
	g := NewGraph("simple")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(16)}
	a := g.Input("INPUT0", onnx.Int32, shape...)
	b := g.Input("INPUT1", onnx.Int32, shape...)
	g.addNode("Add", in(a, b), []string{"OUTPUT0"}, nil)
	g.addNode("Sub", in(a, b), []string{"OUTPUT1"}, nil)
	g.Output("OUTPUT0", onnx.Int32, shape...)
	g.Output("OUTPUT1", onnx.Int32, shape...)
	return g.Model()
}

// Identity makes a model that copies INPUT0 to OUTPUT0, both [batch, length] of type t.
func Identity(t onnx.DataType) *onnx.Model {
	g := NewGraph("identity")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("length")}
	g.OutputAs("OUTPUT0", g.Input("INPUT0", t, shape...), t, shape...)
	return g.Model()
}

// MLP makes a perceptron with two hidden layers: INPUT FLOAT[batch, 64] → OUTPUT FLOAT[batch, 8].
func MLP() *onnx.Model {
	g := NewGraph("mlp")
	x := g.Input("INPUT", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(64))
	x = g.Node("Relu", in(dense(g, "layer0", x, 64, 128)))
	x = g.Node("Relu", in(dense(g, "layer1", x, 128, 128)))
	g.OutputAs("OUTPUT", dense(g, "layer2", x, 128, 8), onnx.Float, onnx.Symbol("batch"), onnx.Fixed(8))
	return g.Model()
}

// CNN makes a small image classifier with a plain, a depthwise and a pointwise convolution: input
// FLOAT[batch, 3, 32, 32] → logits FLOAT[batch, 10]. The batch dimension is fixed to batchSize, so
// that the model cannot batch. It is symbolic if batchSize is 0.
func CNN(batchSize int64) *onnx.Model {
	g := NewGraph("cnn")
	batch := onnx.Symbol("batch")
	if batchSize > 0 {
		batch = onnx.Fixed(batchSize)
	}
	x := g.Input("input", onnx.Float, batch, onnx.Fixed(3), onnx.Fixed(32), onnx.Fixed(32))
	x = convolve(g, "conv0", x, []int64{16, 3, 3, 3}, 1, 2)
	x = convolve(g, "depthwise", x, []int64{16, 1, 3, 3}, 16, 1)
	x = convolve(g, "pointwise", x, []int64{32, 16, 1, 1}, 1, 1)
	x = g.Node("Flatten", in(g.Node("GlobalAveragePool", in(x))), IntAttribute("axis", 1))
	g.OutputAs("logits", dense(g, "classifier", x, 32, 10), onnx.Float, batch, onnx.Fixed(10))
	return g.Model()
}

// convolve adds a convolution that keeps the size (divided by the stride), batch normalisation and
// relu.
func convolve(g *Graph, name, x string, shape []int64, group, stride int64) string {
	w := g.Floats(name+".weight", random(name+".weight", shape...), shape...)
	pad := shape[2] / 2
	x = g.Node("Conv", in(x, w), IntsAttribute("kernel_shape", shape[2:]...), IntsAttribute("strides", stride, stride),
		IntsAttribute("pads", pad, pad, pad, pad), IntAttribute("group", group))
	channels := shape[0]
	ones, zeros := slices.Repeat([]float32{1}, int(channels)), make([]float32, channels)
	x = g.Node("BatchNormalization", in(x, g.Floats(name+".scale", ones, channels), g.Floats(name+".bias", zeros, channels),
		g.Floats(name+".mean", zeros, channels), g.Floats(name+".var", ones, channels)))
	return g.Node("Relu", in(x))
}

// dense adds x·W + b with random weights.
func dense(g *Graph, name, x string, inSize, outSize int64) string {
	w := g.Floats(name+".weight", random(name+".weight", inSize, outSize), inSize, outSize)
	b := g.Floats(name+".bias", random(name+".bias", outSize), outSize)
	return g.Node("Add", in(g.Node("MatMul", in(x, w)), b))
}

// BertSquadLike makes a small model with the inputs and outputs of the question-answering BERT in
// ONNX's model collection: input_names, input_mask, segment_ids INT64[batch, 256] → start, end
// FLOAT[batch, 256]. It has two layers of hidden size 64.
func BertSquadLike() *onnx.Model {
	e := &encoder{
		Graph: NewGraph("bertsquad"),
		bert: bert{layers: 2, heads: 2, hidden: 64, intermediate: 256, vocabulary: 1000, positions: 256, types: 2,
			epsilon: 1e-12},
		weights: func(name string, shape ...int64) ([]float32, error) { return random(name, shape...), nil },
	}
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(256)}
	tokens, _ := e.build(bertInputs{ // random weights never fail
		ids:   e.Input("input_names", onnx.Int64, shape...),
		mask:  e.Input("input_mask", onnx.Int64, shape...),
		types: e.Input("segment_ids", onnx.Int64, shape...),
	})
	logits := e.linear("qa_outputs", tokens, e.hidden, 2)
	sides := e.Nodes("Split", 2, in(logits), IntAttribute("axis", -1))
	axis := e.Int64s("axis_logit", []int64{-1}, 1)
	for i, name := range []string{"start", "end"} {
		e.addNode("Squeeze", in(sides[i], axis), []string{name}, nil)
		e.Output(name, onnx.Float, shape...)
	}
	return e.Model()
}

// EmbeddingRecommender makes a model that scores items for a user. It looks user INT64[batch, 1]
// and items INT64[batch, 20] up in tables of 500 and 2000 rows. The scores FLOAT[batch, 20] are the
// products of their vectors after one layer.
func EmbeddingRecommender() *onnx.Model {
	const users, items, width = 500, 2000, 32
	g := NewGraph("recommender")
	user := g.Input("user", onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(1))
	item := g.Input("items", onnx.Int64, onnx.Symbol("batch"), onnx.Fixed(20))
	u := g.Node("Gather", in(g.Floats("users", random("users", users, width), users, width), user))
	v := g.Node("Gather", in(g.Floats("items.table", random("items.table", items, width), items, width), item))
	u = g.Node("Relu", in(dense(g, "user_layer", u, width, width)))
	product := g.Node("Mul", in(u, v)) // [batch, 1, width] times [batch, 20, width]
	scores := g.Node("ReduceSum", in(product, g.Int64s("axis_width", []int64{2}, 1)), IntAttribute("keepdims", 0))
	g.OutputAs("scores", scores, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(20))
	return g.Model()
}

// ConstantTime makes a model that copies INPUT to OUTPUT, FLOAT[batch, 16]. Before that it
// multiplies two 64×64 matrices iterations times. So its run time does not depend on the batch
// size. The factor is a permutation, so that the numbers stay the same. The first matrix contains
// 0·INPUT, so that nothing can be computed in advance.
func ConstantTime(iterations int64) *onnx.Model {
	const n = 64
	g := NewGraph("constant_time")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(16)}
	x := g.Input("INPUT", onnx.Float, shape...)
	zero := g.Floats("zero", []float32{0})
	nothing := g.Node("Mul", in(g.Node("ReduceMax", in(x), IntAttribute("keepdims", 0)), zero))
	start := g.Node("Add", in(g.Floats("start", random("start", n, n), n, n), nothing))

	body := g.Subgraph("body")
	body.Input("iteration", onnx.Int64)
	body.Input("go_on", onnx.Bool)
	body.Input("matrix", onnx.Float, onnx.Fixed(n), onnx.Fixed(n))
	body.addNode("Identity", in("go_on"), in("go_on_next"), nil)
	body.addNode("MatMul", in("matrix", body.Floats("rotation", rotation(n), n, n)), in("matrix_next"), nil)
	body.Output("go_on_next", onnx.Bool)
	body.Output("matrix_next", onnx.Float, onnx.Fixed(n), onnx.Fixed(n))

	end := g.Node("Loop", in(g.Int64s("iterations", []int64{iterations}), g.True("forever"), start), GraphAttribute("body", body))
	rest := g.Node("Mul", in(g.Node("ReduceMax", in(end), IntAttribute("keepdims", 0)), zero))
	g.addNode("Add", in(x, rest), in("OUTPUT"), nil)
	g.Output("OUTPUT", onnx.Float, shape...)
	return g.Model()
}

// rotation returns the n×n matrix that moves every column by one place.
func rotation(n int) []float32 {
	m := make([]float32, n*n)
	for i := range n {
		m[i*n+(i+1)%n] = 1
	}
	return m
}

// Scalar makes a model with a scalar input, and with an output whose declared shape is too wide:
// input FLOAT[1, 64], sr INT64 → output FLOAT[1, 64], state FLOAT[1, ?, 64]. The second size of
// state is always 1. Models that detect speech have this form.
func Scalar() *onnx.Model {
	g := NewGraph("scalar")
	x := g.Input("input", onnx.Float, onnx.Fixed(1), onnx.Fixed(64))
	rate := g.Node("Cast", in(g.Input("sr", onnx.Int64)), IntAttribute("to", int64(onnx.Float)))
	y := g.Node("Mul", in(x, rate))
	g.OutputAs("output", y, onnx.Float, onnx.Fixed(1), onnx.Fixed(64))
	g.OutputAs("state", g.Node("Unsqueeze", in(y, g.Int64s("first", []int64{0}, 1))), onnx.Float, onnx.Fixed(1), onnx.Dim{Size: -1}, onnx.Fixed(64))
	return g.Model()
}

// Failing makes a model whose runs all fail: INPUT FLOAT[batch, 4] → OUTPUT FLOAT[batch, 4]. It
// loads normally. A run looks up row batch + 1000 of a table with 4 rows.
func Failing() *onnx.Model {
	g := NewGraph("failing")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(4)}
	x := g.Input("INPUT", onnx.Float, shape...)
	batch := g.Node("Gather", in(g.Node("Shape", in(x)), g.Int64s("first", []int64{0})))
	row := g.Node("Add", in(batch, g.Int64s("too_far", []int64{1000})))
	found := g.Node("Gather", in(g.Floats("table", random("table", 4, 4), 4, 4), row))
	g.addNode("Add", in(x, found), in("OUTPUT"), nil)
	g.Output("OUTPUT", onnx.Float, shape...)
	return g.Model()
}

// SequenceInput makes a model with an input that no server accepts, a sequence of FLOAT tensors.
// OUTPUT is its length, INT64.
func SequenceInput() *onnx.Model {
	g := NewGraph("sequence_input")
	element := tensorInfo("", onnx.Float, []onnx.Dim{onnx.Symbol("length")}).GetType()
	g.proto.Input = append(g.proto.Input, &onnxpb.ValueInfoProto{Name: proto.String("INPUT"), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: element}},
	}})
	g.addNode("SequenceLength", in("INPUT"), in("OUTPUT"), nil)
	g.Output("OUTPUT", onnx.Int64)
	return g.Model()
}

// random returns weights around 0. They are scaled by the last dimension, so that activations keep
// their size.
func random(name string, shape ...int64) []float32 {
	return normal(name, 0, 1/math.Sqrt(float64(shape[len(shape)-1])), shape...)
}

// normal returns normally distributed numbers that are the same in every build and on every
// processor. The name seeds the generator. The conversion keeps the compiler from fusing product
// and sum into one step, which would round differently.
func normal(name string, mean, deviation float64, shape ...int64) []float32 {
	h := fnv.New64a()
	fmt.Fprint(h, name)
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	values := make([]float32, product(shape))
	for i := range values {
		values[i] = float32(mean + float64(r.NormFloat64()*deviation))
	}
	return values
}
