// Package meter reads, at the edges of measurement windows, what the load's clients cannot see: the server's statistics, the
// CPU time and the memory of its process, how busy the machine is, how fast its cores run and what they draw, and the GPUs. The
// differences complete the windows that package load cut, and flag those that the machine disturbed. Packages runner and
// perf hand it their windows.
//
// It sends no inference request, waits for no instant but its own samples, and judges no figure of the server.
package meter

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure"
)

// Control answers with the counters of all versions of a model, or of all models with an empty name. It blocks until the
// answer is there or ctx ends. An api.Client is one.
type Control interface {
	Statistics(ctx context.Context, model string) (api.Statistics, error)
}

// Options say what can be read; zero values are left out.
type Options struct {
	Control  Control       // nil: the server gives no statistics
	Model    string        // whose statistics
	Version  string        // of the model; "": the one whose requests grow most
	Together []Model       // those that an ensemble is composed of
	Metrics  string        // URL of the server's metrics page, for its GPUs
	PID      int           // of the server's process on this machine; what it has started counts with it
	Remote   bool          // the server runs on another machine
	GPUs     bool          // of this machine; not asked for when there is a metrics page
	Interval time.Duration // between samples of GPUs, memory and clock; default 250 ms
	Timeout  time.Duration // of the statistics, and of the metrics page; default 10 s

	MachineMemory bool // Reading.Memory is what the metrics page tells of the server's whole machine, for want of a process
}

// Model names a model on the server, and a version of it; "": the one whose requests grow most.
type Model struct{ Name, Version string }

// The defaults of Options.
const (
	defaultInterval = 250 * time.Millisecond
	defaultTimeout  = 10 * time.Second
)

// longestSample bounds a sample after the first: the windows' edges wait for it.
const longestSample = 2 * time.Second

// Reading is what was seen at an instant, and since the meter's previous reading. What nobody tells is zero.
type Reading struct {
	At       time.Time
	Server   []api.ModelStatistics   // the model's versions, or the one that was asked for
	Together [][]api.ModelStatistics // the same of each model of Options.Together
	Engine   hostinfo.ProcessUsage   // of the server's process
	Client   time.Duration           // CPU time of this process
	Own      time.Duration           // of this process, the server's, and all that they started
	Machine  hostinfo.AllowanceSnapshot
	Energy   hostinfo.EnergySnapshot // of this machine's CPU packages, where the server runs on it

	Frequency float64             // Hz, clock of the fastest core, mean since the previous reading
	Memory    int64               // bytes, highest resident set of the server's process since the previous reading
	GPUs      []measure.GPUWindow // what each did since the previous reading

	told bool // the CPU time that the server uses on this machine is known, so that the rest is foreign
}

// OverdueError says that the server did not give its statistics in time.
type OverdueError struct{ After time.Duration }

func (e *OverdueError) Error() string {
	return fmt.Sprintf("reading the statistics took more than %v", e.After)
}

// Meter reads for one run. Between the readings it samples what is no counter. Its methods may be called from different
// goroutines.
type Meter struct {
	options Options
	pids    []int // of the server's process and of those that it has started; none when unknown
	allowed hostinfo.Allowance
	gpus    gpuSource
	stop    context.CancelFunc
	sampler sync.WaitGroup

	mu      sync.Mutex // a sample at a time
	lap     lap
	problem error
}

// Open begins to sample, until Close or the end of ctx. An error says that the metrics page cannot be read now: the meter is there all the same.
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
				_ = m.sample(ctx, longestSample) // the first error is kept for Problem
			}
		}
	})
	return m, first
}

// Close ends the sampling. Twice is safe.
func (m *Meter) Close() {
	m.stop()
	m.sampler.Wait()
	m.gpus.close()
}

// Problem is the first thing that could not be sampled since Open; nil when all could.
func (m *Meter) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem
}

// Read looks at everything. It blocks for the server's answers. An error says that the server gave no statistics: an
// *OverdueError when it did not answer in time, the context's cause when that ended.
func (m *Meter) Read(ctx context.Context) (Reading, error) {
	r := Reading{At: time.Now(), Client: ownCPU(), told: m.options.Remote}
	r.Machine = m.allowed.Snapshot()
	r.Own, _ = hostinfo.TreesCPU(append([]int{os.Getpid()}, m.pids...)...) // zero where the system does not tell
	if !m.options.Remote {
		r.Energy, _ = hostinfo.CPUEnergy() // the same
	}
	if len(m.pids) > 0 {
		var err error
		r.Engine, err = hostinfo.Usage(m.pids)
		r.told = err == nil
	}
	if err := m.readServer(ctx, &r); err != nil {
		return Reading{}, err
	}
	_ = m.sample(ctx, longestSample) // the first error is kept for Problem
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Frequency, r.Memory, r.GPUs = m.lap.end()
	return r, nil
}

// sample adds what is seen now to the lap. An error says what could not be read.
func (m *Meter) sample(ctx context.Context, timeout time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen, err := m.sampleGPUs(ctx, timeout)
	s := sample{at: time.Now(), gpus: seen.gpus}
	s.frequency, _ = hostinfo.Frequency() // 0 where the system does not tell
	switch {
	case len(m.pids) > 0:
		usage, _ := hostinfo.Usage(m.pids) // zero when it has just ended
		s.memory = usage.RSS
	case m.options.MachineMemory:
		s.memory = seen.memory
	}
	m.lap.add(s)
	return err
}

// sampleGPUs reads the GPUs, and what comes with them, and notes the first problem. The end of ctx is none.
func (m *Meter) sampleGPUs(ctx context.Context, timeout time.Duration) (figures, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seen, err := m.gpus.read(limited)
	switch {
	case m.problem != nil || ctx.Err() != nil:
	case err != nil:
		m.problem = err
	case m.options.Metrics != "" && len(seen.gpus) == 0:
		m.problem = fmt.Errorf("cannot tell what the GPUs do: there are none on the metrics page of %s", m.options.Metrics)
	}
	return seen, err
}

// ownCPU is the CPU time that this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
