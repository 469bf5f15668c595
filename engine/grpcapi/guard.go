package grpcapi

import (
	"context"
	"crypto/subtle"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tuner/engine/api"
)

// guard admits calls of restricted categories only with the agreed metadata.
type guard struct{ restricted api.Restrictions }

// categories of the calls, by method.
var categories = map[string]api.Category{
	"ServerLive": api.CategoryHealth, "ServerReady": api.CategoryHealth, "ModelReady": api.CategoryHealth,
	// of gRPC's own health service
	"Check": api.CategoryHealth, "List": api.CategoryHealth, "Watch": api.CategoryHealth,
	"ServerMetadata": api.CategoryMetadata, "ModelMetadata": api.CategoryMetadata,
	"ModelInfer": api.CategoryInference, "ModelStreamInfer": api.CategoryInference,
	"ModelConfig": api.CategoryModelConfig, "ModelStatistics": api.CategoryStatistics,
	"RepositoryIndex": api.CategoryModelRepository, "RepositoryModelLoad": api.CategoryModelRepository, "RepositoryModelUnload": api.CategoryModelRepository,
	"SystemSharedMemoryStatus": api.CategorySharedMemory, "SystemSharedMemoryRegister": api.CategorySharedMemory, "SystemSharedMemoryUnregister": api.CategorySharedMemory,
	"CudaSharedMemoryStatus": api.CategorySharedMemory, "CudaSharedMemoryRegister": api.CategorySharedMemory, "CudaSharedMemoryUnregister": api.CategorySharedMemory,
	"TraceSetting": api.CategoryTrace, "LogSettings": api.CategoryLogging,
}

// check returns an error for a call that may not continue. It refuses a method without a category,
// since such a method cannot be restricted.
func (g guard) check(ctx context.Context, fullMethod string) error {
	if len(g.restricted) == 0 {
		return nil
	}
	category, known := categories[fullMethod[strings.LastIndexByte(fullMethod, '/')+1:]]
	if !known {
		return status.Error(codes.Unimplemented, "")
	}
	r, restricted := g.restricted[category]
	if !restricted {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if values := md.Get(r.Header); len(values) > 0 && subtle.ConstantTimeCompare([]byte(values[0]), []byte(r.Value)) == 1 {
		return nil
	}
	return status.Errorf(codes.Unavailable, "This protocol is restricted, expecting header '%s'", r.Header)
}

func (g guard) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := g.check(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handle(server, stream)
}
