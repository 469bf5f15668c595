// Package meter reads the counters that the clients of a load cannot see, at the edges of
// measurement windows. These are the server's statistics, the CPU time and memory of its process,
// the machine's CPU time, clock and energy, and the GPUs. The differences complete the windows that
// package load cut, and flag those that the machine disturbed. Packages runner and perf pass their
// windows to it.
//
// It sends no inference requests. It waits only for its own samples. It does not judge the server's
// figures.
package meter

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure"
)

// Control reads the server's counters of all versions of a model. An empty name reads all models.
// It blocks until the answer arrives or ctx ends. api.Client implements it.
type Control interface {
	Statistics(ctx context.Context, model string) (api.Statistics, error)
}

// Options say what the meter can read. It leaves out fields with the zero value.
type Options struct {
	Control  Control       // nil: the server has no statistics
	Models   []Subject     // models under load; each has the statistics of its own windows
	Metrics  string        // URL of the server's metrics page, for its GPUs
	PID      int           // process of the server on this machine; its children count with it
	Remote   bool          // the server runs on another machine: this machine's energy is not its own
	GPUs     bool          // read this machine's GPUs; ignored if there is a metrics page
	Interval time.Duration // time between samples of GPUs, memory and clock; default 250 ms
	Timeout  time.Duration // limit for reading the statistics, and the metrics page; default 10 s

	// Reading.Memory is the memory in use on the server's whole machine, from the metrics page,
	// since the process is unknown
	MachineMemory bool
}

// Model is a model on the server and its version. "" is the version whose requests grow most.
type Model struct{ Name, Version string }

// Subject is a model under load.
type Subject struct {
	Model
	Together []Model // models of an ensemble
}

// The defaults of Options.
const (
	defaultInterval = 250 * time.Millisecond
	defaultTimeout  = 10 * time.Second
)

// longestSample bounds the time of each sample after the first, since the edges of windows wait for
// it.
const longestSample = 2 * time.Second

// Reading holds the figures of an instant, and of the time since the meter's previous reading.
// Unknown figures are zero.
type Reading struct {
	At     time.Time
	Models []Counters            // statistics of each of Options.Models, of one answer
	Engine hostinfo.ProcessUsage // the server's process
	Client time.Duration         // CPU time of this process
	// CPU time of this process, the server's, and all their children
	Own     time.Duration
	Machine hostinfo.AllowanceSnapshot
	Energy  hostinfo.EnergySnapshot // of this machine's CPU packages, if the server runs on it

	Frequency float64 // Hz, clock of the fastest core, mean since the previous reading
	// bytes, highest resident set of the server's process since the previous reading
	Memory int64
	GPUs   []measure.GPUWindow // figures of each since the previous reading

	// told is true if the CPU time of the server's process is known. Then the rest is foreign. A
	// server that seems to be on another machine may use this one's processors, as a container behind
	// a bridge does. So no address makes the rest foreign.
	told bool
}

// Counters are the statistics of a model under load.
type Counters struct {
	Own      []api.ModelStatistics   // all versions of the model, or the given one
	Together [][]api.ModelStatistics // the same for each model of Subject.Together
}

// Of returns the counters of a model, by its place in Options.Models. They are zero if the reading
// has none.
func (r Reading) Of(model int) Counters {
	if model >= len(r.Models) {
		return Counters{}
	}
	return r.Models[model]
}

// OverdueError means that the server did not return its statistics in time.
type OverdueError struct{ After time.Duration }

func (e *OverdueError) Error() string {
	return fmt.Sprintf("reading the statistics took more than %v", e.After)
}

// Meter reads the figures of one run. Between readings it samples those without a counter. Its
// methods may be called from different goroutines.
type Meter struct {
	options Options
	pids    []int // the server's process and its children; empty if unknown
	allowed hostinfo.Allowance
	gpus    gpuSource
	stop    context.CancelFunc
	sampler sync.WaitGroup

	mu      sync.Mutex // one sample at a time
	lap     lap
	problem error
}

// Open starts to sample, until Close or the end of ctx. If Open cannot read the metrics page, it
// returns an error and a working Meter.
func Open(ctx context.Context, o Options) (*Meter, error) { return open(ctx, o, openGPUs(o)) }

func open(ctx context.Context, o Options, gpus gpuSource) (*Meter, error) {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	m := &Meter{options: o, gpus: gpus}
	if o.PID != 0 {
		m.pids = hostinfo.Tree(o.PID)
	}
	m.allowed = hostinfo.ReadAllowance(m.pids...)
	first := m.sample(ctx, o.Timeout)
	ctx, m.stop = context.WithCancel(ctx)
	m.sampler.Go(func() {
		tick := time.NewTicker(o.Interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = m.sample(ctx, longestSample) // Problem keeps the first error
			}
		}
	})
	return m, first
}

// Close ends the sampling. It may be called twice.
func (m *Meter) Close() {
	m.stop()
	m.sampler.Wait()
	m.gpus.close()
}

// Problem returns the first sampling error since Open, nil if there was none.
func (m *Meter) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// Read reads all figures. It blocks for the server's answers. It fails if the server does not
// return its statistics: with an *OverdueError after the timeout, or with the cause of the
// context's end.
func (m *Meter) Read(ctx context.Context) (Reading, error) {
	r := Reading{At: time.Now(), Client: OwnCPU()}
	r.Machine = m.allowed.Snapshot()
	// zero if the system has no such counter
	r.Own, _ = hostinfo.TreesCPU(append([]int{os.Getpid()}, m.pids...)...)
	if !m.options.Remote {
		r.Energy, _ = hostinfo.CPUEnergy() // zero if the system has no such counter
	}
	if len(m.pids) > 0 {
		var err error
		r.Engine, err = hostinfo.Usage(m.pids)
		r.told = err == nil
	}
	if err := m.readServer(ctx, &r); err != nil {
		return Reading{}, err
	}
	_ = m.sample(ctx, longestSample) // Problem keeps the first error
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Frequency, r.Memory, r.GPUs = m.lap.end()
	return r, nil
}

// sample adds the current figures to the lap. The error names a figure that it could not read.
func (m *Meter) sample(ctx context.Context, timeout time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, err := m.sampleGPUs(ctx, timeout)
	s := sample{at: time.Now(), gpus: seen.gpus}
	if slices.ContainsFunc(seen.gpus, func(g hostinfo.GPUUsage) bool { return len(g.Processes) > 0 }) {
		s.own = append(hostinfo.Tree(os.Getpid()), m.pids...)
	}
	s.frequency, _ = hostinfo.Frequency() // 0 if the system has no such figure
	switch {
	case len(m.pids) > 0:
		usage, _ := hostinfo.Usage(m.pids) // zero if the process has just ended
		s.memory = usage.RSS
	case m.options.MachineMemory:
		s.memory = seen.memory
	}
	m.lap.addSample(s)
	return err
}

// sampleGPUs reads the GPUs and the figures that come with them. It stores the first problem. The
// end of ctx is not a problem.
func (m *Meter) sampleGPUs(ctx context.Context, timeout time.Duration) (figures, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seen, err := m.gpus.read(limited)
	switch {
	case m.problem != nil || ctx.Err() != nil:
	case err != nil:
		m.problem = err
	case m.options.Metrics != "" && len(seen.gpus) == 0:
		m.problem = fmt.Errorf("cannot read the GPUs: the metrics page of %s has none", m.options.Metrics)
	}
	return seen, err
}

// OwnCPU returns the CPU time that this process has used; 0: unknown.
func OwnCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
