package build

import (
	"errors"
	"fmt"
	"math"

	"tuner/model/onnx"
)

// bert describes a BERT encoder (Devlin et al. 2018: post-layer-norm transformer, gelu by erf).
type bert struct {
	layers, heads         int
	hidden, intermediate  int64
	vocabulary, positions int64
	types                 int64 // token types
	epsilon               float32
}

// weights returns the values of a parameter by its published (PyTorch) name, or an error.
type weights func(name string, shape ...int64) ([]float32, error)

// bertInputs has the names of the graph's inputs, each INT64[batch, sequence].
type bertInputs struct{ ids, mask, types string }

// encoder writes one BERT into a graph, with the operators of a usual export. ONNX Runtime 1.31
// fuses its gelu, bias and scale. It can fuse other forms further, into skip layer norms or whole
// attentions. On the CPU these were measured to be 6 to 14 % slower.
//
// Errors of the weights are collected, so that the layers read like the formulas.
type encoder struct {
	*Graph
	bert
	weights weights
	errs    []error
}

// build writes the model and returns the last hidden state, FLOAT[batch, sequence, hidden].
func (e *encoder) build(inputs bertInputs) (string, error) {
	x := e.embed(inputs)
	bias := e.maskBias(inputs.mask)
	split := e.Int64s("split_heads", []int64{0, 0, int64(e.heads), e.hidden / int64(e.heads)}, 4)
	merge := e.Int64s("merge_heads", []int64{0, 0, e.hidden}, 3)
	scale := e.Floats("attention_scale", []float32{float32(math.Sqrt(float64(e.hidden) / float64(e.heads)))})
	gelu := geluConstants(e.Graph)
	for i := range e.layers {
		layer := fmt.Sprintf("encoder.layer.%d", i)
		attended := e.attention(layer, x, bias, split, merge, scale)
		x = e.layerNorm(layer+".attention.output.LayerNorm", e.Node("Add", in(attended, x)))
		inner := e.gelu(e.linear(layer+".intermediate.dense", x, e.hidden, e.intermediate), gelu)
		outer := e.linear(layer+".output.dense", inner, e.intermediate, e.hidden)
		x = e.layerNorm(layer+".output.LayerNorm", e.Node("Add", in(outer, x)))
	}
	return x, errors.Join(e.errs...)
}

// embed sums the embeddings of word, position and token type. It cuts the position table to the
// length of the sequence.
func (e *encoder) embed(inputs bertInputs) string {
	words := e.Node("Gather", in(e.param("embeddings.word_embeddings.weight", e.vocabulary, e.hidden), inputs.ids))
	types := e.Node("Gather", in(e.param("embeddings.token_type_embeddings.weight", e.types, e.hidden), inputs.types))
	shape := e.Node("Shape", in(inputs.ids))
	length := e.Node("Slice", in(shape, e.Int64s("one", []int64{1}, 1), e.Int64s("two", []int64{2}, 1)))
	positions := e.Node("Slice", in(e.param("embeddings.position_embeddings.weight", e.positions, e.hidden),
		e.Int64s("zero", []int64{0}, 1), length))
	sum := e.Node("Add", in(e.Node("Add", in(words, types)), positions))
	return e.layerNorm("embeddings.LayerNorm", sum)
}

// maskBias converts the mask into a term for the attention's scores: 0 for a mask of 1, -10000 for
// 0.
func (e *encoder) maskBias(mask string) string {
	rows := e.Node("Unsqueeze", in(mask, e.Int64s("axis_1", []int64{1}, 1)))
	wide := e.Node("Unsqueeze", in(rows, e.Int64s("axis_2", []int64{2}, 1)))
	kept := e.Node("Cast", in(wide), IntAttribute("to", int64(onnx.Float)))
	hidden := e.Node("Sub", in(e.Floats("mask_one", []float32{1}), kept))
	return e.Node("Mul", in(hidden, e.Floats("mask_bias", []float32{-10000})))
}

// attention computes softmax(q·kᵀ/√d + bias)·v over all heads, and the output projection.
func (e *encoder) attention(layer, x, bias, split, merge, scale string) string {
	head := func(part string, order ...int64) string {
		projected := e.linear(layer+".attention.self."+part, x, e.hidden, e.hidden)
		return e.Node("Transpose", in(e.Node("Reshape", in(projected, split))), IntsAttribute("perm", order...))
	}
	q := head("query", 0, 2, 1, 3)
	k := head("key", 0, 2, 3, 1)
	v := head("value", 0, 2, 1, 3)
	scores := e.Node("Div", in(e.Node("MatMul", in(q, k)), scale))
	shares := e.Node("Softmax", in(e.Node("Add", in(scores, bias))), IntAttribute("axis", 3))
	mixed := e.Node("Transpose", in(e.Node("MatMul", in(shares, v))), IntsAttribute("perm", 0, 2, 1, 3))
	return e.linear(layer+".attention.output.dense", e.Node("Reshape", in(mixed, merge)), e.hidden, e.hidden)
}

// linear computes x·Wᵀ + b. PyTorch stores W as [out, in].
func (e *encoder) linear(name, x string, inSize, outSize int64) string {
	w := transpose(e.readWeights(name+".weight", outSize, inSize), outSize, inSize)
	product := e.Node("MatMul", in(x, e.Floats(name+".weight", w, inSize, outSize)))
	return e.Node("Add", in(product, e.param(name+".bias", outSize)))
}

func (e *encoder) layerNorm(name, x string) string {
	return e.Node("LayerNormalization", in(x, e.param(name+".weight", e.hidden), e.param(name+".bias", e.hidden)),
		IntAttribute("axis", -1), FloatAttribute("epsilon", e.epsilon))
}

// gelu computes x·(1 + erf(x/√2))/2.
func (e *encoder) gelu(x string, c gelu) string {
	erf := e.Node("Erf", in(e.Node("Div", in(x, c.root2))))
	return e.Node("Mul", in(e.Node("Mul", in(x, e.Node("Add", in(erf, c.one)))), c.half))
}

// gelu has the names of the constants in the gelu formula.
type gelu struct{ root2, one, half string }

func geluConstants(g *Graph) gelu {
	return gelu{
		root2: g.Floats("gelu_root2", []float32{math.Sqrt2}),
		one:   g.Floats("gelu_one", []float32{1}),
		half:  g.Floats("gelu_half", []float32{0.5}),
	}
}

// param adds a parameter with its stored values.
func (e *encoder) param(name string, shape ...int64) string {
	return e.Floats(name, e.readWeights(name, shape...), shape...)
}

func (e *encoder) readWeights(name string, shape ...int64) []float32 {
	values, err := e.weights(name, shape...)
	if err != nil {
		e.errs = append(e.errs, err)
		return make([]float32, product(shape))
	}
	return values
}

func transpose(m []float32, rows, columns int64) []float32 {
	t := make([]float32, len(m))
	for r := range rows {
		for c := range columns {
			t[c*rows+r] = m[r*columns+c]
		}
	}
	return t
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
