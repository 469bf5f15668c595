package grpcapi

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/grpcapi/datatype"
	"tuner/model/modelconfig/configpb"
)

// typical returns perf_analyzer's request for two inputs of 16 integers.
func typical() *pb.ModelInferRequest {
	in := func(name string) *pb.ModelInferRequest_InferInputTensor {
		return &pb.ModelInferRequest_InferInputTensor{Name: name, Datatype: "INT32", Shape: []int64{1, 16}}
	}
	out := func(name string) *pb.ModelInferRequest_InferRequestedOutputTensor {
		return &pb.ModelInferRequest_InferRequestedOutputTensor{Name: name}
	}
	return &pb.ModelInferRequest{ModelName: "simple", Id: "281474976710657",
		Parameters:       map[string]*pb.InferParameter{"triton_enable_empty_final_response": {ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: true}}},
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{in("INPUT0"), in("INPUT1")},
		Outputs:          []*pb.ModelInferRequest_InferRequestedOutputTensor{out("OUTPUT0"), out("OUTPUT1")},
		RawInputContents: [][]byte{make([]byte, 64), make([]byte, 64)}}
}

// BenchmarkDecode compares our decoder, which makes the engine's request, with protobuf's.
func BenchmarkDecode(b *testing.B) {
	wire := marshal(b, typical())
	b.Run("own", func(b *testing.B) {
		p := &pool{}
		data := mem.BufferSlice{mem.SliceBuffer(wire)}
		b.ReportAllocs()
		for b.Loop() {
			m := p.take()
			if err := testCodec.Unmarshal(data, m); err != nil || m.err != nil || m.decode(0) != nil {
				b.Fatal(err, m.err)
			}
			p.put(m)
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := proto.Unmarshal(wire, &pb.ModelInferRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEncode compares our encoder with protobuf's.
func BenchmarkEncode(b *testing.B) {
	tensor := func(name string) engine.Tensor {
		return engine.Tensor{Name: name, DataType: configpb.DataType_TYPE_INT32, Shape: []int64{1, 16}, Data: make([]byte, 64)}
	}
	r := &engine.Response{Model: "simple", Version: 1, ID: "281474976710657", Outputs: []engine.Tensor{tensor("OUTPUT0"), tensor("OUTPUT1")}}
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			answer, err := encode(r, nil)
			if err != nil {
				b.Fatal(err)
			}
			answer.Free()
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out := &pb.ModelInferResponse{ModelName: r.Model, ModelVersion: "1", Id: r.ID}
			for i := range r.Outputs {
				t := &r.Outputs[i]
				out.Outputs = append(out.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: datatype.Name(t.DataType), Shape: t.Shape})
				out.RawOutputContents = append(out.RawOutputContents, t.Data)
			}
			if _, err := proto.Marshal(out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
