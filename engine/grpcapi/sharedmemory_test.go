package grpcapi_test

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
)

// numbered returns the tensor of sixteen small integers from n on.
func numbered(n byte) []byte {
	data := make([]byte, 64)
	for i := range 16 {
		data[4*i] = n + byte(i)
	}
	return data
}

// shared starts an engine with a region "r": two inputs of the fake model, and room for its outputs.
func shared(t *testing.T) (pb.GRPCInferenceServiceClient, *os.File) {
	t.Helper()
	_, c := connect(t, enginetest.Start(t, enginetest.Options{SharedMemory: true}))
	key, file := enginetest.SharedFile(t, append(append(numbered(1), numbered(100)...), make([]byte, 128)...))
	if _, err := c.SystemSharedMemoryRegister(t.Context(), &pb.SystemSharedMemoryRegisterRequest{Name: "r", Key: key, ByteSize: 256}); err != nil {
		t.Fatal(err)
	}
	return c, file
}

func number(n int64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: n}}
}

func text(s string) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: s}}
}

// at are the parameters of a tensor in region r.
func at(offset, size int64) map[string]*pb.InferParameter {
	return map[string]*pb.InferParameter{"shared_memory_region": text("r"), "shared_memory_offset": number(offset), "shared_memory_byte_size": number(size)}
}

// inRegions is a request whose tensors are all in the region.
func inRegions() *pb.ModelInferRequest {
	r := request()
	r.RawInputContents = nil
	r.Inputs[0].Parameters, r.Inputs[1].Parameters = at(0, 64), at(64, 64)
	r.Outputs = []*pb.ModelInferRequest_InferRequestedOutputTensor{{Name: "OUTPUT1", Parameters: at(128, 64)}, {Name: "OUTPUT0", Parameters: at(192, 64)}}
	return r
}

func holds(t *testing.T, file *os.File, at int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := file.ReadAt(got, at); err != nil || !bytes.Equal(got, want) {
		t.Errorf("at %d the file has %v, %v, want %v", at, got, err, want)
	}
}

