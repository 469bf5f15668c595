package grpcapi

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
)

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
	// protobuf's copy stays, in place of the frames, which may have been compressed
	c, size := clientOf(ctx), proto.Size(r)
	c.leave(streamOf(ctx), size)
	if !c.memory().Take(size) {
		return nil, statusOf(fault.Full(c.memory()))
	}
	defer c.memory().Give(size)
	o := engine.Override{Files: map[string][]byte{}}
	for key, value := range r.GetParameters() {
		if err := setOverride(&o, key, value); err != nil {
			return nil, statusOf(err)
		}
	}
	// A client that goes does not stop a load. Otherwise the next client would find half of it.
	if err := s.server.Load(context.WithoutCancel(ctx), r.GetModelName(), o); err != nil {
		return nil, statusOf(err)
	}
	return &pb.RepositoryModelLoadResponse{}, nil
}

// setOverride applies a parameter of a load request.
func setOverride(o *engine.Override, key string, value *pb.ModelRepositoryParameter) error {
	path, isFile := strings.CutPrefix(key, "file:")
	switch v := value.GetParameterChoice().(type) {
	case *pb.ModelRepositoryParameter_StringParam:
		if key == "config" {
			o.Config = v.StringParam
			return nil
		}
	case *pb.ModelRepositoryParameter_BytesParam:
		if isFile {
			o.Files[path] = v.BytesParam
			return nil
		}
	}
	switch {
	case key == "config":
		return fault.Errorf(fault.InvalidArgument, "invalid value type for load parameter '%s', expected string_param.", key)
	case isFile:
		return fault.Errorf(fault.InvalidArgument, "invalid value type for load parameter '%s', expected bytes_param.", key)
	default:
		return fault.Errorf(fault.InvalidArgument, "unrecognized load parameter '%s'.", key)
	}
}

func (s *service) RepositoryModelUnload(_ context.Context, r *pb.RepositoryModelUnloadRequest) (*pb.RepositoryModelUnloadResponse, error) {
	if r.GetRepositoryName() != "" {
		return nil, status.Error(codes.Unimplemented, "'repository_name' specification is not supported")
	}
	unload := s.server.Unload
	if p, given := r.GetParameters()["unload_dependents"]; given {
		choice, ok := p.GetParameterChoice().(*pb.ModelRepositoryParameter_BoolParam)
		if !ok {
			return nil, status.Error(codes.InvalidArgument, "invalid value type for 'unload_dependents' parameter, expected bool_param.")
		}
		if choice.BoolParam {
			unload = s.server.UnloadDependents
		}
	}
	if err := unload(r.GetModelName()); err != nil {
		return nil, statusOf(err)
	}
	return &pb.RepositoryModelUnloadResponse{}, nil
}
