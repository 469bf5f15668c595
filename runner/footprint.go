package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"tuner/engine/api"
	"tuner/measure"
)

// The rounds of a footprint. Each round sends one request per instance at once. A fast instance may
// answer two of them. Then further rounds, which take little time, reach the other instances.
const (
	footprintRounds = 4                      // largest number of rounds
	footprintTime   = 500 * time.Millisecond // no further round begins after this time
)

// footprint lets every instance of a fresh process execute one of the job's largest batches. It
// returns the peak of the process's memory. The result is zero if the process is unknown, or if it
// refuses the batch, since it may still accept smaller ones. footprint fails if the process ended,
// took too much memory, or did not answer in time. It blocks until all requests are answered.
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
			r.options.Log.Info("the configuration's memory is unknown, since its largest batch is refused", "batch", job.Largest.Size, "cause", refused.Text)
			return measure.Footprint{}, nil
		}
		if err != nil {
			return measure.Footprint{}, err
		}
		if job.Instances <= 1 || time.Since(begin) >= footprintTime {
			break
		}
	}
	return measure.Footprint{Batch: job.Largest.Size, Bytes: guard.readPeak()}, nil
}

// round sends a request the given number of times at once. It returns the first error when all are
// answered.
func (r *Runner) round(ctx context.Context, request *api.Encoded, times int) error {
	patience := r.pool.first(r.options.LoadTimeout)
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