func TestSharedMemory(t *testing.T) {
	t.Parallel()
	c, file := shared(t)
	check := func(what string, r *pb.ModelInferRequest, want ...[]byte) {
		t.Helper()
		answer, err := c.ModelInfer(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if diff := cmp.Diff(want, answer.GetRawOutputContents()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", what, diff)
		}
	}
	check("in and out", inRegions(), []byte{}, []byte{})
	holds(t, file, 128, append(numbered(100), numbered(1)...))
	r := inRegions()
	r.Outputs = nil
	check("in", r, numbered(1), numbered(100))
	r = inRegions()
	r.Outputs[0].Parameters = nil
	check("one output in", r, []byte{}, numbered(100))
	r = inRegions()
	r.Outputs, r.Inputs[0].Parameters, r.RawInputContents = nil, nil, [][]byte{numbered(7)}
	check("raw contents for the first", r, numbered(7), numbered(100))
	r = inRegions()
	r.Outputs, r.Inputs[1].Parameters, r.RawInputContents = nil, nil, [][]byte{numbered(7)}
	check("raw contents for the second", r, numbered(1), numbered(7))
	r = inRegions()
	r.Outputs, r.Inputs[0].Parameters = nil, nil
	r.Inputs[0].Contents = &pb.InferTensorContents{IntContents: []int32{7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}}
	check("typed contents for the first", r, numbered(7), numbered(100))
}

func TestSharedMemoryStream(t *testing.T) {
	t.Parallel()
	c, file := shared(t)
	stream, err := c.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	small, unknown := inRegions(), inRegions()
	small.Outputs[0].Parameters = at(128, 63)
	unknown.Inputs[0].Parameters["shared_memory_region"] = text("none")
	for _, r := range []*pb.ModelInferRequest{inRegions(), small, unknown, inRegions()} {
		if err := stream.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{
		"", "shared memory size specified with the request for output 'OUTPUT1' (63 bytes) should be at least 64 bytes to hold the results",
		"Unable to find shared memory region: 'none'", "",
	} {
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		empty := cmp.Equal(answer.GetInferResponse().GetRawOutputContents(), [][]byte{{}, {}})
		if answer.GetErrorMessage() != want || empty != (want == "") {
			t.Errorf("answer %d: %v, want %q", i, answer, want)
		}
	}
	holds(t, file, 128, append(numbered(100), numbered(1)...))
}

func TestBadSharedMemory(t *testing.T) {
	t.Parallel()
	c, file := shared(t)
	check := func(what string, change func(*pb.ModelInferRequest), code codes.Code, text string) {
		t.Helper()
		r := inRegions()
		change(r)
		if _, err := c.ModelInfer(t.Context(), r); status.Code(err) != code || status.Convert(err).Message() != text {
			t.Errorf("%s: %v, want %v %s", what, err, code, text)
		}
	}
	check("contents too", func(r *pb.ModelInferRequest) {
		r.Inputs[0].Contents = &pb.InferTensorContents{IntContents: make([]int32, 16)}
	}, codes.InvalidArgument, "unexpected 'content' provided when using shared memory for input tensor 'INPUT0' for model 'fake'")
	input := func(offset, size int64) func(*pb.ModelInferRequest) {
		return func(r *pb.ModelInferRequest) { r.Inputs[0].Parameters = at(offset, size) }
	}
	const low, high = "Invalid offset for shared memory region: 'r'", "Invalid offset + byte size for shared memory region: 'r'"
	check("negative offset", input(-1, 64), codes.InvalidArgument, low)
	check("smallest offset", input(math.MinInt64, 64), codes.InvalidArgument, low)
	check("largest offset", input(math.MaxInt64, 64), codes.InvalidArgument, low)
	check("negative size", input(0, -1), codes.InvalidArgument, high)
	check("smallest size", input(0, math.MinInt64), codes.InvalidArgument, high)
	check("over the end", input(193, 64), codes.InvalidArgument, high)
	check("no bytes", input(0, 0), codes.InvalidArgument, high)
	check("63 bytes", input(0, 63), codes.InvalidArgument, "[request id: 1] input byte size mismatch for input 'INPUT0' for model 'fake'. Expected 64, got 63")
	check("no size", func(r *pb.ModelInferRequest) { delete(r.Inputs[0].Parameters, "shared_memory_byte_size") }, codes.InvalidArgument,
		"'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'INPUT0'")
	check("no region", func(r *pb.ModelInferRequest) { delete(r.Outputs[0].Parameters, "shared_memory_region") }, codes.InvalidArgument,
		"'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'OUTPUT1'")
	check("output too small", func(r *pb.ModelInferRequest) { r.Outputs[1].Parameters = at(192, 10) }, codes.Internal,
		"shared memory size specified with the request for output 'OUTPUT0' (10 bytes) should be at least 64 bytes to hold the results")
	check("output and classes", func(r *pb.ModelInferRequest) { r.Outputs[0].Parameters["classification"] = number(1) }, codes.InvalidArgument,
		"output can't set both 'shared_memory_region' and 'classification'")
	if err := file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	check("a short file", func(*pb.ModelInferRequest) {}, codes.InvalidArgument, "cannot read shared memory region 'r': its file is shorter than when it was registered")
	if _, err := c.SystemSharedMemoryUnregister(t.Context(), &pb.SystemSharedMemoryUnregisterRequest{}); err != nil {
		t.Errorf("unregister: %v", err)
	}
}

func TestSharedMemoryCalls(t *testing.T) {
	t.Parallel()
	c, _ := shared(t)
	if _, err := c.SystemSharedMemoryRegister(t.Context(), &pb.SystemSharedMemoryRegisterRequest{Name: "r"}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("register again: %v", err)
	}
	all, err := c.SystemSharedMemoryStatus(t.Context(), &pb.SystemSharedMemoryStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := c.SystemSharedMemoryStatus(t.Context(), &pb.SystemSharedMemoryStatusRequest{Name: "r"})
	if diff := cmp.Diff(all, one, protocmp.Transform()); diff != "" || err != nil || all.GetRegions()["r"].GetByteSize() != 256 {
		t.Errorf("%v, all are %v (-all +one):\n%s", err, all, diff)
	}
	if _, err := c.CudaSharedMemoryRegister(t.Context(), &pb.CudaSharedMemoryRegisterRequest{Name: "c"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("register CUDA's: %v", err)
	}
	if _, err := c.CudaSharedMemoryStatus(t.Context(), &pb.CudaSharedMemoryStatusRequest{Name: "r"}); status.Convert(err).Message() != "The region named 'r' is registered as system shared memory, not CUDA shared memory" {
		t.Errorf("status of CUDA's: %v", err)
	}
	if _, err := c.CudaSharedMemoryUnregister(t.Context(), &pb.CudaSharedMemoryUnregisterRequest{Name: "r"}); err != nil {
		t.Errorf("unregister CUDA's: %v", err)
	}
	if _, err := c.SystemSharedMemoryUnregister(t.Context(), &pb.SystemSharedMemoryUnregisterRequest{Name: "r"}); err != nil {
		t.Errorf("unregister: %v", err)
	}
	if _, err := c.SystemSharedMemoryStatus(t.Context(), &pb.SystemSharedMemoryStatusRequest{Name: "r"}); status.Code(err) != codes.NotFound {
		t.Errorf("status of none: %v", err)
	}
}
