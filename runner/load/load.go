// Package load puts a load on a server and cuts windows out of it: a closed loop, which keeps a number of requests in flight, or an
// open one, which sends by a schedule whatever the server does. Requests come ready-made from Conns, so that the package knows
// neither models nor protocols; what comes out are windows of completions and latencies for packages runner and perf, which add what
// the server and the machine have to say about them.
//
// The load runs without a stop from the warm-up to the end of the last window. The package starts no server, reads no statistics of
// it, and leaves no request out of the figures. It retries none but those that met a connection which the server had closed, as servers
// do with idle ones. A latency of an open loop counts from the scheduled instant.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/measure"
)

// Conn is a connection to the server with requests in flight, each in a slot. Send and Receive block, and may be called from different
// goroutines, one after the other. A closed loop uses all slots, an open one the first alone.
type Conn interface {
	// Slots is how many requests may be in flight, at least 1, and always the same.
	Slots() int
	// Send writes the request with a number, in a slot; which one that is, is the Conn's affair. What goes wrong is told by Receive.
	// Where there are several slots, sending may wait for the next Receive, and a request that is in flight in the slot is given up.
	Send(slot, request int)
	// Receive waits for the next response to any of the requests in flight. final: it is the last one to the request in the slot; null:
	// it is only the sign of the end. An error ends the request, but for one with a method Unanswered() bool that returns true: it says
	// that the server had closed the connection, and answered nothing. The request is then sent over a new one, once. An error that ends
	// the connection is told of each request in flight in turn.
	Receive() (slot int, final, null bool, err error)
	// Broken says after a request that no other can be sent; those in flight may still be answered.
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
	Load     measure.Load
	Arrivals Arrivals // of an open loop; nil: a closed loop of Load.Concurrency
	// Dial opens connection 0, 1, … In a closed loop of n over c connections (n of one slot), slot j of connection i is asked to send
	// requests k, k+n, k+2n … with k = i+j·c; in an open loop the requests are numbered in the order of the schedule, and any connection
	// may be asked for any. It may be called by several goroutines at once, and again for a connection that broke.
	Dial func(ctx context.Context, connection int) (Conn, error)

	// MaxInFlight bounds the requests of an open loop that are due and unanswered: those beyond it are dropped, and counted. 0: 4096.
	MaxInFlight int
	// Large says that a request may be larger than a socket's buffer (64 KiB), so that the schedule of an open loop must not wait for
	// it to be written.
	Large bool

	Timeout time.Duration // since its sending, after which a request counts as failed; 0: never
	// Patience is how long the server may complete nothing before it counts as hung; without a Timeout it is at least 20 times the
	// longest latency since the ramp, or of the ramp while it goes on.
	Patience time.Duration
	// First is the same until the first answer of the ramp, and of the load after it: a server may build its kernels in it. 0: Patience.
	First time.Duration

	// Ramp lists concurrencies at which a closed loop sends two requests for each in flight before the load begins, so that the
	// server has seen each batch size before it counts.
	Ramp []int
	// WarmUp is the longest warm-up, ramp not included; after it the load counts as unsteady. 0: none.
	WarmUp time.Duration
	// Fill says that the warm-up of a closed loop goes on, however long it is meant to be, until as many requests have ended as are in flight: before that
	// they were all sent at once, and their latencies are those of a queue that fills.
	Fill bool
	// WarmUpRequests > 0 sends exactly so many instead, and awaits their answers.
	WarmUpRequests int

	// Length says how long the windows shall be, given the 99th percentile of the latency in the later part of the warm-up (0: there was
	// none). It is called once, after the first edge, while the load goes on.
	Length func(p99 time.Duration) time.Duration
	// Requests > 0: a window ends at the first tick, of 100 ms, at which so many have completed or failed; Length is not called.
	Requests int
	// Budget > 0: a window of Requests ends also when all windows together have lasted so long.
	Budget time.Duration
	// MostWindows > 0 is an even number of windows at which they are joined in pairs, so that neither memory nor the cost of intervals grows
	// with the time. Later windows last twice as long, or have twice the Requests; at as many of those it is done again.
	MostWindows int
	// Joined is called when that was done: of the edges so far every second is none any more, from edge 1 on.
	Joined func()
	// Total > 0: exactly so many requests are sent after the warm-up. They are the only window, from the first sending to the last
	// answer; neither Length nor More is called.
	Total int
	// Edge is called at the beginning of the first window, 0, and at the end of each, while the load goes on. Its error ends the run.
	Edge func(ctx context.Context, edge int) error
	// More decides after each window, as soon as the figures of package load are complete, whether there shall be another. It is given
	// all windows so far, some of them maybe joined, which it must not change, and does not block: the next window has begun.
	More func(windows []measure.Window) bool
	// Enough is asked in each window of a Length at measure.Look of it, with what has completed so far, whether that will do: then the window ends there, and
	// no other follows. It is to be quick, as it is the load's own time. nil: it never does.
	Enough func(soFar measure.Window) bool
	// Sink is given every request of the windows but those that were dropped; when the run fails, also some of the window that did
	// not end. It is called by one goroutine. nil: nobody wants them.
	Sink func(Record)
}

const defaultMaxInFlight = 4096

// check says what makes options senseless.
func (o Options) check() error {
	switch {
	case o.Arrivals == nil && o.Load.Concurrency < 1:
		return fmt.Errorf("cannot make a closed loop of concurrency %d: it must be 1 or more", o.Load.Concurrency)
	case o.Arrivals != nil && (o.Load.Concurrency != 0 || len(o.Ramp) > 0):
		return errors.New("cannot make an open loop of a concurrency: one of both is to be given")
	case o.MaxInFlight < 0:
		return fmt.Errorf("cannot keep at most %d requests in flight: it must be 1 or more", o.MaxInFlight)
	case o.MostWindows < 0 || o.MostWindows%2 != 0:
		return fmt.Errorf("cannot join windows in pairs when there are %d: the number must be even", o.MostWindows)
	}
	return nil
}

// Result is what a run yielded.
type Result struct {
	// Windows have Start (since the run's beginning), Duration, the counts, Sub, and the flags of package load; the rest is for the
	// caller to fill in. When a run fails, they are those that were complete; of a Total what was answered.
	Windows []measure.Window
	Begin   time.Time     // the run's beginning
	WarmUp  time.Duration // from there to the first window
	Resent  int           // requests that were sent once more, since the server had closed their connection; also those of the warm-up
	Slowest time.Duration // longest time from sending to answer, in ramp and warm-up too
	Cut     bool          // the last window ended at its look

	// Unfinished is how many requests were due and unanswered when the last window ended, and Waited how long the first of them had
	// waited by then. They are in no window.
	Unfinished int
	Waited     time.Duration
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

// Run makes the load, waits until it is steady, cuts the windows, ends the load and awaits the last answers for up to 2 s. A *HungError,
// *LostError or *RefusedError says that the server is not fit to be measured; a cancelled context ends the run with its cause.
// Whatever the error, the windows that were complete are in the Result.
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
