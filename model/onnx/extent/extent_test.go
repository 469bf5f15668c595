package extent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
)

func node(domain, op string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{Domain: &domain, OpType: &op, Attribute: attributes}
}

func fn(name string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
	return &onnxpb.FunctionProto{Domain: proto.String("d"), Name: &name, Node: nodes}
}

func graph(nodes ...*onnxpb.NodeProto) *onnxpb.GraphProto { return &onnxpb.GraphProto{Node: nodes} }

func branch(nodes ...*onnxpb.NodeProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{G: graph(nodes...)}
}

// doubling makes a model with n functions. Each of them calls the next one twice.
func doubling(n int) *onnxpb.ModelProto {
	m := &onnxpb.ModelProto{Graph: graph(node("d", "F0"))}
	for i := range n - 1 {
		next := fmt.Sprint("F", i+1)
		m.Functions = append(m.Functions, fn(fmt.Sprint("F", i), node("d", next), node("d", next)))
	}
	m.Functions = append(m.Functions, fn(fmt.Sprint("F", n-1), node("", "Identity")))
	return m
}

func sparse(dims ...int64) *onnxpb.SparseTensorProto {
	return &onnxpb.SparseTensorProto{Dims: dims, Values: &onnxpb.TensorProto{DataType: proto.Int32(int32(onnx.Float))}}
}

