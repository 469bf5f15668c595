// Package testserver is an inference server whose service times follow a known law. It records
// every request. Tests and benchmarks compare this record with what the measurement core reports.
//
// The server speaks as much of the protocol as a load generator needs: metadata, configuration,
// statistics and inferences, over HTTP and gRPC. It computes nothing: it waits for as long as the
// law says, and sends a prepared answer. Requests wait for one of Options.Servers servers in the
// order of their arrival. So with one server the waits follow Lindley's recursion exactly.
// Options.Faults make it fail in the ways that servers do.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// Options say how a server behaves. The zero value answers everything at once.
type Options struct {
	Law     Law    // of service times; nil: none is taken
	Stall   Stall  // when nothing is served
	Servers int    // how many requests are served at a time; 0: any number
	Seed    uint64 // of the law
	Records int    // how many requests the record holds, the latest; 0: 2²⁰

	HTTP, GRPC string // where to listen, host:port; empty: any free port of 127.0.0.1
	Faults     Faults
}

// Faults are what goes wrong; the zero value is nothing. Those that name HTTP leave gRPC alone.
type Faults struct {
	Silent     bool   // inferences are never answered
	FailEvery  int    // each so many-th inference is answered by an error (HTTP: status 500)
	CloseEvery int    // HTTP: a connection is closed after so many inferences on it, unannounced
	DieAfter   int    // after so many inferences all listeners and connections are closed
	LongBody   bool   // HTTP: Content-Length is a byte more than comes, then the connection is closed
	BadHead    bool   // HTTP: inferences are answered by what is no HTTP
	Datatype   string // of the input, as the metadata tell it in place of FP32
}

// Addresses are where a server listens, host:port.
type Addresses struct {
	HTTP string `json:"http"`
	GRPC string `json:"grpc"`
}

// Entry is a request that was answered well, in wall-clock nanoseconds since 1970 (a monotonic
// clock's, set once).
type Entry struct {
	Arrival int64 // the whole request was read
	Begin   int64 // of the service
	End     int64 // of the service, by the law
	Written int64 // the answer is handed to the operating system next; gRPC: to its library
}

// Server is one server. Its methods are safe for concurrent use.
type Server struct {
	options Options
	epoch   time.Time

	mu      sync.Mutex // guards the rest but grpc, running and ended
	random  *rand.Rand
	free    []time.Duration // when each of the servers is free
	entries []Entry         // a ring
	counts  counts
	conns   map[net.Conn]struct{}
	closed  bool

	ended     chan struct{} // closed at the end
	grpc      *grpc.Server
	listeners []net.Listener
	running   sync.WaitGroup
}

// defaultRecords is how many requests the record holds.
const defaultRecords = 1 << 20

// New returns a server that does not listen yet.
func New(o Options) (*Server, error) {
	if s := o.Stall; s.Every < 0 || s.For < 0 || s.For > 0 && s.For >= s.Every {
		return nil, fmt.Errorf("cannot stall for %v every %v: the stall must be shorter", s.For, s.Every)
	}
	if o.Servers < 0 || o.Records < 0 {
		return nil, errors.New("cannot serve with a negative number of servers or records")
	}
	records := o.Records
	if records == 0 {
		records = defaultRecords
	}
	return &Server{
		options: o, epoch: time.Now(), random: rand.New(rand.NewPCG(o.Seed, 0)), free: make([]time.Duration, o.Servers),
		entries: make([]Entry, records), conns: map[net.Conn]struct{}{}, ended: make(chan struct{}),
	}, nil
}

// Listen begins to serve, until Close.
func (s *Server) Listen(ctx context.Context) (Addresses, error) {
	addresses := []string{s.options.HTTP, s.options.GRPC}
	for i, address := range addresses {
		if address == "" {
			address = "127.0.0.1:0"
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return Addresses{}, errors.Join(fmt.Errorf("cannot listen at %s: %w", address, err), s.Close())
		}
		s.listeners = append(s.listeners, listener)
		addresses[i] = listener.Addr().String()
	}
	var err error
	if s.grpc, err = s.newGRPC(); err != nil {
		return Addresses{}, errors.Join(err, s.Close())
	}
	s.running.Go(func() { s.accept(s.listeners[0]) })
	s.running.Go(func() { _ = s.grpc.Serve(s.listeners[1]) }) // ends by stop
	return Addresses{addresses[0], addresses[1]}, nil
}

// Close ends all connections and waits for what serves them. Closing twice is safe.
func (s *Server) Close() error {
	s.stop()
	if s.grpc != nil {
		s.grpc.Stop()
	}
	s.running.Wait()
	return nil
}

// stop closes listeners and connections, and waits for nothing.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.ended)
	for _, l := range s.listeners {
		_ = l.Close() // its loop ends
	}
	for c := range s.conns {
		_ = c.Close() // likewise
	}
	if s.grpc != nil {
		s.running.Go(s.grpc.Stop) // which waits for the calls in progress
	}
}

// accept serves each connection of a listener in a goroutine of its own.
func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		if s.add(conn) {
			s.running.Go(func() {
				s.serveHTTP(conn)
				s.remove(conn)
			})
		}
	}
}

// add remembers a connection, or closes it after the end.
func (s *Server) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	_ = conn.Close() // it may be closed already
}
