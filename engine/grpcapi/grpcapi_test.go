package grpcapi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

func connect(t *testing.T, e *enginetest.Engine) (*grpc.ClientConn, pb.GRPCInferenceServiceClient) {
	t.Helper()
	conn, err := grpc.NewClient(e.Addresses.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn, pb.NewGRPCInferenceServiceClient(conn)
}

func input(name, dataType string, shape ...int64) *pb.ModelInferRequest_InferInputTensor {
	return &pb.ModelInferRequest_InferInputTensor{Name: name, Datatype: dataType, Shape: shape}
}

func request() *pb.ModelInferRequest {
	return &pb.ModelInferRequest{ModelName: "fake", Id: "1",
		Inputs:           []*pb.ModelInferRequest_InferInputTensor{input("INPUT0", "INT32", 1, 16), input("INPUT1", "INT32", 1, 16)},
		RawInputContents: [][]byte{make([]byte, 64), make([]byte, 64)},
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	conn, client := connect(t, e)
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", answer, err)
	}
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("watch: %v, want unimplemented", err)
	}
	for name, want := range map[string]bool{"fake": true, "x": false} {
		if ready, err := client.ModelReady(t.Context(), &pb.ModelReadyRequest{Name: name}); err != nil || ready.GetReady() != want {
			t.Errorf("model %s: ready %v, %v; want %v", name, ready.GetReady(), err, want)
		}
	}
	if live, err := client.ServerLive(t.Context(), &pb.ServerLiveRequest{}); err != nil || !live.GetLive() {
		t.Errorf("live: %v, %v", live, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{}))
	parameter := func(key string, p *pb.InferParameter) func(*pb.ModelInferRequest) {
		return func(r *pb.ModelInferRequest) { r.Parameters = map[string]*pb.InferParameter{key: p} }
	}
	for _, tc := range []struct {
		name   string
		change func(*pb.ModelInferRequest)
		code   codes.Code
		want   string
	}{
		{"unknown model", func(r *pb.ModelInferRequest) { r.ModelName = "x" }, codes.NotFound, "Request for unknown model: 'x' is not found"},
		{"version", func(r *pb.ModelInferRequest) { r.ModelVersion = "one" }, codes.InvalidArgument, "failed to get model version from specified version string 'one' (details: stol), version should be an integral value > 0"},
		{"raw and contents", func(r *pb.ModelInferRequest) { r.Inputs[0].Contents = &pb.InferTensorContents{IntContents: []int32{1}} }, codes.InvalidArgument,
			"contents field must not be specified when using raw_input_contents for 'INPUT0' for model 'fake'"},
		{"raw contents missing", func(r *pb.ModelInferRequest) { r.RawInputContents = r.RawInputContents[:1] }, codes.InvalidArgument, "unable to find data for input tensor 'INPUT1' for model 'fake' in request."},
		{"no contents", func(r *pb.ModelInferRequest) { r.RawInputContents = nil }, codes.InvalidArgument, "unable to find data for input tensor 'INPUT0' for model 'fake' in request."},
		{"priority", parameter("priority", &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: "1"}}), codes.InvalidArgument,
			"invalid value type for 'priority' parameter, expected int64_param or uint64_param."},
		{"reserved", parameter("triton_x", &pb.InferParameter{}), codes.InvalidArgument,
			"parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response"},
		{"half floats as contents", func(r *pb.ModelInferRequest) {
			r.RawInputContents = nil
			r.Inputs[0].Datatype = "BF16"
			r.Inputs[0].Contents = &pb.InferTensorContents{Fp32Contents: []float32{1}}
		}, codes.InvalidArgument, "unexpected explicit tensor data for input tensor 'INPUT0' for model 'fake' of type 'FP32', expected datatype 'BF16'"},
		{"integer too wide", func(r *pb.ModelInferRequest) {
			r.RawInputContents = nil
			r.Inputs[0].Datatype = "INT8"
			r.Inputs[0].Contents = &pb.InferTensorContents{IntContents: []int32{128}}
		}, codes.InvalidArgument, "value 128 of input 'INPUT0' does not fit INT8"},
		{"shared memory", func(r *pb.ModelInferRequest) {
			r.Inputs[0].Parameters = map[string]*pb.InferParameter{"shared_memory_region": {}}
		}, codes.InvalidArgument, "invalid value type for 'shared_memory_region' parameter for tensor 'INPUT0', expected string_param."},
	} {
		r := request()
		tc.change(r)
		_, err := c.ModelInfer(t.Context(), r)
		if got := status.Convert(err); got.Code() != tc.code || got.Message() != tc.want {
			t.Errorf("%s:\n got %v %s\nwant %v %s", tc.name, got.Code(), got.Message(), tc.code, tc.want)
		}
	}
	if _, err := c.RepositoryModelLoad(t.Context(), &pb.RepositoryModelLoadRequest{RepositoryName: "r", ModelName: "fake"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("repository name: %v", err)
	}
	if _, err := c.RepositoryModelLoad(t.Context(), &pb.RepositoryModelLoadRequest{ModelName: "fake", Parameters: map[string]*pb.ModelRepositoryParameter{"x": {}}}); status.Convert(err).Message() != "unrecognized load parameter 'x'." {
		t.Errorf("load parameter: %v", err)
	}
}

