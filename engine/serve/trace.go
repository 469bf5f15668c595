package serve

import (
	"context"
	"log/slog"
	"time"

	"tuner/engine/flags"
	"tuner/engine/trace"
	"tuner/engine/trace/otlp"
	"tuner/internal/exit"
)

// tracingEnd bounds the time for which a server that ends waits until its traces are written. A
// collector that does not answer must not hold it.
const tracingEnd = 2 * time.Second

// newTracer makes what traces requests. In mode opentelemetry it sends them to a collector.
func newTracer(ctx context.Context, o *flags.Options, log *slog.Logger) (*trace.Tracer, error) {
	config, options, err := o.Trace(log)
	if err != nil {
		return nil, err
	}
	if config.Mode != trace.ModeOpenTelemetry {
		return trace.New(config, nil, log), nil
	}
	exporter, err := otlp.New(ctx, options, log)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return trace.New(config, exporter, log), nil
}

// endTracing writes the traces that are left.
func endTracing(t *trace.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), tracingEnd)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last traces are lost", "error", err)
	}
}
