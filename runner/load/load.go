// Package load sends requests to a server and cuts windows out of the load. A closed loop keeps a
// number of requests in flight. An open loop sends by a schedule, whatever the server does. Conns
// have the requests ready-made, so that the package knows neither models nor protocols. The results
// are windows of completions and latencies. Packages runner and perf add the figures of the server
// and the machine.
//
// The load runs without a break from the warm-up to the end of the last window. The package does
// not start the server or read its statistics. All requests count in the figures. It retries only
// requests on a connection that the server had closed, as servers do with idle ones. A latency of
// an open loop counts from the scheduled instant.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/measure"
)

// Conn is a connection to the server. Each of its slots has at most one request in flight. Send and
// Receive block. Different goroutines may call them, one after the other. A closed loop uses all
// slots, an open loop only the first.
type Conn interface {
	// Slots returns how many requests may be in flight, at least 1. It always returns the same
	// number.
	Slots() int
	// Send writes the request with a number in a slot. The Conn decides which request a number
	// stands for. Errors appear in Receive. With several slots, Send may wait for the next Receive.
	// A request that is in flight in the slot is given up.
	Send(slot, request int)
	// Receive waits for the next response to any request in flight.
	//
	//   - final: it is the last response to the request in the slot.
	//   - null: the response is only the sign of the end.
	//   - err ends the request. If err has a method Unanswered() bool that returns true, the server
	//     had closed the connection and answered nothing. Then the request is sent once more, over
	//     a new connection.
	//
	// An error that ends the connection is returned for each request in flight in turn.
	Receive() (slot int, final, null bool, err error)
	// Broken reports after a request that the connection takes no further one. Requests in flight
	// may still be answered.
	Broken() bool
	// Interrupt makes Send and Receive fail at once, and in all later calls. It may be called at
	// any time.
	Interrupt()
	Close() error
}

// Arrivals yields the scheduled instants of an open loop, as durations since its beginning, in
// ascending order and without end (arrivals.Schedule). Next does not block. One goroutine calls it.
type Arrivals interface{ Next() time.Duration }

// Record is one request, for Options.Sink. Its instants are durations since Result.Begin.
type Record struct {
	Request int // its number, as given to Conn.Send
	// open loop: the scheduled instant; closed loop: the instant of sending
	Scheduled time.Duration
	Sent      time.Duration // when sending began
	// when the responses arrived, without null ones; nil if the request failed
	Responses []time.Duration
	Failed    bool
}

// Options describe the load and its windows.
type Options struct {
	Load     measure.Load
	Arrivals Arrivals // schedule of an open loop; nil: a closed loop of Load.Concurrency
	// Order has the number of the request at each instant of the schedule, and begins again after the
	// last. nil: 0, 1, 2 …
	Order []int
	// Period > 0 is the time after which the arrivals repeat. Windows are whole periods then
	// (arrivals.Pattern.Whole). The warm-up lasts one, within its limit, and is not judged.
	Period time.Duration
	// Dial opens connection 0, 1, … Several goroutines may call it at once, and again for a
	// connection that broke.
	//
	// In a closed loop of n requests over c connections, slot j of connection i sends the requests
	// k, k+n, k+2n … with k = i+j·c. With one slot there are n connections. In an open loop,
	// requests have the numbers of the schedule, and any connection may send any request.
	Dial func(ctx context.Context, connection int) (Conn, error)

	// MaxInFlight bounds the requests of an open loop that are due and unanswered. Requests beyond
	// it are dropped and counted. 0: 4096.
	MaxInFlight int
	// Large is true if a request may be larger than a socket's buffer (64 KiB). Then the schedule
	// of an open loop does not wait for the writing of requests.
	Large bool

	Timeout time.Duration // time after its sending at which a request counts as failed; 0: never
	// Patience is the time without a completed request after which the server counts as hung.
	// Without a Timeout it is at least 20 times the longest latency since the ramp, or during the
	// ramp so far.
	Patience time.Duration
	// First replaces Patience until the first answer of the ramp, and until the first answer of the
	// load after it. The server may build its kernels in this time. 0: Patience.
	First time.Duration

	// Ramp lists concurrencies for a closed loop. At each it sends two requests per request in
	// flight before the load begins. So the server sees each batch size before the measurement.
	Ramp []int
	// WarmUp is the longest warm-up, without the ramp. If it ends by this limit, the load counts as
	// unsteady. 0: no warm-up.
	//
	// The warm-up of a closed loop lasts at least until as many requests have ended as are in
	// flight. The first requests were all sent at once, so their latencies are those of a queue that
	// fills. A slow server may answer one at once, and all others together much later.
	WarmUp time.Duration
	// Unsettled asks for no steady load. Windows are not flagged as unsteady then.
	Unsettled bool
	// WarmUpRequests > 0 replaces the timed warm-up: exactly that many requests are sent, and their
	// answers awaited.
	WarmUpRequests int

	// Length returns the length of the windows. p99 is the 99th percentile of the latency in the
	// later part of the warm-up; 0 without one. Length is called once, after the first edge,
	// while the load continues.
	Length func(p99 time.Duration) time.Duration
	// Requests > 0 ends a window at the first tick of 100 ms at which that many requests have
	// completed or failed. Length is not called then.
	Requests int
	// Budget > 0 ends a window of Requests also when all windows together have lasted that long.
	Budget time.Duration
	// MostWindows > 0 is an even number of windows at which they are joined in pairs. So memory and
	// the cost of intervals do not grow with time. Later windows last twice as long, or have twice
	// the Requests. Joining repeats whenever there are that many windows.
	MostWindows int
	// Joined is called after joining. From edge 1 on, every second edge so far is no longer an
	// edge.
	Joined func()
	// Total > 0 sends exactly that many requests after the warm-up. They make one window, from the
	// first sending to the last answer. Length and More are not called then.
	Total int
	// Edge is called at the beginning of the first window with 0, and at the end of each window,
	// while the load continues. Its error ends the run.
	Edge func(ctx context.Context, edge int) error
	// More decides after each window whether another follows. It is called when the figures of
	// package load are complete. Its argument are all windows so far, some of them perhaps joined;
	// it must not change them. It must not block, since the next window has begun.
	More func(windows []measure.Window) bool
	// Enough is called once in each window with a Length, at measure.Look of it. soFar has the
	// requests that completed so far. If Enough returns true, the window ends there and is the
	// last. It must be quick, since the load waits for it. nil: never.
	Enough func(soFar measure.Window) bool
	// Sink gets every request of the windows, except dropped ones. If the run fails, it also gets
	// some requests of the unfinished window. One goroutine calls it. nil: no records are made.
	Sink func(Record)
}

