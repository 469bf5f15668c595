package wire

import (
	"context"
	"slices"
)

// Target is a model on a server, with the requests for it.
type Target struct {
	Options    Options     // Share 0: as many as suit the load
	Requests   []*Prepared // at least one; sent in turn, again and again
	AnswerSize int64       // bytes of the outputs in an answer; 0 or less: not known
}

// Cycle is a connection that knows a target's requests by number.
type Cycle struct {
	*Conn
	requests []*Prepared
}

// Send sends one of the requests, by its number modulo that of all.
func (c Cycle) Send(slot, request int) { c.Conn.Send(slot, c.requests[request%len(c.requests)]) }

// Dial opens a connection for a closed loop of so many requests in flight, or for an open loop (0), within the options' DialTimeout. The
// context bounds the connecting alone.
func (t Target) Dial(ctx context.Context, concurrency int) (Cycle, error) {
	o := t.Options
	o.Share = t.share(concurrency)
	c, err := Dial(ctx, o)
	return Cycle{c, t.Requests}, err
}

// socketBuffer is what the kernel takes of a request without blocking its sender, in bytes.
const socketBuffer = 64 << 10

// IsLarge reports whether sending a request may block.
func (t Target) IsLarge() bool {
	return slices.ContainsFunc(t.Requests, func(p *Prepared) bool { return p.Size() > socketBuffer })
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
