package grpcapi

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	pb "tuner/engine/api/inferencepb"
	"tuner/engine/fault"
	"tuner/engine/trace"
)

// TraceSetting shows or changes the trace settings of a model, or those of the server.
func (s *service) TraceSetting(_ context.Context, r *pb.TraceSettingRequest) (*pb.TraceSettingResponse, error) {
	model, tracer := r.GetModelName(), s.tracer
	if model != "" && s.server.ModelReady(model, 0) != nil {
		return nil, statusOf(fault.Errorf(fault.InvalidArgument, "Request for unknown model : %s", model))
	}
	if len(r.GetSettings()) > 0 {
		update, err := trace.Read(trace.Source{Gap: " ", Find: func(name string) ([]string, bool, error) {
			value, found := r.GetSettings()[name]
			return value.GetValue(), found, nil
		}})
		if err == nil {
			err = tracer.Update(model, update)
		}
		if err != nil {
			return nil, statusOf(err)
		}
	}
	out := &pb.TraceSettingResponse{Settings: map[string]*pb.TraceSettingResponse_SettingValue{}}
	for _, p := range tracer.Settings(model).Pairs() {
		if out.Settings[p.Name] == nil {
			out.Settings[p.Name] = &pb.TraceSettingResponse_SettingValue{}
		}
		out.Settings[p.Name].Value = append(out.Settings[p.Name].Value, p.Values...)
	}
	return out, nil
}

// reading is the time in which a message was received. It is known only while requests are traced.
type reading struct{ start, end time.Time }

// now returns the time if requests are traced, and the zero time otherwise.
func (s *service) now() time.Time {
	if s.tracer.IsOn() {
		return time.Now()
	}
	return time.Time{}
}

// sample returns the trace of the request of a message, nil if it is not traced.
func (s *service) sample(ctx context.Context, m *message) *trace.Trace {
	if !s.tracer.IsOn() || s.server.ModelReady(m.request.Model, m.request.Version) != nil {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	headers := propagation.MapCarrier{}
	for _, key := range (propagation.TraceContext{}).Fields() {
		headers.Set(key, strings.Join(md.Get(key), ","))
	}
	t := s.tracer.Sample(m.request.Model, headers)
	t.Set(trace.GRPCReadStart, m.reading.start)
	t.Set(trace.GRPCReadEnd, m.reading.end)
	return t
}

// follow passes on the trace of a unary call when its answer has been written.
func (c *client) follow(stream uint32, t *trace.Trace) {
	if t == nil {
		return
	}
	t.Set(trace.GRPCSendStart, time.Now())
	if c != nil {
		c.mu.Lock()
		s, isOpen := c.streams[stream]
		if isOpen {
			s.trace = t
			c.streams[stream] = s
		}
		c.mu.Unlock()
		if isOpen {
			return
		}
	}
	t.End()
}

// release takes the trace of a call from its stream. The caller holds the lock.
func (c *client) release(stream uint32) *trace.Trace {
	s := c.streams[stream]
	if s.trace == nil {
		return nil
	}
	t := s.trace
	s.trace = nil
	c.streams[stream] = s
	return t
}

// finished passes traces on whose answers have been written.
func finished(traces []*trace.Trace) {
	for _, t := range traces {
		t.Set(trace.GRPCSendEnd, time.Now())
		t.End()
	}
}

// send sends an answer of a stream, and passes its trace on.
func send(stream grpc.ServerStream, answer any, t *trace.Trace) error {
	if t == nil {
		return stream.SendMsg(answer)
	}
	defer t.End()
	t.Set(trace.GRPCSendStart, time.Now())
	err := stream.SendMsg(answer)
	if err == nil {
		t.Set(trace.GRPCSendEnd, time.Now())
	}
	return err
}
