// Package grpcapi is the engine's gRPC front end: Triton's GRPCInferenceService and gRPC's health service.
//
// It decodes requests for engine.Server and encodes what comes back; it decides nothing about models.
package grpcapi

import (
	"context"
	"math"
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"tuner/engine"
	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
)

// Frontend serves gRPC.
type Frontend struct {
	grpc *grpc.Server
}

// New returns a front end of a server. Messages may have any size that the protocol allows.
func New(s *engine.Server) *Frontend {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))
	pb.RegisterGRPCInferenceServiceServer(g, &service{server: s})
	grpc_health_v1.RegisterHealthServer(g, &health{server: s})
	return &Frontend{g}
}

// Serve accepts connections until Shutdown.
func (f *Frontend) Serve(l net.Listener) error { return f.grpc.Serve(l) }

// Shutdown stops accepting and waits until all calls have ended, or ctx has; then it cuts them off.
func (f *Frontend) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, f.grpc.Stop)
	defer stop()
	f.grpc.GracefulStop()
	return ctx.Err()
}

// service answers the calls of the inference protocol; those that it does not have answer that they are not implemented.
type service struct {
	pb.UnimplementedGRPCInferenceServiceServer
	server *engine.Server
}

// statusOf gives an error its gRPC status.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(engine.CodeOf(err)), err.Error())
}

func codeOf(c engine.Code) codes.Code {
	switch c {
	case engine.Internal:
		return codes.Internal
	case engine.NotFound:
		return codes.NotFound
	case engine.InvalidArgument:
		return codes.InvalidArgument
	case engine.Unavailable:
		return codes.Unavailable
	case engine.Unsupported:
		return codes.Unimplemented
	case engine.AlreadyExists:
		return codes.AlreadyExists
	case engine.Cancelled:
		return codes.Canceled
	default:
		return codes.Unknown
	}
}

// parseVersion reads a model version; empty is the newest.
func parseVersion(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -1 {
		return 0, engine.Errorf(engine.InvalidArgument, "failed to get model version from specified version string '%s' (details: expected an integer)", text)
	}
	return max(n, 0), nil
}

func (s *service) ServerLive(context.Context, *pb.ServerLiveRequest) (*pb.ServerLiveResponse, error) {
	return &pb.ServerLiveResponse{Live: true}, nil
}

func (s *service) ServerReady(context.Context, *pb.ServerReadyRequest) (*pb.ServerReadyResponse, error) {
	return &pb.ServerReadyResponse{Ready: s.server.Ready()}, nil
}

func (s *service) ModelReady(_ context.Context, r *pb.ModelReadyRequest) (*pb.ModelReadyResponse, error) {
	version, err := parseVersion(r.GetVersion())
	if err != nil {
		return nil, statusOf(err)
	}
	if err := s.server.ModelReady(r.GetName(), version); err != nil {
		return nil, statusOf(err)
	}
	return &pb.ModelReadyResponse{Ready: true}, nil
}

func (s *service) ServerMetadata(context.Context, *pb.ServerMetadataRequest) (*pb.ServerMetadataResponse, error) {
	m := s.server.Metadata()
	return &pb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

func (s *service) ModelMetadata(_ context.Context, r *pb.ModelMetadataRequest) (*pb.ModelMetadataResponse, error) {
	version, err := parseVersion(r.GetVersion())
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
	version, err := parseVersion(r.GetVersion())
	if err != nil {
		return nil, statusOf(err)
	}
	c, err := s.server.ModelConfig(r.GetName(), version)
	return &pb.ModelConfigResponse{Config: c}, statusOf(err)
}

func (s *service) ModelStatistics(_ context.Context, r *pb.ModelStatisticsRequest) (*pb.ModelStatisticsResponse, error) {
	version, err := parseVersion(r.GetVersion())
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

func (s *service) RepositoryIndex(_ context.Context, r *pb.RepositoryIndexRequest) (*pb.RepositoryIndexResponse, error) {
	if r.GetRepositoryName() != "" {
		return nil, status.Error(codes.Unimplemented, "'repository_name' specification is not supported")
	}
	entries, err := s.server.Index(r.GetReady())
	if err != nil {
		return nil, statusOf(err)
	}
	out := &pb.RepositoryIndexResponse{}
	for _, e := range entries {
		out.Models = append(out.Models, &pb.RepositoryIndexResponse_ModelIndex{Name: e.Name, Version: e.Version, State: e.State, Reason: e.Reason})
	}
	return out, nil
}

func (s *service) RepositoryModelLoad(ctx context.Context, r *pb.RepositoryModelLoadRequest) (*pb.RepositoryModelLoadResponse, error) {
	if r.GetRepositoryName() != "" {
		return nil, status.Error(codes.Unimplemented, "'repository_name' specification is not supported")
	}
	o := engine.Override{Files: map[string][]byte{}}
	for key, value := range r.GetParameters() {
		path, isFile := strings.CutPrefix(key, "file:")
		switch {
		case isFile:
			o.Files[path] = value.GetBytesParam()
		case key == "config":
			o.Config = value.GetStringParam()
		default:
			return nil, status.Errorf(codes.InvalidArgument, "unrecognized load parameter '%s'.", key)
		}
	}
	// A client that goes does not undo a load: the next one would find half of it.
	if err := s.server.Load(context.WithoutCancel(ctx), r.GetModelName(), o); err != nil {
		return nil, statusOf(err)
	}
	return &pb.RepositoryModelLoadResponse{}, nil
}

func (s *service) RepositoryModelUnload(_ context.Context, r *pb.RepositoryModelUnloadRequest) (*pb.RepositoryModelUnloadResponse, error) {
	if r.GetRepositoryName() != "" {
		return nil, status.Error(codes.Unimplemented, "'repository_name' specification is not supported")
	}
	if err := s.server.Unload(r.GetModelName()); err != nil {
		return nil, statusOf(err)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}

// health answers gRPC's own health checks by the server's readiness.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	server *engine.Server
}

func (h *health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if h.server.Ready() {
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}, nil
}
