package perf

import (
	"context"
	"time"

	"tuner/measure"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/runner/wire"
)

// Options describe a run.
type Options struct {
	Settings
	Target Target
	Beside []Beside
	WarmUp time.Duration // longest warm-up per level; 0: none
	// limit for one request, > 0; a server without any answer in this time counts as hung
	Timeout time.Duration
	// open loop: bound beyond which requests are dropped; 0: package load's default
	MaxInFlight int
	Observer    Observer // nil: no observer
	Sink        Sink     // nil: requests are not passed on
}

// Target is a model on a server, with the requests for it.
type Target struct {
	wire.Target
	Gauge Gauge
}

// dialer returns a function that opens connections for the target's requests under a load.
func (t Target) dialer(l measure.Load) func(ctx context.Context, connection int) (load.Conn, error) {
	return func(ctx context.Context, _ int) (load.Conn, error) { return t.Dial(ctx, l.Concurrency) }
}

// Gauge reads the figures of server and machine. Read blocks until it has them or ctx ends.
// *meter.Meter implements it.
type Gauge interface {
	Read(ctx context.Context) (meter.Reading, error)
}

// Beside is another model with its own load, from before the first level until after the last.
type Beside struct {
	Model  string
	Target Target
	Load   measure.Load
}

// Sink takes each request of the windows as it ends, level by level. One goroutine calls its
// methods. They delay the gathering of records, not the load. An error ends the run.
type Sink interface {
	// Begin begins a level. The instants of Record and End are durations since begin.
	Begin(l measure.Load, begin time.Time) error
	Record(r load.Record) error
	// End ends a level. edges are the edges of its windows.
	End(edges []time.Duration) error
}
