// Package otlp sends the traces of requests to an OpenTelemetry collector, as OTLP over HTTP. The
// names, attributes and events of the spans are those of Triton's mode opentelemetry.
//
// It makes spans of traces that have ended. Package collector sends them.
package otlp

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"tuner/engine/trace"
	"tuner/internal/collector"
)

// Options of the exporter. What they do not say comes from OpenTelemetry's environment variables,
// such as OTEL_EXPORTER_OTLP_HEADERS.
type Options struct {
	URL      string // "": that of OTEL_EXPORTER_OTLP_ENDPOINT, then collector.DefaultURL
	Resource []trace.Option
	Queue    int           // most spans that wait to be sent
	Delay    time.Duration // between two exports; 0: each span is sent at once
	Batch    int           // most spans of an export
}

const (
	// service is the resource's name unless the options have another one.
	service = "triton-inference-server"
	// scope is the name of Triton's tracer.
	scope = "triton-server"
	// root is the name of the span of a whole request.
	root = "InferRequest"
)

// Exporter implements trace.Exporter.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

// New makes an exporter. It connects to the collector only when there are spans.
func New(ctx context.Context, o Options, log *slog.Logger) (*Exporter, error) {
	to := collector.Options{URL: o.URL, Queue: o.Queue, Delay: o.Delay, Batch: o.Batch, IsAtOnce: o.Delay == 0}
	to.Resource = append(to.Resource, attribute.String("service.name", service)) // as in Triton, the environment does not change it
	for _, a := range o.Resource {
		to.Resource = append(to.Resource, attribute.String(a.Name, a.Value))
	}
	provider, err := collector.New(ctx, to, log)
	if err != nil {
		return nil, err
	}
	return &Exporter{provider, provider.Tracer(scope)}, nil
}

// Export implements trace.Exporter.
func (e *Exporter) Export(t *trace.Trace) {
	ctx := context.Background()
	if t.Caller.IsValid() {
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, t.Caller)
	}
	s := e.start(ctx, t, root, t.Sampled)
	s.events(trace.HTTPReceiveStart, trace.HTTPReceiveEnd, trace.GRPCReadStart, trace.GRPCReadEnd, trace.ResponseComplete,
		trace.HTTPSendStart, trace.HTTPSendEnd, trace.GRPCSendStart, trace.GRPCSendEnd)
	e.model(s.ctx, t, t.Ended)
	s.end(t.Ended)
}

// model makes the spans of a request to a model, and those of an ensemble's steps. A request that was
// refused has no end of its own, and ends with the whole.
func (e *Exporter) model(ctx context.Context, t *trace.Trace, ended time.Time) {
	begin := t.At(trace.RequestStart)
	if begin.IsZero() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("triton.model_name", t.Model), attribute.Int64("triton.model_version", t.Version),
		attribute.Int64("triton.trace_id", int64(t.ID)), attribute.Int64("triton.trace_parent_id", int64(t.ParentID)),
	}
	if t.RequestID != "" {
		attributes = append(attributes, attribute.String("triton.request_id", t.RequestID))
	}
	s := e.start(ctx, t, t.Model, begin, attributes...)
	s.events(trace.RequestStart, trace.QueueStart, trace.RequestEnd)
	if computes := t.At(trace.ComputeStart); !computes.IsZero() {
		c := e.start(s.ctx, t, "compute", computes)
		c.events(trace.ComputeStart, trace.ComputeInputEnd, trace.ComputeOutputStart, trace.ComputeEnd)
		c.end(t.At(trace.ComputeEnd))
	}
	e.activities(s, t)
	for _, step := range t.Steps() {
		e.model(s.ctx, step, ended)
	}
	if at := t.At(trace.RequestEnd); !at.IsZero() {
		ended = at
	}
	s.end(ended)
}

// activities makes the spans of what the backend has noted. As in Triton, a name that ends in _START begins a
// span within the last one that is open, one that ends in _END ends it, and others are events.
func (e *Exporter) activities(model span, t *trace.Trace) {
	open := []span{model}
	for _, a := range t.Activities() {
		last := open[len(open)-1]
		if name, starts := strings.CutSuffix(a.Name, "_START"); starts {
			last = e.start(last.ctx, t, name, a.At)
			open = append(open, last)
		}
		last.AddEvent(a.Name, oteltrace.WithTimestamp(wall(t, a.At)))
		if strings.HasSuffix(a.Name, "_END") && len(open) > 1 {
			last.end(a.At)
			open = open[:len(open)-1]
		}
	}
}

// span is a span of a trace.
type span struct {
	oteltrace.Span
	ctx   context.Context // in which its children begin
	trace *trace.Trace
}

func (e *Exporter) start(ctx context.Context, t *trace.Trace, name string, at time.Time, attributes ...attribute.KeyValue) span {
	ctx, s := e.tracer.Start(ctx, name, oteltrace.WithTimestamp(wall(t, at)), oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithAttributes(attributes...))
	return span{s, ctx, t}
}

// events adds the moments that the request has got to.
func (s span) events(moments ...trace.Moment) {
	for _, m := range moments {
		if at := s.trace.At(m); !at.IsZero() {
			s.AddEvent(m.String(), oteltrace.WithTimestamp(wall(s.trace, at)))
		}
	}
}

func (s span) end(at time.Time) { s.Span.End(oteltrace.WithTimestamp(wall(s.trace, at))) }

// wall returns a time whose wall clock is that of the trace's beginning, so that setting the clock
// does not turn a trace around.
func wall(t *trace.Trace, at time.Time) time.Time { return t.Sampled.Add(at.Sub(t.Sampled)) }

// Close sends the spans that wait, until ctx ends.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }
