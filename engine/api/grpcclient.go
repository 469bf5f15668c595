package api

import (
	"context"
	"errors"
	"fmt"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "tuner/engine/api/inferencepb"
	"tuner/model/modelconfig"
)

// GRPCClient is a Client over gRPC.
type GRPCClient struct {
	conn  *grpc.ClientConn
	rpc   pb.GRPCInferenceServiceClient
	infer []grpc.CallOption
}

var _ Client = (*GRPCClient)(nil)

// Windows of flow control in bytes. With fixed windows gRPC does not measure the network by pings,
// which would take one per round trip.
const (
	streamWindow = 1 << 20
	connWindow   = 16 << 20
)

// NewGRPC returns a client of the server at address (host:port). It connects when it is first used.
func NewGRPC(address string) (*GRPCClient, error) {
	return newGRPC(address, insecure.NewCredentials())
}

func newGRPC(address string, security credentials.TransportCredentials, options ...grpc.DialOption) (*GRPCClient, error) {
	options = append(options, grpc.WithTransportCredentials(security),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot make a gRPC client of %q: %w", address, err)
	}
	return &GRPCClient{conn, pb.NewGRPCInferenceServiceClient(conn), []grpc.CallOption{grpc.ForceCodecV2(verbatim{})}}, nil
}

// Close closes the connection.
func (c *GRPCClient) Close() error {
	if err := c.conn.Close(); err != nil && status.Code(err) != codes.Canceled {
		return fmt.Errorf("cannot close the connection: %w", err)
	}
	return nil
}

// rpcError converts an error that the server answered to a *StatusError.
func rpcError(ctx context.Context, err error) error {
	s, ok := status.FromError(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.Code() == codes.DeadlineExceeded && hasDeadline(ctx): // the server's clock was slightly ahead of ours
		return context.DeadlineExceeded
	case !ok:
		return fmt.Errorf("cannot ask the server: %w", err)
	}
	return &StatusError{int(s.Code()), s.Message()}
}

func hasDeadline(ctx context.Context) bool {
	_, found := ctx.Deadline()
	return found
}

// ServerReady calls ServerReady.
func (c *GRPCClient) ServerReady(ctx context.Context) (bool, error) {
	r, err := c.rpc.ServerReady(ctx, &pb.ServerReadyRequest{})
	return r.GetReady(), rpcError(ctx, err)
}

// ModelReady calls ModelReady.
func (c *GRPCClient) ModelReady(ctx context.Context, model string) (bool, error) {
	r, err := c.rpc.ModelReady(ctx, &pb.ModelReadyRequest{Name: model})
	err = rpcError(ctx, err)
	var answered *StatusError
	if errors.As(err, &answered) {
		return false, nil
	}
	return r.GetReady(), err
}

// ServerMetadata calls ServerMetadata.
func (c *GRPCClient) ServerMetadata(ctx context.Context) (ServerMetadata, error) {
	r, err := c.rpc.ServerMetadata(ctx, &pb.ServerMetadataRequest{})
	return ServerMetadata{r.GetName(), r.GetVersion(), r.GetExtensions()}, rpcError(ctx, err)
}

// ModelMetadata calls ModelMetadata.
func (c *GRPCClient) ModelMetadata(ctx context.Context, model string) (ModelMetadata, error) {
	r, err := c.rpc.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: model})
	tensors := func(list []*pb.ModelMetadataResponse_TensorMetadata) (out []TensorMetadata) {
		for _, t := range list {
			out = append(out, TensorMetadata{t.GetName(), t.GetDatatype(), t.GetShape()})
		}
		return out
	}
	return ModelMetadata{r.GetName(), r.GetVersions(), r.GetPlatform(), tensors(r.GetInputs()), tensors(r.GetOutputs())}, rpcError(ctx, err)
}

// ModelConfig calls ModelConfig.
func (c *GRPCClient) ModelConfig(ctx context.Context, model string) (*modelconfig.Config, error) {
	r, err := c.rpc.ModelConfig(ctx, &pb.ModelConfigRequest{Name: model})
	return r.GetConfig(), rpcError(ctx, err)
}

// Statistics calls ModelStatistics.
func (c *GRPCClient) Statistics(ctx context.Context, model string) (Statistics, error) {
	r, err := c.rpc.ModelStatistics(ctx, &pb.ModelStatisticsRequest{Name: model})
	var out Statistics
	for _, m := range r.GetModelStats() {
		out.ModelStats = append(out.ModelStats, statisticsOf(m))
	}
	return out, rpcError(ctx, err)
}

func statisticsOf(m *pb.ModelStatistics) ModelStatistics {
	d := func(p *pb.StatisticDuration) Duration { return Duration{p.GetCount(), p.GetNs()} }
	i := m.GetInferenceStats()
	out := ModelStatistics{
		Name: m.GetName(), Version: m.GetVersion(), LastInference: m.GetLastInference(),
		InferenceCount: m.GetInferenceCount(), ExecutionCount: m.GetExecutionCount(),
		InferenceStats: InferenceStatistics{d(i.GetSuccess()), d(i.GetFail()), d(i.GetQueue()),
			d(i.GetComputeInput()), d(i.GetComputeInfer()), d(i.GetComputeOutput()), d(i.GetCacheHit()), d(i.GetCacheMiss())},
	}
	for _, b := range m.GetBatchStats() {
		out.BatchStats = append(out.BatchStats, BatchStatistics{b.GetBatchSize(), d(b.GetComputeInput()), d(b.GetComputeInfer()), d(b.GetComputeOutput())})
	}
	for _, u := range m.GetMemoryUsage() {
		out.MemoryUsage = append(out.MemoryUsage, MemoryUsage{u.GetType(), u.GetId(), u.GetByteSize()})
	}
	return out
}

