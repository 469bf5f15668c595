package queuesim

import (
	"math"
	"time"
)

// Instants is the requests of a replay.
type Instants struct {
	At      []time.Duration // when they are sent, since the beginning; ascending
	Rows    int             // inferences in each; below 1 counts as 1
	Servers []int           // the server of each; nil: the balancer chooses
	Curves  []ServiceCurve  // of each server; nil: all have the replay's
	// Sender is the cores that sending them takes all the time, on the machine that the servers share or on each of theirs.
	Sender float64
}

// Replay predicts the latencies of requests at given instants on several servers, all of which begin
// empty. Every request counts. The servers share cores: while their instances and paths ask for more than there
// are, all have the same share of what they ask for. Busy instances of another server slow down as those of
// the same server do: they share caches and memory too. With 0 cores each server has those of its curve. Of
// the options, only Within and Seed are read. Result.Throughput is over the time until the last answer.
func (f *Fleet) Replay(servers int, how Balancer, b Batcher, c ServiceCurve, r Instants, cores int, o Options) Result {
	servers, r.Rows = max(servers, 1), max(r.Rows, 1)
	if cores > 0 {
		c.Cores = cores
	}
	f.reset(servers, b, c, o)
	if b.refuses(r.Rows) {
		return Result{}
	}
	for i, l := range f.servers {
		if r.Curves != nil {
			l.setCurve(r.Curves[i], cores, o.Seed+uint64(i)<<32)
		}
		l.tally.counting = true
	}
	f.chosen = f.chosen[:0]
	now := 0.0
	for n, at := range r.At {
		now = max(now, at.Seconds())
		i, concerned := 0, f.servers
		if r.Servers != nil {
			if i = r.Servers[n]; cores == 0 { // it has nothing in common with the others
				concerned = f.servers[i : i+1]
			}
		}
		proceed(concerned, now, cores, r.Sender)
		if r.Servers == nil {
			i = f.choose(how, n, now)
		}
		f.chosen = append(f.chosen, i)
		f.servers[i].due.push(arrival{now, 1, r.Rows})
		proceed(concerned, now, cores, r.Sender)
		f.sent[i]++
	}
	proceed(f.servers, math.Inf(1), cores, r.Sender)
	f.merged.reset(0, len(r.At))
	f.merged.counting = true
	for _, s := range f.servers {
		now = max(now, s.now)
		f.merged.merge(&s.tally)
	}
	return f.merged.result(now, o.Within)
}

// setCurve changes the curve of a lane that has no request yet. cores are as in Replay, and seed is the lane's.
func (l *lane) setCurve(c ServiceCurve, cores int, seed uint64) {
	if cores > 0 {
		c.Cores = cores
	}
	l.curve = c
	l.path.reset(c, seed)
	l.factors.begin(seed, c.Spread)
}

// Chosen returns the server of each request of the latest replay. It is valid until the next simulation.
func (f *Fleet) Chosen() []int { return f.chosen }

// proceed processes the events of servers up to an instant. cores are as in Replay, and sender is as in Instants.
func proceed(servers []*lane, until float64, cores int, sender float64) {
	if cores == 0 {
		for _, l := range servers {
			l.proceed(until, sender)
		}
		return
	}
	for {
		var first *lane
		at, what, i := math.Inf(1), nothing, 0
		for _, l := range servers {
			if t, kind, k := l.next(); t < at {
				first, at, what, i = l, t, kind, k
			}
		}
		if what == nothing || at > until {
			return
		}
		for _, l := range servers {
			l.advance(at)
		}
		first.handle(what, i)
		total, busy := sender, 0
		for _, l := range servers {
			total, busy = total+l.demand(), busy+len(l.running)
		}
		for _, l := range servers {
			l.paceAmong(total-l.demand(), min(busy, l.instances))
		}
	}
}
