package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // requests may be compressed
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/model/modelconfig"
)

// Windows of flow control, in bytes. Fixed windows need no pings to measure the network, one per
// round trip.
const (
	streamWindow     = 1 << 20
	connectionWindow = 16 << 20
)

// service is the server's gRPC interface.
type service struct {
	pb.UnimplementedGRPCInferenceServiceServer
	server *Server
	config *modelconfig.Config
}

// newGRPC makes the gRPC server, which does not listen yet.
func (s *Server) newGRPC() (*grpc.Server, error) {
	config, err := modelConfig()
	if err != nil {
		return nil, err
	}
	answer, err := proto.Marshal(inferResponse(""))
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the answer: %w", err)
	}
	out := grpc.NewServer(grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), answer}),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connectionWindow))
	pb.RegisterGRPCInferenceServiceServer(out, service{server: s, config: config})
	return out, nil
}

// inferResponse returns the whole answer to an inference.
func inferResponse(id string) *pb.ModelInferResponse {
	return &pb.ModelInferResponse{
		ModelName: model, ModelVersion: version, Id: id, RawOutputContents: [][]byte{make([]byte, 4*elements)},
		Outputs: []*pb.ModelInferResponse_InferOutputTensor{{Name: "y", Datatype: "FP32", Shape: []int64{elements}}},
	}
}

// codec is proto's codec, except for inferences: it reads only model and id of a request, and
// answers are prepared.
type codec struct {
	encoding.CodecV2
	answer []byte
}

// Marshal appends the request's id to the prepared answer. The order of fields does not matter.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, isAnswer := v.(*pb.ModelInferResponse)
	switch {
	case !isAnswer:
		return c.CodecV2.Marshal(v)
	case r.GetId() == "":
		return mem.BufferSlice{mem.SliceBuffer(c.answer)}, nil
	}
	id := protowire.AppendTag(nil, idField, protowire.BytesType)
	return mem.BufferSlice{mem.SliceBuffer(c.answer), mem.SliceBuffer(protowire.AppendString(id, r.GetId()))}, nil
}

// Fields of ModelInferRequest. ModelInferResponse has the same number for the id.
const (
	modelField = 1
	idField    = 3
)

// Unmarshal reads the two fields by hand, which skips the tensors.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, isRequest := v.(*pb.ModelInferRequest)
	if !isRequest {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	for rest := buffer.ReadOnlyData(); len(rest) > 0; {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return fmt.Errorf("cannot read a request: %w", protowire.ParseError(n))
		}
		if kind == protowire.BytesType && (number == modelField || number == idField) {
			_, _, head := protowire.ConsumeTag(rest)
			text, _ := protowire.ConsumeString(rest[head:n])
			if number == modelField {
				r.ModelName = text
			} else {
				r.Id = text
			}
		}
		rest = rest[n:]
	}
	return nil
}

// ModelInfer serves an inference.
func (f service) ModelInfer(_ context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	if r.GetModelName() != model {
		return nil, status.Error(codes.NotFound, unknownModel(r.GetModelName()))
	}
	v, fails := f.server.arrive()
	if !f.server.await(v) {
		return nil, status.Error(codes.Unavailable, "the server ends")
	}
	if f.server.leave(v, fails) {
		f.server.stop()
	}
	if fails {
		return nil, status.Error(codes.Internal, "this request was made to fail")
	}
	return &pb.ModelInferResponse{Id: r.GetId()}, nil
}

// ModelStreamInfer serves the inferences of a stream, one after the other.
func (f service) ModelStreamInfer(stream grpc.BidiStreamingServer[pb.ModelInferRequest, pb.ModelStreamInferResponse]) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := &pb.ModelStreamInferResponse{}
		if _, err := f.ModelInfer(stream.Context(), r); err != nil {
			out.ErrorMessage = status.Convert(err).Message()
		} else {
			out.InferResponse = inferResponse(r.GetId())
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// ServerLive always returns true.
func (service) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: true}, nil
}

// ServerReady always returns true.
func (service) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: true}, nil
}

// ModelReady returns true for the one model.
func (service) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	return &pb.ModelReadyResponse{Ready: r.GetName() == model}, nil
}

// ServerMetadata lists the extensions.
func (service) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m := serverMetadata()
	return &pb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

// ModelMetadata describes the one model.
func (f service) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	if r.GetName() != model {
		return nil, status.Error(codes.NotFound, unknownModel(r.GetName()))
	}
	m := f.server.modelMetadata()
	tensors := func(list []api.TensorMetadata) (out []*pb.ModelMetadataResponse_TensorMetadata) {
		for _, t := range list {
			out = append(out, &pb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
		}
		return out
	}
	return &pb.ModelMetadataResponse{
		Name: m.Name, Versions: m.Versions, Platform: m.Platform, Inputs: tensors(m.Inputs), Outputs: tensors(m.Outputs),
	}, nil
}

// ModelConfig returns the one model's configuration.
func (f service) ModelConfig(_ context.Context, r *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	if r.GetName() != model {
		return nil, status.Error(codes.NotFound, unknownModel(r.GetName()))
	}
	return &pb.ModelConfigResponse{Config: f.config}, nil
}

// ModelStatistics returns the counters.
func (f service) ModelStatistics(_ context.Context, r *pb.ModelStatisticsRequest) (*pb.ModelStatisticsResponse, error) {
	if r.GetName() != model && r.GetName() != "" {
		return nil, status.Error(codes.NotFound, unknownModel(r.GetName()))
	}
	d := func(d api.Duration) *pb.StatisticDuration { return &pb.StatisticDuration{Count: d.Count, Ns: d.NS} }
	out := &pb.ModelStatisticsResponse{}
	for _, m := range f.server.statistics().ModelStats {
		i := m.InferenceStats
		out.ModelStats = append(out.ModelStats, &pb.ModelStatistics{
			Name: m.Name, Version: m.Version, LastInference: m.LastInference, InferenceCount: m.InferenceCount, ExecutionCount: m.ExecutionCount,
			InferenceStats: &pb.InferStatistics{
				Success: d(i.Success), Fail: d(i.Fail), Queue: d(i.Queue), ComputeInput: d(i.ComputeInput),
				ComputeInfer: d(i.ComputeInfer), ComputeOutput: d(i.ComputeOutput), CacheHit: d(i.CacheHit), CacheMiss: d(i.CacheMiss),
			},
		})
	}
	return out, nil
}

// RepositoryIndex lists the one model.
func (service) RepositoryIndex(context.Context, *pb.RepositoryIndexRequest) (*pb.RepositoryIndexResponse, error) {
	out := &pb.RepositoryIndexResponse{}
	for _, e := range index() {
		out.Models = append(out.Models, &pb.RepositoryIndexResponse_ModelIndex{Name: e.Name, Version: e.Version, State: e.State})
	}
	return out, nil
}
