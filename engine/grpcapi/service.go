// Package grpcapi is the engine's gRPC front end: Triton's GRPCInferenceService and gRPC's health
// service.
//
// It decodes requests for engine.Server and encodes the answers. It decides nothing about models.
// It reads and writes inferences by hand (message.go, response.go), and leaves everything else to
// protobuf.
package grpcapi

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"tuner/engine"
	"tuner/engine/api"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/budget"
	"tuner/engine/buffers"
	"tuner/engine/fault"
	"tuner/engine/grpcapi/compression"
	"tuner/engine/logging"
	"tuner/engine/sharedmemory"
	"tuner/engine/trace"
)

// Options of a front end. The zero value serves everybody, as tritonserver does by default.
type Options struct {
	Restricted  api.Restrictions  // by metadata
	Compression compression.Level // of the answers to inferences
	Keepalive   Keepalive
	// for messages and answers, shared with other front ends; nil: a separate one
	Memory   *budget.Budget
	Settings *logging.Log      // of the log; nil: one that writes nothing
	Requests *logging.Requests // for a line per request; nil: none
	Regions  *sharedmemory.Regions
}

// Keepalive says how connections are checked and ended. A zero field is gRPC's default.
type Keepalive struct {
	Time time.Duration // without a frame for this time, the server pings; 2 hours
	// without an answer to a ping for this time, the connection is closed; 20 seconds
	Timeout            time.Duration
	PermitWithoutCalls bool          // clients may ping without a call
	MinPingInterval    time.Duration // least time between pings of a client; 5 minutes
	MaxAge             time.Duration // largest age of a connection; no limit
	MaxAgeGrace        time.Duration // time for calls to end after that; no limit
}

const (
	// maxHeaders bounds the headers of a call in bytes.
	maxHeaders = 64 << 10
	// maxStreams bounds the calls of a connection at the same time.
	maxStreams = 1 << 14
	// streamWorkers is the number of goroutines that wait for calls. Further calls at the same time
	// get a new goroutine. It costs a fifth of a small inference, since its stack grows.
	streamWorkers = 256
	// handshake bounds the time between the connection and the end of what a client sends first:
	// TLS, HTTP/2's preface and its first settings. A body over HTTP may stop for as long.
	handshake = time.Minute
	// Windows of flow control in bytes. With fixed windows gRPC does not measure the network by
	// pings, which would take one per round trip.
	streamWindow = 16 << 20
	connWindow   = 16 << 20
	// writeBuffer is the number of bytes that are written at once: 16 frames. Connections share buffers.
	writeBuffer = 256 << 10
)

// Frontend serves gRPC.
type Frontend struct {
	grpc    *grpc.Server
	service *service
	memory  *budget.Budget
	transit *budget.Account // for messages that do not belong to a client yet
}

// New returns a front end of a server. Messages may have any size that the protocol allows, up to a
// third of the memory.
func New(s *engine.Server, o Options) *Frontend {
	if o.Memory == nil {
		o.Memory = budget.New(0)
	}
	if o.Settings == nil {
		o.Settings = new(logging.Log)
	}
	f := &Frontend{memory: o.Memory, transit: o.Memory.Open(nil)}
	compression.Charge(f.transit)
	k, b := o.Keepalive, &buffers.Pool{}
	largest := largestMessage(o.Memory)
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(b, f.transit)), experimental.BufferPool(b), grpc.InTapHandle(f.admit),
		grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(math.MaxInt32), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(streamWorkers), grpc.ConnectionTimeout(handshake),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow),
		grpc.WriteBufferSize(writeBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: k.Time, Timeout: k.Timeout, MaxConnectionAge: k.MaxAge, MaxConnectionAgeGrace: k.MaxAgeGrace}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: k.MinPingInterval, PermitWithoutStream: k.PermitWithoutCalls}),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "") }),
	}
	f.service = &service{server: s, tracer: s.Tracer(), compression: o.Compression, guard: guard{o.Restricted}, regions: o.Regions, buffers: b, stopping: make(chan struct{}), settings: o.Settings, requests: o.Requests}
	options = append(options, grpc.UnaryInterceptor(f.service.noted))
	if len(o.Restricted) > 0 {
		options = append(options, grpc.StreamInterceptor(f.service.guard.stream))
	}
	f.grpc = grpc.NewServer(options...)
	f.grpc.RegisterService(description(), f.service)
	grpc_health_v1.RegisterHealthServer(f.grpc, &health{server: s})
	return f
}

