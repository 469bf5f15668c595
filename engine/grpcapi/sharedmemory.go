package grpcapi

import (
	"context"
	"slices"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
)

// SystemSharedMemoryRegister registers a region.
func (s *service) SystemSharedMemoryRegister(_ context.Context, r *pb.SystemSharedMemoryRegisterRequest) (*pb.SystemSharedMemoryRegisterResponse, error) {
	return &pb.SystemSharedMemoryRegisterResponse{}, statusOf(s.regions.Register(r.GetName(), r.GetKey(), r.GetOffset(), r.GetByteSize()))
}

// SystemSharedMemoryStatus lists a region, or all without a name.
func (s *service) SystemSharedMemoryStatus(_ context.Context, r *pb.SystemSharedMemoryStatusRequest) (*pb.SystemSharedMemoryStatusResponse, error) {
	list, err := s.regions.Status(r.GetName())
	if err != nil {
		return nil, statusOf(err)
	}
	out := &pb.SystemSharedMemoryStatusResponse{Regions: map[string]*pb.SystemSharedMemoryStatusResponse_RegionStatus{}}
	for _, one := range list {
		out.Regions[one.Name] = &pb.SystemSharedMemoryStatusResponse_RegionStatus{Name: one.Name, Key: one.Key, Offset: one.Offset, ByteSize: one.Size}
	}
	return out, nil
}

// SystemSharedMemoryUnregister forgets a region, or all without a name.
func (s *service) SystemSharedMemoryUnregister(_ context.Context, r *pb.SystemSharedMemoryUnregisterRequest) (*pb.SystemSharedMemoryUnregisterResponse, error) {
	unregister := s.regions.UnregisterAll
	if name := r.GetName(); name != "" {
		unregister = func() error { return s.regions.Unregister(name) }
	}
	return &pb.SystemSharedMemoryUnregisterResponse{}, statusOf(unregister())
}

// CudaSharedMemoryRegister refuses the region.
func (s *service) CudaSharedMemoryRegister(_ context.Context, r *pb.CudaSharedMemoryRegisterRequest) (*pb.CudaSharedMemoryRegisterResponse, error) {
	return nil, statusOf(s.regions.RegisterCUDA(r.GetName()))
}

// CudaSharedMemoryStatus lists no region. A region that is named is not found.
func (s *service) CudaSharedMemoryStatus(_ context.Context, r *pb.CudaSharedMemoryStatusRequest) (*pb.CudaSharedMemoryStatusResponse, error) {
	return &pb.CudaSharedMemoryStatusResponse{}, statusOf(s.regions.StatusCUDA(r.GetName()))
}

// CudaSharedMemoryUnregister does nothing, without an error, since there is no region.
func (s *service) CudaSharedMemoryUnregister(context.Context, *pb.CudaSharedMemoryUnregisterRequest) (*pb.CudaSharedMemoryUnregisterResponse, error) {
	return &pb.CudaSharedMemoryUnregisterResponse{}, nil
}

// delivered copies outputs to their places in regions. It returns the response for the wire, in which
// these are empty. The given one is released as always.
func (m *message) delivered(r *engine.Response) (*engine.Response, error) {
	if err := m.loan.Deliver(&m.request, r.Outputs); err != nil {
		return nil, err
	}
	outputs := slices.Clone(r.Outputs)
	for i := range outputs {
		if t := &outputs[i]; m.loan.Takes(t.Name) {
			t.Data = nil
		}
	}
	return r.View(outputs), nil
}
