package queuesim

import (
	"cmp"
	"math"

	"tuner/measure"
)

// Balancer names how the requests of a service are spread over its replicas.
type Balancer string

// The balancers.
const (
	// Random: each replica with the same probability, as kube-proxy spreads connections
	Random        Balancer = "random"
	RoundRobin    Balancer = "round_robin"    // one after the other, as gRPC clients do
	LeastRequests Balancer = "least_requests" // the replica with the fewest requests that are not answered, as Envoy does
)

// Balancers lists the balancers.
func Balancers() []Balancer { return []Balancer{Random, RoundRobin, LeastRequests} }

// Fleet simulates equal servers behind a balancer, one load after the other in the same memory. The
// zero value is ready. It is for one goroutine, and must not be copied.
type Fleet struct {
	servers  []*lane
	sent     []int
	chosen   []int // servers of a replay's requests
	arrivals random
	choices  random
	merged   tally
}

// Simulate predicts the result of an open loop on several servers. load has the request rate of
// all together, and Options.Requests counts all together. The servers begin empty, and the first
// quarter of the requests does not count. Result.Busy and Throughput are those of all servers.
func (f *Fleet) Simulate(servers int, how Balancer, b Batcher, c ServiceCurve, load measure.Load, o Options) Result {
	rows, counted := max(load.BatchSize, 1), max(cmp.Or(o.Requests, defaultRequests), 1)
	servers = max(servers, 1)
	f.reset(servers, b, c, o)
	if b.refuses(rows) {
		return Result{}
	}
	skip := warmUp(counted, 0)
	now, begin := 0.0, 0.0
	for n := range skip + counted {
		now = f.following(now, load.RequestRate, o.Arrivals)
		if n == skip {
			begin = now
			f.count(now)
		}
		i := f.choose(how, n, now)
		f.servers[i].proceed(now, 0)
		f.servers[i].due.push(arrival{now, 1, rows})
		f.servers[i].proceed(now, 0)
		f.sent[i]++
	}
	f.merged.reset(0, counted)
	f.merged.counting, f.merged.begin = true, begin
	for i := range f.servers {
		s := f.servers[i]
		s.proceed(math.Inf(1), 0)
		now = max(now, s.now)
		f.merged.merge(&s.tally)
	}
	return f.merged.result(now, o.Within)
}

func (f *Fleet) reset(servers int, b Batcher, c ServiceCurve, o Options) {
	for len(f.servers) < servers {
		f.servers = append(f.servers, new(lane))
	}
	f.servers = f.servers[:servers]
	f.sent = append(f.sent[:0], make([]int, servers)...)
	for i := range f.servers {
		f.servers[i].reset(b, c, o.Seed+uint64(i)<<32)
		f.servers[i].tally.reset(math.MaxInt, math.MaxInt)
	}
	f.arrivals.seed(o.Seed, 3)
	f.choices.seed(o.Seed, 4)
}

// count begins to count: the requests that are answered from now on.
func (f *Fleet) count(now float64) {
	for i := range f.servers {
		s := f.servers[i]
		s.proceed(now, 0)
		s.advance(now) // what its instances did before does not count
		s.tally.counting = true
	}
}

// following returns the instant of the next request in s.
func (f *Fleet) following(now, rate float64, schedule Arrivals) float64 {
	if schedule != nil {
		return max(now, schedule.Next().Seconds())
	}
	return now + f.arrivals.numbers.ExpFloat64()/rate
}

// choose returns the server of the request n.
func (f *Fleet) choose(how Balancer, n int, now float64) int {
	switch {
	case len(f.servers) == 1:
		return 0
	case how == RoundRobin:
		return n % len(f.servers)
	case how == Random:
		return f.choices.numbers.IntN(len(f.servers))
	}
	least, ties, chosen := math.MaxInt, 0, 0
	for i := range f.servers {
		f.servers[i].proceed(now, 0)
		switch waiting := f.sent[i] - f.servers[i].tally.done; {
		case waiting < least:
			least, ties, chosen = waiting, 1, i
		case waiting == least:
			if ties++; f.choices.numbers.IntN(ties) == 0 {
				chosen = i
			}
		}
	}
	return chosen
}

// proceed processes the events of a lane up to an instant. others are as in pace.
func (l *lane) proceed(until, others float64) {
	for {
		at, what, i := l.next()
		if what == nothing || at > until {
			return
		}
		l.advance(at)
		l.handle(what, i)
		l.pace(others)
	}
}

// merge adds what another tally has counted.
func (t *tally) merge(o *tally) {
	t.latencies = append(t.latencies, o.latencies...)
	t.latency += o.latency
	t.queue += o.queue
	t.busy += o.busy
	t.path += o.path
	t.passed += o.passed
	t.rows += o.rows
	t.executions += o.executions
	t.computed += o.computed
	t.beyond += o.beyond
	t.mostBeyond = max(t.mostBeyond, o.mostBeyond)
}
