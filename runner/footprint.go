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
// took too much memory, or did not answer in time. It blocks until all requests are answered. Several
// models execute theirs one after the other. The batch is the sum of theirs then.
func (r *Runner) footprint(ctx context.Context, job Job, guard *guard) (measure.Footprint, error) {
	batch := 0
	for _, part := range job.each() {
		if len(part.Largest.Requests) == 0 || guard.pid == 0 {
			return measure.Footprint{}, nil
		}
		isTaken, err := r.executeLargest(ctx, part)
		if err != nil || !isTaken {
			return measure.Footprint{}, job.named(part.Model, err)
		}
		batch += part.Largest.Size
	}
	return measure.Footprint{Batch: batch, Bytes: guard.readPeak()}, nil
}

// executeLargest lets every instance of a model execute its largest batch. It returns false if the
// model refuses it.
func (r *Runner) executeLargest(ctx context.Context, job Job) (bool, error) {
	request := job.Largest.Requests[0]
	request.Model = job.Model
	encoded, err := r.pool.control.Encode(request)
	if err != nil {
		return false, &requestError{err}
	}
	begin := time.Now()
	for range footprintRounds {
		err := r.round(ctx, encoded, job.Instances)
		var refused *api.StatusError
		if errors.As(err, &refused) && ctx.Err() == nil {
			r.options.Log.Info("the configuration's memory is unknown, since its largest batch is refused", "batch", job.Largest.Size, "cause", refused.Text)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if job.Instances <= 1 || time.Since(begin) >= footprintTime {
			break
		}
	}
	return true, nil
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
