package quantization_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/onnx/rewrite/rewritetest"
)

// oldModel makes a model of an older operator set: a convolution, then more nodes that add writes.
func oldModel(version int64, add func(g *build.Graph, x string) string) *onnx.Model {
	g := build.NewGraph("old")
	x := g.Input("x", onnx.Float, onnx.Fixed(1), onnx.Fixed(2), onnx.Fixed(4), onnx.Fixed(4))
	y := add(g, g.Node("Conv", []string{x, g.Floats("w", []float32{1, 2, 3, 4}, 2, 2, 1, 1)}))
	g.OutputAs("y", g.Node("Relu", []string{y}), onnx.Float, onnx.Symbol("a"), onnx.Symbol("b"), onnx.Symbol("c"), onnx.Symbol("d"))
	return rewritetest.Changed(g.Model(), func(p *onnxpb.ModelProto) {
		p.OpsetImport[0].Version, p.IrVersion = proto.Int64(version), proto.Int64(4)
	})
}

// oldCase is a model of an older operator set.
type oldCase struct {
	add     func(g *build.Graph, x string) string
	version int64
	raised  bool
	want    string // a node of the result, as op(inputs){attributes}
}

func oldCases() map[string]oldCase {
	return map[string]oldCase{
		"nothing changed": {func(_ *build.Graph, x string) string { return x }, 11, true, "Conv(2){}"},
		"squeeze": {func(g *build.Graph, x string) string {
			return g.Node("Unsqueeze", []string{g.Node("Squeeze", []string{x}, build.IntsAttribute("axes", 0))}, build.IntsAttribute("axes", 0))
		}, 12, true, "Squeeze(2){}"},
		"sum": {func(g *build.Graph, x string) string {
			return g.Node("ReduceSum", []string{x}, build.IntsAttribute("axes", 2), build.IntAttribute("keepdims", 1))
		}, 12, true, "ReduceSum(2){keepdims}"},
		"sum of all": {func(g *build.Graph, x string) string { return g.Node("ReduceSum", []string{x}) }, 12, true, "ReduceSum(1){}"},
		"split": {func(g *build.Graph, x string) string {
			return g.Nodes("Split", 2, []string{x}, build.IntAttribute("axis", 1), build.IntsAttribute("split", 1, 1))[0]
		}, 12, true, "Split(2){axis}"},
		"dropout": {func(g *build.Graph, x string) string {
			return g.Node("Dropout", []string{x}, build.FloatAttribute("ratio", 0.5))
		}, 11, true, "Dropout(1){}"},
		"softmax without inputs": {func(g *build.Graph, x string) string {
			return g.Node("Add", []string{x, g.Node("Softmax", nil)})
		}, 12, false, "Softmax(0){}"},
		"softmax, last": {func(g *build.Graph, x string) string {
			return g.Node("Softmax", []string{x}, build.IntAttribute("axis", 3))
		}, 12, true, "Softmax(1){axis}"},
		"softmax, from end": {func(g *build.Graph, x string) string {
			return g.Node("Softmax", []string{x}, build.IntAttribute("axis", -1))
		}, 12, true, "Softmax(1){axis}"},
		"softmax, several": {func(g *build.Graph, x string) string { return g.Node("Softmax", []string{x}) }, 12, false, ""},
		"too old":          {func(_ *build.Graph, x string) string { return x }, 10, false, ""},
	}
}

// Operators whose form changed get that of operator set 13. A model in which one has no such form
// keeps its operator set, and is refused.
func TestOperatorSetIsRaised(t *testing.T) {
	t.Parallel()
	for name, c := range oldCases() {
		m := oldModel(c.version, c.add)
		before, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		values, err := quantization.Activations(m)
		if !c.raised {
			if err == nil || !strings.Contains(err.Error(), "the operators of int8_static need 13") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ranges := map[string]quantization.Range{}
		for _, v := range values {
			ranges[v] = quantization.Range{Min: -1, Max: 1}
		}
		made, summary, err := quantization.Static(m, quantization.StaticOptions{Ranges: ranges})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var nodes []string
		for _, node := range made.Nodes() {
			var attributes []string
			for _, a := range node.GetAttribute() {
				attributes = append(attributes, a.GetName())
			}
			nodes = append(nodes, node.GetOpType()+"("+string(rune('0'+len(node.GetInput())))+"){"+strings.Join(attributes, ",")+"}")
		}
		if made.Opset("") != 13 || made.Proto().GetIrVersion() < 7 || !slices.Contains(nodes, c.want) {
			t.Errorf("%s: operator set %d, IR %d, nodes %v; want %s", name, made.Opset(""), made.Proto().GetIrVersion(), nodes, c.want)
		}
		if !slices.ContainsFunc(summary.Notes, func(note string) bool { return strings.HasPrefix(note, "its operator set is 13 now") }) {
			t.Errorf("%s: the notes do not tell: %q", name, summary.Notes)
		}
		if after, err := m.Digest(); err != nil || after != before {
			t.Errorf("%s: the source changed, %v", name, err)
		}
	}
}

// A raised model computes what the original computes, on ONNX Runtime.
func TestRaisedModelsAreTheSame(t *testing.T) {
	for name, c := range oldCases() {
		if !c.raised {
			continue
		}
		m := oldModel(c.version, c.add)
		raised, err := quantization.RaiseOpset(m)
		if err != nil || raised.Opset("") != 13 {
			t.Fatalf("%s: operator set %d, %v", name, raised.Opset(""), err)
		}
		in := orttest.Random(t, m, 1, 3)
		want, got := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in), orttest.InferFloats(t, orttest.LoadOneThread(t, raised), in)
		if diff := cmp.Diff(want, got); diff != "" || len(want["y"]) == 0 {
			t.Errorf("%s (-original +raised):\n%s", name, diff)
		}
	}
	for name, height := range map[string]int64{"ppocr_det": 64, "ppocr_cls": 48, "ppocr_rec": 48} {
		path := filepath.Join(os.Getenv("TUNER_MODELS"), "published", name+".onnx")
		if _, err := os.Stat(path); err != nil {
			t.Logf("%s is not there: run make -C lab published", name)
			continue
		}
		m, err := onnx.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		clean, err := rewrite.Clean(m)
		if err != nil {
			t.Fatal(err)
		}
		raised, err := quantization.RaiseOpset(clean)
		if err != nil || raised.Opset("") != 13 {
			t.Fatalf("%s: operator set %d, %v", name, raised.Opset(""), err)
		}
		in := map[string]inputs.Tensor{"x": orttest.FloatTensor(slices.Repeat([]float32{0.1, -0.4, 0.7, 0.2}, int(3*height*64/4)), 1, 3, height, 64)}
		want, got := orttest.InferFloats(t, orttest.LoadOneThread(t, m), in), orttest.InferFloats(t, orttest.LoadOneThread(t, raised), in)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-4, 1e-5)); diff != "" {
			t.Errorf("%s (-original +raised):\n%s", name, diff)
		}
	}
}
