package grpcapi

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/buffers"
	"tuner/engine/grpcapi/datatype"
	"tuner/model/modelconfig/configpb"
)

// asProto returns the message in protobuf's form.
func (m *message) asProto() *pb.ModelInferRequest {
	out := &pb.ModelInferRequest{ModelName: string(m.model), ModelVersion: string(m.version), Id: string(m.id), Parameters: protoParameters(m.parameters)}
	for _, in := range m.inputs {
		out.Inputs = append(out.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: string(in.name), Datatype: string(in.dataType),
			Shape: in.shape, Parameters: protoParameters(in.parameters), Contents: in.contents.asProto()})
	}
	for _, o := range m.outputs {
		out.Outputs = append(out.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: string(o.name), Parameters: protoParameters(o.parameters)})
	}
	out.RawInputContents = append(out.RawInputContents, m.raw...)
	return out
}

// asProto decodes each list as its tensor.
func (c *contents) asProto() *pb.InferTensorContents {
	if c == nil {
		return nil
	}
	out := &pb.InferTensorContents{}
	for _, part := range c.parts {
		err := eachElement(part, func(list protowire.Number, bits uint64, text []byte) error {
			switch list {
			case boolContents:
				out.BoolContents = append(out.BoolContents, bits != 0)
			case intContents:
				out.IntContents = append(out.IntContents, int32(bits))
			case int64Contents:
				out.Int64Contents = append(out.Int64Contents, int64(bits))
			case uintContents:
				out.UintContents = append(out.UintContents, uint32(bits))
			case uint64Contents:
				out.Uint64Contents = append(out.Uint64Contents, bits)
			case fp32Contents:
				out.Fp32Contents = append(out.Fp32Contents, math.Float32frombits(uint32(bits)))
			case fp64Contents:
				out.Fp64Contents = append(out.Fp64Contents, math.Float64frombits(bits))
			case bytesContents:
				out.BytesContents = append(out.BytesContents, text)
			}
			return nil
		})
		if err != nil {
			panic(err) // it was parsed before
		}
	}
	return out
}

func protoParameters(list []parameter) map[string]*pb.InferParameter {
	out := map[string]*pb.InferParameter{}
	for _, p := range list {
		v := &pb.InferParameter{}
		switch p.kind {
		case boolParam:
			v.ParameterChoice = &pb.InferParameter_BoolParam{BoolParam: p.bits != 0}
		case int64Param:
			v.ParameterChoice = &pb.InferParameter_Int64Param{Int64Param: int64(p.bits)}
		case stringParam:
			v.ParameterChoice = &pb.InferParameter_StringParam{StringParam: string(p.text)}
		case doubleParam:
			v.ParameterChoice = &pb.InferParameter_DoubleParam{DoubleParam: math.Float64frombits(p.bits)}
		case uint64Param:
			v.ParameterChoice = &pb.InferParameter_Uint64Param{Uint64Param: p.bits}
		}
		out[string(p.key)] = v
	}
	return out
}

// sample returns a request with all fields.
func sample() *pb.ModelInferRequest {
	parameters := map[string]*pb.InferParameter{
		"priority": {ParameterChoice: &pb.InferParameter_Uint64Param{Uint64Param: 2}},
		"timeout":  {ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: -1}},
		"text":     {ParameterChoice: &pb.InferParameter_StringParam{StringParam: "é"}},
		"number":   {ParameterChoice: &pb.InferParameter_DoubleParam{DoubleParam: -0.5}},
		"flag":     {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: true}},
		"":         {},
	}
	return &pb.ModelInferRequest{ModelName: "m", ModelVersion: "1", Id: "x", Parameters: parameters,
		Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "A", Datatype: "FP32", Shape: []int64{-1, 2, 1 << 40}, Parameters: parameters},
			{Name: "B", Datatype: "BYTES", Contents: &pb.InferTensorContents{BytesContents: [][]byte{{1}, nil}, IntContents: []int32{-1, 1}}},
		},
		Outputs:          []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "C", Parameters: parameters}, {}},
		RawInputContents: [][]byte{{1, 2, 3}, nil},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var testCodec = newCodec(&buffers.Pool{}, nil)

