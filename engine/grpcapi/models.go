package grpcapi

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
	"tuner/engine/grpcapi/modelversion"
)

// statusOf converts an error to its gRPC status.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(fault.CodeOf(err)), fault.TextOf(err))
}

func codeOf(c fault.Code) codes.Code {
	switch c {
	case fault.Internal:
		return codes.Internal
	case fault.NotFound:
		return codes.NotFound
	case fault.InvalidArgument:
		return codes.InvalidArgument
	case fault.Unavailable:
		return codes.Unavailable
	case fault.Unsupported:
		return codes.Unimplemented
	case fault.AlreadyExists:
		return codes.AlreadyExists
	case fault.Cancelled:
		return codes.Canceled
	case fault.Exhausted:
		return codes.ResourceExhausted
	default:
		return codes.Unknown
	}
}

func (s *service) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: s.server.Live()}, nil
}

func (s *service) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: s.server.Ready()}, nil
}

func (s *service) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	version, err := modelversion.Parse(r.GetName(), r.GetVersion())
	if err == nil {
		err = s.server.ModelReady(r.GetName(), version)
	}
	if code := fault.CodeOf(err); err != nil && code != fault.NotFound && code != fault.Unavailable {
		return nil, statusOf(err)
	}
	return &pb.ModelReadyResponse{Ready: err == nil}, nil
}

func (s *service) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m := s.server.Metadata()
	return &pb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (s *service) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	version, err := modelversion.Parse(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, statusOf(err)
	}
	m, err := s.server.ModelMetadata(r.GetName(), version)
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform,
		Inputs: tensorMetadata(m.Inputs), Outputs: tensorMetadata(m.Outputs)}, nil
}

func tensorMetadata(tensors []api.TensorMetadata) []*pb.ModelMetadataResponse_TensorMetadata {
	var out []*pb.ModelMetadataResponse_TensorMetadata
	for _, t := range tensors {
		out = append(out, &pb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
	}
	return out
}

func (s *service) ModelConfig(_ context.Context, r *pb.ModelConfigRequest) (*pb.ModelConfigResponse, error) {
	version, err := modelversion.Parse(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, statusOf(err)
	}
	c, err := s.server.ModelConfig(r.GetName(), version)
	return &pb.ModelConfigResponse{Config: c}, statusOf(err)
}

func (s *service) ModelStatistics(_ context.Context, r *pb.ModelStatisticsRequest) (*pb.ModelStatisticsResponse, error) {
	version, err := modelversion.Parse(r.GetName(), r.GetVersion())
	if fault.CodeOf(err) == fault.NotFound && err != nil {
		err = fault.Errorf(fault.InvalidArgument, "requested model version is not available for model '%s'", r.GetName())
	}
	if err != nil {
		return nil, statusOf(err)
	}
	stats, err := s.server.Statistics(r.GetName(), version)
	if err != nil {
		return nil, statusOf(err)
	}
	out := &pb.ModelStatisticsResponse{}
	for i := range stats.ModelStats {
		out.ModelStats = append(out.ModelStats, statistics(&stats.ModelStats[i]))
	}
	return out, nil
}