const defaultMaxInFlight = 4096

// check returns an error for contradictory options.
func (o Options) check() error {
	switch {
	case o.Arrivals == nil && o.Load.Concurrency < 1:
		return fmt.Errorf("cannot make a closed loop of concurrency %d: it must be 1 or more", o.Load.Concurrency)
	case o.Arrivals != nil && (o.Load.Concurrency != 0 || len(o.Ramp) > 0):
		return errors.New("cannot make an open loop with a concurrency: give only one of them")
	case o.MaxInFlight < 0:
		return fmt.Errorf("cannot keep at most %d requests in flight: it must be 1 or more", o.MaxInFlight)
	case o.MostWindows < 0 || o.MostWindows%2 != 0:
		return fmt.Errorf("cannot join windows in pairs when there are %d: the number must be even", o.MostWindows)
	}
	return nil
}

// Result holds the figures of a run.
type Result struct {
	// Windows have Start (since the beginning of the run), Duration, the counts, Sub, and the flags
	// of package load. The caller fills in the rest. If a run fails, it has the complete windows,
	// and of a Total the requests that were answered.
	Windows []measure.Window
	Begin   time.Time     // beginning of the run
	WarmUp  time.Duration // from Begin to the first window
	// requests that were sent once more, since the server had closed their connection; warm-up
	// included
	Resent  int
	Slowest time.Duration // longest time from sending to answer, ramp and warm-up included
	Cut     bool          // the last window ended at its look

	// Unfinished is the number of requests that were due and unanswered at the end of the last
	// window. Waited is the age of the oldest of them at that instant. They are in no window.
	Unfinished int
	Waited     time.Duration
}

// HungError means that the server completed no request for too long.
type HungError struct{ Waited time.Duration }

func (e *HungError) Error() string {
	return fmt.Sprintf("the server completed no request for %v", e.Waited.Round(100*time.Millisecond))
}

// RefusedError means that the server refused every request of the warm-up.
type RefusedError struct {
	Requests int
	First    string // text of the first refusal
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("all %d requests of the warm-up failed, the first with: %s", e.Requests, e.First)
}

// LostError means that the server closed every connection and refuses new ones.
type LostError struct{ Cause error } // error of the latest attempt to connect

func (e *LostError) Error() string {
	return fmt.Sprintf("the server closed all connections and refuses new ones: %v", e.Cause)
}

func (e *LostError) Unwrap() error { return e.Cause }

// Run makes the load, waits until it is steady, cuts the windows, and ends the load. It waits up to
// 2 s for the last answers. A *HungError, *LostError or *RefusedError means that the server cannot
// be measured. If the context ends, Run returns its cause. After any error, Result still has the
// complete windows.
func Run(ctx context.Context, o Options) (Result, error) { return run(ctx, o, newWaiter) }

func run(ctx context.Context, o Options, newWaiter func(now func() time.Duration) waiter) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	o.MaxInFlight = cmp.Or(o.MaxInFlight, defaultMaxInFlight)
	s := &session{options: o, newWaiter: newWaiter, epoch: time.Now()}
	closed := &closedLoop{session: s}
	s.loop = closed
	if s.isOpen() {
		s.loop = newOpenLoop(s)
	}
	defer s.close()
	err := s.loop.dial(ctx)
	if err == nil {
		err = s.ramp(ctx, closed)
	}
	if err == nil {
		err = s.load(ctx)
	}
	return s.result(), err
}
