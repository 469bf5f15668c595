package queuesim

import (
	"slices"

	"tuner/measure/stats"
)

// tally sums up the counted part: whole executions, from the end of the last warm-up execution to
// the end of the last one.
type tally struct {
	skip, want int // requests: of the warm-up, and counted
	done       int
	held       bool // another model has not passed its warm-up
	counting   bool
	begin      float64 // s

	latencies        []float64 // s
	latency, queue   float64   // s, sums over requests
	busy             float64   // s, sum over instances
	path             float64   // s of processor time, sum over the requests that passed
	passed           int
	rows, executions int
}

func (t *tally) reset(skip, want int) {
	*t = tally{skip: skip, want: want, latencies: t.latencies[:0]}
}

// pass advances the time with the given number of busy instances.
func (t *tally) pass(seconds float64, busy int) {
	if t.counting {
		t.busy += seconds * float64(busy)
	}
}

// pathed counts a request that has passed the path, with its processor time in s.
func (t *tally) pathed(work float64) {
	if t.counting {
		t.path += work
		t.passed++
	}
}

// add counts the requests of an execution that ends now.
func (t *tally) add(requests []request, e execution, now, overhead float64) {
	t.done += len(requests)
	if !t.counting {
		t.counting, t.begin = t.done >= t.skip && !t.held, now
		return
	}
	t.executions++
	t.rows += e.rows
	for _, r := range requests {
		latency := now - r.sent + overhead
		t.latencies = append(t.latencies, latency)
		t.latency += latency
		t.queue += e.begin - r.at
	}
}

// isComplete reports whether enough requests are counted. Some time must have passed too, since
// several executions may end at once.
func (t *tally) isComplete(now float64) bool {
	return t.counting && len(t.latencies) >= t.want && now > t.begin
}

// result returns the figures of the counted part, which ends at an instant. within are the limits of
// Result.Within.
func (t *tally) result(end float64, within []float64) Result {
	n := float64(len(t.latencies))
	if n == 0 {
		return Result{}
	}
	slices.Sort(t.latencies)
	elapsed := end - t.begin
	var shares []float64
	for _, limit := range within {
		inTime, _ := slices.BinarySearchFunc(t.latencies, limit, func(latency, limit float64) int {
			if latency <= limit {
				return -1
			}
			return 1
		})
		shares = append(shares, float64(inTime)/n)
	}
	return Result{
		Within:     shares,
		Throughput: float64(t.rows) / elapsed,
		Mean:       t.latency / n,
		P50:        stats.Quantile(t.latencies, 0.5),
		P90:        stats.Quantile(t.latencies, 0.9),
		P95:        stats.Quantile(t.latencies, 0.95),
		P99:        stats.Quantile(t.latencies, 0.99),
		Queue:      t.queue / n,
		Path:       t.path / float64(max(t.passed, 1)),
		MeanBatch:  float64(t.rows) / float64(t.executions),
		Busy:       t.busy / elapsed,
	}
}
