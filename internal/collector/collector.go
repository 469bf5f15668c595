// Package collector gets spans to an OpenTelemetry collector, as OTLP over HTTP. Packages
// engine/trace/otlp and profile/spans make the spans, of requests and of campaigns.
//
// Queueing and sending are left to OpenTelemetry's own SDK. Whoever ends a span never waits for the
// collector. One that does not answer, or not fast enough, costs spans, memory for the queue alone, and a
// line in the log.
package collector

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
)

// Options of a connection. What they do not say comes from OpenTelemetry's environment variables,
// such as OTEL_EXPORTER_OTLP_HEADERS.
type Options struct {
	URL string // "": that of the environment, then DefaultURL
	// what describes this program: Defaults below the environment's OTEL_RESOURCE_ATTRIBUTES, Resource
	// above them
	Defaults, Resource []attribute.KeyValue
	// 0: the variables OTEL_BSP_*, then OpenTelemetry's defaults
	Queue int           // most spans that wait to be sent
	Delay time.Duration // between two exports
	Batch int           // most spans of an export
	// each span is sent alone as soon as it has ended; there is no Delay
	IsAtOnce bool
}

// DefaultURL is where a collector on this machine listens.
const DefaultURL = "http://localhost:4318/v1/traces"

// The variables with a collector's address. The second is for traces alone, and has precedence.
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// delayVariable has the time between two exports in milliseconds.
const delayVariable = "OTEL_BSP_SCHEDULE_DELAY"

// longestValue bounds an attribute in characters, since clients choose some of them.
const longestValue = 1024

// IsNamed reports whether the environment names a collector.
func IsNamed() bool {
	return os.Getenv(endpointVariable) != "" || os.Getenv(tracesEndpointVariable) != ""
}

// New makes what takes spans. It connects to the collector only when there are spans. The caller must
// call Shutdown, which sends the spans that wait, until its context ends.
func New(ctx context.Context, o Options, log *slog.Logger) (*sdktrace.TracerProvider, error) {
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
	// of two values of an attribute the later one counts
	what, err := resource.New(ctx, resource.WithAttributes(o.Defaults...), resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(o.Resource...))
	if err != nil {
		return nil, fmt.Errorf("cannot describe this program to a collector: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestValue
	queue := &bounded{most: int64(o.Queue), log: log}
	queue.SpanProcessor = sdktrace.NewBatchSpanProcessor(&quiet{SpanExporter: client, log: log, sent: queue.sent}, o.batches()...)
	return sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(queue),
		sdktrace.WithResource(what),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // whoever makes spans has chosen already
		sdktrace.WithRawSpanLimits(limits),
	), nil
}

// batches returns the settings of the queue that the options have.
func (o Options) batches() []sdktrace.BatchSpanProcessorOption {
	var list []sdktrace.BatchSpanProcessorOption
	if o.Queue > 0 {
		list = append(list, sdktrace.WithMaxQueueSize(o.Queue))
	}
	if o.Delay > 0 {
		list = append(list, sdktrace.WithBatchTimeout(o.Delay))
	}
	switch {
	case o.IsAtOnce || o.Delay == 0 && os.Getenv(delayVariable) == "0":
		// the SDK would keep a core busy with a timeout of 0
		list = append(list, sdktrace.WithMaxExportBatchSize(1), sdktrace.WithBatchTimeout(sdktrace.DefaultScheduleDelay*time.Millisecond))
	case o.Batch > 0:
		list = append(list, sdktrace.WithMaxExportBatchSize(o.Batch))
	}
	return list
}

// endpoint completes an address as Triton does, whose URLs need no scheme. "" leaves it to the
// environment.
func endpoint(address string) string {
	switch {
	case address == "" && !IsNamed():
		return DefaultURL
	case address == "" || strings.Contains(address, "://"):
		return address
	}
	return "http://" + address
}

// quiet is a SpanExporter that says once that a collector takes no spans, and once that it does
// again. The SDK would say it for each batch.
type quiet struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	lost atomic.Int64 // spans since the collector's last answer
	sent func(spans int)
}

// ExportSpans sends spans. Those that the collector does not take are lost.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	q.sent(len(spans))
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

// bounded is a SpanProcessor that bounds the spans that wait or are being sent, and says when it drops
// some. The SDK would drop them in silence.
type bounded struct {
	sdktrace.SpanProcessor
	most    int64 // 0: the SDK's own bound
	log     *slog.Logger
	waiting atomic.Int64
	isFull  atomic.Bool // it has dropped spans since it was empty
}

// OnEnd takes a span, or drops it. The text is that of OpenTelemetry's SDK for C++, which Triton has.
func (b *bounded) OnEnd(s sdktrace.ReadOnlySpan) {
	if n := b.waiting.Add(1); b.most > 0 && n > b.most {
		b.waiting.Add(-1)
		if !b.isFull.Swap(true) {
			b.log.Warn("BatchSpanProcessor queue is full - dropping span.")
		}
		return
	}
	b.SpanProcessor.OnEnd(s)
}

// sent tells that spans are no longer held.
func (b *bounded) sent(spans int) {
	if b.waiting.Add(-int64(spans)) == 0 {
		b.isFull.Store(false)
	}
}
