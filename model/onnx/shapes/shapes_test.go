package shapes_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/shapes"
)

// text formats an info like onnx.Value: "FLOAT[batch,3,?]", "FLOAT[…]", or "" for an absent value.
func text(infos map[string]shapes.Info, name string) string {
	info, ok := infos[name]
	if !ok {
		return ""
	}
	v := onnx.Value{Kind: "tensor", Type: info.Type, Shape: info.Shape, Ranked: info.Ranked}
	return strings.TrimSpace(v.String())
}

// addInput adds to a graph an input in the form of text, or a constant: "=1,2" is INT64[2], "=5!"
// is INT64[], "~0.5,2" is FLOAT[2]. "" is an omitted input.
func addInput(g *build.Graph, name, spec string) string {
	switch {
	case spec == "":
		return ""
	case strings.HasPrefix(spec, "="):
		list, scalar := strings.CutSuffix(spec[1:], "!")
		var values []int64
		for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			v, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				panic(err)
			}
			values = append(values, v)
		}
		if scalar {
			return g.Int64s(name, values)
		}
		return g.Int64s(name, values, int64(len(values)))
	case strings.HasPrefix(spec, "~"):
		var values []float32
		for _, s := range strings.Split(spec[1:], ",") {
			v, err := strconv.ParseFloat(s, 32)
			if err != nil {
				panic(err)
			}
			values = append(values, float32(v))
		}
		return g.Floats(name, values, int64(len(values)))
	}
	typ, list, _ := strings.Cut(strings.TrimSuffix(spec, "]"), "[")
	var dims []onnx.Dim
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		if size, err := strconv.ParseInt(s, 10, 64); err == nil {
			dims = append(dims, onnx.Fixed(size))
		} else {
			dims = append(dims, onnx.Symbol(strings.Trim(s, "?")))
		}
	}
	return g.Input(name, onnx.DataType(onnxpb.TensorProto_DataType_value[typ]), dims...)
}

// withOpset returns the model with another version of ONNX's operator set, or with com.microsoft's
// at version 1.
func withOpset(m *onnx.Model, opset int64) *onnx.Model {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	p.OpsetImport[0].Version = proto.Int64(opset)
	p.OpsetImport = append(p.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("com.microsoft"), Version: proto.Int64(1)})
	return onnx.New(p)
}

// operator is a node to infer.
type operator struct {
	// op: with a domain as prefix ("com.microsoft/Gelu"), and the opset after "@" (17 if absent)
	op         string
	inputs     []string // in the form of addInput
	attributes []*onnxpb.AttributeProto
	want       []string // expected infos of the outputs
}

// model makes a graph of the node. outputs are the names of its outputs.
func (o operator) model() (m *onnx.Model, outputs []string) {
	g := build.NewGraph("node")
	var inputs []string
	for i, spec := range o.inputs {
		inputs = append(inputs, addInput(g, fmt.Sprintf("input%d", i), spec))
	}
	op, version, _ := strings.Cut(o.op, "@")
	outputs = g.Nodes(op, len(o.want), inputs, o.attributes...)
	g.Output(outputs[0], onnx.Float)
	opset := int64(17)
	if version != "" {
		opset, _ = strconv.ParseInt(version, 10, 64)
	}
	p := proto.Clone(withOpset(g.Model(), opset).Proto()).(*onnxpb.ModelProto)
	p.Graph.Output[0].Type = nil // nothing is declared
	if domain, name, ok := strings.Cut(op, "/"); ok {
		p.Graph.Node[0].Domain, p.Graph.Node[0].OpType = proto.String(domain), proto.String(name)
	}
	return onnx.New(p), outputs
}

func TestOperators(t *testing.T) {
	t.Parallel()
	for _, o := range operators() {
		t.Run(o.op, func(t *testing.T) {
			t.Parallel()
			m, outputs := o.model()
			infos, err := shapes.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, len(outputs))
			for i, name := range outputs {
				got[i] = text(infos, name)
			}
			if diff := cmp.Diff(o.want, got); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", o.op, o.inputs, diff)
			}
		})
	}
}

