package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

// MostSeats is the largest number of engines of a block, which are all up at once. Each holds its
// model. A round of more seats would take longer than the machine keeps its speed (five seconds).
const MostSeats = 3

// CrowdedError means that jobs cannot be measured in turn here: their engines cannot be up
// together, or cannot be paused. Nothing was measured. Each job may still be measured alone.
type CrowdedError struct{ Reason string }

func (e *CrowdedError) Error() string { return "cannot keep the engines up together: " + e.Reason }

// Block measures jobs in turn. It launches their engines, which all stay up, and pauses those whose
// turn it is not (Turns). Each job has one window per round. Block ignores its Windows, Turn and
// Enough. A job that is not Fresh uses the running engine of its pool, if there is one.
//
// An engine that fails in its turns yields a measurement with a failure, and the others continue.
// If an engine does not start beside the others, or has too little memory, Block returns a
// *CrowdedError, since the others may be the cause. Other errors are those of Measure. Afterwards
// the engines are up and paused.
func (r *Runner) Block(ctx context.Context, jobs []Job, rounds int) ([]measure.Measurement, error) {
	measured, err := r.block(ctx, jobs, rounds)
	if err != nil {
		r.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return measured, nil
}

func (r *Runner) block(ctx context.Context, jobs []Job, rounds int) ([]measure.Measurement, error) {
	if err := checkBlock(jobs, rounds); err != nil {
		return nil, err
	}
	if r.options.Elsewhere {
		return nil, &CrowdedError{"tuner cannot pause a server that it did not launch"}
	}
	for len(r.bench) < len(jobs)-1 {
		r.bench = append(r.bench, &Runner{options: r.options, count: r.count})
	}
	takers := r.assign(ctx, jobs)
	opened := make([]measure.Measurement, len(jobs))
	seats := make([]Seat, len(jobs))
	for i, job := range jobs {
		job.Windows = 1
		took, err := takers[i].open(ctx, job, takers[:i])
		if err != nil {
			return nil, err
		}
		opened[i].Times = took
		// Fresh: the engine was launched above; Enough and Percentiles: a single window never has
		// enough requests for a percentile
		job.Fresh, job.Enough, job.Percentiles = false, nil, nil
		job.Parts = slices.Clone(job.Parts)
		for k := range job.Parts {
			job.Parts[k].Enough, job.Parts[k].Percentiles = nil, nil
		}
		seats[i] = Seat{chair{takers[i]}, job}
	}
	taken, err := Turns{Rounds: rounds, Windows: 1}.Take(ctx, seats)
	if err != nil {
		return nil, err
	}
	for i := range taken {
		if f := taken[i].Failure; f != nil && f.Stage == measure.StageMemory && len(jobs) > 1 {
			return nil, &CrowdedError{f.Reason}
		}
		taken[i] = join(opened[i], taken[i])
		taken[i].Windows = jobs[i].flagFew(taken[i].Windows)
		if len(jobs) > 1 {
			forgetGPUMemory(taken[i].Windows)
		}
		if taken[i].Failure != nil {
			taken[i].Windows = nil
		}
	}
	return taken, nil
}

// forgetGPUMemory makes the memory on GPUs unknown. Drivers report it for all programs together,
// and the engines of all seats are on the GPUs.
func forgetGPUMemory(windows []measure.Window) {
	for _, w := range windows {
		for i := range w.GPUs {
			w.GPUs[i].MemoryUsed = 0
		}
	}
}

func checkBlock(jobs []Job, rounds int) error {
	if len(jobs) < 1 || len(jobs) > MostSeats || rounds < 1 {
		return fmt.Errorf("cannot measure %d jobs in %d rounds of turns: want 1 to %d jobs and at least one round", len(jobs), rounds, MostSeats)
	}
	for _, job := range jobs {
		job.Windows = 1
		if len(job.ServiceCurve) > 0 {
			return errors.New("cannot measure a service job in turns")
		}
		if err := job.check(); err != nil {
			return err
		}
	}
	return nil
}

// chair is a runner in a block. Its jobs leave the other engines alone and all use the same engine.
type chair struct{ *Runner }

// Measure measures one turn. It does not launch an engine again that has ended since its last turn,
// since its earlier turns belong to another launch.
func (c chair) Measure(ctx context.Context, job Job) (measure.Measurement, error) {
	select {
	case <-c.pool.engine.Done():
		m := measure.Measurement{Launch: c.ordinal(), Failure: exitFailure(c.pool.engine)}
		c.shut(ctx)
		return m, nil
	default:
		return c.measureJob(ctx, job)
	}
}

// table returns the runner and those on its bench.
func (r *Runner) table() []*Runner { return append([]*Runner{r}, r.bench...) }

// assign returns a runner for each job. A job that is not fresh gets the runner whose engine serves
// its pool already. assign stops all other engines, so that they take no memory.
func (r *Runner) assign(ctx context.Context, jobs []Job) []*Runner {
	free, takers := r.table(), make([]*Runner, len(jobs))
	seat := func(i int, suits func(*Runner) bool) {
		if at := slices.IndexFunc(free, suits); takers[i] == nil && at >= 0 {
			takers[i] = free[at]
			free = slices.Delete(free, at, at+1)
		}
	}
	for i, job := range jobs {
		seat(i, func(t *Runner) bool { return t.runs(job) })
	}
	for _, t := range free {
		t.shut(ctx)
	}
	for i := range jobs {
		seat(i, func(*Runner) bool { return true })
	}
	return takers
}

// runs reports whether the runner's engine can measure a job.
func (r *Runner) runs(job Job) bool { return r.pool != nil && !job.Fresh && r.pool.fits(job) }

// clear stops all engines of the last block, except one that can measure the job. That one becomes
// the runner's own.
func (r *Runner) clear(ctx context.Context, job Job) {
	for _, s := range r.bench {
		if !r.runs(job) && s.runs(job) {
			r.pool, s.pool = s.pool, r.pool
			r.prepared, s.prepared = s.prepared, r.prepared
		}
		s.shut(ctx)
	}
}

// open launches the engine of a seat, if it has none, beside the engines of others. It loads the
// seat's configuration and pauses the engine.
func (r *Runner) open(ctx context.Context, job Job, others []*Runner) (took measure.Times, err error) {
	if !r.runs(job) {
		if err := r.makeRoom(job, others); err != nil {
			return took, err
		}
	}
	r.resume()
	begin := time.Now()
	launched, err := r.launch(ctx, job)
	if err == nil {
		if _, isOurs := r.pool.engine.(Pauser); !isOurs {
			return took, &CrowdedError{"the engine cannot be paused"}
		}
		err = r.configure(ctx, job)
	}
	if err != nil {
		return took, r.refusal(ctx, err)
	}
	r.Pause()
	if launched {
		return measure.Times{Launch: time.Since(begin)}, nil
	}
	return measure.Times{Reconfigure: time.Since(begin)}, nil
}

// refusal returns the error for an engine that was not ready for its seat.
func (r *Runner) refusal(ctx context.Context, err error) error {
	failure, err := r.explain(ctx, err)
	if err != nil {
		return err
	}
	return &CrowdedError{fmt.Sprintf("%s: %s", failure.Stage, failure.Reason)}
}

// makeRoom refuses a seat if there is not enough memory for its engine. The engines of the others
// hold the memory that they use now. The rest of their expected memory is set aside. If nothing is
// known about an engine, it counts as large as the largest of the others. The first seat always has
// room, since its engine would also be launched alone.
func (r *Runner) makeRoom(job Job, others []*Runner) error {
	available := r.options.Available
	if available == nil {
		available = hostinfo.AvailableMemory
	}
	if len(others) == 0 {
		return nil
	}
	left := available()
	if left <= 0 { // the available memory is unknown
		return nil
	}
	need, still := job.Memory, int64(0)
	for _, o := range others {
		held, expected := o.held(), o.pool.job.Memory
		if job.Memory == 0 {
			need = max(need, held, expected)
		}
		still += max(0, expected-held)
	}
	if need+still > left {
		return &CrowdedError{fmt.Sprintf("another engine needs about %.0f MB of memory and those that are up %.0f MB more, and %.0f MB are left",
			float64(need)/1e6, float64(still)/1e6, float64(left)/1e6)}
	}
	return nil
}

// held returns the resident set of the runner's engine in bytes. 0: unknown.
func (r *Runner) held() int64 {
	pid := r.pool.engine.PID()
	if pid == 0 {
		return 0
	}
	usage, err := hostinfo.Usage(hostinfo.Tree(pid))
	if err != nil {
		return 0
	}
	return usage.RSS
}