// Index calls RepositoryIndex.
func (c *GRPCClient) Index(ctx context.Context) ([]IndexEntry, error) {
	r, err := c.rpc.RepositoryIndex(ctx, &pb.RepositoryIndexRequest{})
	var out []IndexEntry
	for _, m := range r.GetModels() {
		out = append(out, IndexEntry{m.GetName(), m.GetVersion(), m.GetState(), m.GetReason()})
	}
	return out, rpcError(ctx, err)
}

// LoadModel calls RepositoryModelLoad.
func (c *GRPCClient) LoadModel(ctx context.Context, model, configJSON string, files ...File) error {
	r := &pb.RepositoryModelLoadRequest{ModelName: model, Parameters: map[string]*pb.ModelRepositoryParameter{}}
	if configJSON != "" {
		r.Parameters["config"] = &pb.ModelRepositoryParameter{ParameterChoice: &pb.ModelRepositoryParameter_StringParam{StringParam: configJSON}}
	}
	for _, f := range files {
		r.Parameters["file:"+f.Path] = &pb.ModelRepositoryParameter{ParameterChoice: &pb.ModelRepositoryParameter_BytesParam{BytesParam: f.Data}}
	}
	_, err := c.rpc.RepositoryModelLoad(ctx, r)
	return rpcError(ctx, err)
}

// UnloadModel calls RepositoryModelUnload.
func (c *GRPCClient) UnloadModel(ctx context.Context, model string) error {
	_, err := c.rpc.RepositoryModelUnload(ctx, &pb.RepositoryModelUnloadRequest{ModelName: model})
	return rpcError(ctx, err)
}

// Encode serialises the request with raw contents.
func (c *GRPCClient) Encode(r InferRequest) (*Encoded, error) {
	body, err := EncodeGRPC(r)
	return &Encoded{body: body}, err
}

// EncodeGRPC serialises a ModelInferRequest with raw contents.
func EncodeGRPC(r InferRequest) ([]byte, error) {
	m := &pb.ModelInferRequest{ModelName: r.Model, ModelVersion: r.Version, Id: r.ID, Parameters: map[string]*pb.InferParameter{}}
	for _, in := range r.Inputs {
		m.Inputs = append(m.Inputs, &pb.ModelInferRequest_InferInputTensor{Name: in.Name, Datatype: in.Datatype, Shape: in.Shape})
		m.RawInputContents = append(m.RawInputContents, in.Data)
	}
	for _, name := range r.Outputs {
		m.Outputs = append(m.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: name})
	}
	if r.Priority != 0 {
		m.Parameters["priority"] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_Uint64Param{Uint64Param: r.Priority}}
	}
	if r.Timeout != 0 { // Triton accepts no other type
		timeout := int64(min(r.Timeout, math.MaxInt64))
		m.Parameters["timeout"] = &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: timeout}}
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request of model %q: %w", r.Model, err)
	}
	return body, nil
}

// Infer sends an encoded request and returns the answer without decoding it.
func (c *GRPCClient) Infer(ctx context.Context, r *Encoded) (*InferResponse, error) {
	var body []byte
	err := c.conn.Invoke(ctx, pb.GRPCInferenceService_ModelInfer_FullMethodName, r.body, &body, c.infer...)
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	return &InferResponse{body: body, decode: func(r *InferResponse) ([]Tensor, error) { return DecodeGRPC(r.body) }}, nil
}

// DecodeGRPC reads the outputs of a serialised ModelInferResponse.
func DecodeGRPC(body []byte) ([]Tensor, error) {
	m := &pb.ModelInferResponse{}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("cannot read an inference's answer: %w", err)
	}
	if len(m.GetOutputs()) != len(m.GetRawOutputContents()) {
		return nil, fmt.Errorf("cannot read an inference's answer: %d outputs, %d raw contents", len(m.GetOutputs()), len(m.GetRawOutputContents()))
	}
	var out []Tensor
	for i, o := range m.GetOutputs() {
		out = append(out, Tensor{o.GetName(), o.GetDatatype(), o.GetShape(), m.GetRawOutputContents()[i]})
	}
	return out, nil
}

// verbatim is a codec for messages that are already serialised.
type verbatim struct{}

var _ encoding.CodecV2 = verbatim{}

// Name returns the name of the encoding.
func (verbatim) Name() string { return "proto" }

// Marshal passes a []byte on.
func (verbatim) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send %T: expected []byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal copies the message into a *[]byte.
func (verbatim) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive %T: expected *[]byte", v)
	}
	*b = data.Materialize()
	return nil
}