// Typed contents and raw contents with the same values give the same answer.
func TestTypedContents(t *testing.T) {
	t.Parallel()
	for dataType, tc := range map[string]struct {
		contents *pb.InferTensorContents // 1, 2
		raw      []byte
	}{
		"BOOL":   {&pb.InferTensorContents{BoolContents: []bool{true, false}}, []byte{1, 0}},
		"INT8":   {&pb.InferTensorContents{IntContents: []int32{1, -2}}, []byte{1, 254}},
		"INT16":  {&pb.InferTensorContents{IntContents: []int32{1, -2}}, []byte{1, 0, 254, 255}},
		"INT32":  {&pb.InferTensorContents{IntContents: []int32{1, -2}}, []byte{1, 0, 0, 0, 254, 255, 255, 255}},
		"INT64":  {&pb.InferTensorContents{Int64Contents: []int64{1, 2}}, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}},
		"UINT8":  {&pb.InferTensorContents{UintContents: []uint32{1, 255}}, []byte{1, 255}},
		"UINT16": {&pb.InferTensorContents{UintContents: []uint32{1, 258}}, []byte{1, 0, 2, 1}},
		"UINT32": {&pb.InferTensorContents{UintContents: []uint32{1, 258}}, []byte{1, 0, 0, 0, 2, 1, 0, 0}},
		"UINT64": {&pb.InferTensorContents{Uint64Contents: []uint64{1, 2}}, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}},
		"FP32":   {&pb.InferTensorContents{Fp32Contents: []float32{1, 2}}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		"FP64":   {&pb.InferTensorContents{Fp64Contents: []float64{1, 2}}, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40}},
		"BYTES":  {&pb.InferTensorContents{BytesContents: [][]byte{[]byte("ab"), nil}}, []byte{2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0}},
	} {
		t.Run(dataType, func(t *testing.T) {
			t.Parallel()
			inModel, err := modelconfig.DataTypeOf(dataType)
			if err != nil {
				t.Fatal(err)
			}
			tensor := []modelconfig.Tensor{{Name: "X", DataType: inModel, Dims: []int64{-1, 2}}}
			e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{IO: modelconfig.ModelIO{Inputs: tensor, Outputs: tensor}}})
			_, c := connect(t, e)
			typed, raw := input("X", dataType, 1, 2), input("X", dataType, 1, 2)
			typed.Contents = tc.contents
			for name, r := range map[string]*pb.ModelInferRequest{
				"typed": {ModelName: "fake", Inputs: []*pb.ModelInferRequest_InferInputTensor{typed}},
				"raw":   {ModelName: "fake", Inputs: []*pb.ModelInferRequest_InferInputTensor{raw}, RawInputContents: [][]byte{tc.raw}},
			} {
				answer, err := c.ModelInfer(t.Context(), r)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if d := cmp.Diff([][]byte{tc.raw}, answer.GetRawOutputContents()); d != "" {
					t.Errorf("%s (-want +got):\n%s", name, d)
				}
			}
		})
	}
}

// Answers on a stream have the order of the requests. An invalid request is answered, and the
// stream continues.
func TestStream(t *testing.T) {
	t.Parallel()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{Config: "max_batch_size: 4 instance_group { count: 2 kind: KIND_CPU }"}))
	stream, err := c.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	for i := range n {
		r := request()
		r.Id = fmt.Sprint(i)
		if i == 20 {
			r.ModelName = "x"
		}
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if failed := answer.GetErrorMessage() != ""; answer.GetInferResponse().GetId() != fmt.Sprint(i) || failed != (i == 20) {
			t.Errorf("answer %d: id %s, error %q", i, answer.GetInferResponse().GetId(), answer.GetErrorMessage())
		}
	}
	if answer, err := stream.Recv(); err == nil {
		t.Errorf("after the last answer: %v", answer)
	}
}

// When a client goes, its queued requests leave the queue.
func TestStreamIsCancelled(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{Config: "max_batch_size: 1 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"})
	_, c := connect(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := c.ModelStreamInfer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := stream.Send(request()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err := c.ModelInfer(t.Context(), request()); err != nil {
		t.Errorf("another client: %v", err)
	}
}

func TestStatisticsAndConfig(t *testing.T) {
	t.Parallel()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{}))
	if _, err := c.ModelStatistics(t.Context(), &pb.ModelStatisticsRequest{Name: "x"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("statistics of an unknown model: %v", err)
	}
	config, err := c.ModelConfig(t.Context(), &pb.ModelConfigRequest{Name: "fake"})
	if err != nil || config.GetConfig().GetInput()[0].GetDataType() != configpb.DataType_TYPE_INT32 {
		t.Errorf("config: %v, %v", config, err)
	}
	if _, err := c.SystemSharedMemoryRegister(t.Context(), &pb.SystemSharedMemoryRegisterRequest{Name: "r"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("register shared memory: %v, want unimplemented", err)
	}
	if _, err := c.SystemSharedMemoryUnregister(t.Context(), &pb.SystemSharedMemoryUnregisterRequest{}); err != nil {
		t.Errorf("unregister all shared memory: %v", err)
	}
	if _, err := c.CudaSharedMemoryStatus(t.Context(), &pb.CudaSharedMemoryStatusRequest{Name: "r"}); status.Code(err) != codes.NotFound {
		t.Errorf("status of an unknown region: %v, want not found", err)
	}
}
