package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/measure"
	"tuner/runner/load"
	"tuner/search/queuesim"
)

// sent is a request of a replay.
type sent struct {
	at     time.Duration // when it was sent, since the first of its turn
	server int
}

// seen has the requests of all turns as they were sent, and the latencies that the clients saw.
type seen struct {
	sent    []sent
	windows []measure.Window // their latencies count from the sending
	turns   []turn           // none if all servers got their requests together
}

// turn is that of a server. The speed of that server was measured before it and after it.
type turn struct {
	server int
	before int // the number of the measurement before it
}

// replays sends the requests: to all servers together, or to each in its turn those that the simulated balancer gives
// it. The speed of a server is measured before and after its turn: launches of one program differ too.
func (f *fleet) replays(ctx context.Context, how queuesim.Balancer, here replica.Replica, at schedule) (all seen, err error) {
	if !f.inTurn {
		if err := f.replay(ctx, at, f.every(how), &all); err != nil {
			return all, err
		}
		return all, f.measureSpeed(ctx, 0)
	}
	for server, part := range f.turns(how, here, at) {
		if len(part.counted) == 0 {
			continue
		}
		if server > 0 { // the first one was measured to find the rates
			if err := f.measureSpeed(ctx, server); err != nil {
				return all, err
			}
		}
		all.turns = append(all.turns, turn{server, len(f.speeds[0].windows) - 1})
		if err := f.replay(ctx, part, one(server), &all); err != nil {
			return all, err
		}
		if err := f.measureSpeed(ctx, server); err != nil {
			return all, err
		}
	}
	return all, nil
}

// turns returns the requests of each server.
func (f *fleet) turns(how queuesim.Balancer, here replica.Replica, at schedule) []schedule {
	var sim queuesim.Fleet
	turns := make([]schedule, f.options.Engines)
	sim.Replay(len(turns), how, here.Batcher, here.Curve, queuesim.Instants{At: at.counted, Rows: here.Rows}, 0, queuesim.Options{Seed: f.seed})
	for n, server := range sim.Chosen() {
		turns[server].counted = append(turns[server].counted, at.counted[n])
	}
	for n, before := range at.before {
		part := &turns[n%len(turns)]
		part.before = append(part.before, before)
	}
	for i := range turns {
		if len(turns[i].before) == 0 {
			turns[i].before = []time.Duration{0} // a warm-up has a request at least
		}
	}
	return turns
}

// replay sends the requests of a turn to some servers. It adds what was sent and seen.
func (f *fleet) replay(ctx context.Context, at schedule, g *group, all *seen) error {
	g.chosen = make([]int, len(at.before)+len(at.counted))
	rate := float64(len(at.counted)) / f.options.Length.Seconds()
	var used edges
	var list []sent
	result, err := load.Run(ctx, load.Options{
		Part: load.Part{
			Load: measure.Load{RequestRate: rate, BatchSize: f.planned.Rows}, Arrivals: at.arrivals(), WarmUpRequests: len(at.before), Sleeps: true,
			Patience: patience, Large: f.connections[0].IsLarge(), Dial: f.dialer(g),
			Sink: func(r load.Record) { list = append(list, sent{r.Sent, g.chosen[r.Request]}) },
		},
		Windows: load.Windows{Total: len(at.counted), Edge: used.read},
	})
	if err != nil {
		return err
	}
	for _, w := range used.fill(result.Windows) {
		w.Sub = slices.Clone(w.Sub)
		for i := range w.Sub {
			w.Sub[i].Latency = w.Sub[i].Service
		}
		all.windows = append(all.windows, w)
	}
	inOrder := func(a, b sent) int { return cmp.Compare(a.at, b.at) }
	slices.SortFunc(list, inOrder)
	for _, s := range list {
		all.sent = append(all.sent, sent{s.at - list[0].at, s.server})
	}
	slices.SortStableFunc(all.sent, inOrder)
	return nil
}

// measured writes what the clients saw.
func (s seen) measured(v *capacity.Verification) error {
	m := measure.Measurement{Windows: s.windows}
	for _, w := range s.windows {
		v.Failed += w.Errors + w.Dropped
		v.Late += w.Late
	}
	p99, ok := m.Percentile(0.99)
	if !ok {
		return errors.New("no request of the replay was answered")
	}
	latencies := m.Latencies()
	limit := time.Duration(v.Limit * float64(time.Second))
	v.Measured = capacity.Latencies{
		P50: latencies.Quantile(0.5).Seconds(), P99: p99.Value, Within: float64(latencies.CountAtMost(limit)) / float64(latencies.Count()+v.Failed),
	}
	v.P99Range = [2]float64{p99.Lo, p99.Hi}
	return nil
}

// simulatedRequests is the least number of requests of a simulation of turns. Its 99th percentile has 1,000 above it,
// and is known far better than the measured one. Twice as many take twice as long, and are known 1.4 times as well.
const simulatedRequests = 100_000

// requests returns the requests as they were sent, and the number of servers that get them. Servers in turn have
// nothing in common, so there are copies of each, with the same requests and other random numbers. Each is as fast as the
// measurements before and after its turn say: the speed of a machine changes within minutes.
func (f *fleet) requests(s seen, here queuesim.ServiceCurve) (r queuesim.Instants, servers int) {
	r.Rows, servers = f.planned.Rows, f.options.Engines
	copies := 1
	if f.inTurn {
		copies = max(1, (simulatedRequests+len(s.sent)-1)/max(1, len(s.sent)))
		r.Curves = slices.Repeat([]queuesim.ServiceCurve{here}, copies*servers)
	}
	for _, t := range s.turns {
		curve := f.between(t.before, t.before+2).Curve
		for c := range copies {
			r.Curves[c*servers+t.server] = curve
		}
	}
	for _, each := range s.sent {
		for c := range copies {
			r.At, r.Servers = append(r.At, each.at), append(r.Servers, c*servers+each.server)
		}
	}
	return r, copies * servers
}

// simulate writes what the simulation of the servers here says about the requests as they were sent.
func (f *fleet) simulate(s seen, v *capacity.Verification) {
	here, sharing := f.here()
	v.Slowness, v.Sharing, v.Sender = f.planned.Capacity/here.Capacity, sharing, f.sender(s.windows)
	r, servers := f.requests(s, here.Curve)
	cores := f.options.Cores
	if f.inTurn {
		cores = 0 // each server has them for itself in its turn
	}
	var sim queuesim.Fleet
	predict := func(sender float64) queuesim.Result {
		r.Sender = sender
		return sim.Replay(servers, queuesim.Random, here.Batcher, here.Curve, r, cores, queuesim.Options{Seed: f.seed, Within: []float64{v.Limit}})
	}
	predicted := predict(v.Sender)
	v.Simulated = capacity.Latencies{P50: predicted.P50, P99: predicted.P99, Within: predicted.Within[0]}
	v.WithoutSender = predict(0).P99
}
