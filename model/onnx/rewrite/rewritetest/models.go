// Package rewritetest has what the tests of several rewrites share: models to rewrite, and views of a
// rewritten model. It checks nothing itself.
package rewritetest

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// Samples returns the models of package build that a server accepts.
func Samples() map[string]*onnx.Model {
	return map[string]*onnx.Model{
		"simple": build.Simple(), "mlp": build.MLP(), "cnn": build.CNN(0), "bertsquad": build.BertSquadLike(),
		"recommender": build.EmbeddingRecommender(), "constant_time": build.ConstantTime(10), "resnet": build.ResNet(),
		"mobilenet": build.MobileNet(), "lstm": build.LSTM(),
	}
}

// Changed returns a modified copy of m.
func Changed(m *onnx.Model, change func(*onnxpb.ModelProto)) *onnx.Model {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	change(p)
	return onnx.New(p)
}

// FixedTo fixes the first dimension of all inputs and outputs, as in an export without dynamic
// axes.
func FixedTo(m *onnx.Model, size int64) *onnx.Model {
	return Changed(m, func(p *onnxpb.ModelProto) {
		for _, v := range slices.Concat(p.Graph.Input, p.Graph.Output) {
			v.Type.GetTensorType().Shape.Dim[0] = &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: size}}
		}
	})
}

// Rows makes a model x FLOAT[2, 3, 4] → y, with the fixed batch size 2.
func Rows(make func(g *build.Graph, x string) string) *onnx.Model {
	g := build.NewGraph("rows")
	x := g.Input("x", onnx.Float, onnx.Fixed(2), onnx.Fixed(3), onnx.Fixed(4))
	y := make(g, x)
	g.OutputAs("y", y, onnx.Float, onnx.Fixed(2), onnx.Symbol("rest"))
	return Changed(g.Model(), func(p *onnxpb.ModelProto) {
		p.Graph.Output[0].Type.GetTensorType().Shape.Dim = p.Graph.Output[0].Type.GetTensorType().Shape.Dim[:1]
	})
}

// Attention makes a self-attention over x FLOAT[batch, 5, 8] with two heads. Its reshape targets
// repeat the batch size, also with the heads merged into it.
func Attention(batch int64) *onnx.Model {
	g := build.NewGraph("attention")
	x := g.Input("x", onnx.Float, onnx.Fixed(batch), onnx.Fixed(5), onnx.Fixed(8))
	heads := func(name string, perm ...int64) string {
		split := g.Node("Transpose", []string{ReshapeTo(g, x, name+"_split", batch, 5, 2, 4)}, build.IntsAttribute("perm", 0, 2, 1, 3))
		joined := ReshapeTo(g, split, name+"_join", 2*batch, 5, 4)
		return g.Node("Transpose", []string{joined}, build.IntsAttribute("perm", perm...))
	}
	scores := g.Node("Softmax", []string{g.Node("MatMul", []string{heads("q", 0, 1, 2), heads("k", 0, 2, 1)})})
	mixed := ReshapeTo(g, g.Node("MatMul", []string{scores, heads("v", 0, 1, 2)}), "part", batch, 2, 5, 4)
	back := g.Node("Transpose", []string{mixed}, build.IntsAttribute("perm", 0, 2, 1, 3))
	g.OutputAs("y", ReshapeTo(g, back, "merge", batch, 5, 8), onnx.Float, onnx.Fixed(batch), onnx.Fixed(5), onnx.Fixed(8))
	return g.Model()
}

// ReshapeTo adds a Reshape to sizes that are a constant with that name.
func ReshapeTo(g *build.Graph, x, name string, sizes ...int64) string {
	return g.Node("Reshape", []string{x, g.Int64s(name, sizes, int64(len(sizes)))})
}

// Times makes a model that multiplies x by a weight with 4 rows.
func Times(x string, weight func(*build.Graph) string) *onnx.Model {
	g := build.NewGraph("test")
	g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	g.OutputAs("y", g.Node("MatMul", []string{x, weight(g)}), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("columns"))
	return g.Model()
}

// Weights adds the 4×2 matrix with rows (1, 2), (3, 4), (5, 6), (127, -254).
func Weights(g *build.Graph) string {
	return g.Floats("w", []float32{1, 2, 3, 4, 5, 6, 127, -254}, 4, 2)
}

// Attribute names an attribute.
func Attribute(name string, a *onnxpb.AttributeProto) *onnxpb.AttributeProto {
	a.Name = proto.String(name)
	return a
}
