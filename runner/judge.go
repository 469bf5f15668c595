package runner

import (
	"time"

	"tuner/measure"
)

// need is the content that a window must hold: some batches per instance, and a multiple of
// the slowest requests' latency. stretch bounds the length, as a multiple of the requested length.
type need struct{ batches, latencies, stretch int }

var (
	windowNeed = need{batches: 30, latencies: 5, stretch: 3}
	turnNeed   = need{batches: 5, latencies: 2, stretch: 6} // a dozen such windows hold enough
)

// leastLatencies is the least length of every window, as a multiple of the slowest requests'
// latency. So at least one request is sent and answered in it. Shorter windows of a slow model
// would be empty.
const leastLatencies = 2

// length returns a function for the length of the job's windows, from the 99th percentile of the
// latency and the rate of executions.
func (n need) length(job Job) func(p99 time.Duration, executionsPerSecond float64) time.Duration {
	return func(p99 time.Duration, executionsPerSecond float64) time.Duration {
		length := max(job.Window, time.Duration(n.latencies)*p99)
		if executionsPerSecond > 0 {
			seconds := float64(n.batches*max(1, job.Instances)) / executionsPerSecond
			length = max(length, time.Duration(seconds*float64(time.Second)))
		}
		return max(min(length, time.Duration(n.stretch)*job.Window), leastLatencies*p99)
	}
}

// A service window must hold 10 batches of each client, within three times the requested length.
const (
	batchesPerServiceWindow = 10
	serviceStretch          = 3
)

// serviceWindow returns the length of a service job's window. asked is the requested length, batch
// the time that a client waits for a batch.
func serviceWindow(asked, batch time.Duration) time.Duration {
	length := min(max(asked, batchesPerServiceWindow*batch), serviceStretch*asked)
	return max(length, leastLatencies*batch)
}

// ramp returns the concurrencies with which a load begins: powers of two, and the job's own. So an
// engine that has executed batches up to ramped sees all larger batches of the job. largest is the
// largest batch after that.
func ramp(job Job, ramped int) (levels []int, largest int) {
	rows := max(1, job.Load.BatchSize)
	batch := func(concurrency int) int { return min(concurrency*rows, max(job.MaxBatch, rows)) }
	for c := 1; c < job.Load.Concurrency; c *= 2 {
		if batch(c) > ramped {
			levels, ramped = append(levels, c), batch(c)
		}
	}
	if c := job.Load.Concurrency; batch(c) > ramped {
		levels, ramped = append(levels, c), batch(c)
	}
	return levels, ramped
}

// holdFew reports whether the windows of a model hold fewer requests in all than one of the percentiles
// needs, even for independent requests.
func holdFew(windows []measure.Window, percentiles []measure.Metric) bool {
	requests, needed := 0, 0
	for _, w := range windows {
		requests += w.Requests
	}
	for _, p := range percentiles {
		needed = max(needed, p.Samples())
	}
	return requests < needed
}
