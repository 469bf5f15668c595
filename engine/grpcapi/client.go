package grpcapi

import (
	"context"
	"crypto/tls"
	"net"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"

	"tuner/engine/budget"
)

const (
	streamBytes = 4 << 10 // of an open call besides its headers and messages: gRPC's own objects, a goroutine's stack
	movement    = 1 << 10 // bytes at once that are messages or answers, and not signs of life alone
)

// client is a connection with its account. gRPC keeps what has arrived of messages, and answers until their reader has opened
// its window, and says nothing of either: so the connection follows the frames that pass through it. Nothing is ever held back.
type client struct {
	net.Conn
	account *budget.Account
	buffers *buffers
	in, out frames

	mu      sync.Mutex
	streams map[uint32]arrived // the open ones
	newest  uint32             // the highest number that a stream has had
	unsent  int                // bytes of answers in gRPC's queues
	isEnded bool               // everything has been given back
}

// arrived is what a stream has brought.
type arrived struct {
	held int // bytes that are charged
	owed int // of them: those of messages, whether complete or not
}

// listener makes connections of type client.
type listener struct {
	net.Listener
	memory  *budget.Budget
	buffers *buffers
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newClient(conn, l.memory, l.buffers), nil
}

func newClient(conn net.Conn, memory *budget.Budget, b *buffers) *client {
	socket := conn
	if t, ok := conn.(*tls.Conn); ok { // whose Close waits until the client has been told
		socket = t.NetConn()
	}
	end := func() { _ = socket.Close() } // gRPC sees that when it reads or writes
	return &client{Conn: conn, account: memory.Open(end), buffers: b, streams: map[uint32]arrived{}, in: frames{skip: len(preface)}}
}

// address is a client's address, by which calls find their client.
type address struct {
	net.Addr
	client *client
}

// RemoteAddr is the client's address.
func (c *client) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// clientOf is the client of a call; nil where the connection is none of the front end's.
func clientOf(ctx context.Context) *client {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(address); ok {
			return a.client
		}
	}
	return nil
}

// memory is the account that a call is charged to.
func (c *client) memory() *budget.Account {
	if c == nil {
		return nil
	}
	return c.account
}

// Read reads, and charges what the frames hold before gRPC takes them apart.
func (c *client) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	charge, owe := 0, 0
	c.mu.Lock()
	c.in.scan(b[:n], func(f frame) {
		more, late := c.received(f)
		charge, owe = charge+more, owe+late
	})
	c.mu.Unlock()
	c.charge(charge, owe)
	if owe >= movement {
		c.account.Moved()
	}
	return n, err
}

// received notes a frame of the client's. It returns how many more bytes are held, and how many of them are owed.
func (c *client) received(f frame) (held, owed int) {
	s, isOpen := c.streams[f.stream]
	switch {
	case c.isEnded:
	case f.kind == frameHeaders && !isOpen && f.stream > c.newest:
		c.newest = f.stream
		held = streamBytes + f.length
	case !isOpen: // the stream has ended: gRPC drops the frame
	case f.kind == frameData:
		held, owed = f.length, f.length
	case f.kind == frameHeaders || f.kind == frameContinuation:
		held = f.length
	case f.kind == frameReset:
		return c.ended(f.stream)
	}
	if held > 0 {
		c.streams[f.stream] = arrived{s.held + held, s.owed + owed}
	}
	return held, owed
}

// ended forgets a stream. It returns the change of what is held and owed.
func (c *client) ended(stream uint32) (held, owed int) {
	s := c.streams[stream]
	delete(c.streams, stream)
	return -s.held, -s.owed
}

// charge changes what the account holds, for what has arrived.
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

// adopt charges a message that was put together to its client, in place of its frames, which are gone.
func (c *client) adopt(m *message, stream uint32) {
	if c == nil {
		return
	}
	c.leave(stream, m.size)
	c.account.Force(m.copied)
	m.transit.Give(m.copied)
	m.request.Memory, m.charged, m.copied, m.size = c.account, m.copied, 0, 0
}

// leave gives back n bytes of what a stream has brought: a message that is not needed any more.
func (c *client) leave(stream uint32, n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	s, isOpen := c.streams[stream]
	n = min(n, s.owed) // a compressed message is longer than what came
	if isOpen {
		c.streams[stream] = arrived{s.held - n, s.owed - n}
	}
	c.mu.Unlock()
	c.charge(-n, -n)
}

// Write writes, and gives back what calls held that end with it.
func (c *client) Write(b []byte) (int, error) {
	charge, owe := 0, 0
	c.mu.Lock()
	c.out.scan(b, func(f frame) {
		if f.kind == frameReset || f.kind == frameHeaders && f.flags&flagEndStream != 0 {
			less, early := c.ended(f.stream)
			charge, owe = charge+less, owe+early
		}
	})
	c.mu.Unlock()
	c.charge(charge, owe)
	n, err := c.Conn.Write(b)
	if n >= movement {
		c.account.Moved()
	}
	return n, err
}

// Close gives back what the connection has held: gRPC forgets it.
func (c *client) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	held, owed := c.unsent, c.unsent
	for _, s := range c.streams {
		held, owed = held+s.held, owed+s.owed
	}
	clear(c.streams)
	c.unsent, c.isEnded = 0, true
	c.mu.Unlock()
	c.charge(-held, -owed)
	c.account.Discard(held)
	c.account.Close()
	return err
}

// take returns a buffer for an answer, which is charged until it has been sent; nil: there is no room for it.
func (c *client) take(length int) *[]byte {
	n := c.buffers.capacity(length)
	if !c.account.Take(n) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded { // nobody will read it
		c.account.Give(n)
		return nil
	}
	c.unsent += n
	c.account.Owe(n)
	return c.buffers.Get(length)
}

// sent is the pool to which gRPC gives an answer back that it has sent, or that nobody waits for any more.
type sent struct{ *client }

var _ mem.BufferPool = sent{}

// Get is not called by gRPC, which only gives back.
func (s sent) Get(length int) *[]byte { return s.buffers.Get(length) }

// Put takes an answer back.
func (s sent) Put(b *[]byte) {
	n := cap(*b)
	s.mu.Lock()
	if s.isEnded {
		n = 0 // has been given back
	}
	s.unsent -= n
	s.mu.Unlock()
	s.charge(-n, -n)
	s.buffers.Put(b)
}

// streamOf is the number of a call's stream, which gRPC keeps to itself; 0: unknown.
func streamOf(ctx context.Context) uint32 {
	v := reflect.ValueOf(grpc.ServerTransportStreamFromContext(ctx))
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	if id := v.Elem().FieldByName("id"); id.IsValid() && id.Kind() == reflect.Uint32 {
		return uint32(id.Uint())
	}
	return 0
}
