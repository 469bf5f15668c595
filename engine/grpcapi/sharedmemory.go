package grpcapi

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
)

// No region of shared memory can be registered, so that there is none: clients that list regions or unregister all of them
// before they start, as perf_analyzer does, get the answer of a server that has none yet.

// SystemSharedMemoryStatus lists no region; one that is asked for by name is not there.
func (s *service) SystemSharedMemoryStatus(_ context.Context, r *pb.SystemSharedMemoryStatusRequest) (*pb.SystemSharedMemoryStatusResponse, error) {
	if name := r.GetName(); name != "" {
		return nil, status.Errorf(codes.NotFound, "Unable to find system shared memory region: '%s'", name)
	}
	return &pb.SystemSharedMemoryStatusResponse{}, nil
}

// SystemSharedMemoryUnregister has nothing to do, which is no error.
func (s *service) SystemSharedMemoryUnregister(context.Context, *pb.SystemSharedMemoryUnregisterRequest) (*pb.SystemSharedMemoryUnregisterResponse, error) {
	return &pb.SystemSharedMemoryUnregisterResponse{}, nil
}

// CudaSharedMemoryStatus lists no region; one that is asked for by name is not there.
func (s *service) CudaSharedMemoryStatus(_ context.Context, r *pb.CudaSharedMemoryStatusRequest) (*pb.CudaSharedMemoryStatusResponse, error) {
	if name := r.GetName(); name != "" {
		return nil, status.Errorf(codes.NotFound, "Unable to find cuda shared memory region: '%s'", name)
	}
	return &pb.CudaSharedMemoryStatusResponse{}, nil
}

// CudaSharedMemoryUnregister has nothing to do, which is no error.
func (s *service) CudaSharedMemoryUnregister(context.Context, *pb.CudaSharedMemoryUnregisterRequest) (*pb.CudaSharedMemoryUnregisterResponse, error) {
	return &pb.CudaSharedMemoryUnregisterResponse{}, nil
}
