package verify

import (
	"context"
	"fmt"
	"time"

	"tuner/capacity/replica"
	"tuner/measure"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/search/queuesim"
)

// speed has the windows that clients of a closed loop saw of the servers here, of one at a time.
type speed struct {
	load    measure.Load
	windows []measure.Window
}

// speedsOf lists the closed loops that the campaign measured, of which nothing was seen yet.
func speedsOf(r replica.Replica) (list []speed) {
	for _, k := range r.Checks {
		if k.Load.Concurrency > 0 {
			list = append(list, speed{load: k.Load})
		}
	}
	return list
}

// Times of a measurement of the speed.
const (
	speedWindow = 2 * time.Second // of each load, before and after each turn
	warmUp      = time.Second
	patience    = 30 * time.Second
)

// measureSpeed measures the campaign's loads on a server while the others are idle. Each request has a connection, as
// in an open loop.
func (f *fleet) measureSpeed(ctx context.Context, server int) error {
	f.options.Say(fmt.Sprintf("measuring how fast server %d is here", server+1))
	for i := range f.speeds {
		s := &f.speeds[i]
		m, err := f.closedLoop(ctx, s.load, f.dialer(one(server)), edges{control: f.clients[server], model: f.options.Model})
		if err != nil {
			return err
		}
		s.windows = append(s.windows, m.Windows...)
	}
	return nil
}

// measureBusy measures how much all servers answer together, if they get their requests together. Its clients serve one
// request each, as in an open loop, and compete with the servers for the cores.
func (f *fleet) measureBusy(ctx context.Context, how queuesim.Balancer) error {
	if f.inTurn {
		return nil
	}
	f.options.Say("measuring how fast the servers are together")
	each := min(busyBatches*f.planned.Batcher.Instances*max(1, f.planned.Batcher.MaxBatch/f.planned.Rows), mostClients/f.options.Engines)
	l := measure.Load{Concurrency: f.options.Engines * max(each, fewestClients), BatchSize: f.planned.Rows}
	m, err := f.closedLoop(ctx, l, f.dialer(f.every(how)), edges{})
	if err != nil {
		return err
	}
	w := m.Windows[0]
	if w.Requests == 0 {
		return fmt.Errorf("no request was answered at %s", l)
	}
	f.busy = float64(w.Requests) / w.Duration.Seconds()
	return nil
}

// The clients of a closed loop that keeps all servers busy.
const (
	busyBatches   = 4   // full batches of each instance
	fewestClients = 16  // of each server, so that the path is busy too
	mostClients   = 256 // of all servers
)

// between returns the replica as a server here has shown it in some of the measurements of the speed, from one until
// before another.
func (f *fleet) between(from, until int) replica.Replica {
	shown := make([]replica.Shown, len(f.speeds))
	for i, s := range f.speeds {
		m := measure.Measurement{Windows: s.windows[from:until]}
		latencies := m.Latencies()
		shown[i] = replica.Shown{Load: s.load, Mean: latencies.Mean().Seconds(), P99: latencies.Quantile(0.99).Seconds()}
		shown[i].MeanBatch, shown[i].BatchTime = m.Batches()
		shown[i].Batches = m.BatchTimes()
	}
	return f.planned.Refit(shown, f.options.Cores, f.options.Threads, f.seed)
}

// here returns the replica as the servers here have shown it so far. sharing is the factor by which they take longer
// when all of them are busy than their simulation on shared cores: the ratio of its highest rate to the measured one; 0:
// they never were.
func (f *fleet) here() (r replica.Replica, sharing float64) {
	r = f.between(0, len(f.speeds[0].windows))
	if f.busy == 0 {
		return r, 0
	}
	sharing = together(r, f.options) / f.busy
	return shared(r, sharing), sharing
}

// sender returns the cores that sending requests took beyond what the clients of the highest closed loop take for as
// many. Those are in the times of the replica.
func (f *fleet) sender(windows []measure.Window) float64 {
	usual, requests, _ := clients(f.speeds[len(f.speeds)-1].windows)
	took, sent, seconds := clients(windows)
	if requests == 0 || seconds == 0 {
		return 0
	}
	return max(0, (took-usual/requests*sent)/seconds)
}

// clients sums up the processor time of the clients in s, the requests, and the time in s.
func clients(windows []measure.Window) (cpu, requests, seconds float64) {
	for _, w := range windows {
		cpu, requests, seconds = cpu+w.ClientCPU.Seconds(), requests+float64(w.Requests), seconds+w.Duration.Seconds()
	}
	return cpu, requests, seconds
}

// edges has what was read at the edges of windows.
type edges struct {
	control meter.Control // of the server; nil: its statistics are not read
	model   string
	cpu     []time.Duration // of this process
	served  []meter.Counters
}

func (e *edges) read(ctx context.Context, _ int) error {
	e.cpu = append(e.cpu, meter.OwnCPU())
	if e.control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := e.control.Statistics(ctx, e.model)
	if err != nil {
		return fmt.Errorf("cannot read the statistics of model %q: %w", e.model, err)
	}
	e.served = append(e.served, meter.Counters{Own: s.ModelStats})
	return nil
}

// fill writes it into the windows.
func (e *edges) fill(windows []measure.Window) []measure.Window {
	for i := range windows {
		if i+1 < len(e.cpu) {
			windows[i].ClientCPU = e.cpu[i+1] - e.cpu[i]
		}
		if i+1 < len(e.served) {
			windows[i].Server = meter.Served(e.served[i], e.served[i+1])
		}
	}
	return windows
}

// closedLoop measures a window of a closed loop over connections.
func (f *fleet) closedLoop(ctx context.Context, l measure.Load, dial func(context.Context, int) (load.Conn, error), at edges) (measure.Measurement, error) {
	result, err := load.Run(ctx, load.Options{
		Part: load.Part{Load: l, Ramp: []int{1, l.Concurrency}, WarmUp: warmUp, Patience: patience, Large: f.connections[0].IsLarge(), Unsettled: true, Dial: dial},
		Windows: load.Windows{
			Length: func([]time.Duration) time.Duration { return speedWindow },
			More:   func([][]measure.Window) bool { return false },
			Edge:   at.read,
		},
	})
	if err != nil {
		return measure.Measurement{}, err
	}
	m := measure.Measurement{Windows: at.fill(result.Windows)}
	if m.Errors() > 0 {
		return m, fmt.Errorf("%d requests failed at %s: %s", m.Errors(), l, result.Windows[0].FirstError)
	}
	return m, nil
}
