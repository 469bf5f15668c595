package perf

import (
	"context"
	"slices"
	"time"

	"tuner/load"
	"tuner/measure"
	"tuner/meter"
	"tuner/wire"
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
	Wire       wire.Options     // Share 0: as many as suit the load
	Requests   []*wire.Prepared // at least one; sent in turn, again and again
	AnswerSize int64            // bytes of the outputs in an answer; negative: not known
	Gauge      Gauge
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

// socketBuffer is what the kernel takes of a request without blocking its sender, in bytes.
const socketBuffer = 64 << 10

// isLarge reports whether sending a request may block.
func (t Target) isLarge() bool {
	return slices.ContainsFunc(t.Requests, func(p *wire.Prepared) bool { return p.Size() > socketBuffer })
}

// When requests in flight over gRPC share connections, as those of perf_analyzer do: less of the time goes into reading and writing
// them, on both sides. Large messages would hold up those behind them, and a server may well serve each connection in one thread.
const (
	fewestSharing = 8        // requests in flight from which on they share
	mostSharing   = 4        // requests in flight on a connection
	largestShared = 16 << 10 // bytes of a request, or of an answer's outputs, from which on they do not: one frame of HTTP/2
)

// share is how many requests in flight a connection has in a closed loop; a concurrency of 0 is an open loop.
func (t Target) share(concurrency int) int {
	isLarge := func(p *wire.Prepared) bool { return p.Size() >= largestShared }
	switch {
	case t.Wire.Protocol != wire.GRPC || concurrency == 0:
		return 1
	case t.Wire.Share > 0:
		return min(t.Wire.Share, concurrency)
	case concurrency < fewestSharing || t.AnswerSize < 0 || t.AnswerSize >= largestShared || slices.ContainsFunc(t.Requests, isLarge):
		return 1
	}
	return mostSharing
}

// dialer opens connections for the target's requests under a load.
func (t Target) dialer(l measure.Load) func(ctx context.Context, connection int) (load.Conn, error) {
	o := t.Wire
	o.Share = t.share(l.Concurrency)
	return func(ctx context.Context, _ int) (load.Conn, error) {
		c, err := wire.Dial(ctx, o)
		if err != nil {
			return nil, err
		}
		return conn{c, t.Requests}, nil
	}
}

// conn is a connection that knows requests by number.
type conn struct {
	*wire.Conn
	requests []*wire.Prepared
}

// Send sends one of the requests.
func (c conn) Send(slot, request int) {
	c.Conn.Send(slot, c.requests[request%len(c.requests)])
}
