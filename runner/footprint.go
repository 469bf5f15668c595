package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"tuner/engine/api"
	"tuner/measure"
)

// The rounds of a footprint. Each sends as many requests at once as there are instances.
// Where a batch takes so little time that one instance may answer two of them, further
// rounds cost nothing, and reach the others.
const (
	footprintRounds = 4                      // at most
	footprintTime   = 500 * time.Millisecond // after which no further round begins
)

// footprint has every instance of a fresh process execute one of the job's largest
// batches, and returns the peak of the process's memory. It is zero where the process is
// not known, or refuses the batch: that says nothing of smaller ones. An error is that of
// a process which ended, took too much memory, or did not answer in time. It blocks until
// all requests are answered.
func (r *Runner) footprint(ctx context.Context, job Job, guard *guard) (measure.Footprint, error) {
	if len(job.Largest.Requests) == 0 || len(guard.pids) == 0 {
		return measure.Footprint{}, nil
	}
	request := job.Largest.Requests[0]
	request.Model = job.Model
	encoded, err := r.pool.control.Encode(request)
	if err != nil {
		return measure.Footprint{}, &requestError{err}
	}
	begin := time.Now()
	for range footprintRounds {
		err := r.round(ctx, encoded, job.Instances)
		var refused *api.StatusError
		if errors.As(err, &refused) && ctx.Err() == nil {
			r.options.Log.Info("the configuration's memory is not known: its largest batch is refused", "batch", job.Largest.Size, "cause", refused.Text)
			return measure.Footprint{}, nil
		}
		if err != nil {
			return measure.Footprint{}, err
		}
		if job.Instances <= 1 || time.Since(begin) >= footprintTime {
			break
		}
	}
	return measure.Footprint{Batch: job.Largest.Size, Bytes: guard.look(job.MemoryLimit)}, nil
}

// round sends a request so many times at once, and returns the first error when all are
// answered.
func (r *Runner) round(ctx context.Context, request *api.Encoded, times int) error {
	patience := r.pool.first(r.options.Load)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, &overdueError{"executing the largest batch on every instance", patience})
	defer cancel()
	failed := make([]error, max(times, 1))
	var sending sync.WaitGroup
	for i := range failed {
		sending.Go(func() {
			if _, err := r.pool.control.Infer(ctx, request); err != nil {
				failed[i] = causeOr(ctx, err)
			}
		})
	}
	sending.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
