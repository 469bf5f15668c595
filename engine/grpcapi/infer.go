package grpcapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/modelconfig"
	"tuner/modelconfig/configpb"
)

// ModelInfer serves one inference.
func (s *service) ModelInfer(ctx context.Context, r *pb.ModelInferRequest) (*pb.ModelInferResponse, error) {
	request, err := decode(r)
	if err != nil {
		return nil, statusOf(err)
	}
	response, err := s.server.Infer(ctx, request)
	if err != nil {
		return nil, statusOf(err)
	}
	defer response.Release()
	return encode(response), nil
}

// maxInFlight bounds the requests of one stream that are not answered yet; then the stream is not read on.
const maxInFlight = 1 << 10

// started is a request of a stream, accepted or refused.
type started struct {
	id      string
	pending *engine.Pending
	err     error
}

// ModelStreamInfer serves inferences one after the other on a stream: they are queued as they come, and answered in the
// same order. A request that fails is answered with its error, and the stream goes on.
func (s *service) ModelStreamInfer(stream pb.GRPCInferenceService_ModelStreamInferServer) error {
	queue := make(chan started, maxInFlight)
	group, ctx := errgroup.WithContext(stream.Context())
	group.Go(func() error {
		defer close(queue)
		return s.receive(ctx, stream, queue)
	})
	group.Go(func() error {
		var failed error
		for next := range queue { // to the end, since every pending request must be waited for
			if err := send(ctx, stream, next, failed == nil); failed == nil {
				failed = err
			}
		}
		return failed
	})
	return group.Wait()
}

// receive starts the requests of a stream.
func (s *service) receive(ctx context.Context, stream pb.GRPCInferenceService_ModelStreamInferServer, queue chan<- started) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		next := started{id: r.GetId()}
		request, err := decode(r)
		if err == nil {
			next.pending, err = s.server.Start(request)
		}
		next.err = err
		select {
		case queue <- next:
		case <-ctx.Done():
			if next.pending != nil {
				if response, err := next.pending.Wait(ctx); err == nil {
					response.Release()
				}
			}
			return ctx.Err()
		}
	}
}

// send waits for a request and answers it, unless the answer is not wanted any more.
func send(ctx context.Context, stream pb.GRPCInferenceService_ModelStreamInferServer, next started, wanted bool) error {
	out := &pb.ModelStreamInferResponse{}
	err := next.err
	if err == nil {
		var response *engine.Response
		if response, err = next.pending.Wait(ctx); err == nil {
			out.InferResponse = encode(response)
			response.Release()
		}
	}
	if err != nil {
		out.ErrorMessage = err.Error()
		out.InferResponse = &pb.ModelInferResponse{Id: next.id}
	}
	if !wanted {
		return nil
	}
	return stream.Send(out)
}

// decode turns a message into a request, which refers to the message's memory.
func decode(r *pb.ModelInferRequest) (*engine.Request, error) {
	version, err := parseVersion(r.GetModelVersion())
	if err != nil {
		return nil, err
	}
	out := &engine.Request{Model: r.GetModelName(), Version: version, ID: r.GetId()}
	if err := parameters(out, r.GetParameters()); err != nil {
		return nil, err
	}
	if out.Inputs, err = inputs(r); err != nil {
		return nil, err
	}
	for _, o := range r.GetOutputs() {
		for key := range o.GetParameters() {
			if key == "classification" || strings.HasPrefix(key, "shared_memory_") {
				return nil, engine.Errorf(engine.Unsupported, "output '%s': the %s extension is not supported", o.GetName(), key)
			}
		}
		out.Outputs = append(out.Outputs, o.GetName())
	}
	return out, nil
}

// parameters reads the request's parameters; those that the server does not know are for the model, which ONNX models ignore.
func parameters(out *engine.Request, parameters map[string]*pb.InferParameter) error {
	for key, value := range parameters {
		switch {
		case key == "priority" || key == "timeout":
			n, ok := unsigned(value)
			if !ok {
				return engine.Errorf(engine.InvalidArgument, "invalid value type for '%s' parameter, expected int64_param or uint64_param.", key)
			}
			if key == "priority" {
				out.Priority = n
			} else {
				out.Timeout = time.Duration(min(n, uint64(math.MaxInt64/time.Microsecond))) * time.Microsecond
			}
		case strings.HasPrefix(key, "triton_") && key != "triton_enable_empty_final_response":
			return engine.Errorf(engine.InvalidArgument, "parameter keys starting with 'triton_' are reserved for Triton usage. Only 'triton_enable_empty_final_response' is allowed.")
		}
	}
	return nil
}

func unsigned(p *pb.InferParameter) (uint64, bool) {
	switch v := p.GetParameterChoice().(type) {
	case *pb.InferParameter_Int64Param:
		return uint64(v.Int64Param), v.Int64Param >= 0
	case *pb.InferParameter_Uint64Param:
		return v.Uint64Param, true
	default:
		return 0, false
	}
}

