// Package load sends requests to a server and cuts windows out of the load. A closed loop keeps a
// number of requests in flight. An open loop sends by a schedule, whatever the server does. Conns
// have the requests ready-made, so that the package knows neither models nor protocols. The results
// are windows of completions and latencies. Packages runner and perf add the figures of the server
// and the machine.
//
// Loads on several models of a server run together, each with a loop of its own (Together). Their
// windows have the same edges. The load on one model is the case of one loop (Run).
//
// The load runs without a break from the warm-up to the end of the last window. The package does
// not start the server or read its statistics. All requests count in the figures. It retries only
// requests on a connection that the server had closed, as servers do with idle ones. A latency of
// an open loop counts from the scheduled instant.
package load

import (
	"fmt"
	"time"

	"tuner/measure"
)

// Conn is a connection to the server. Each of its slots has at most one request in flight. Send and
// Receive block. Different goroutines may call them, one after the other. A closed loop uses all
// slots, an open loop only the first.
type Conn interface {
	// Slots returns how many requests may be in flight, at least 1. It always returns the same
	// number. A closed loop divides its requests by that of the first connection.
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

// Record is one request, for Part.Sink. Its instants are durations since Result.Begin.
type Record struct {
	Request int // its number, as given to Conn.Send
	// open loop: the scheduled instant; closed loop: the instant of sending
	Scheduled time.Duration
	Sent      time.Duration // when sending began
	// when the responses arrived, without null ones; nil if the request failed
	Responses []time.Duration
	Failed    bool
}

// Result holds the figures of a part of a run.
type Result struct {
	// Windows have Start (since the beginning of the run), Duration, the counts, Sub, and the flags
	// of package load. The caller fills in the rest. If a run fails, it has the complete windows,
	// and of a Total the requests that were answered.
	Windows []measure.Window
	Begin   time.Time     // beginning of the run, the same for all parts
	WarmUp  time.Duration // from Begin to the first window, the same for all parts
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

// PartError is the error of one of several loads. It has ended them all.
type PartError struct {
	Model string // as in Part
	Cause error
}

func (e *PartError) Error() string { return fmt.Sprintf("model %q: %v", e.Model, e.Cause) }

func (e *PartError) Unwrap() error { return e.Cause }