// largestMessage returns the size of the largest message. It is held in frames and assembled, and as much
// must stay free.
func largestMessage(memory *budget.Budget) int { return int(min(memory.Max()/3, math.MaxInt32)) }

// Serve accepts connections until Shutdown, which may also come first.
func (f *Frontend) Serve(l net.Listener) error {
	if err := f.grpc.Serve(&listener{l, f.memory, f.service.buffers}); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// If a client has no memory left, admit refuses its calls that take memory, before any part of them
// is kept. All other calls are always answered.
func (f *Frontend) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	switch call.FullMethodName {
	case pb.GRPCInferenceService_ModelInfer_FullMethodName, pb.GRPCInferenceService_ModelStreamInfer_FullMethodName,
		pb.GRPCInferenceService_RepositoryModelLoad_FullMethodName:
		c := clientOf(ctx)
		if account := c.memory(); account.IsFull() {
			err := statusOf(fault.Full(account))
			if f.service.requests.Wanted() {
				f.service.note(begin(ctx, call.FullMethodName), err)
			}
			return nil, err
		}
		return c.begin(ctx), nil
	}
	return ctx, nil
}

// Shutdown stops accepting and waits until all calls have ended. If ctx ends, it cuts them off.
// Streams end once the requests sent by then are answered. It may be called more than once.
func (f *Frontend) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, f.grpc.Stop)
	defer stop()
	f.service.stop()
	f.grpc.GracefulStop()
	f.transit.Close()
	return ctx.Err()
}

// service answers the calls of the inference protocol. Unknown calls get gRPC's status Unimplemented.
type service struct {
	pb.UnimplementedGRPCInferenceServiceServer
	server      *engine.Server
	tracer      *trace.Tracer // nil: nothing is traced
	compression compression.Level
	guard       guard
	pool        pool
	regions     *sharedmemory.Regions
	buffers     *buffers.Pool
	stopping    chan struct{} // closed when streams must end
	stopped     sync.Once
	settings    *logging.Log
	requests    *logging.Requests
}

func (s *service) stop() { s.stopped.Do(func() { close(s.stopping) }) }

// unary serves every call except inferences and streams. The guard must admit the call. unary
// charges the answer, which is never compressed.
func (s *service) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := s.guard.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	if _, err := compression.None.Choose(ctx); err != nil {
		return nil, err
	}
	answer, err := handle(ctx, request)
	m, ok := answer.(proto.Message)
	if err != nil || !ok {
		return answer, err
	}
	var failed error
	out, err := serialise(clientOf(ctx), proto.Size(m), func(b []byte) []byte {
		b, failed = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
		return b
	})
	if err := errors.Join(failed, err); err != nil {
		out.Free()
		return nil, statusOf(err)
	}
	return out, nil
}

// description is the generated one, with our own handlers of inferences.
func description() *grpc.ServiceDesc {
	d := pb.GRPCInferenceService_ServiceDesc
	d.Methods = slices.Clone(d.Methods)
	for i := range d.Methods {
		if d.Methods[i].MethodName == "ModelInfer" {
			d.Methods[i].Handler = serveInfer
		}
	}
	d.Streams = slices.Clone(d.Streams)
	for i := range d.Streams {
		if d.Streams[i].StreamName == "ModelStreamInfer" {
			d.Streams[i].Handler = serveStream
		}
	}
	return &d
}

// health answers gRPC's own health checks by the server's readiness.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	server *engine.Server
}

// Check answers for this one service. As in Triton, any other name is unknown.
func (h *health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if h.server.Ready() {
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}, nil
}

// Watch answers as Triton does, which offers Check alone: status Unimplemented, without a message.
func (h *health) Watch(*grpc_health_v1.HealthCheckRequest, grpc_health_v1.Health_WatchServer) error {
	return status.Error(codes.Unimplemented, "")
}