// operators covers every rule, in one long table. Comments derive the sizes that are not obvious.
func operators() []operator {
	i, is := build.IntAttribute, build.IntsAttribute
	s := func(name, v string) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(v)}
	}
	type attributes = []*onnxpb.AttributeProto
	image := "FLOAT[batch,3,32,31]"
	return []operator{
		{"Relu", []string{image}, nil, []string{image}},
		{"Add", []string{"FLOAT[batch,1,4]", "FLOAT[3,1]"}, nil, []string{"FLOAT[batch,3,4]"}},
		{"Add", []string{"FLOAT[batch,4]", "FLOAT[seq,4]"}, nil, []string{"FLOAT[?,4]"}}, // one of the two may be 1
		{"Add", []string{"FLOAT[batch,4]", "FLOAT[7,4]"}, nil, []string{"FLOAT[7,4]"}},
		{"Add@6", []string{"FLOAT[batch,4,5]", "FLOAT[4]"}, attributes{i("axis", 1)}, []string{"FLOAT[batch,4,5]"}},
		{"Less", []string{"INT64[batch]", "=3!"}, nil, []string{"BOOL[batch]"}},
		{"Where", []string{"BOOL[batch,1]", "FLOAT[4]", "~1"}, nil, []string{"FLOAT[batch,4]"}},
		{"Pow", []string{"FLOAT[batch]", "=2!"}, nil, []string{"FLOAT[batch]"}},
		{"Cast", []string{"INT64[batch]"}, attributes{i("to", 10)}, []string{"FLOAT16[batch]"}},
		{"Dropout", []string{"FLOAT[batch]"}, nil, []string{"FLOAT[batch]", "BOOL[batch]"}},
		{"LayerNormalization", []string{"FLOAT16[batch,s,8]", "FLOAT16[8]"}, nil, []string{"FLOAT16[batch,s,8]", "FLOAT[batch,s,1]"}},

		{"MatMul", []string{"FLOAT[batch,12,s,64]", "FLOAT[batch,12,64,s]"}, nil, []string{"FLOAT[batch,12,s,s]"}},
		{"MatMul", []string{"FLOAT[s,64]", "FLOAT[64]"}, nil, []string{"FLOAT[s]"}},
		{"MatMul", []string{"FLOAT[64]", "FLOAT[5,64,3]"}, nil, []string{"FLOAT[5,3]"}},
		{"MatMulInteger", []string{"UINT8[batch,64]", "INT8[64,3]"}, nil, []string{"INT32[batch,3]"}},
		{"Gemm", []string{"FLOAT[64,batch]", "FLOAT[8,64]"}, attributes{i("transA", 1), i("transB", 1)}, []string{"FLOAT[batch,8]"}},
		{"Einsum", []string{"FLOAT[batch,s,8]", "FLOAT[batch,u,8]"}, attributes{s("equation", "bid,bjd->bij")}, []string{"FLOAT[batch,s,u]"}},
		{"DynamicQuantizeLinear", []string{"FLOAT[batch,8]"}, nil, []string{"UINT8[batch,8]", "FLOAT[]", "UINT8[]"}},
		{"QuantizeLinear", []string{"FLOAT[batch,8]", "~0.5", "INT8[]"}, nil, []string{"INT8[batch,8]"}},
		{"QuantizeLinear", []string{"FLOAT[batch,8]", "~0.5"}, nil, []string{"UINT8[batch,8]"}},
		{"DequantizeLinear@21", []string{"INT8[batch,8]", "FLOAT16[]"}, nil, []string{"FLOAT16[batch,8]"}},
		{"com.microsoft/Gelu", []string{image}, nil, []string{image}},
		{"com.example/Gelu", []string{image}, nil, []string{""}},
		{"Unheard", []string{image}, nil, []string{""}},

		// (32+1+1-3)/2+1 = 16 (31/2 = 15 rounded down, +1); (31+1+1-3)/2+1 = 16.
		{"Conv", []string{image, "FLOAT[16,3,3,3]"}, attributes{is("strides", 2, 2), is("pads", 1, 1, 1, 1)}, []string{"FLOAT[batch,16,16,16]"}},
		{"Conv", []string{"FLOAT[1,3,h,w]", "FLOAT[16,3,3,3]"}, attributes{is("pads", 1, 1, 1, 1)}, []string{"FLOAT[1,16,h,w]"}},
		{"Conv", []string{image, "FLOAT[16,3,3,3]"}, attributes{s("auto_pad", "SAME_UPPER"), is("strides", 2, 2)}, []string{"FLOAT[batch,16,16,16]"}},
		// A dilated kernel of 3 spans 5: 32-5+1 = 28, 31-5+1 = 27.
		{"ConvInteger", []string{"UINT8[batch,3,32,31]", "INT8[16,3,3,3]"}, attributes{is("dilations", 2, 2)}, []string{"INT32[batch,16,28,27]"}},
		{"Conv", []string{image, "FLOAT[16,3,99,3]"}, nil, []string{"FLOAT[batch,16,?,29]"}},
		// (32-1)·2+3-1-1+1 = 64, (31-1)·2+3-1-1+1 = 62; channels 8·2.
		{"ConvTranspose", []string{image, "FLOAT[3,8,3,3]"},
			attributes{i("group", 2), is("strides", 2, 2), is("pads", 1, 1, 1, 1), is("output_padding", 1, 1)}, []string{"FLOAT[batch,16,64,62]"}},
		// (32-3)/2 = 14.5 gives 15 windows by floor and 16 by ceil; the last one starts at 30 < 32.
		// (31-3)/2 = 14 gives 15.
		{"MaxPool", []string{image}, attributes{is("kernel_shape", 3, 3), is("strides", 2, 2), i("ceil_mode", 1)}, []string{"FLOAT[batch,3,16,15]", "INT64[batch,3,16,15]"}},
		// With a kernel of 1, every 3rd of 32 elements gives ceil((32-1)/3)+1 = 12 windows. The
		// last would start at 33, beyond the end.
		{"MaxPool", []string{image}, attributes{is("kernel_shape", 1, 1), is("strides", 3, 3), i("ceil_mode", 1)}, []string{"FLOAT[batch,3,?,11]", "INT64[batch,3,?,11]"}},
		{"GlobalAveragePool", []string{image}, nil, []string{"FLOAT[batch,3,1,1]"}},
		{"Resize", []string{image, "", "~1,1,2,0.5"}, nil, []string{"FLOAT[batch,3,64,15]"}}, // 31·0.5 = 15.5
		{"Resize", []string{image, "", "", "=1,3,7,9"}, nil, []string{"FLOAT[1,3,7,9]"}},
		{"Resize@10", []string{image, "~1,1,2,2"}, nil, []string{"FLOAT[batch,3,64,62]"}},
		{"Resize@18", []string{image, "", "", "=7"}, attributes{is("axes", 2)}, []string{"FLOAT[batch,3,7,31]"}},

		{"Reshape", []string{"FLOAT[batch,s,768]", "=0,0,12,64"}, nil, []string{"FLOAT[batch,s,12,64]"}},
		{"Reshape", []string{"FLOAT[batch,s,12,64]", "=0,-1,768"}, nil, []string{"FLOAT[batch,s,768]"}},
		{"Reshape", []string{"FLOAT[batch,s,12,64]", "=-1,768"}, nil, []string{"FLOAT[?,768]"}},
		{"Reshape", []string{"FLOAT[6,4]", "=3,-1"}, nil, []string{"FLOAT[3,8]"}},
		{"Reshape", []string{"FLOAT[0,4]", "=0,7"}, attributes{i("allowzero", 1)}, []string{"FLOAT[0,7]"}},
		{"Reshape", []string{"FLOAT[6,4]", "INT64[3]"}, nil, []string{"FLOAT[?,?,?]"}},
		{"Reshape", []string{"FLOAT[6,4]", "INT64[n]"}, nil, []string{"FLOAT[…]"}},
		{"Flatten", []string{image}, nil, []string{"FLOAT[batch,2976]"}}, // 3·32·31
		{"Transpose", []string{image}, attributes{is("perm", 0, 2, 3, 1)}, []string{"FLOAT[batch,32,31,3]"}},
		{"Transpose", []string{"FLOAT[a,b]"}, nil, []string{"FLOAT[b,a]"}},
		{"Squeeze", []string{"FLOAT[batch,1,s,1]", "=1,-1"}, nil, []string{"FLOAT[batch,s]"}},
		{"Squeeze@11", []string{"FLOAT[batch,1,s,1]"}, attributes{is("axes", 3)}, []string{"FLOAT[batch,1,s]"}},
		{"Squeeze", []string{"FLOAT[batch,1]"}, nil, []string{"FLOAT[…]"}}, // the batch may be 1 too
		{"Unsqueeze", []string{"FLOAT[batch,s]", "=1,-1"}, nil, []string{"FLOAT[batch,1,s,1]"}},
		{"Concat", []string{"FLOAT[batch,2]", "FLOAT[batch,3]"}, attributes{i("axis", -1)}, []string{"FLOAT[batch,5]"}},
		{"Concat", []string{"FLOAT[batch,s]", "FLOAT[?,3]"}, attributes{i("axis", 1)}, []string{"FLOAT[batch,?]"}},
		{"Split", []string{"FLOAT[batch,6]"}, attributes{i("axis", 1)}, []string{"FLOAT[batch,3]", "FLOAT[batch,3]"}},
		{"Split", []string{"FLOAT[batch,6]", "=2,4"}, attributes{i("axis", 1)}, []string{"FLOAT[batch,2]", "FLOAT[batch,4]"}},
		{"Split@18", []string{"FLOAT[7]"}, attributes{i("num_outputs", 2)}, []string{"FLOAT[?]", "FLOAT[?]"}},
		{"Slice", []string{"FLOAT[batch,10]", "=2", "=-1", "=1"}, nil, []string{"FLOAT[batch,7]"}},
		// 9, 7, 5, 3, 1
		{"Slice", []string{"FLOAT[batch,10]", "=9", "=-100", "=1", "=-2"}, nil, []string{"FLOAT[batch,5]"}},
		{"Slice", []string{"FLOAT[batch,10]", "=0", "=9223372036854775807", "=0"}, nil, []string{"FLOAT[batch,10]"}},
		{"Slice", []string{"FLOAT[batch,10]", "=1", "=9223372036854775807", "=0"}, nil, []string{"FLOAT[?,10]"}},
		{"Slice@9", []string{"FLOAT[batch,10]"}, attributes{is("starts", 0), is("ends", 3), is("axes", 1)}, []string{"FLOAT[batch,3]"}},
		{"Slice", []string{"FLOAT[batch,10]", "=0", "INT64[1]", "=1"}, nil, []string{"FLOAT[batch,?]"}},
		{"Gather", []string{"FLOAT[30522,384]", "INT64[batch,s]"}, nil, []string{"FLOAT[batch,s,384]"}},
		{"Gather", []string{"FLOAT[batch,s,384]", "=0!"}, attributes{i("axis", 1)}, []string{"FLOAT[batch,384]"}},
		{"GatherElements", []string{"FLOAT[5,6]", "INT64[2,6]"}, nil, []string{"FLOAT[2,6]"}},
		{"GatherND", []string{"FLOAT[5,6,7]", "INT64[n,2]"}, nil, []string{"FLOAT[n,7]"}},
		{"Expand", []string{"FLOAT[batch,1]", "=2,1,8"}, nil, []string{"FLOAT[2,batch,8]"}},
		{"Tile", []string{"FLOAT[batch,3]", "=1,4"}, nil, []string{"FLOAT[batch,12]"}},
		{"Pad", []string{image, "=0,0,1,1,0,0,2,2"}, nil, []string{"FLOAT[batch,3,35,34]"}},
		{"Pad@18", []string{image, "=1,2", "", "=3"}, nil, []string{"FLOAT[batch,3,32,34]"}},
		{"DepthToSpace", []string{"FLOAT[batch,12,4,5]"}, attributes{i("blocksize", 2)}, []string{"FLOAT[batch,3,8,10]"}},
		{"SpaceToDepth", []string{"FLOAT[batch,3,8,10]"}, attributes{i("blocksize", 2)}, []string{"FLOAT[batch,12,4,5]"}},
		{"Compress", []string{"FLOAT[5,6]", "BOOL[5]"}, attributes{i("axis", 0)}, []string{"FLOAT[?,6]"}},

		{"ReduceMean", []string{"FLOAT[batch,s,8]"}, attributes{is("axes", -1)}, []string{"FLOAT[batch,s,1]"}},
		{"ReduceMean@18", []string{"FLOAT[batch,s,8]", "=1"}, attributes{i("keepdims", 0)}, []string{"FLOAT[batch,8]"}},
		{"ReduceSum", []string{"FLOAT[batch,s,8]"}, nil, []string{"FLOAT[1,1,1]"}},
		{"ReduceSum", []string{"FLOAT[batch,s]"}, attributes{i("noop_with_empty_axes", 1)}, []string{"FLOAT[batch,s]"}},
		{"ReduceSum", []string{"FLOAT[batch,s]", "INT64[1]"}, nil, []string{"FLOAT[?,?]"}},
		{"ArgMax", []string{"FLOAT[batch,s]"}, attributes{i("axis", 1), i("keepdims", 0)}, []string{"INT64[batch]"}},
		{"TopK", []string{"FLOAT[batch,100]", "=5"}, nil, []string{"FLOAT[batch,5]", "INT64[batch,5]"}},
		{"NonZero", []string{"FLOAT[a,b,c]"}, nil, []string{"INT64[3,?]"}},
		{"Shape@15", []string{image}, attributes{i("start", 1), i("end", -1)}, []string{"INT64[2]"}},
		{"Unique", []string{"FLOAT[a]"}, nil, []string{"FLOAT[?]", "INT64[?]"}},

		{"LSTM", []string{"FLOAT[s,batch,8]", "FLOAT[2,64,8]", "FLOAT[2,64,16]"}, attributes{i("hidden_size", 16), s("direction", "bidirectional")},
			[]string{"FLOAT[s,2,batch,16]", "FLOAT[2,batch,16]", "FLOAT[2,batch,16]"}},
		{"GRU", []string{"FLOAT[batch,s,8]", "FLOAT[1,48,8]", "FLOAT[1,48,16]"}, attributes{i("layout", 1)},
			[]string{"FLOAT[batch,s,1,16]", "FLOAT[batch,1,16]"}},

		{"ConstantOfShape", []string{"=2,3"}, nil, []string{"FLOAT[2,3]"}},
		{"Range", []string{"=0!", "=9!", "=2!"}, nil, []string{"INT64[5]"}}, // 0, 2, 4, 6, 8
		{"Range", []string{"=0!", "INT64[]", "=2!"}, nil, []string{"INT64[?]"}},
		{"OneHot", []string{"INT64[batch]", "=10!", "FLOAT[2]"}, nil, []string{"FLOAT[batch,10]"}},
		{"Constant", nil, attributes{is("value_ints", 1, 2, 3)}, []string{"INT64[3]"}},
		{"EyeLike", []string{"FLOAT[3,4]"}, attributes{i("dtype", 7)}, []string{"INT64[3,4]"}},
		{"RandomNormalLike", []string{"FLOAT[3,n]"}, nil, []string{"FLOAT[3,n]"}},
		{"RandomUniform", nil, attributes{is("shape", 2, 3)}, []string{"FLOAT[2,3]"}},
		{"Multinomial", []string{"FLOAT[batch,5]"}, attributes{i("sample_size", 4)}, []string{"INT32[batch,4]"}},
		{"Constant", nil, attributes{i("value_int", 1)}, []string{"INT64[]"}},
		{"Constant", nil, attributes{build.FloatAttribute("value_float", 1)}, []string{"FLOAT[]"}},
		{"Constant", nil, attributes{s("value_string", "a")}, []string{"STRING[]"}},

		{"GridSample", []string{"FLOAT[batch,3,8,9]", "FLOAT[batch,4,5,2]"}, nil, []string{"FLOAT[batch,3,4,5]"}},
		{"RoiAlign", []string{"FLOAT[1,256,50,50]", "FLOAT[n,4]", "INT64[n]"}, attributes{i("output_height", 7), i("output_width", 7)}, []string{"FLOAT[n,256,7,7]"}},
		{"NonMaxSuppression", []string{"FLOAT[1,9,4]", "FLOAT[1,1,9]"}, nil, []string{"INT64[?,3]"}},
		{"Det", []string{"FLOAT[batch,3,3]"}, nil, []string{"FLOAT[batch]"}},
		{"IsNaN", []string{"FLOAT[batch]"}, nil, []string{"BOOL[batch]"}},
		{"CastLike", []string{"FLOAT[batch]", "FLOAT16[]"}, nil, []string{"FLOAT16[batch]"}},
		{"BatchNormalization", []string{image, "FLOAT[3]", "FLOAT[3]", "FLOAT[3]", "FLOAT[3]"}, nil, []string{image}},
		{"QLinearConv", []string{"UINT8[batch,3,8,8]", "~1", "UINT8[]", "INT8[16,3,3,3]", "~1", "INT8[]", "~1", "UINT8[]"}, nil, []string{"UINT8[batch,16,6,6]"}},
		{"QLinearMatMul", []string{"UINT8[batch,8]", "~1", "UINT8[]", "INT8[8,4]", "~1", "INT8[]", "~1", "UINT8[]"}, nil, []string{"UINT8[batch,4]"}},
	}
}

