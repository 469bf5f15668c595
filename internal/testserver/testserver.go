// Package testserver is an inference server whose service times follow a known law. It records
// every request. Tests and benchmarks compare this record with the measurements of the load
// generator.
//
// The server implements the part of the protocol that a load generator needs: metadata,
// configuration, statistics and inferences, over HTTP and gRPC. It computes nothing. It waits for
// the service time and sends a prepared answer. Requests wait for one of Options.Servers servers in
// order of arrival. So with one server the waiting times follow Lindley's recursion exactly.
// Options.Faults make it fail like real servers.
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

// Options configure a server. The zero value answers everything at once.
type Options struct {
	Law     Law    // service times; nil: zero
	Stall   Stall  // times without service
	Servers int    // number of requests that are served at a time; 0: any number
	Seed    uint64 // random seed of the law
	Records int    // number of requests in the record, the latest; 0: 2²⁰

	HTTP, GRPC string // listening addresses, host:port; empty: any free port of 127.0.0.1
	Faults     Faults
}

// Faults are the server's failures; the zero value has none. Those for HTTP do not affect gRPC.
type Faults struct {
	Silent     bool   // inferences get no answers
	FailEvery  int    // every n-th inference gets an error (HTTP: status 500)
	CloseEvery int    // HTTP: a connection is closed without notice after n inferences
	DieAfter   int    // after n inferences all listeners and connections are closed
	LongBody   bool   // HTTP: Content-Length is one byte too large, then the connection is closed
	BadHead    bool   // HTTP: answers to inferences are not valid HTTP
	Datatype   string // of the input in the metadata, instead of FP32
}

// Addresses are a server's listening addresses, host:port.
type Addresses struct {
	HTTP string `json:"http"`
	GRPC string `json:"grpc"`
}

// Entry is a successful request, in wall-clock nanoseconds since 1970 (from a monotonic clock that
// was set once).
type Entry struct {
	Arrival int64 // the whole request was read
	Begin   int64 // begin of the service
	End     int64 // end of the service, by the law
	// Written is the instant at which the answer is handed to the operating system, for gRPC to its
	// library.
	Written int64
}

// Server is one server. Its methods are safe for concurrent use.
type Server struct {
	options Options
	epoch   time.Time

	mu      sync.Mutex // guards all fields except grpc, running and ended
	random  *rand.Rand
	free    []time.Duration // time at which each server is free
	entries []Entry         // a ring
	counts  counts
	conns   map[net.Conn]struct{}
	closed  bool

	ended     chan struct{} // closed at the end
	grpc      *grpc.Server
	listeners []net.Listener
	running   sync.WaitGroup
}

// defaultRecords is the default number of requests in the record.
const defaultRecords = 1 << 20

// New makes a server that does not listen yet.
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

// Listen starts to serve, until Close.
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
	s.running.Go(func() { _ = s.grpc.Serve(s.listeners[1]) }) // stop ends it
	return Addresses{addresses[0], addresses[1]}, nil
}

// Close ends all connections and waits for their goroutines. Closing twice is safe.
func (s *Server) Close() error {
	s.stop()
	if s.grpc != nil {
		s.grpc.Stop()
	}
	s.running.Wait()
	return nil
}

// stop closes listeners and connections without waiting.
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
		_ = c.Close() // its loop ends
	}
	if s.grpc != nil {
		s.running.Go(s.grpc.Stop) // waits for the calls in progress
	}
}

// accept serves each connection of a listener in its own goroutine.
func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		if s.addConnection(conn) {
			s.running.Go(func() {
				s.serveHTTP(conn)
				s.remove(conn)
			})
		}
	}
}

// addConnection records a connection, or closes it after the end.
func (s *Server) addConnection(conn net.Conn) bool {
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
