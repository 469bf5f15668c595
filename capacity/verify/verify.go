// Package verify replays a piece of a plan's worst hour on real servers of this machine, and compares
// the latencies with those that the plan's simulation predicts.
//
// It comes after package capacity, which makes the plan. Time is compressed by leaving out the rest of
// the hour: the piece has its true rates. Rates are those of a replica, times the servers here. Where
// the servers here are slower than the plan's replicas, the rates are lower and
// the limit is longer by the same factor: then all queues are as full as in the plan. Faster servers get
// the true rates.
//
// A replica has a machine of its own. If this one has not the cores for all servers, they get their
// requests one after the other, as the simulated balancer spreads them. Before and after each turn, closed loops
// show how fast a server is, and the simulated server is fitted to them as the plan's replica is to its campaign's. It
// gets the requests at the instants at which they were sent, with a sender that takes as many cores as it
// really took. So what is compared is the simulation, and not the clients of this machine. The package
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
	"tuner/engine/api"
	"tuner/runner"
	"tuner/search/queuesim"
)

// Options describe the servers.
type Options struct {
	Server string // for people: "the bundled engine"
	// Launch starts a server that has the model loaded. It blocks until the server answers.
	Launch     func(ctx context.Context) (runner.Engine, error)
	Dial       runner.Dial // for a server's statistics
	Model      string      // whose statistics
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
	f := fleet{options: o, planned: r, seed: q.Seed, inTurn: o.isInTurn(r), speeds: speedsOf(r)}
	if len(f.speeds) == 0 {
		return capacity.Verification{}, errors.New("the result has no load with a concurrency, at which the servers here could be compared with it")
	}
	defer f.stop(context.WithoutCancel(ctx))
	if err := f.launch(ctx); err != nil {
		return capacity.Verification{}, err
	}
	if err := f.measureSpeed(ctx, 0); err != nil {
		return capacity.Verification{}, err
	}
	if err := f.measureBusy(ctx, q.Balancer); err != nil {
		return capacity.Verification{}, err
	}
	here, _ := f.here()
	v := plannedReplay(q, r, here, piece, o)
	at := instants(piece.Moments, v.Capacity*float64(o.Engines), thinned(q, v), q.Seed)
	v.Requests, v.Rate = len(at.counted), float64(len(at.counted))/v.Length/float64(o.Engines)
	if len(at.counted) < fewestRequests {
		return v, fmt.Errorf("%d requests in %v show no 99th percentile: replay a longer piece, or plan for more traffic", len(at.counted), o.Length)
	}
	o.Say(fmt.Sprintf("replaying %v of the worst hour: %d requests to %s", o.Length, len(at.counted), f.words()))
	all, err := f.replays(ctx, q.Balancer, here, at)
	if err != nil {
		return v, err
	}
	if err := all.measured(&v); err != nil {
		return v, err
	}
	f.simulate(all, &v)
	v.Outcome = v.Judge()
	return v, nil
}

// words says which servers get requests, and when.
func (f *fleet) words() string {
	if f.inTurn && f.options.Engines > 1 {
		return fmt.Sprintf("%d servers one after the other, since the machine has not the cores of all", f.options.Engines)
	}
	return fmt.Sprintf("%d servers", f.options.Engines)
}

// isInTurn reports whether the servers get their requests one after the other: the machine has not the cores of as many
// replicas, or all of them share its GPU. One server has all of it in any case.
func (o Options) isInTurn(r replica.Replica) bool {
	return o.Engines == 1 || o.Threads == 0 || float64(o.Cores) < float64(o.Engines)*r.Cores
}

// fewestRequests is the number of requests with ten beyond the 99th percentile.
const fewestRequests = 1000

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
	all := together(here, o)
	if o.isInTurn(r) {
		v.InTurn = o.Engines > 1
		all = float64(o.Engines) * here.Capacity
	}
	v.Capacity = min(1, all/(float64(o.Engines)*r.Capacity)) // faster servers get the true rates
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

// fleet is the running servers, and what was measured of them.
type fleet struct {
	options     Options
	planned     replica.Replica // as the campaign has it
	seed        uint64
	inTurn      bool
	engines     []runner.Engine
	connections []runner.Connections
	clients     []api.Client // for the statistics
	speeds      []speed      // of the loads that the campaign measured, ascending
	busy        float64      // requests/s of all servers while all are busy; 0: never measured
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
		client, err := f.options.Dial(e.Address())
		if err != nil {
			return err
		}
		f.clients = append(f.clients, client)
	}
	return nil
}

func (f *fleet) stop(ctx context.Context) {
	for _, c := range f.clients {
		_ = c.Close() // it only read
	}
	for _, e := range f.engines {
		e.Stop(ctx)
	}
}