// computing is a graph that computes a shape from that of its input x, FLOAT[batch, s, 768].
type computing struct {
	*build.Graph
	x, shape string // the input, and the value of its shape
}

// dim returns the i-th size as a list with one number.
func (g *computing) dim(i int64) string {
	size := g.Node("Gather", []string{g.shape, g.Int64s(fmt.Sprintf("index%d", i), []int64{i})})
	return g.Node("Unsqueeze", []string{size, g.Int64s(fmt.Sprintf("axis%d", i), []int64{0}, 1)})
}

// list makes a named constant.
func (g *computing) list(name string, v ...int64) string { return g.Int64s(name, v, int64(len(v))) }

// chain concatenates lists.
func (g *computing) chain(parts ...string) string {
	return g.Node("Concat", parts, build.IntAttribute("axis", 0))
}

// checkComputed compares the info of the value that make returns.
func checkComputed(t *testing.T, name, want string, make func(g *computing) string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		g := &computing{Graph: build.NewGraph("computed")}
		g.x = g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Symbol("s"), onnx.Fixed(768))
		g.shape = g.Node("Shape", []string{g.x})
		y := make(g)
		infos, err := shapes.Infer(g.Model())
		if err != nil {
			t.Fatal(err)
		}
		if got := text(infos, y); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// Shapes in the form that exporters write.
