package queuesim

import (
	"math"
	"time"
)

// Instants is the requests of a replay.
type Instants struct {
	At   []time.Duration // when they are sent, since the beginning; ascending
	Rows int             // inferences in each; below 1 counts as 1
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
	now := 0.0
	for n, at := range r.At {
		now = max(now, at.Seconds())
		f.proceed(now, cores)
		i := f.choose(how, n, now)
		f.servers[i].due.push(arrival{now, 1, r.Rows})
		f.proceed(now, cores)
		f.sent[i]++
	}
	f.proceed(math.Inf(1), cores)
	f.merged.reset(0, len(r.At))
	f.merged.counting = true
	for _, s := range f.servers {
		now = max(now, s.now)
		f.merged.merge(&s.tally)
	}
	return f.merged.result(now, o.Within)
}

// proceed processes the events of all servers up to an instant.
func (f *Fleet) proceed(until float64, cores int) {
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
			first.pace(0)
			continue
		}
		for _, l := range f.servers {
			l.advance(at)
		}
		first.handle(what, i)
		total, busy := 0.0, 0
		for _, l := range f.servers {
			total, busy = total+l.demand(), busy+len(l.running)
		}
		for _, l := range f.servers {
			l.paceAmong(total-l.demand(), min(busy, l.instances))
		}
	}
}
