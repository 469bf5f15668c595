package grpcapi

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"

	"tuner/engine/budget"
	"tuner/engine/buffers"
	"tuner/engine/trace"
)

const (
	// for an open call beside its headers and messages: gRPC's own objects, the stack of a
	// goroutine, the request in its queue. 100,000 small requests that wait take 14 KiB each of
	// resident memory, garbage included (lab/attack, C5).
	streamBytes = 16 << 10
	// bytes at once that are messages or answers, and not only keepalive frames
	movement = 1 << 10
)

// client is a connection with its account. gRPC keeps the received parts of messages, and answers
// until their reader has opened its window, but reports neither. So the connection follows the
// frames that pass through it. It never delays them.
type client struct {
	net.Conn
	account *budget.Account
	buffers *buffers.Pool
	in, out frames
	// bytes received that Read has not returned, and their memory: at most one read of gRPC (32
	// KiB); only Read uses them
	ahead, spare []byte
	pause        pause
	most         int             // bytes of the largest message that is waited for, with its head
	told         []chan struct{} // waiters whose message Read has returned; only Read uses them

	mu      sync.Mutex
	streams map[uint32]arrived // the open ones
	newest  uint32             // highest number of a stream that Read has returned
	unsent  int                // bytes of answers in gRPC's queues
	isEnded bool               // everything has been given back
}

// arrived counts the bytes received on a stream.
type arrived struct {
	held    int          // bytes that are charged
	owed    int          // part of held: messages, complete or not
	message arriving     // the first one
	answers *answers     // that are compressed; nil: none
	trace   *trace.Trace // of a call whose answer is being written; nil: none
}

// listener makes connections of type client.
type listener struct {
	net.Listener
	memory  *budget.Budget
	buffers *buffers.Pool
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newClient(conn, l.memory, l.buffers), nil
}

func newClient(conn net.Conn, memory *budget.Budget, b *buffers.Pool) *client {
	socket := conn
	if t, ok := conn.(*tls.Conn); ok { // its Close would wait for the client
		socket = t.NetConn()
	}
	end := func() { _ = socket.Close() } // gRPC sees this when it reads or writes
	return &client{
		Conn: conn, account: memory.Open(end), buffers: b, streams: map[uint32]arrived{}, in: frames{skip: len(preface)},
		most: min(largestMessage(memory), streamWindow),
	}
}

// address is a client's address, by which calls find their client.
type address struct {
	net.Addr
	client *client
}

// RemoteAddr returns the client's address.
func (c *client) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// clientOf returns the client of a call. It is nil if the connection is not from the front end's
// listener.
func clientOf(ctx context.Context) *client {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(address); ok {
			return a.client
		}
	}
	return nil
}

// memory returns the account to which a call is charged.
func (c *client) memory() *budget.Account {
	if c == nil {
		return nil
	}
	return c.account
}

// Read reads, and charges the content of frames before gRPC parses them. It ends after the headers
// of a new stream, even if more has arrived. gRPC asks for more only after it has begun the call.
// So the newest stream is that of the call that begins.
func (c *client) Read(b []byte) (int, error) {
	c.wake()
	n, err := copy(b, c.ahead), error(nil)
	arrived := n == 0
	if arrived {
		if err := c.bound(); err != nil {
			return 0, err
		}
		n, err = c.Conn.Read(b)
	}
	charge, owe := 0, 0
	c.mu.Lock()
	seen := c.in.scan(b[:n], func(f frame) bool {
		c.pause.next(f)
		more, late := c.received(f)
		charge, owe = charge+more, owe+late
		return f.stream == c.newest && f.endsHeaders()
	}, c.arrives)
	c.mu.Unlock()
	switch {
	case !arrived:
		c.ahead = c.ahead[seen:]
	case seen < n:
		c.spare = append(c.spare[:0], b[seen:n]...)
		c.ahead, err = c.spare, nil // the connection returns its error again
	}
	c.charge(charge, owe)
	if owe >= movement {
		c.account.Moved()
	}
	return seen, err
}

// received counts a frame from the client. It returns how many more bytes are held, and how many of
// them are owed.
func (c *client) received(f frame) (held, owed int) {
	s, isOpen := c.streams[f.stream]
	switch {
	case c.isEnded:
	case f.kind == frameHeaders && !isOpen && f.stream > c.newest:
		c.newest = f.stream
		held = streamBytes + f.length
		s.message.isOver = f.flags&flagEndStream != 0
	case !isOpen: // the stream has ended, so gRPC drops the frame
	case f.kind == frameData:
		held, owed = f.length, f.length
		c.message(&s.message, f)
	case f.kind == frameHeaders || f.kind == frameContinuation:
		held = f.length
	case f.kind == frameReset:
		return c.ended(f.stream)
	}
	if isOpen || held > 0 {
		s.held, s.owed = s.held+held, s.owed+owed
		c.streams[f.stream] = s
	}
	return held, owed
}