func TestComputedShapes(t *testing.T) {
	t.Parallel()
	check := func(name, want string, make func(g *computing) string) { checkComputed(t, name, want, make) }
	check("split heads", "FLOAT[batch,s,12,64]", func(g *computing) string {
		return g.Node("Reshape", []string{g.x, g.chain(g.dim(0), g.dim(1), g.list("heads", 12, 64))})
	})
	check("arithmetic", "FLOAT[batch,s,12,64]", func(g *computing) string {
		width := g.Node("Div", []string{g.dim(2), g.list("twelve", 12)})
		return g.Node("Reshape", []string{g.x, g.chain(g.dim(0), g.dim(-2), g.list("heads", 12), width)})
	})
	check("a product of symbols is open, what remains is not", "FLOAT[?,768]", func(g *computing) string {
		return g.Node("Reshape", []string{g.x, g.chain(g.Node("Mul", []string{g.dim(0), g.dim(1)}), g.dim(2))})
	})
	check("slice of the shape", "FLOAT[batch,s]", func(g *computing) string {
		two := g.Node("Slice", []string{g.shape, g.list("from", 0), g.list("to", 2)})
		return g.Node("ConstantOfShape", []string{two})
	})
	check("expand by a shape with -1", "FLOAT[batch,s,768]", func(g *computing) string {
		// PyTorch compares a size with -1 ("keep it") and then writes 1.
		wanted := g.chain(g.dim(0), g.dim(1), g.list("width", -1))
		keep := g.Node("Equal", []string{wanted, g.list("minus1", -1)})
		target := g.Node("Where", []string{keep, g.list("ones", 1, 1, 1), wanted})
		return g.Node("Expand", []string{g.Floats("row", make([]float32, 768), 768), target})
	})
	check("range over a size", "INT64[?]", func(g *computing) string {
		axis := g.list("axis", 0)
		end := g.Node("Squeeze", []string{g.dim(1), axis})
		return g.Node("Range", []string{g.Int64s("start", []int64{0}), end, g.Int64s("step", []int64{1})})
	})
}

