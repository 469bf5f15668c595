// Package verify replays a piece of a plan's worst hour on real servers of this machine, and compares
// the latencies with those that the plan's simulation predicts.
//
// It comes after package capacity, which makes the plan. Time is compressed by leaving out the rest of
// the hour: the piece has its true rates. Rates are those of a replica, times the servers here. Where
// the servers here are slower than the plan's replicas, or share too few cores, the rates are lower and
// the limit is longer by the same factor: then all queues are as full as in the plan. Faster servers get
// the true rates. The package
// starts and stops the servers, and chooses nothing.
package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tuner/capacity"
	"tuner/capacity/replica"
	"tuner/capacity/traffic"
	"tuner/measure"
	"tuner/runner"
	"tuner/runner/load"
	"tuner/search/queuesim"
)

// Options describe the servers.
type Options struct {
	Server string // for people: "the bundled engine"
	// Launch starts a server that has the model loaded. It blocks until the server answers.
	Launch     func(ctx context.Context) (runner.Engine, error)
	Wire       runner.Wire
	Requests   runner.Requests   // each of the replica's rows
	AnswerSize int64             // bytes of the outputs of an answer
	Engines    int               // number of servers, ≥ 1
	Threads    int               // cores that an instance computes on
	Cores      int               // of this machine, for the servers
	Length     time.Duration     // of the piece
	Say        func(text string) // what happens now, for people
}

// MostEngines bounds the number of servers: a larger fleet behaves as this one does with the same load on
// each, and a machine has not the cores.
const MostEngines = 16

// Run replays a piece of the worst hour of a fleet of replicas r, with scaling s.
func Run(ctx context.Context, q capacity.Question, r replica.Replica, s capacity.Scaling, o Options) (capacity.Verification, error) {
	if o.Engines < 1 || o.Engines > MostEngines {
		return capacity.Verification{}, fmt.Errorf("%d servers are impossible: allowed are 1 to %d", o.Engines, MostEngines)
	}
	if o.Length < traffic.Step || o.Length > time.Hour {
		return capacity.Verification{}, fmt.Errorf("a replay of %v is impossible: allowed are %v to %v", o.Length, traffic.Step, time.Hour)
	}
	piece, err := capacity.WorstPiece(q, r, s, o.Length)
	if err != nil {
		return capacity.Verification{}, err
	}
	f := fleet{options: o, balancer: newBalancer(q.Balancer, o.Engines, q.Seed)}
	defer f.stop(context.WithoutCancel(ctx))
	if err := f.launch(ctx); err != nil {
		return capacity.Verification{}, err
	}
	o.Say("measuring how fast a server is here")
	slowness, err := f.slowness(ctx, r, q.Seed)
	if err != nil {
		return capacity.Verification{}, err
	}
	here := slowed(r, slowness, o)
	o.Say("measuring how fast the servers are together")
	sharing, err := f.sharing(ctx, here)
	if err != nil {
		return capacity.Verification{}, err
	}
	here = shared(here, sharing)
	v := plannedReplay(q, r, here, piece, o)
	v.Slowness, v.Sharing = slowness, sharing
	at := instants(piece.Moments, v.Capacity*float64(o.Engines), thinned(q, v), q.Seed)
	v.Requests, v.Rate = len(at.counted), float64(len(at.counted))/v.Length/float64(o.Engines)
	if len(at.counted) < fewestRequests {
		return v, fmt.Errorf("%d requests in %v show no 99th percentile: replay a longer piece, or plan for more traffic", len(at.counted), o.Length)
	}
	var sim queuesim.Fleet
	predicted := sim.Replay(o.Engines, q.Balancer, here.Batcher, here.Curve, queuesim.Instants{At: at.counted, Rows: r.Rows}, o.Cores,
		queuesim.Options{Seed: q.Seed, Within: []float64{v.Limit}})
	v.Simulated = capacity.Latencies{P50: predicted.P50, P99: predicted.P99, Within: predicted.Within[0]}
	o.Say(fmt.Sprintf("replaying %v of the worst hour: %d requests to %d servers", o.Length, len(at.counted), o.Engines))
	if err := f.replay(ctx, at, r.Rows, &v); err != nil {
		return v, err
	}
	v.Outcome = v.Judge()
	return v, nil
}

// fewestRequests is the number of requests with ten beyond the 99th percentile.
const fewestRequests = 1000

