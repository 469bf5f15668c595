package onnx_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

func read(t *testing.T, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func save(t *testing.T, m *onnx.Model, path string, maxInline int64) string {
	t.Helper()
	if err := m.Write(path, maxInline); err != nil {
		t.Fatal(err)
	}
	return path
}

func digest(t *testing.T, m *onnx.Model) string {
	t.Helper()
	d, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestInputsAndOutputs(t *testing.T) {
	t.Parallel()
	m := build.BertSquadLike()
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(256)}
	value := func(name string, typ onnx.DataType) onnx.Value {
		return onnx.Value{Name: name, Kind: "tensor", Type: typ, Shape: shape, Ranked: true}
	}
	want := []onnx.Value{value("input_names", onnx.Int64), value("input_mask", onnx.Int64), value("segment_ids", onnx.Int64)}
	if diff := cmp.Diff(want, m.Inputs()); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	want = []onnx.Value{value("start", onnx.Float), value("end", onnx.Float)}
	if diff := cmp.Diff(want, m.Outputs()); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if got := m.Inputs()[0].String(); got != "input_names INT64[batch,256]" {
		t.Errorf("printed as %q", got)
	}
	if m.Opset("") != 17 || m.Opset("ai.onnx") != 17 || m.Opset("com.microsoft") != 0 {
		t.Errorf("opsets %d, %d, %d, want 17, 17, 0", m.Opset(""), m.Opset("ai.onnx"), m.Opset("com.microsoft"))
	}
}

func TestInitializersAreNoInputs(t *testing.T) {
	t.Parallel()
	p := proto.Clone(build.MLP().Proto()).(*onnxpb.ModelProto)
	for _, i := range p.GetGraph().GetInitializer() { // like files before IR version 4
		p.Graph.Input = append(p.Graph.Input, &onnxpb.ValueInfoProto{Name: i.Name})
	}
	m, err := onnx.Parse("old.onnx", encode(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Inputs()) != 1 || m.Inputs()[0].Name != "INPUT" {
		t.Errorf("inputs %v, want INPUT alone", m.Inputs())
	}
	if got, want := len(m.Replaceable()), len(m.Initializers()); got != want {
		t.Errorf("a run may replace %d initializers, want all %d", got, want)
	}
	p.IrVersion = proto.Int64(3)
	if m, err = onnx.Parse("old.onnx", encode(t, p)); err != nil || len(m.Replaceable()) > 0 {
		t.Errorf("before IR version 4: %v, error %v; want none", m.Replaceable(), err)
	}
}

func TestShapesWithoutNumbers(t *testing.T) {
	t.Parallel()
	p := proto.Clone(build.MLP().Proto()).(*onnxpb.ModelProto)
	p.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = nil
	p.Graph.Output[0].Type.GetTensorType().Shape = nil
	m := onnx.New(p)
	if diff := cmp.Diff([]int64{-1, 64}, m.Inputs()[0].Dims()); diff != "" {
		t.Error(diff)
	}
	if got := m.Inputs()[0].String(); got != "INPUT FLOAT[?,64]" {
		t.Errorf("printed as %q", got)
	}
	if v := m.Outputs()[0]; v.Ranked || v.String() != "OUTPUT FLOAT[…]" {
		t.Errorf("an output without a shape is %+v, printed as %q", v, v)
	}
}

func TestProducersAndConsumers(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("consumers")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"))
	body := g.Subgraph("body")
	body.Input("i", onnx.Int64)
	body.Input("go_on", onnx.Bool)
	body.Output("go_on", onnx.Bool)
	inner := body.Node("Mul", []string{"outer", "x"}) // captures both
	body.OutputAs("each", inner, onnx.Float, onnx.Symbol("batch"))
	outer := g.Node("Neg", []string{x})
	loop := g.Node("Loop", []string{g.Int64s("n", []int64{2}), g.True("yes")}, build.GraphAttribute("body", body))
	g.OutputAs("y", loop, onnx.Float, onnx.Symbol("n"), onnx.Symbol("batch"))
	p := g.Model().Proto()
	p.Graph.Node[0].Output[0] = "outer"
	m := onnx.New(p)

	if outer == "" || m.Producer("outer").GetOpType() != "Neg" || m.Producer("x") != nil || m.Producer("n") != nil {
		t.Error("the producers are wrong")
	}
	check := func(value string, want ...string) {
		t.Helper()
		var got []string
		for _, u := range m.Consumers(value) {
			captured := ""
			if u.Index < 0 {
				captured = " in its body"
			}
			got = append(got, u.Node.GetOpType()+captured)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("consumers of %q (-want +got):\n%s", value, diff)
		}
	}
	check("x", "Neg", "Loop in its body")
	check("outer", "Loop in its body")
	check("n", "Loop")
	check("go_on") // the body's own value
	if m.Initializer("n") == nil || m.Initializer("x") != nil {
		t.Error("the initializers are wrong")
	}
}

func TestDataOfEveryStorage(t *testing.T) {
	t.Parallel()
	m := build.Simple()
	check := func(name string, tensor *onnxpb.TensorProto, want ...byte) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := m.Data(tensor)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got % x, want % x", got, want)
			}
		})
	}
	tensor := func(typ onnx.DataType, n int64, fill func(*onnxpb.TensorProto)) *onnxpb.TensorProto {
		p := &onnxpb.TensorProto{Name: proto.String("t"), DataType: proto.Int32(int32(typ)), Dims: []int64{n}}
		fill(p)
		return p
	}
	ints := func(v ...int32) func(*onnxpb.TensorProto) {
		return func(p *onnxpb.TensorProto) { p.Int32Data = v }
	}
	check("raw", tensor(onnx.Int16, 1, func(p *onnxpb.TensorProto) { p.RawData = []byte{1, 2} }), 1, 2)
	check("float", tensor(onnx.Float, 1, func(p *onnxpb.TensorProto) { p.FloatData = []float32{1} }), 0, 0, 0x80, 0x3f)
	check("double", tensor(onnx.Double, 1, func(p *onnxpb.TensorProto) { p.DoubleData = []float64{-2} }), 0, 0, 0, 0, 0, 0, 0, 0xc0)
	check("int64", tensor(onnx.Int64, 1, func(p *onnxpb.TensorProto) { p.Int64Data = []int64{-1} }), 255, 255, 255, 255, 255, 255, 255, 255)
	check("uint64", tensor(onnx.Uint64, 1, func(p *onnxpb.TensorProto) { p.Uint64Data = []uint64{258} }), 2, 1, 0, 0, 0, 0, 0, 0)
	check("uint32", tensor(onnx.Uint32, 1, func(p *onnxpb.TensorProto) { p.Uint64Data = []uint64{258} }), 2, 1, 0, 0)
	check("int32", tensor(onnx.Int32, 1, ints(-2)), 0xfe, 255, 255, 255)
	check("half", tensor(onnx.Float16, 1, ints(0x3c00)), 0, 0x3c) // 1.0
	check("bool", tensor(onnx.Bool, 2, ints(1, 0)), 1, 0)
	check("int8", tensor(onnx.Int8, 1, ints(-1)), 255)
	check("int4", tensor(onnx.DataType(onnxpb.TensorProto_INT4), 3, ints(0x21, 0x03)), 0x21, 0x03)
	check("uint2", tensor(onnx.DataType(25), 5, ints(0x1b, 0x01)), 0x1b, 0x01)
	check("int2", tensor(onnx.DataType(26), 4, func(p *onnxpb.TensorProto) { p.RawData = []byte{0xe4} }), 0xe4)
	check("empty", tensor(onnx.Float, 0, func(*onnxpb.TensorProto) {}))
}