func TestComputedNumbers(t *testing.T) {
	t.Parallel()
	check := func(name, want string, make func(g *computing) string) { checkComputed(t, name, want, make) }
	check("numbers computed step by step", "FLOAT[batch,s,3,256]", func(g *computing) string {
		// 768 = 3·256. 256 is (768+0)/3·1 and 3 is 768 - 765, all as INT32.
		small := g.Node("Cast", []string{g.dim(2)}, build.IntAttribute("to", int64(onnx.Int32)))
		wide := g.Node("Cast", []string{small}, build.IntAttribute("to", int64(onnx.Int64)))
		third := g.Node("Div", []string{g.Node("Add", []string{wide, g.list("zero", 0)}), g.list("three", 3)})
		third = g.Node("Mul", []string{third, g.list("once", 1)})
		rest := g.Node("Sub", []string{wide, g.list("most", 765)})
		return g.Node("Reshape", []string{g.x, g.chain(g.dim(0), g.dim(1), rest, third)})
	})
	check("number of elements", "FLOAT[192]", func(g *computing) string {
		// 768/12·3 = 192, multiplied by ReduceProd.
		width := g.Node("Div", []string{g.dim(2), g.list("twelve", 12)})
		all := g.Node("ReduceProd", []string{g.chain(width, g.list("three", 3))}, build.IntsAttribute("axes", 0))
		return g.Node("ConstantOfShape", []string{all})
	})
	check("repeated number", "FLOAT[batch,s,768]", func(g *computing) string {
		// PyTorch makes a list of ones to keep all sizes in an Expand.
		one := &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Int64)), Dims: []int64{1}, Int64Data: []int64{1}}
		value := &onnxpb.AttributeProto{Name: proto.String("value"), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: one}
		return g.Node("Expand", []string{g.x, g.Node("ConstantOfShape", []string{g.list("three", 3)}, value)})
	})
}

