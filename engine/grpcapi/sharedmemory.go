package grpcapi

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
)

// No region of shared memory can be registered. Clients such as perf_analyzer list regions, or
// unregister all of them, before they start. They get the answer of a server that has no region
// yet.

// SystemSharedMemoryStatus lists no region. A region that is named is not found.
func (s *service) SystemSharedMemoryStatus(_ context.Context, r *pb.SystemSharedMemoryStatusRequest) (*pb.SystemSharedMemoryStatusResponse, error) {
	if name := r.GetName(); name != "" {
		return nil, status.Errorf(codes.NotFound, "Unable to find system shared memory region: '%s'", name)
	}
	return &pb.SystemSharedMemoryStatusResponse{}, nil
}

// SystemSharedMemoryUnregister does nothing, without an error.
func (s *service) SystemSharedMemoryUnregister(context.Context, *pb.SystemSharedMemoryUnregisterRequest) (*pb.SystemSharedMemoryUnregisterResponse, error) {
	return &pb.SystemSharedMemoryUnregisterResponse{}, nil
}

// CudaSharedMemoryStatus lists no region. A region that is named is not found.
func (s *service) CudaSharedMemoryStatus(_ context.Context, r *pb.CudaSharedMemoryStatusRequest) (*pb.CudaSharedMemoryStatusResponse, error) {
	if name := r.GetName(); name != "" {
		return nil, status.Errorf(codes.NotFound, "Unable to find cuda shared memory region: '%s'", name)
	}
	return &pb.CudaSharedMemoryStatusResponse{}, nil
}

// CudaSharedMemoryUnregister does nothing, without an error.
func (s *service) CudaSharedMemoryUnregister(context.Context, *pb.CudaSharedMemoryUnregisterRequest) (*pb.CudaSharedMemoryUnregisterResponse, error) {
	return &pb.CudaSharedMemoryUnregisterResponse{}, nil
}