// agree checks that our decoder accepts and reads the same as protobuf.
func agree(t *testing.T, b []byte, m *message) {
	t.Helper()
	want := &pb.ModelInferRequest{}
	wantErr := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, want)
	if err := testCodec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m); err != nil {
		t.Fatal(err)
	}
	err := m.err
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: error %v, protobuf's %v", b, err, wantErr)
	}
	if err != nil {
		return
	}
	if d := cmp.Diff(want, m.asProto(), protocmp.Transform(), cmp.Comparer(sameFloat)); d != "" {
		t.Errorf("%x (-protobuf +own):\n%s", b, d)
	}
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func sameFloat32(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// Two concatenated messages are one serialised request: protobuf merges them.
func TestParseAgrees(t *testing.T) {
	t.Parallel()
	whole := marshal(t, sample())
	m := &message{}
	for _, b := range [][]byte{
		nil,
		whole,
		append(whole[:len(whole):len(whole)], whole...),
		{0x28, 1},              // inputs as a varint: ignored
		{0x2a, 2, 0x18, 5},     // a dimension that is not packed
		{0x2a, 3, 0x1a, 1, 5},  // a packed one
		{0x2a, 3, 0x1a, 1, 85}, // …
		{0x2a, 3, 0x1a, 1, 0xff},
		{0x0a, 1, 0xff},                      // not UTF-8
		{0x22, 3, 0x0a, 1, 0xff},             // a key that is not UTF-8
		{0x22, 5, 0x12, 3, 0x1a, 1, 0xff},    // a string that is not UTF-8
		{0x22, 6, 0x12, 2, 8, 1, 0x12, 0},    // a parameter in two parts
		{0x22, 4, 0x12, 2, 8, 2},             // true as 2
		{0x22, 0, 0x22, 4, 0x12, 2, 8, 1},    // the same key twice
		{0x0b, 0x0c},                         // a group in place of a string
		{0x0b, 0x14},                         // a group that another one ends
		{0x0c},                               // only the end of a group
		{0},                                  // field 0
		{0xf8, 0xff, 0xff, 0xff, 0x0f, 0},    // the largest field number
		{0xf8, 0xff, 0xff, 0xff, 0x1f, 0},    // a larger one
		{0x2a, 8, 0x2a, 2, 8, 1, 0x2a, 2, 8}, // contents that are cut off
		{0x2a, 8, 0x2a, 2, 8, 1, 0x2a, 2, 8, 0},
		{0x2a, 7, 0x2a, 5, 0x12, 3, 1, 0xff, 1}, // packed integers
		{0x2a, 5, 0x2a, 3, 0x12, 1, 0xff},       // one that is cut off
		{0x2a, 7, 0x2a, 5, 0x35, 1, 2, 3, 4},    // a float that is not packed
		{0x2a, 6, 0x2a, 4, 0x32, 2, 1, 2},       // half a float
		{0x2a, 4, 0x2a, 2, 0x40, 1},             // strings as a varint: ignored
	} {
		agree(t, b, m)
	}
	for i := range whole {
		agree(t, whole[:i], m)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(marshal(f, sample()))
	f.Add([]byte{0x2a, 8, 0x2a, 2, 8, 1, 0x2a, 2, 8, 0})
	f.Add([]byte{0x22, 6, 0x12, 2, 8, 1, 0x12, 0, 0x0b, 0x0c})
	m := &message{}
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, b, m) })
}

// A short message must not take much memory by listing many empty elements.
func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	for name, one := range map[string][]byte{"inputs": {0x2a, 0}, "outputs": {0x32, 0}, "raw contents": {0x3a, 0}, "parameters": {0x22, 0}} {
		var b []byte
		for range maxElements {
			b = append(b, one...)
		}
		if err := (&message{}).parse(b); err != nil {
			t.Errorf("%s, %d: %v", name, maxElements, err)
		}
		if err := (&message{}).parse(append(b, one...)); err != errTooMany {
			t.Errorf("%s, one more: %v, want %v", name, err, errTooMany)
		}
	}
}

// Typed contents are bounded over all inputs of a message.
func TestTypedContentsAreBounded(t *testing.T) {
	t.Parallel()
	nest := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	// an input whose contents are one long string
	input := nest(5, nest(5, nest(8, make([]byte, maxContents/2-16))))
	two := slices.Concat(input, input)
	if err := (&message{}).parse(two); err != nil {
		t.Errorf("two inputs: %v", err)
	}
	if err := (&message{}).parse(append(two, input...)); err != errContents {
		t.Errorf("three inputs: got %v, want %v", err, errContents)
	}
}

// Typed contents give exactly the elements that were sent, and only those of the input's own type.
func FuzzContents(f *testing.F) {
	for _, c := range []*pb.InferTensorContents{
		{BoolContents: []bool{true, false}}, {IntContents: []int32{1, -128, 300}}, {Int64Contents: []int64{1 << 40}}, {UintContents: []uint32{255, 70000}},
		{Uint64Contents: []uint64{1}}, {Fp32Contents: []float32{0.5}}, {Fp64Contents: []float64{0.5}}, {BytesContents: [][]byte{[]byte("ab"), nil}},
	} {
		f.Add(marshal(f, c), byte(configpb.DataType_TYPE_INT8))
	}
	f.Fuzz(func(t *testing.T, b []byte, number byte) {
		want, got := &pb.InferTensorContents{}, &contents{}
		wantErr := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, want)
		if err := got.add(b); (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: error %v, protobuf's %v", b, err, wantErr)
		}
		if wantErr != nil {
			return
		}
		if d := cmp.Diff(want, got.asProto(), protocmp.Transform(), cmp.Comparer(sameFloat), cmp.Comparer(sameFloat32)); d != "" {
			t.Errorf("%x (-protobuf +own):\n%s", b, d)
		}
		tensor := &engine.Tensor{Name: "x", DataType: engine.DataType(int(number) % len(configpb.DataType_name))}
		m := &message{}
		if m.decodeContents(tensor, got) != nil {
			return
		}
		if want := contentsSize(tensor.DataType, want); len(tensor.Data) != want || cap(tensor.Data) != want {
			t.Errorf("%s of %v: %d bytes, of %d charged, want %d", datatype.Name(tensor.DataType), got, len(tensor.Data), cap(tensor.Data), want)
		}
	})
}

// contentsSize returns the bytes of all values together, as elements of the type.
func contentsSize(t engine.DataType, c *pb.InferTensorContents) int {
	width := widths[t]
	if t == configpb.DataType_TYPE_STRING {
		width = 4
	}
	size := width * (len(c.GetBoolContents()) + len(c.GetIntContents()) + len(c.GetInt64Contents()) + len(c.GetUintContents()) +
		len(c.GetUint64Contents()) + len(c.GetFp32Contents()) + len(c.GetFp64Contents()) + len(c.GetBytesContents()))
	for _, s := range c.GetBytesContents() {
		size += len(s)
	}
	return size
}
