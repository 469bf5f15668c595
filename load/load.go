// Package load puts a load on a server and cuts windows out of it. Requests come ready-made from Senders, one per
// connection, so that the package knows neither models nor protocols; what comes out are windows of completions and
// latencies for package runner, which adds what the server and the machine have to say about them.
//
// The load runs without a stop from the warm-up to the end of the last window. The package starts no server, reads no
// statistics of it, retries nothing, and drops no request from the figures.
package load

import (
	"context"
	"fmt"
	"time"

	"tuner/measure"
)

// Sender sends one request after the other over a connection of its own. Send returns when the answer is complete or the
// context ends; it is called by one goroutine at a time.
type Sender interface {
	Send(ctx context.Context) error
	Close() error
}

// Conn is a connection to the server with at most one request in flight. Send and Receive block, are called in turn, and may be called
// from different goroutines, one after the other. An error of either ends the request.
type Conn interface {
	// Send writes the request with a number; which one that is, is the Conn's affair.
	Send(request int) error
	// Receive waits for the request's next response. final: it is the last one; null: it is only the sign of the end.
	Receive() (final, null bool, err error)
	// Broken says after an error that no other request can be sent.
	Broken() bool
	// Interrupt makes Send and Receive fail now and for ever. It may be called at any time.
	Interrupt()
	Close() error
}

// Record is one request for those who want each. The instants are durations since Result.Begin.
type Record struct {
	Request   int             // its number, as given to Conn.Send
	Scheduled time.Duration   // open loop; in a closed one the instant of sending
	Sent      time.Duration   // when sending began
	Responses []time.Duration // when the responses came, null ones left out; nil when it failed
	Failed    bool
}

// Options say which load to make and what to cut out of it.
type Options struct {
	Load measure.Load
	Dial func(ctx context.Context, worker int) (Sender, error) // the connection of worker 0, 1, …

	// Ramp lists concurrencies at which every worker sends two requests before the load begins, so that the server has
	// seen each batch size before it counts.
	Ramp   []int
	WarmUp time.Duration // longest warm-up, ramp not included; after it the load counts as unsteady

	Windows int // ≥ 1
	// Length says how long the windows shall be, given the 99th percentile of the latency during warm-up. It is called
	// once, after the first edge, while the load goes on.
	Length func(p99 time.Duration) time.Duration
	// Edge is called at the beginning of the first window, 0, and at the end of each, 1 to Windows, while the load goes
	// on. Its error ends the run.
	Edge func(ctx context.Context, edge int) error

	// Patience is how long the server may complete nothing before it counts as hung: at least this, and 20 times the
	// longest latency so far.
	Patience time.Duration
}

// Result is what a run yielded.
type Result struct {
	// Windows have Start (since the run's beginning), Duration, the counts, Sub, and the flags little, errors and
	// unsteady; the rest is for the caller to fill in.
	Windows []measure.Window
	WarmUp  time.Duration // from the run's beginning to the first window
}

// HungError says that the server completed no request for too long.
type HungError struct{ Waited time.Duration }

func (e *HungError) Error() string {
	return fmt.Sprintf("the server completed no request for %v", e.Waited.Round(100*time.Millisecond))
}

// RefusedError says that the server refused every request of the warm-up.
type RefusedError struct {
	Requests int
	First    string // the first refusal's text
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("all %d requests of the warm-up failed, the first with: %s", e.Requests, e.First)
}

// LostError says that the server closed every connection and refuses new ones.
type LostError struct{ Cause error } // why the latest attempt to connect failed

func (e *LostError) Error() string {
	return fmt.Sprintf("the server closed all connections and takes no new ones: %v", e.Cause)
}

func (e *LostError) Unwrap() error { return e.Cause }

// Run makes the load, waits until it is steady, cuts the windows, and ends the load. A *HungError or *RefusedError says
// that the server is not fit to be measured; a cancelled context ends the run with its cause.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Load.Concurrency < 1 {
		return Result{}, fmt.Errorf("cannot make a load of %s: only closed loops of concurrency 1 or more are known", o.Load)
	}
	s := &session{options: o, epoch: time.Now()}
	defer s.close()
	if err := s.dial(ctx); err != nil {
		return Result{}, err
	}
	if err := s.ramp(ctx); err != nil {
		return Result{}, err
	}
	if err := s.load(ctx); err != nil {
		return Result{}, err
	}
	windows, err := s.cut()
	return Result{Windows: windows, WarmUp: s.edges[0]}, err
}
