package perf

import (
	"context"
	"time"

	"tuner/measure"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/runner/wire"
)

// Options say what to measure.
type Options struct {
	Settings
	Target      Target
	Intervals   []time.Duration // ModeIntervals: between one request and the next, again and again
	Beside      []Beside
	WarmUp      time.Duration // the longest, per level; 0: none
	Timeout     time.Duration // of one request, > 0; a server that answers nothing for so long counts as hung
	MaxInFlight int           // open loop: requests beyond are dropped; 0: package load's default
	Observer    Observer      // nil: nobody looks
	Sink        Sink          // nil: nobody wants the requests
}

// Target is a model on a server, with the requests for it.
type Target struct {
	wire.Target
	Gauge Gauge
}

// dialer opens connections for the target's requests under a load.
func (t Target) dialer(l measure.Load) func(ctx context.Context, connection int) (load.Conn, error) {
	return func(ctx context.Context, _ int) (load.Conn, error) { return t.Dial(ctx, l.Concurrency) }
}

// Gauge reads what server and machine say. Read blocks until they have answered or ctx ends. A *meter.Meter is one.
type Gauge interface {
	Read(ctx context.Context) (meter.Reading, error)
}

// Beside is another model under a load of its own, from before the first level until after the last.
type Beside struct {
	Model  string
	Target Target
	Load   measure.Load
}

// Sink takes each request of the windows as it comes, level by level. Its methods are called by one goroutine and hold up
// the gathering, not the load; an error ends the run.
type Sink interface {
	// Begin says that a level's load begins; the instants of Record and End are durations since begin.
	Begin(l measure.Load, begin time.Time) error
	Record(r load.Record) error
	// End lists the edges of the level's windows.
	End(edges []time.Duration) error
}