// slowed returns the replica as it is on this machine.
func slowed(r replica.Replica, factor float64, o Options) replica.Replica {
	c := r.Curve
	times := func(list []float64) []float64 {
		if list == nil {
			return nil
		}
		all := make([]float64, len(list))
		for i, t := range list {
			all[i] = factor * t
		}
		return all
	}
	c.Alone, c.Crowded, c.Overhead, c.Path = times(c.Alone), times(c.Crowded), factor*c.Overhead, factor*c.Path
	c.Threads, c.Cores = max(o.Threads, 1), o.Cores
	r.Curve = c
	return r
}

// shared returns a replica whose servers take longer by a factor while all of them are busy. A lone request takes as
// long as before: one server was measured alone.
func shared(here replica.Replica, factor float64) replica.Replica {
	c := here.Curve
	times := slices.Clone(c.Crowded)
	if len(times) == 0 { // of one instance, which no other crowds
		times = slices.Clone(c.Alone)
	}
	for i := range times {
		times[i] *= factor
	}
	if len(c.Crowded) == 0 {
		c.Alone = times
	} else {
		c.Crowded = times
	}
	c.Path *= factor
	here.Curve = c
	return here
}

// plannedReplay says what is replayed.
func plannedReplay(q capacity.Question, r, here replica.Replica, piece capacity.Piece, o Options) capacity.Verification {
	v := capacity.Verification{
		Server: o.Server, Engines: o.Engines, Begin: piece.Begin.Seconds(), Length: (time.Duration(len(piece.Moments)) * traffic.Step).Seconds(),
		Cores: float64(o.Cores),
	}
	requests := 0.0
	for _, m := range piece.Moments {
		v.Replicas += float64(m.Ready) / float64(len(piece.Moments))
		requests += m.Each()
	}
	v.PlannedRate = requests / v.Length
	v.Capacity = min(1, together(here, o)/(float64(o.Engines)*r.Capacity)) // faster servers get the true rates
	v.Limit = q.Limit.Seconds() / v.Capacity
	return v
}

// together returns the requests/s that the servers here answer at most: the rate at which they work off
// requests that all came at the beginning.
func together(here replica.Replica, o Options) float64 {
	const each = 200 // batches of an instance
	n := each * o.Engines * here.Batcher.Instances * max(1, here.Batcher.MaxBatch/here.Rows)
	var sim queuesim.Fleet
	r := sim.Replay(o.Engines, queuesim.RoundRobin, here.Batcher, here.Curve, queuesim.Instants{At: make([]time.Duration, n), Rows: here.Rows}, o.Cores, queuesim.Options{})
	return r.Throughput / float64(here.Rows)
}

// thinned returns the coefficient of variation of the distances between the requests of the servers here.
func thinned(q capacity.Question, v capacity.Verification) float64 {
	return math.Sqrt(replica.Thinned(q.Traffic.Dispersion, max(1, v.Replicas/float64(v.Engines))))
}

// fleet is the running servers.
type fleet struct {
	options     Options
	balancer    *balancer
	engines     []runner.Engine
	connections []runner.Connections
}

func (f *fleet) launch(ctx context.Context) error {
	f.options.Say(fmt.Sprintf("starting %d servers", f.options.Engines))
	for range f.options.Engines {
		e, err := f.options.Launch(ctx)
		if err != nil {
			return err
		}
		f.engines = append(f.engines, e)
		c, err := f.options.Wire(e.Address(), f.options.Requests, f.options.AnswerSize)
		if err != nil {
			return err
		}
		f.connections = append(f.connections, c)
	}
	return nil
}

func (f *fleet) stop(ctx context.Context) {
	for _, e := range f.engines {
		e.Stop(ctx)
	}
}

// Times of a measurement of the speed.
const (
	speedWindow = 4 * time.Second // of each load
	warmUp      = 2 * time.Second
	patience    = 30 * time.Second
)

// slowness returns the factor by which a server here takes longer than the replica: the ratio of measured
// to simulated mean latencies at the loads that the campaign measured, as their geometric mean.
func (f *fleet) slowness(ctx context.Context, r replica.Replica, seed uint64) (float64, error) {
	sum, n := 0.0, 0.0
	var sim queuesim.Simulator
	for _, k := range r.Checks {
		if k.Load.Concurrency < 1 {
			continue
		}
		measured, err := f.meanLatency(ctx, k.Load)
		if err != nil {
			return 0, err
		}
		l := k.Load
		l.BatchSize = r.Rows
		predicted := sim.Simulate(r.Batcher, r.Curve, l, queuesim.Options{Requests: simulatedRequests, Seed: seed}).Mean
		if measured > 0 && predicted > 0 {
			sum, n = sum+math.Log(measured/predicted), n+1
		}
	}
	if n == 0 {
		return 0, errors.New("the result has no load with a concurrency, at which the servers here could be compared with it")
	}
	return math.Exp(sum / n), nil
}

