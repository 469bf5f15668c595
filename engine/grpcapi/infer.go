package grpcapi

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"tuner/engine"
	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
	"tuner/engine/grpcapi/datatype"
	"tuner/engine/grpcapi/modelversion"
	"tuner/engine/logging"
	"tuner/engine/request"
	"tuner/engine/sequence"
)

// serveInfer is the handler of ModelInfer. It replaces the generated one, which uses protobuf's
// message.
func serveInfer(server any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	s := server.(*service)
	var entry *logging.Request
	if s.requests.Wanted() {
		entry = begin(ctx, pb.GRPCInferenceService_ModelInfer_FullMethodName)
	}
	answer, err := s.receiveInfer(ctx, receive, entry)
	s.note(entry, err)
	return answer, err
}

// receiveInfer receives and serves one inference. entry is its line; nil: none.
func (s *service) receiveInfer(ctx context.Context, receive func(any) error, entry *logging.Request) (any, error) {
	m := s.pool.take()
	defer s.pool.put(m)
	c := clientOf(ctx)
	began := s.now()
	c.await(ctx, streamOf(ctx))
	if err := receive(m); err != nil {
		return nil, err
	}
	m.reading = reading{began, s.now()}
	if m.copied > 0 {
		c.adopt(m, streamOf(ctx))
	}
	if err := s.guard.check(ctx, pb.GRPCInferenceService_ModelInfer_FullMethodName); err != nil {
		return nil, err
	}
	m.describe(entry)
	return s.infer(ctx, m, c, entry)
}