func TestDataRefuses(t *testing.T) {
	t.Parallel()
	m := build.Simple()
	check := func(want string, typ onnx.DataType, raw []byte, dims ...int64) {
		t.Helper()
		_, err := m.Data(&onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(int32(typ)), Dims: dims, RawData: raw})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"w"`) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	check("needs 8 bytes of data, the file has 4", onnx.Float, make([]byte, 4), 2)
	check("impossible shape", onnx.Float, nil, -1)
	check("impossible shape", onnx.Float, nil, 1<<40, 1<<40)
	check("no raw form", onnx.String, nil, 1)
	check("no raw form", onnx.Float, nil, 1<<62)
}

func TestDigest(t *testing.T) {
	t.Parallel()
	path := save(t, build.MLP(), filepath.Join(t.TempDir(), "mlp.onnx"), 0)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if want := hex.EncodeToString(sum[:]); digest(t, read(t, path)) != want || digest(t, build.MLP()) != want {
		t.Errorf("digests %s as read, %s as built, %s of the file", digest(t, read(t, path)), digest(t, build.MLP()), want)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	p := proto.Clone(build.Simple().Proto()).(*onnxpb.ModelProto)
	extra := protowire.AppendString(protowire.AppendTag(nil, 26, protowire.BytesType), "a newer format's field")
	p.ProtoReflect().SetUnknown(extra)
	p.Graph.Node[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 5))
	want := encode(t, p)

	dir := t.TempDir()
	m := read(t, writeFile(t, filepath.Join(dir, "a.onnx"), want))
	got, err := os.ReadFile(save(t, m, filepath.Join(dir, "b.onnx"), 0))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("writing and reading lost fields")
	}
}