// sharing returns the factor by which the servers here take longer when all of them are busy than their simulation
// on shared cores: the ratio of its highest rate to the measured one. The replay's connections serve one request
// each, as in an open loop, and its front ends and clients compete for the cores.
func (f *fleet) sharing(ctx context.Context, here replica.Replica) (float64, error) {
	each := min(busyBatches*here.Batcher.Instances*max(1, here.Batcher.MaxBatch/here.Rows), mostClients/f.options.Engines)
	l := measure.Load{Concurrency: f.options.Engines * max(each, fewestClients), BatchSize: here.Rows}
	m, err := f.closedLoop(ctx, l, f.dial)
	if err != nil {
		return 0, err
	}
	w := m.Windows[0]
	if w.Requests == 0 {
		return 0, fmt.Errorf("no request was answered at %s", l)
	}
	return together(here, f.options) * w.Duration.Seconds() / float64(w.Requests), nil
}

// The clients of a closed loop that keeps all servers busy.
const (
	busyBatches   = 4   // full batches of each instance
	fewestClients = 16  // of each server, so that the path is busy too
	mostClients   = 256 // of all servers
)

// simulatedRequests is the number of requests of a simulated load, whose mean is to be known to about a
// percent.
const simulatedRequests = 10_000

// meanLatency measures the mean latency of a load on the first server, in s.
func (f *fleet) meanLatency(ctx context.Context, l measure.Load) (float64, error) {
	m, err := f.closedLoop(ctx, l, func(ctx context.Context, _ int) (load.Conn, error) { return f.connections[0].Dial(ctx, l.Concurrency) })
	if err != nil {
		return 0, err
	}
	return m.Latencies().Mean().Seconds(), nil
}

// closedLoop measures a window of a closed loop over connections.
func (f *fleet) closedLoop(ctx context.Context, l measure.Load, dial func(ctx context.Context, connection int) (load.Conn, error)) (measure.Measurement, error) {
	result, err := load.Run(ctx, load.Options{
		Part: load.Part{Load: l, Ramp: []int{1, l.Concurrency}, WarmUp: warmUp, Patience: patience, Large: f.connections[0].IsLarge(), Unsettled: true, Dial: dial},
		Windows: load.Windows{
			Length: func([]time.Duration) time.Duration { return speedWindow },
			More:   func([][]measure.Window) bool { return false },
			Edge:   func(context.Context, int) error { return nil },
		},
	})
	if err != nil {
		return measure.Measurement{}, err
	}
	m := measure.Measurement{Windows: result.Windows}
	if m.Errors() > 0 {
		return m, fmt.Errorf("%d requests failed at %s: %s", m.Errors(), l, result.Windows[0].FirstError)
	}
	return m, nil
}

// replay sends the requests, and writes what the clients saw.
func (f *fleet) replay(ctx context.Context, at schedule, rows int, v *capacity.Verification) error {
	isLarge := f.connections[0].IsLarge()
	result, err := load.Run(ctx, load.Options{
		Part: load.Part{
			Load: measure.Load{RequestRate: v.Rate * float64(v.Engines), BatchSize: rows}, Arrivals: at.arrivals(), WarmUpRequests: len(at.before),
			Patience: patience, Large: isLarge, Dial: f.dial,
		},
		Windows: load.Windows{Total: len(at.counted), Edge: func(context.Context, int) error { return nil }},
	})
	if err != nil {
		return err
	}
	m := measure.Measurement{Windows: result.Windows}
	latencies := m.Latencies()
	for _, w := range result.Windows {
		v.Failed += w.Errors + w.Dropped
		v.Late += w.Late
	}
	p99, ok := m.Percentile(0.99)
	if !ok {
		return errors.New("no request of the replay was answered")
	}
	limit := time.Duration(v.Limit * float64(time.Second))
	v.Measured = capacity.Latencies{
		P50: latencies.Quantile(0.5).Seconds(), P99: p99.Value, Within: float64(latencies.CountAtMost(limit)) / float64(latencies.Count()+v.Failed),
	}
	v.P99Range = [2]float64{p99.Lo, p99.Hi}
	return nil
}