// A loop's body sees only the types of carried values, since their shapes may change. For an If,
// the common part of both branches is known.
func TestSubgraphs(t *testing.T) {
	t.Parallel()
	m := build.ConstantTime(3)
	graphs, err := shapes.All(m)
	if err != nil {
		t.Fatal(err)
	}
	var loop *onnxpb.NodeProto
	for _, n := range m.Nodes() {
		if n.GetOpType() == "Loop" {
			loop = n
		}
	}
	body := onnx.Subgraphs(loop)[0]
	for name, want := range map[string]string{"iteration": "INT64[]", "go_on": "BOOL[]", "matrix": "FLOAT[64,64]", "matrix_next": "FLOAT[64,64]"} {
		if got := text(graphs[body], name); got != want {
			t.Errorf("%s in the body: got %s, want %s", name, got, want)
		}
	}
	if got, want := text(graphs[m.Graph()], loop.GetOutput()[0]), "FLOAT[64,64]"; got != want {
		t.Errorf("the loop's result: got %s, want %s", got, want)
	}

	g := build.NewGraph("if")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	one, two := g.Subgraph("one"), g.Subgraph("two")
	a := one.Node("Relu", []string{x})
	one.Output(a, onnx.Float)
	b := two.Node("Concat", []string{x, x}, build.IntAttribute("axis", 1))
	two.Output(b, onnx.Float)
	y := g.Node("If", []string{g.Input("condition", onnx.Bool)}, build.GraphAttribute("then_branch", one), build.GraphAttribute("else_branch", two))
	infos, err := shapes.Infer(g.Model())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(infos, y), "FLOAT[batch,?]"; got != want {
		t.Errorf("an If of [batch,4] and [batch,8]: got %s, want %s", got, want)
	}
}

