package runner

import (
	"time"

	"tuner/measure"
)

// need is what a window shall hold: so many batches of each instance, and so many times the slowest requests' latency, unless that takes more
// than so many times the length that was asked for.
type need struct{ batches, latencies, stretch int }

var (
	windowNeed = need{batches: 30, latencies: 5, stretch: 3}
	turnNeed   = need{batches: 5, latencies: 2, stretch: 6} // a dozen of them hold enough
)

// leastLatencies is how many times the slowest requests' latency every window lasts, whatever was asked, so that one is sent and answered
// in it: shorter ones of a slow model would hold nothing.
const leastLatencies = 2

// length tells that of the job's windows, given the 99th percentile of the latency and the rate of executions.
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

// A service window shall hold 10 batches of each client within three times what was asked.
const (
	batchesPerServiceWindow = 10
	serviceStretch          = 3
)

// serviceWindow is the length of a service job's window, given what was asked for and how long a client waits for a batch.
func serviceWindow(asked, batch time.Duration) time.Duration {
	length := min(max(asked, batchesPerServiceWindow*batch), serviceStretch*asked)
	return max(length, leastLatencies*batch)
}

// ramp lists the concurrencies to begin with so that an engine that was given batches up to ramped sees the larger ones
// that the job can lead to: powers of two, and the job's own. It returns the largest batch after that.
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

// flagFew flags all windows when they hold fewer requests in all than a percentile that matters needs, even if all of
// them were independent.
func flagFew(windows []measure.Window, percentiles []measure.Metric) []measure.Window {
	requests, needed := 0, 0
	for _, w := range windows {
		requests += w.Requests
	}
	for _, p := range percentiles {
		needed = max(needed, p.Samples())
	}
	if requests >= needed {
		return windows
	}
	for i := range windows {
		windows[i].Flags = append(windows[i].Flags, measure.FlagFew)
	}
	return windows
}
