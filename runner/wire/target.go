package wire

import (
	"context"
	"slices"
)

// Target is a model on a server, with the requests for it.
type Target struct {
	Options    Options     // Share 0: a number that suits the load
	Requests   []*Prepared // at least one; sent in turn, and again after the last
	AnswerSize int64       // bytes of the outputs in an answer; 0 or less: unknown
}

// Cycle is a connection that selects a target's requests by number.
type Cycle struct {
	*Conn
	requests []*Prepared
}

// Send sends the request with a number, modulo the number of requests.
func (c Cycle) Send(slot, request int) { c.Conn.Send(slot, c.requests[request%len(c.requests)]) }

// Dial opens a connection for a closed loop with concurrency requests in flight, or for an open
// loop (0), within the options' DialTimeout. ctx bounds only the connecting.
func (t Target) Dial(ctx context.Context, concurrency int) (Cycle, error) {
	o := t.Options
	o.Share = t.share(concurrency)
	c, err := Dial(ctx, o)
	return Cycle{c, t.Requests}, err
}

// socketBuffer is the size in bytes up to which the kernel takes a request without blocking.
const socketBuffer = 64 << 10

// IsLarge reports whether sending a request may block.
func (t Target) IsLarge() bool {
	return slices.ContainsFunc(t.Requests, func(p *Prepared) bool { return p.Size() > socketBuffer })
}

// Bounds within which requests in flight over gRPC share connections, as those of perf_analyzer do.
// Sharing saves reads and writes on both sides. Large messages would delay those behind them, and a
// server may serve each connection in one thread.
const (
	fewestSharing = 8 // smallest number of requests in flight that share
	mostSharing   = 4 // largest number of requests in flight on a connection
	// bytes of a request, or of an answer's outputs, from which on they do not share: one frame of
	// HTTP/2
	largestShared = 16 << 10
)

// share returns the number of requests in flight per connection in a closed loop. Concurrency 0 is
// an open loop.
func (t Target) share(concurrency int) int {
	isLarge := func(p *Prepared) bool { return p.Size() >= largestShared }
	switch {
	case t.Options.Protocol != GRPC || concurrency == 0:
		return 1
	case t.Options.Share > 0:
		return min(t.Options.Share, concurrency)
	case concurrency < fewestSharing || t.AnswerSize <= 0 || t.AnswerSize >= largestShared || slices.ContainsFunc(t.Requests, isLarge):
		return 1
	}
	return mostSharing
}