func encode(t testing.TB, m *onnxpb.ModelProto) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func measure(data []byte) (alone, whole size, err error) {
	m := model{scanner: newScanner(bytes.NewReader(data)), functions: map[function]*body{}}
	return m.measure(int64(len(data)))
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	data := make([]byte, 100) // 102 bytes in a TensorProto, with tag and length
	constant := &onnxpb.AttributeProto{T: &onnxpb.TensorProto{RawData: data}}
	for name, tc := range map[string]struct {
		model        *onnxpb.ModelProto
		nodes, bytes uint64
	}{
		"no functions": {&onnxpb.ModelProto{Graph: graph(node("", "Add"), node("", "If", branch(node("", "Add")), branch()))}, 3, 0},
		// Level i has 2^i functions with two calls each. The last level has one node each: 1 +
		// 2·(2^3 - 1) + 2^3.
		"doubling":             {doubling(4), 1 + 14 + 8, 0},
		"another domain":       {&onnxpb.ModelProto{Graph: graph(node("e", "F")), Functions: []*onnxpb.FunctionProto{fn("F", node("", "Add"))}}, 1, 0},
		"a call in a branch":   {&onnxpb.ModelProto{Graph: graph(node("", "If", branch(node("d", "F")))), Functions: []*onnxpb.FunctionProto{fn("F", node("", "Add"))}}, 3, 0},
		"a graph handed over":  {&onnxpb.ModelProto{Graph: graph(node("d", "F", branch(node("", "Add"), node("", "Add")))), Functions: []*onnxpb.FunctionProto{fn("F", node("", "Loop"))}}, 3 + 3, 0},
		"constants":            {&onnxpb.ModelProto{Graph: graph(node("d", "F"), node("d", "F")), Functions: []*onnxpb.FunctionProto{fn("F", node("", "Constant", constant))}}, 4, 2 * 102},
		"an initializer":       {&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{{RawData: data}}}}, 0, 102},
		"a sparse initializer": {&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{SparseInitializer: []*onnxpb.SparseTensorProto{sparse(1<<20, 3)}}}, 0, 12 << 20},
		"a sparse attribute":   {&onnxpb.ModelProto{Graph: graph(node("", "Constant", &onnxpb.AttributeProto{SparseTensor: sparse(5)}))}, 1, 20},
		"a negative dimension": {&onnxpb.ModelProto{Graph: graph(node("", "Constant", &onnxpb.AttributeProto{SparseTensor: sparse(-1, -1)}))}, 1, most},
	} {
		plain := encode(t, tc.model)
		// Readers do not know this group, and skip it.
		odd := protowire.AppendTag(plain, 99, protowire.StartGroupType)
		odd = protowire.AppendVarint(protowire.AppendTag(odd, 1, protowire.VarintType), 7)
		odd = protowire.AppendTag(odd, 99, protowire.EndGroupType)
		for _, data := range [][]byte{plain, odd} {
			if _, whole, err := measure(data); err != nil || whole != (size{tc.nodes, tc.bytes}) {
				t.Errorf("%s: got %v, %v, want %d nodes and %d bytes", name, whole, err, tc.nodes, tc.bytes)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	big := &onnxpb.GraphProto{}
	for range 20 {
		big.SparseInitializer = append(big.SparseInitializer, sparse(1<<26)) // 256 MiB each
	}
	circle := &onnxpb.ModelProto{Graph: graph(node("d", "F")), Functions: []*onnxpb.FunctionProto{fn("F", node("d", "G")), fn("G", node("d", "F"))}}
	for name, tc := range map[string]struct {
		data []byte
		want string // empty: not refused
	}{
		"25 functions":    {encode(t, doubling(25)), "its functions unfold into 50331646 nodes, and 262144 are the most that are loaded"},
		"100 functions":   {encode(t, doubling(100)), "its functions unfold into more than 9223372036854775807 nodes"},
		"17 functions":    {encode(t, doubling(17)), ""},
		"a circle":        {encode(t, circle), "its functions call each other without an end"},
		"sparse tensors":  {encode(t, &onnxpb.ModelProto{Graph: big}), "its tensors unfold into 5368709120 bytes; at most 4294967296 are loaded"},
		"an endless name": {encode(t, &onnxpb.ModelProto{Functions: []*onnxpb.FunctionProto{fn(strings.Repeat("F", 2<<20))}}), "one of its names is longer than 1 MiB"},
		"no model":        {[]byte("this is a text"), ""},
		"cut off":         {encode(t, doubling(25))[:100], ""},
		"empty":           {nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, tc.data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Check(path)
		var refused *onnx.FileError
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := Check(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there: no error")
	}
}

// A model that is not nested is read without its weights.
func TestWeightsAreNotRead(t *testing.T) {
	t.Parallel()
	weights := &onnxpb.TensorProto{RawData: make([]byte, 32<<20)}
	data := encode(t, &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{weights}}, Functions: []*onnxpb.FunctionProto{fn("F")}})
	r := &counting{Reader: bytes.NewReader(data)}
	m := model{scanner: newScanner(r), functions: map[function]*body{}}
	if _, _, err := m.measure(int64(len(data))); err != nil || r.bytes > 1<<20 {
		t.Errorf("%v, %d bytes were read of %d", err, r.bytes, len(data))
	}
}

type counting struct {
	*bytes.Reader
	bytes int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// count computes what measure finds in a graph without functions, by another method.
func count(g *onnxpb.GraphProto) uint64 {
	n := uint64(len(g.GetNode()))
	for _, x := range g.GetNode() {
		for _, a := range x.GetAttribute() {
			n += count(a.GetG())
			for _, sub := range a.GetGraphs() {
				n += count(sub)
			}
		}
	}
	return n
}

func FuzzMeasure(f *testing.F) {
	f.Add(encode(f, doubling(4)))
	f.Add(encode(f, &onnxpb.ModelProto{Graph: graph(node("", "If", branch(node("", "Add"))), node("", "Constant", &onnxpb.AttributeProto{SparseTensor: sparse(5, 7)}))}))
	f.Add([]byte{0x3b, 0x08, 0x01, 0x3c})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		m := &onnxpb.ModelProto{}
		sound := proto.Unmarshal(data, m) == nil
		alone, whole, err := measure(data)
		if !sound || errors.Is(err, errName) || errors.Is(err, errCircle) || errors.Is(err, errDeep) {
			return
		}
		if err != nil {
			t.Fatalf("protobuf reads it, and this does not: %v", err)
		}
		again := proto.Clone(m).(*onnxpb.ModelProto)
		if n := count(again.GetGraph()); alone.nodes < n || whole.nodes < alone.nodes {
			t.Fatalf("got %d nodes alone and %d in all, want at least %d", alone.nodes, whole.nodes, n)
		}
	})
}
