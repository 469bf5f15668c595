package runner

import (
	"context"
	"time"

	"tuner/measure"
)

// approach describes the ramp and the warm-up before the windows of a load, and the length of the
// windows.
type approach struct {
	ramp     []int         // concurrencies of the ramp
	ramped   int           // largest batch that all instances have executed by its end; 0 unknown
	warmUp   time.Duration // longest warm-up; 0: requests are counted instead
	passing  bool          // the load need not be steady
	requests int           // exact number of requests in the warm-up
	length   func(p99 time.Duration, executionsPerSecond float64) time.Duration
}

// settled returns the approach of a trial at a load. It is a ramp to the batches that the engine
// has not seen yet, and a warm-up until the load is steady.
func (r *Runner) settled(job Job) approach {
	levels, ramped := ramp(job, r.pool.models[job.Model].ramped)
	return approach{ramp: levels, ramped: ramped, warmUp: r.options.WarmUp, length: windowNeed.length(job)}
}

// The longest warm-ups of windows that take turns. These windows are compared only with those next
// to them. The first bound is for new sessions. The second is for sessions that have just served
// the same load, so that only the queue has to fill again.
const (
	firstTurnWarmUp = time.Second
	turnWarmUp      = 100 * time.Millisecond
)

// turn returns the approach of a window that takes turns with windows of another engine. It is
// short, so that the machine does not change between the two. It need not hold enough requests for
// its own figures, nor a steady load.
func (r *Runner) turn(job Job) approach {
	a, longest := r.settled(job), turnWarmUp
	if r.pool.slowest == 0 { // no request was answered yet
		longest = firstTurnWarmUp
	}
	a.warmUp, a.passing = min(a.warmUp, longest), true
	a.length = turnNeed.length(job)
	return a
}

// brief returns the approach of a window of a service job. Each client sends two batches, in which
// the engine allocates memory for the size. A third one tells how long the window must be.
func brief(job Job) approach {
	clients := job.Load.Concurrency
	return approach{ramp: []int{clients}, requests: clients,
		length: func(batch time.Duration, _ float64) time.Duration { return serviceWindow(job.Window, batch) }}
}

// measureServiceCurve measures the windows of a service job, one batch size after the other.
// Nothing has to settle between them, since each client has its own instance and no queue builds
// up. Each window records the peak of the engine's memory so far, from memory.
//
// With an error, measureServiceCurve returns the windows of the sizes before. There are also fewer
// windows than sizes if the job ends the curve.
func (r *Runner) measureServiceCurve(ctx context.Context, job Job, times *measure.Times, memory func() int64) ([]measure.Window, error) {
	var windows []measure.Window
	var batches []time.Duration
	for _, b := range job.ServiceCurve {
		one := job
		one.Requests, one.AnswerSize, one.Load.BatchSize, one.Windows, one.Percentiles = b.Requests, 0, b.Size, 1, nil
		var m measure.Measurement
		measured, err := r.runLoad(ctx, one, brief, &m)
		*times = times.Add(m.Times)
		if err != nil {
			return windows, err
		}
		measured[0].Memory = memory()
		windows = append(windows, measured...)
		batch, known := measure.Measurement{Windows: measured}.Estimate(measure.LatencyAvg)
		batches = append(batches, time.Duration(batch.Value*float64(time.Second)))
		if known && job.ServiceCurveEnds != nil && job.ServiceCurveEnds(batches) {
			break
		}
	}
	return windows, nil
}
