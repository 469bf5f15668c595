package batch_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/onnx/rewrite/rewritetest"
)

// firstDims returns the first dimension of each input and output as text.
func firstDims(m *onnx.Model) []string {
	var dims []string
	for _, v := range slices.Concat(m.Inputs(), m.Outputs()) {
		dims = append(dims, v.Name+" "+v.Shape[0].String())
	}
	return dims
}

func TestSymbolicBatch(t *testing.T) {
	t.Parallel()
	m := build.CNN(1)
	before := rewritetest.Digest(t, m)
	free, err := batch.Symbolic(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"input batch", "logits batch"}, firstDims(free)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rewritetest.Wiring(m), rewritetest.Wiring(free)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if rewritetest.Digest(t, m) != before {
		t.Error("the source was changed")
	}
	if _, err := batch.Symbolic(free); !errors.Is(err, rewrite.ErrNothing) {
		t.Errorf("the second time: %v, want ErrNothing", err)
	}
}

// An input that is symbolic already gives its symbol to the others. A symbol of another dimension
// is not used.
func TestSymbolicBatchNames(t *testing.T) {
	t.Parallel()
	m := rewritetest.FixedTo(build.Simple(), 4)
	named := rewritetest.Changed(m, func(p *onnxpb.ModelProto) {
		p.Graph.Input[1].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}
	})
	taken := rewritetest.Changed(m, func(p *onnxpb.ModelProto) {
		for _, v := range slices.Concat(p.Graph.Input, p.Graph.Output) {
			v.Type.GetTensorType().Shape.Dim[1].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "batch"}
		}
	})
	for want, m := range map[string]*onnx.Model{"batch": m, "N": named, "batch_2": taken} {
		free, err := batch.Symbolic(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := free.Inputs()[0].Shape[0].String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Constants with the batch size are adapted. The other sizes of the target are written out, since
// -1 may occur only once.
func TestSymbolicBatchAdapts(t *testing.T) {
	t.Parallel()
	check := func(name string, want []int64, make func(g *build.Graph, x string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free, err := batch.Symbolic(rewritetest.Rows(make))
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, n := range free.Nodes() {
				if op := n.GetOpType(); op == "Reshape" || op == "Expand" {
					got = append(got, int64s(t, free, n.GetInput()[1])...)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	reshape := func(sizes ...int64) func(g *build.Graph, x string) string {
		return func(g *build.Graph, x string) string {
			return g.Node("Reshape", []string{x, g.Int64s("sizes", sizes, int64(len(sizes)))})
		}
	}
	check("batch in front", []int64{-1, 12}, reshape(2, 12))
	check("rest computed", []int64{-1, 12}, reshape(2, -1))
	check("zero stays", []int64{0, -1}, reshape(0, -1))
	check("zero elsewhere", []int64{-1, 3, 4}, reshape(2, 0, 4))
	check("computed already", []int64{-1, 12}, reshape(-1, 12))
	check("joined with the next dimension and parted again", []int64{-1, 4, -1, 12}, func(g *build.Graph, x string) string {
		return rewritetest.ReshapeTo(g, rewritetest.ReshapeTo(g, x, "a", 6, 4), "b", 2, 12)
	})
	check("heads in front, as attention does", []int64{-1, 4, 1, -1, 12}, func(g *build.Graph, x string) string {
		return rewritetest.ReshapeTo(g, rewritetest.ReshapeTo(g, x, "a", 6, 4, 1), "b", 2, 12)
	})
	check("expand", []int64{1, 3, 4}, func(g *build.Graph, x string) string {
		return g.Node("Expand", []string{x, g.Int64s("sizes", []int64{2, 3, 4}, 3)})
	})
}

// checkRefused expects an ErrNothing with that text.
func checkRefused(t *testing.T, want string, m *onnx.Model) {
	t.Helper()
	t.Run(want, func(t *testing.T) {
		t.Parallel()
		_, err := batch.Symbolic(m)
		if !errors.Is(err, rewrite.ErrNothing) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

func TestSymbolicBatchRefusesInputs(t *testing.T) {
	t.Parallel()
	checkRefused(t, "the first dimensions of its inputs are not fixed", build.Simple())
	checkRefused(t, "the first dimensions of its inputs differ", rewritetest.Changed(rewritetest.FixedTo(build.Simple(), 2), func(p *onnxpb.ModelProto) {
		p.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 3}
	}))
}

func TestSymbolicBatchRefuses(t *testing.T) {
	t.Parallel()
	check := func(want string, m *onnx.Model) { checkRefused(t, want, m) }
	node := func(op string, more func(g *build.Graph) []string, attributes ...*onnxpb.AttributeProto) *onnx.Model {
		return rewritetest.Rows(func(g *build.Graph, x string) string {
			inputs := []string{x}
			if more != nil {
				inputs = append(inputs, more(g)...)
			}
			return g.Node(op, inputs, attributes...)
		})
	}
	axis0 := func(g *build.Graph) []string { return []string{g.Int64s("axis", []int64{0}, 1)} }
	check(`the node "node_ReduceSum_0" (ReduceSum) joins the rows of a batch`, node("ReduceSum", axis0))
	check(`(ReduceMax) joins the rows of a batch, or names no axes`, node("ReduceMax", nil))
	check(`(Softmax) normalises over the rows of a batch`, node("Softmax", nil, build.IntAttribute("axis", 0)))
	check(`(Concat) joins the rows of a batch`, rewritetest.Rows(func(g *build.Graph, x string) string {
		return g.Node("Concat", []string{x, x}, build.IntAttribute("axis", 0))
	}))
	check(`joins values, but "start" does not have the batch`, node("Concat",
		func(g *build.Graph) []string { return []string{g.Floats("start", make([]float32, 8), 2, 1, 4)} }, build.IntAttribute("axis", 1)))
	check(`combines the batch with "per_row", which has a fixed number of rows`, node("Add",
		func(g *build.Graph) []string { return []string{g.Floats("per_row", make([]float32, 2), 2, 1, 1)} }))
	check(`(Add) joins values that have the batch in different dimensions`, rewritetest.Rows(func(g *build.Graph, x string) string {
		return g.Node("Add", []string{x, g.Node("Unsqueeze", []string{x, g.Int64s("axis1", []int64{1}, 1)})})
	}))
	check(`(MatMul) sums over the rows of a batch`, rewritetest.Rows(func(g *build.Graph, x string) string {
		turned := g.Node("Transpose", []string{x}, build.IntsAttribute("perm", 1, 0, 2)) // [3, batch, 4]
		square := g.Node("Slice", []string{turned, g.Int64s("from", []int64{0}, 1), g.Int64s("to", []int64{2}, 1), g.Int64s("last", []int64{2}, 1)})
		return g.Node("MatMul", []string{square, turned})
	}))
	check(`(BatchNormalization) takes mean and variance of all rows of a batch`, node("BatchNormalization", func(g *build.Graph) []string {
		three := func(name string) string { return g.Floats(name, make([]float32, 3), 3) }
		return []string{three("scale"), three("shift"), three("mean"), three("variance")}
	}, build.IntAttribute("training_mode", 1)))
	check(`(Gather) picks some of the rows of a batch`, node("Gather", axis0))
	check(`(Slice) cuts off rows of a batch`, node("Slice", func(g *build.Graph) []string {
		return []string{g.Int64s("from", []int64{0}, 1), g.Int64s("to", []int64{1}, 1)}
	}))
	check(`(Reshape) takes its target from the graph`, rewritetest.Rows(func(g *build.Graph, x string) string {
		return g.Node("Reshape", []string{x, g.Node("ConstantOfShape", []string{g.Int64s("three", []int64{3}, 1)})})
	}))
	check(`(Reshape) mixes the batch`, node("Reshape", func(g *build.Graph) []string { return []string{g.Int64s("sizes", []int64{3, 8}, 2)} }))
	check(`computes with the size of the batch`, rewritetest.Rows(func(g *build.Graph, x string) string {
		return g.Node("Gather", []string{g.Node("Shape", []string{x}), g.Int64s("first", []int64{0})})
	}))
	check(`(Einsum) is not known to keep the rows of a batch apart`, node("Einsum", nil))
	check(`its output y FLOAT[2] does not have the batch, and it alone, as its first dimension`,
		node("Transpose", nil, build.IntsAttribute("perm", 1, 0, 2)))
	check(`its output y FLOAT[2] does not have the batch`, rewritetest.Rows(func(g *build.Graph, x string) string { return rewritetest.ReshapeTo(g, x, "a", 6, 4) }))
	check(`its output y FLOAT[2] does not have the batch`, rewritetest.Rows(func(g *build.Graph, x string) string {
		return g.Floats("constant", make([]float32, 2), 2)
	}))
}

func int64s(t *testing.T, m *onnx.Model, name string) []int64 {
	t.Helper()
	raw, err := m.Data(m.Initializer(name))
	if err != nil {
		t.Fatal(err)
	}
	var values []int64
	for ; len(raw) > 0; raw = raw[8:] {
		values = append(values, int64(binary.LittleEndian.Uint64(raw)))
	}
	return values
}