// A Scan's body sees the lists' elements. Its results have one more dimension, and the carried
// value keeps its shape.
func TestScan(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("scan")
	body := g.Subgraph("body")
	total := body.Input("total", onnx.Float, onnx.Fixed(4))
	next := body.Node("Add", []string{total, body.Input("element", onnx.Float, onnx.Fixed(4))})
	body.Output(next, onnx.Float, onnx.Fixed(4))
	body.Output(body.Node("Not", []string{body.Node("IsNaN", []string{next})}), onnx.Bool, onnx.Fixed(4))
	start := g.Input("start", onnx.Float, onnx.Fixed(4))
	list := g.Input("list", onnx.Float, onnx.Symbol("length"), onnx.Fixed(4))
	results := g.Nodes("Scan", 2, []string{start, list}, build.GraphAttribute("body", body), build.IntAttribute("num_scan_inputs", 1))
	infos, err := shapes.Infer(g.Model())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"FLOAT[4]", "BOOL[?,4]"} {
		if got := text(infos, results[i]); got != want {
			t.Errorf("result %d: got %s, want %s", i, got, want)
		}
	}
}

func TestUnsortedGraph(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	p.Graph.Node[0], p.Graph.Node[1] = p.Graph.Node[1], p.Graph.Node[0]
	_, err := shapes.Infer(onnx.New(p))
	if want := `the node "node_Add_0" (Add) uses the value "MatMul_0", which no node before it computes`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// samples returns the models of package build for which ONNX's own inference made
// testdata/NAME.json (testdata/infer.py).
func samples() map[string]*onnx.Model {
	return map[string]*onnx.Model{
		"bertsquad": build.BertSquadLike(), "cnn": build.CNN(0), "cnn_fixed": build.CNN(1), "constant_time": build.ConstantTime(10),
		"failing": build.Failing(), "mlp": build.MLP(), "recommender": build.EmbeddingRecommender(), "simple": build.Simple(),
	}
}

// This package knows everything about a value that ONNX knows, and never contradicts it.
func TestAgreesWithONNX(t *testing.T) {
	t.Parallel()
	models := samples()
	if dir := os.Getenv("TUNER_MODELS"); dir != "" {
		m, err := onnx.Read(filepath.Join(dir, "minilm.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		models["minilm"] = m
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]string
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			infos, err := shapes.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			for value, w := range want {
				if got := text(infos, value); !covers(got, w) {
					t.Errorf("%s: got %s, ONNX says %s", value, got, w)
				}
			}
		})
	}
}

// covers reports whether got has all information of want.
func covers(got, want string) bool {
	gotType, gotDims, _ := strings.Cut(got, "[")
	wantType, wantDims, _ := strings.Cut(want, "[")
	if gotType != wantType {
		return false
	}
	if wantDims == "…]" {
		return true
	}
	g, w := strings.Split(gotDims, ","), strings.Split(wantDims, ",")
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		if strings.Trim(w[i], "]") != "?" && g[i] != w[i] {
			return false
		}
	}
	return true
}
