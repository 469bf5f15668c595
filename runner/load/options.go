package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/measure"
)

// Part is the load on one model.
type Part struct {
	// Model is the name of the model in errors (PartError). It may be "" for a load on one model
	// alone.
	Model string

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
	// Sleeps lets the schedule of an open loop wait without spinning, for clients whose processor time the server
	// lacks. Requests are some tens of microseconds late then.
	Sleeps bool

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

	// Sink gets every request of the windows, except dropped ones. If the run fails, it also gets
	// some requests of the unfinished window. One goroutine calls it. nil: no records are made.
	Sink func(Record)
}

// Windows says how windows are cut out of the loads of all parts. They have the same edges for all.
// Slices of its functions have an element for each part, in the order of the parts.
type Windows struct {
	// Length returns the length of the windows. p99 is the 99th percentile of the latency in the
	// later part of the warm-up; 0 without one. Length is called once, after the first edge,
	// while the load continues.
	Length func(p99 []time.Duration) time.Duration
	// Requests > 0 ends a window at the first tick of 100 ms at which that many requests of each part
	// have completed or failed. Length is not called then.
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
	// first sending to the last answer. Length and More are not called then. It is for one part
	// alone.
	Total int
	// Edge is called at the beginning of the first window with 0, and at the end of each window,
	// while the load continues. Its error ends the run.
	Edge func(ctx context.Context, edge int) error
	// More decides after each window whether another follows. It is called when the figures of
	// package load are complete. Its argument are all windows so far, some of them perhaps joined;
	// it must not change them. It must not block, since the next window has begun.
	More func(windows [][]measure.Window) bool
	// Enough is called once in each window with a Length, at measure.Look of it. soFar has the
	// requests that completed so far. If Enough returns true, the window ends there and is the
	// last. It must be quick, since the load waits for it. nil: never.
	Enough func(soFar []measure.Window) bool
}

// Options describe the load on one model, and its windows.
type Options struct {
	Part
	Windows
}

const defaultMaxInFlight = 4096

// check returns an error for contradictory options.
func check(parts []Part, w Windows) error {
	switch {
	case len(parts) == 0:
		return errors.New("cannot make a load of no parts")
	case len(parts) > 1 && w.Total > 0:
		return fmt.Errorf("cannot send exactly %d requests to each of %d models: their windows would end at different times", w.Total, len(parts))
	case w.MostWindows < 0 || w.MostWindows%2 != 0:
		return fmt.Errorf("cannot join windows in pairs when there are %d: the number must be even", w.MostWindows)
	}
	for i, p := range parts {
		if err := p.check(); err != nil {
			return p.named(err)
		}
		isSame := func(other Part) bool { return other.Model == p.Model }
		if slices.ContainsFunc(parts[:i], isSame) {
			return fmt.Errorf("cannot tell two parts of a load apart: both are of model %q", p.Model)
		}
	}
	return nil
}

func (p Part) check() error {
	switch {
	case p.Arrivals == nil && p.Load.Concurrency < 1:
		return fmt.Errorf("cannot make a closed loop of concurrency %d: it must be 1 or more", p.Load.Concurrency)
	case p.Arrivals != nil && (p.Load.Concurrency != 0 || len(p.Ramp) > 0):
		return errors.New("cannot make an open loop with a concurrency: give only one of them")
	case p.MaxInFlight < 0:
		return fmt.Errorf("cannot keep at most %d requests in flight: it must be 1 or more", p.MaxInFlight)
	}
	return nil
}

// named returns an error that names the model, if it has a name.
func (p Part) named(err error) error {
	if err == nil || p.Model == "" {
		return err
	}
	return &PartError{p.Model, err}
}
