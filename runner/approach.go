package runner

import (
	"context"
	"time"

	"tuner/measure"
)

// approach is what comes before the windows of a load, and how long these are.
type approach struct {
	ramp     []int         // concurrencies of the ramp
	ramped   int           // largest batch that all instances have been given by its end; 0 unknown
	warmUp   time.Duration // longest; 0: requests instead
	fill     bool          // the warm-up lasts until the queue is as long as it will be
	requests int           // of the warm-up, exactly
	length   func(p99 time.Duration, executionsPerSecond float64) time.Duration
}

// settled is the approach of a trial at a load: a ramp to the batches that the engine has not seen yet, and a warm-up until the load
// is steady.
func (r *Runner) settled(job Job) approach {
	levels, ramped := ramp(job, r.pool.ramped)
	return approach{ramp: levels, ramped: ramped, warmUp: r.options.WarmUp, length: windowNeed.length(job)}
}

// The longest warm-ups of windows that take turns, which are compared with those next to them only: of new sessions, and of those that have just
// served the same load, so that only its queue has to fill again.
const (
	firstTurnWarmUp = time.Second
	turnWarmUp      = 100 * time.Millisecond
)

// turn is the approach of a window that takes turns with another engine's. It is short, so that the machine does not change between the
// two, and need not hold enough for figures of its own; but the queue, which is empty after a pause, has to fill first.
func (r *Runner) turn(job Job) approach {
	a, longest := r.settled(job), turnWarmUp
	if r.pool.slowest == 0 { // nothing was answered yet
		longest = firstTurnWarmUp
	}
	a.warmUp, a.fill = min(a.warmUp, longest), true
	a.length = turnNeed.length(job)
	return a
}

// brief is the approach of a window of a service job: two batches of each client, in which the engine allocates what the size
// needs, and one more that tells how long the window must be.
func brief(job Job) approach {
	clients := job.Load.Concurrency
	return approach{ramp: []int{clients}, requests: clients,
		length: func(batch time.Duration, _ float64) time.Duration { return serviceWindow(job.Window, batch) }}
}

// curve measures the windows of a service job, one size after the other. No queue builds up where every client has an instance to
// itself, so that nothing has to settle between them. With an error come the windows of the sizes before; there are fewer than sizes, too,
// where the job ends the curve. Each window notes the engine's memory, the peak so far, as memory tells it.
func (r *Runner) curve(ctx context.Context, job Job, times *measure.Times, memory func() int64) ([]measure.Window, error) {
	var windows []measure.Window
	var batches []time.Duration
	for _, b := range job.Curve {
		one := job
		one.Requests, one.AnswerSize, one.Load.BatchSize, one.Windows, one.Percentiles = b.Requests, 0, b.Size, 1, nil
		var m measure.Measurement
		measured, err := r.load(ctx, one, brief(one), &m)
		*times = times.Add(m.Times)
		if err != nil {
			return windows, err
		}
		measured[0].Memory = memory()
		windows = append(windows, measured...)
		batch, known := measure.Measurement{Windows: measured}.Estimate(measure.LatencyAvg)
		batches = append(batches, time.Duration(batch.Value*float64(time.Second)))
		if known && job.CurveEnds != nil && job.CurveEnds(batches) {
			break
		}
	}
	return windows, nil
}
