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
	if r.Rows > max(b.MaxBatch, 1) {
		return Result{}
	}
	for i := range f.servers {
		f.servers[i].tally.counting = true
	}
	f.chosen = f.chosen[:0]
	now := 0.0
	for n, at := range r.At {
		now = max(now, at.Seconds())
		f.proceed(now, cores, r.Sender)
		i := 0
		if r.Servers != nil {
			i = r.Servers[n]
		} else {
			i = f.choose(how, n, now)
		}
		f.chosen = append(f.chosen, i)
		f.servers[i].due.push(arrival{now, 1, r.Rows})
		f.proceed(now, cores, r.Sender)
		f.sent[i]++
	}
	f.proceed(math.Inf(1), cores, r.Sender)
	f.merged.reset(0, len(r.At))
	f.merged.counting = true
	for _, s := range f.servers {
		now = max(now, s.now)
		f.merged.merge(&s.tally)
	}
	return f.merged.result(now, o.Within)
}

// Chosen returns the server of each request of the latest replay. It is valid until the next simulation.
func (f *Fleet) Chosen() []int { return f.chosen }

// proceed processes the events of all servers up to an instant. sender is as in Instants.
func (f *Fleet) proceed(until float64, cores int, sender float64) {
	for {
		var first *lane
		at, what, i := math.Inf(1), nothing, 0
		for _, l := range f.servers {
			if t, kind, k := l.next(); t < at {
				first, at, what, i = l, t, kind, k
			}
		}
		if what == nothing || at > until {
			return
		}
		if cores == 0 {
			first.advance(at)
			first.handle(what, i)
			first.pace(sender)
			continue
		}
		for _, l := range f.servers {
			l.advance(at)
		}
		first.handle(what, i)
		total, busy := sender, 0
		for _, l := range f.servers {
			total, busy = total+l.demand(), busy+len(l.running)
		}
		for _, l := range f.servers {
			l.paceAmong(total-l.demand(), min(busy, l.instances))
		}
	}
}