// infer serves one inference. The answer does not refer to the message. The compression comes first,
// since it fails if the client has gone, and a request that has started must be waited for.
func (s *service) infer(ctx context.Context, m *message, c *client, entry *logging.Request) (any, error) {
	write, _, err := s.compressed(ctx, encode)
	if err != nil {
		return nil, err
	}
	pending, err := s.start(ctx, m, c)
	if t := m.request.Trace; t != nil {
		defer c.follow(streamOf(ctx), t)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	answer, err := s.finish(ctx, pending, m, c, write, entry)
	if err != nil {
		return nil, statusOf(err)
	}
	return answer, nil
}

// start queues the request of a message. The message must not change until the request has
// finished.
func (s *service) start(ctx context.Context, m *message, c *client) (*engine.Pending, error) {
	m.request.Memory, m.regions = c.memory(), s.regions
	if m.err != nil {
		return nil, m.err
	}
	request.SetText(&m.request.Model, m.model)
	version, err := modelversion.Parse(m.request.Model, string(m.version))
	if err != nil {
		return nil, err
	}
	if err := m.decode(version); err != nil {
		if unknown := s.server.ModelReady(m.request.Model, version); unknown != nil {
			return nil, unknown // Triton finds the model first
		}
		return nil, err
	}
	m.request.Trace = s.sample(ctx, m)
	return s.server.Start(&m.request)
}

// encoder serialises an answer for a client.
type encoder func(*engine.Response, *client) (mem.BufferSlice, error)

// finish waits for the request of a message and serialises its answer. entry is its line; nil: none.
func (s *service) finish(ctx context.Context, pending *engine.Pending, m *message, c *client, encode encoder, entry *logging.Request) (mem.BufferSlice, error) {
	response, err := pending.Wait(ctx)
	if err != nil {
		return nil, err
	}
	defer response.Release()
	entry.Of(response.Model, response.Version, response.ID)
	if m.loan.HasOutputs() {
		if response, err = m.delivered(response); err != nil {
			return nil, err
		}
	}
	return encode(response, c)
}

// decode makes the message's request, without the model's name. The request refers to the message's
// memory.
func (m *message) decode(version int64) error {
	r := &m.request
	request.SetText(&r.ID, m.id)
	r.Version, r.Priority, r.Timeout = version, 0, 0
	r.Sequence, r.Start, r.End = sequence.ID{}, false, false
	for i := range m.parameters {
		if err := m.parameters[i].apply(r); err != nil {
			return err
		}
	}
	if err := m.decodeInputs(); err != nil {
		return err
	}
	return m.decodeOutputs()
}

// decodeOutputs lists the requested outputs.
func (m *message) decodeOutputs() error {
	r := &m.request
	r.Outputs, r.Classes, r.Rooms = r.Outputs[:0], r.Classes[:0], r.Rooms[:0]
	for i := range m.outputs {
		at, err := placeOf(m.outputs[i].parameters, m.outputs[i].name)
		if err != nil {
			return err
		}
		classes, err := classification(&m.outputs[i], at)
		if err != nil {
			return err
		}
		if r.AddOutput(m.outputs[i].name); classes > 0 {
			r.Classify(classes)
		}
		if at == nil {
			continue
		}
		r.Rooms = append(r.Rooms, request.Room{Output: r.Outputs[i], Bytes: at.size})
		if err := m.loan.Output(m.regions, r.Outputs[i], at.region, at.offset, at.size); err != nil {
			return err
		}
	}
	return nil
}

// apply applies a parameter to the request. Unknown ones are for the model, and ONNX models ignore
// them.
func (p *parameter) apply(r *engine.Request) error {
	switch key := string(p.key); {
	case key == "priority":
		n, ok := p.unsigned()
		if p.kind == int64Param && !ok {
			return fault.Errorf(fault.InvalidArgument, "invalid value for 'priority', expected value >= 0.")
		}
		if !ok {
			return fault.Errorf(fault.InvalidArgument, "invalid value type for 'priority' parameter, expected int64_param or uint64_param.")
		}
		r.Priority = n
	case key == "timeout":
		if p.kind != int64Param {
			return fault.Errorf(fault.InvalidArgument, "invalid value type for 'timeout' parameter, expected int64_param.")
		}
		// Triton reads a negative value as a timeout of centuries, which sets no limit
		r.Timeout = request.Microseconds(uint64(max(int64(p.bits), 0)))
	case key == "sequence_id" && p.kind == int64Param:
		r.Sequence = sequence.ID{Number: p.bits}
	case key == "sequence_id" && p.kind == stringParam:
		r.Sequence = sequence.ID{Text: string(p.text)}
	case key == "sequence_id":
		return fault.Errorf(fault.InvalidArgument, "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.")
	case (key == "sequence_start" || key == "sequence_end" || key == "triton_enable_empty_final_response") && p.kind != boolParam:
		return fault.Errorf(fault.InvalidArgument, "invalid value type for '%s' parameter, expected bool_param.", key)
	case key == "sequence_start":
		r.Start = p.bits != 0
	case key == "sequence_end":
		r.End = p.bits != 0
	case strings.HasPrefix(key, "triton_") && key != "triton_enable_empty_final_response":
		return fault.Errorf(fault.InvalidArgument,
			"parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response")
	case p.kind == 0 || p.kind == uint64Param:
		return fault.Errorf(fault.InvalidArgument, "invalid value type for '%s' parameter, expected int64_param, bool_param, or string_param.", key)
	}
	return nil
}

// decodeInputs makes the tensors of the request. Raw contents belong, in their order, to the inputs that
// are in no region.
func (m *message) decodeInputs() error {
	m.request.Inputs = m.request.Inputs[:0]
	raw := 0
	for i := range m.inputs {
		in := &m.inputs[i]
		t := m.request.AddInput(in.name)
		// the check against the model reports an unknown one
		t.DataType = datatype.Of(in.dataType)
		t.Shape, t.Data = in.shape, nil
		at, err := placeOf(in.parameters, in.name)
		switch {
		case err != nil:
			return err
		case at != nil && in.contents != nil:
			return fault.Errorf(fault.InvalidArgument, "unexpected 'content' provided when using shared memory for input tensor '%s' for model '%s'", t.Name, m.request.Model)
		case at != nil:
			if t.Data, err = m.loan.Input(m.regions, m.request.Memory, at.region, at.offset, at.size); err != nil {
				return err
			}
		case in.contents != nil && len(m.raw) > 0:
			return fault.Errorf(fault.InvalidArgument, "contents field must not be specified when using raw_input_contents for '%s' for model '%s'", t.Name, m.request.Model)
		case in.contents != nil:
			if err := m.decodeContents(t, in.contents); err != nil {
				return err
			}
		case raw < len(m.raw):
			t.Data = m.raw[raw]
			raw++
		default:
			return fault.Errorf(fault.InvalidArgument, "unable to find data for input tensor '%s' for model '%s' in request.", t.Name, m.request.Model)
		}
	}
	return nil
}
