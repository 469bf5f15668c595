package grpcapi

import (
	"errors"
	"net"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxHeap leaves room for one message of the largest size, in pieces and whole, beside the usual ones.
const DefaultMaxHeap = 6 << 30

const (
	measureEvery = 16 << 20               // bytes read from clients between two looks at the heap
	gatePause    = 100 * time.Millisecond // between two looks while it is full
	gatePatience = 10 * time.Second       // then the connection that waits is closed
)

var errHeapFull = errors.New("the server's memory is full")

// gate keeps clients from filling the memory: gRPC allocates only for what has arrived, but what a message may hold is almost
// unbounded, and so is the number of messages. While the heap is full nothing more is read, until answered requests have
// made room. Where that does not happen, because the memory holds messages that are not complete, connections are closed.
type gate struct {
	max  uint64
	heap func() uint64 // bytes of objects, garbage included
	free func()        // collects the garbage

	unseen atomic.Int64 // bytes read since the heap was looked at
	full   sync.Mutex   // held by the reader that looks
}

// newGate returns a gate that is closed while the heap has more than max bytes.
func newGate(max int64) *gate {
	return &gate{max: uint64(max), heap: heapBytes, free: runtime.GC}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// pass is called after n bytes have been read; it blocks while the heap is full, and fails when it stays so.
func (g *gate) pass(n int) error {
	if g.unseen.Add(int64(n)) < measureEvery {
		return nil
	}
	g.full.Lock()
	defer g.full.Unlock()
	if g.unseen.Load() < measureEvery {
		return nil // another reader has looked
	}
	for begin := time.Now(); g.heap() > g.max; time.Sleep(gatePause) {
		if g.free(); g.heap() <= g.max {
			break
		}
		if time.Since(begin) > gatePatience {
			return errHeapFull
		}
	}
	g.unseen.Store(0)
	return nil
}

// listener returns l with connections that go through the gate.
func (g *gate) listener(l net.Listener) net.Listener { return &gatedListener{l, g} }

type gatedListener struct {
	net.Listener
	gate *gate
}

// Accept waits for a connection.
func (l *gatedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{conn, l.gate}, nil
}

type gatedConn struct {
	net.Conn
	gate *gate
}

// Read reads, and keeps what it has read until there is room for more.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		err = c.gate.pass(n)
	}
	return n, err
}