// ended forgets a stream. It returns the change of the held and owed bytes.
func (c *client) ended(stream uint32) (held, owed int) {
	s := c.streams[stream]
	s.trace.End()
	delete(c.streams, stream)
	waiting := s.answers.total()
	return -s.held - waiting, -s.owed - waiting
}

// charge changes the held and owed bytes of the account.
func (c *client) charge(held, owed int) {
	if held > 0 {
		c.account.Force(held)
	} else if held < 0 {
		c.account.Give(-held)
	}
	if owed != 0 {
		c.account.Owe(owed)
	}
}

// adopt charges a message that was assembled to its client. Its frames, which are gone, are no
// longer charged.
func (c *client) adopt(m *message, stream uint32) {
	if c == nil {
		return
	}
	c.leave(stream, m.size)
	c.account.Force(m.copied)
	m.transit.Give(m.copied)
	m.request.Memory, m.charged, m.copied, m.size = c.account, m.copied, 0, 0
}

// leave gives back n bytes of a stream, for a message that is no longer needed.
func (c *client) leave(stream uint32, n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	s, isOpen := c.streams[stream]
	n = min(n, s.owed) // a compressed message is longer than the bytes received
	if isOpen {
		s.held, s.owed = s.held-n, s.owed-n
		c.streams[stream] = s
	}
	c.mu.Unlock()
	c.charge(-n, -n)
}

// Write writes, and gives back the bytes of calls and of compressed answers that end with it.
func (c *client) Write(b []byte) (int, error) {
	charge, owe := 0, 0
	var traces []*trace.Trace // that end with b
	c.mu.Lock()
	c.out.scan(b, func(f frame) bool {
		if f.kind == frameReset || f.kind == frameHeaders && f.flags&flagEndStream != 0 {
			if t := c.release(f.stream); t != nil {
				traces = append(traces, t)
			}
			less, early := c.ended(f.stream)
			charge, owe = charge+less, owe+early
		}
		return false
	}, func(f frame, p []byte) {
		n := c.written(f, p)
		charge, owe = charge-n, owe-n
	})
	c.mu.Unlock()
	c.charge(charge, owe)
	n, err := c.Conn.Write(b)
	finished(traces)
	if n >= movement {
		c.account.Moved()
	}
	return n, err
}

// Close gives back the bytes of the connection, which gRPC drops now.
func (c *client) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	held, owed := c.unsent, c.unsent
	for _, s := range c.streams {
		s.trace.End()
		waiting := s.answers.total()
		held, owed = held+s.held+waiting, owed+s.owed+waiting
	}
	clear(c.streams)
	c.unsent, c.isEnded = 0, true
	c.mu.Unlock()
	c.charge(-held, -owed)
	c.account.Discard(held)
	c.account.Close()
	return err
}

// take returns a buffer for an answer, which is charged until it has been sent. nil: there is no
// room for it.
func (c *client) take(length int) *[]byte {
	n := c.buffers.Capacity(length)
	if !c.account.Take(n) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded { // no client will read it
		c.account.Give(n)
		return nil
	}
	c.unsent += n
	c.account.Owe(n)
	return c.buffers.Get(length)
}

// lend follows n bytes of a model's memory that wait for the client, and are charged already. The caller
// calls done when they have been sent, or no client waits for them any more. done frees them.
func (c *client) lend(n int, free func()) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded {
		c.account.Give(n)
		return free
	}
	c.unsent += n
	c.account.Owe(n)
	return func() {
		c.settle(n)
		free()
	}
}

// settle gives back n bytes that were sent, or that no client waits for any more.
func (c *client) settle(n int) {
	c.mu.Lock()
	if c.isEnded {
		n = 0 // it was given back before
	}
	c.unsent -= n
	c.mu.Unlock()
	c.charge(-n, -n)
}

// sent is the pool to which gRPC returns an answer that was sent, or that no client waits for any
// more.
type sent struct{ *client }

var _ mem.BufferPool = sent{}

// Get is never called: gRPC only returns buffers.
func (s sent) Get(length int) *[]byte { return s.buffers.Get(length) }

// Put takes an answer back.
func (s sent) Put(b *[]byte) {
	s.settle(cap(*b))
	s.buffers.Put(b)
}

// streamKey is the key of the number of a call's stream in the call's context.
type streamKey struct{}

// begin puts the number of a call's stream into its context. gRPC does not export the number. begin
// must be called by gRPC's tap, which runs before the connection is read on (see Read).
func (c *client) begin(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return context.WithValue(ctx, streamKey{}, c.newest)
}

// streamOf returns the number of a call's stream. 0: unknown.
func streamOf(ctx context.Context) uint32 {
	stream, _ := ctx.Value(streamKey{}).(uint32)
	return stream
}
