package verify

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"tuner/runner/load"
	"tuner/search/queuesim"
)

// balancer chooses the server of each request as the plan's balancer does. It is in the client, as
// that of a gRPC client or a sidecar is, so that nothing stands between client and server.
type balancer struct {
	how queuesim.Balancer

	mu     sync.Mutex
	next   int   // of RoundRobin
	open   []int // requests of each server that are not answered
	random *rand.Rand
}

func newBalancer(how queuesim.Balancer, servers int, seed uint64) *balancer {
	return &balancer{how: how, open: make([]int, servers), random: rand.New(rand.NewPCG(seed, 5))}
}

// choose returns the server of a request, which is open until done is called.
func (b *balancer) choose() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.pick()
	b.open[i]++
	return i
}

func (b *balancer) pick() int {
	switch b.how {
	case queuesim.RoundRobin:
		b.next++
		return (b.next - 1) % len(b.open)
	case queuesim.Random:
		return b.random.IntN(len(b.open))
	}
	least, ties, chosen := math.MaxInt, 0, 0
	for i, open := range b.open {
		switch {
		case open < least:
			least, ties, chosen = open, 1, i
		case open == least:
			if ties++; b.random.IntN(ties) == 0 {
				chosen = i
			}
		}
	}
	return chosen
}

func (b *balancer) done(server int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[server]--
}

// group is the servers among which a load is spread.
type group struct {
	servers  []int
	balancer *balancer
	chosen   []int // the server of each request, by its number; those beyond the last are not noted
}

// one is a server alone.
func one(server int) *group {
	return &group{servers: []int{server}, balancer: newBalancer(queuesim.RoundRobin, 1, 0)}
}

// every is all servers.
func (f *fleet) every(how queuesim.Balancer) *group {
	g := &group{balancer: newBalancer(how, len(f.connections), f.seed)}
	for i := range f.connections {
		g.servers = append(g.servers, i)
	}
	return g
}

// dialer returns what opens a connection to every server of a group.
func (f *fleet) dialer(g *group) func(ctx context.Context, connection int) (load.Conn, error) {
	return func(ctx context.Context, _ int) (load.Conn, error) {
		s := &spread{group: g}
		for _, server := range g.servers {
			c, err := f.connections[server].Dial(ctx, 0)
			if err != nil {
				_ = s.Close() // the error of the dial says more
				return nil, err
			}
			s.each = append(s.each, c)
		}
		return s, nil
	}
}

// spread is a connection to every server of a group, with at most one request in flight.
type spread struct {
	group  *group
	each   []load.Conn
	place  int // in the group, of the server of the request in flight
	isOpen bool
}

// Slots implements load.Conn.
func (s *spread) Slots() int { return 1 }

// Send implements load.Conn.
func (s *spread) Send(_, request int) {
	s.end() // a request that is given up
	s.place, s.isOpen = s.group.balancer.choose(), true
	if request < len(s.group.chosen) {
		s.group.chosen[request] = s.group.servers[s.place]
	}
	s.each[s.place].Send(0, request)
}

func (s *spread) end() {
	if s.isOpen {
		s.group.balancer.done(s.place)
		s.isOpen = false
	}
}

// Receive implements load.Conn.
func (s *spread) Receive() (slot int, final, null bool, err error) {
	slot, final, null, err = s.each[s.place].Receive()
	if final || err != nil {
		s.end()
	}
	return slot, final, null, err
}

// Broken implements load.Conn.
func (s *spread) Broken() bool {
	for _, c := range s.each {
		if c.Broken() {
			return true
		}
	}
	return false
}

// Interrupt implements load.Conn.
func (s *spread) Interrupt() {
	for _, c := range s.each {
		c.Interrupt()
	}
}

// Close implements load.Conn.
func (s *spread) Close() error {
	var first error
	for _, c := range s.each {
		if err := c.Close(); first == nil {
			first = err
		}
	}
	return first
}
