// Package otlp sends the traces of requests to an OpenTelemetry collector, as OTLP over HTTP. The
// names, attributes and events of the spans are those of Triton's mode opentelemetry.
//
// It makes spans of traces that have ended, and leaves queueing and sending to OpenTelemetry's own
// SDK. A collector that does not answer costs memory for the queue alone.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"tuner/engine/trace"
)

// Options of the exporter. What they do not say comes from OpenTelemetry's environment variables,
// such as OTEL_EXPORTER_OTLP_HEADERS.
type Options struct {
	URL      string // "": that of OTEL_EXPORTER_OTLP_ENDPOINT, then DefaultURL
	Resource []trace.Option
	Queue    int           // most spans that wait to be sent
	Delay    time.Duration // between two exports
	Batch    int           // most spans of an export
}

// DefaultURL is where a collector on this machine listens.
const DefaultURL = "http://localhost:4318/v1/traces"

const (
	// service is the resource's name unless the options have another one.
	service = "triton-inference-server"
	// scope is the name of Triton's tracer.
	scope = "triton-server"
	// root is the name of the span of a whole request.
	root = "InferRequest"
	// longestValue bounds an attribute in characters, since clients choose the IDs of their requests.
	longestValue = 1024
)

// Exporter implements trace.Exporter.
type Exporter struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

// New makes an exporter. It connects to the collector only when there are spans.
func New(ctx context.Context, o Options, log *slog.Logger) (*Exporter, error) {
	var options []otlptracehttp.Option
	if address := endpoint(o.URL); address != "" {
		if _, err := url.Parse(address); err != nil {
			return nil, fmt.Errorf("cannot send traces to %q: %w", o.URL, err)
		}
		options = append(options, otlptracehttp.WithEndpointURL(address))
	}
	client, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot send traces to %q: %w", o.URL, err)
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", service)}
	for _, a := range o.Resource {
		attributes = append(attributes, attribute.String(a.Name, a.Value))
	}
	what, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(attributes...))
	if err != nil {
		return nil, fmt.Errorf("cannot describe this server to a collector: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestValue
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&quiet{SpanExporter: client, log: log}, sdktrace.WithMaxQueueSize(o.Queue), sdktrace.WithBatchTimeout(o.Delay), sdktrace.WithMaxExportBatchSize(o.Batch)),
		sdktrace.WithResource(what),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the trace settings have chosen already
		sdktrace.WithRawSpanLimits(limits),
	)
	return &Exporter{provider, provider.Tracer(scope)}, nil
}

// endpoint completes an address as Triton does, whose URLs need no scheme. "" leaves it to the
// environment.
func endpoint(address string) string {
	switch {
	case address == "" && os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "":
		return DefaultURL
	case address == "" || strings.Contains(address, "://"):
		return address
	}
	return "http://" + address
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
	for _, step := range t.Steps() {
		e.model(s.ctx, step, ended)
	}
	if at := t.At(trace.RequestEnd); !at.IsZero() {
		ended = at
	}
	s.end(ended)
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

// quiet is a SpanExporter that says once that a collector takes no spans, and once that it does
// again. The SDK would say it for each batch.
type quiet struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	lost atomic.Int64 // spans since the collector's last answer
}

// ExportSpans sends spans. Those that the collector does not take are lost.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil:
		if n := q.lost.Swap(0); n > 0 {
			q.log.Info("the collector takes spans again", "lost", n)
		}
	case q.lost.Add(int64(len(spans))) == int64(len(spans)):
		q.log.Warn("spans are lost until the collector takes them", "error", err)
	}
	return nil
}