func inputs(r *pb.ModelInferRequest) ([]engine.Tensor, error) {
	raw := r.GetRawInputContents()
	if len(raw) > 0 && len(raw) != len(r.GetInputs()) {
		return nil, engine.Errorf(engine.InvalidArgument, "expected %d inputs but got %d raw_input_contents", len(r.GetInputs()), len(raw))
	}
	out := make([]engine.Tensor, 0, len(r.GetInputs()))
	for i, in := range r.GetInputs() {
		for key := range in.GetParameters() {
			if strings.HasPrefix(key, "shared_memory_") {
				return nil, engine.Errorf(engine.Unsupported, "Client shared memory is disabled")
			}
		}
		t := engine.Tensor{Name: in.GetName(), Shape: in.GetShape()}
		if dataType, err := modelconfig.DataTypeOf(in.GetDatatype()); err == nil { // else the check against the model says so
			t.DataType = dataType
		}
		switch {
		case len(raw) > 0 && in.GetContents() != nil:
			return nil, engine.Errorf(engine.InvalidArgument, "contents field must not be specified when using raw_input_contents for '%s' for model '%s'", in.GetName(), r.GetModelName())
		case len(raw) > 0:
			t.Data = raw[i]
		default:
			var err error
			if t.Data, err = contents(t.DataType, in); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// contents turns typed contents into wire form.
func contents(t engine.DataType, in *pb.ModelInferRequest_InferInputTensor) ([]byte, error) {
	var out []byte
	le := binary.LittleEndian
	c := in.GetContents()
	switch t {
	case configpb.DataType_TYPE_BOOL:
		for _, v := range c.GetBoolContents() {
			b := byte(0)
			if v {
				b = 1
			}
			out = append(out, b)
		}
	case configpb.DataType_TYPE_INT8, configpb.DataType_TYPE_INT16, configpb.DataType_TYPE_INT32:
		return appendInts(t, c.GetIntContents(), in.GetName())
	case configpb.DataType_TYPE_UINT8, configpb.DataType_TYPE_UINT16, configpb.DataType_TYPE_UINT32:
		return appendUints(t, c.GetUintContents(), in.GetName())
	case configpb.DataType_TYPE_INT64:
		for _, v := range c.GetInt64Contents() {
			out = le.AppendUint64(out, uint64(v))
		}
	case configpb.DataType_TYPE_UINT64:
		for _, v := range c.GetUint64Contents() {
			out = le.AppendUint64(out, v)
		}
	case configpb.DataType_TYPE_FP32:
		for _, v := range c.GetFp32Contents() {
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	case configpb.DataType_TYPE_FP64:
		for _, v := range c.GetFp64Contents() {
			out = le.AppendUint64(out, math.Float64bits(v))
		}
	case configpb.DataType_TYPE_STRING:
		for _, v := range c.GetBytesContents() {
			out = append(le.AppendUint32(out, uint32(len(v))), v...)
		}
	case configpb.DataType_TYPE_INVALID:
	default:
		return nil, engine.Errorf(engine.InvalidArgument, "%s data must be specified in raw_input_contents for input '%s'", modelconfig.WireName(t), in.GetName())
	}
	return out, nil
}

// appendInts narrows integers to the tensor's width; one that does not fit is an error.
func appendInts(t engine.DataType, values []int32, name string) ([]byte, error) {
	var out []byte
	for _, v := range values {
		switch {
		case t == configpb.DataType_TYPE_INT32:
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		case t == configpb.DataType_TYPE_INT16 && v == int32(int16(v)):
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case t == configpb.DataType_TYPE_INT8 && v == int32(int8(v)):
			out = append(out, byte(v))
		default:
			return nil, engine.Errorf(engine.InvalidArgument, "value %d of input '%s' does not fit %s", v, name, modelconfig.WireName(t))
		}
	}
	return out, nil
}

func appendUints(t engine.DataType, values []uint32, name string) ([]byte, error) {
	var out []byte
	for _, v := range values {
		switch {
		case t == configpb.DataType_TYPE_UINT32:
			out = binary.LittleEndian.AppendUint32(out, v)
		case t == configpb.DataType_TYPE_UINT16 && v <= math.MaxUint16:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case t == configpb.DataType_TYPE_UINT8 && v <= math.MaxUint8:
			out = append(out, byte(v))
		default:
			return nil, engine.Errorf(engine.InvalidArgument, "value %d of input '%s' does not fit %s", v, name, modelconfig.WireName(t))
		}
	}
	return out, nil
}

// encode makes the message of an answer. The outputs are copied: gRPC serialises the message when the response is gone.
func encode(r *engine.Response) *pb.ModelInferResponse {
	out := &pb.ModelInferResponse{ModelName: r.Model, ModelVersion: strconv.FormatInt(r.Version, 10), Id: r.ID}
	for i := range r.Outputs {
		t := &r.Outputs[i]
		out.Outputs = append(out.Outputs, &pb.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: modelconfig.WireName(t.DataType), Shape: t.Shape})
		out.RawOutputContents = append(out.RawOutputContents, bytes.Clone(t.Data))
	}
	return out
}
