package queuesim

import (
	"math"
	"slices"
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
	computed, beyond float64 // s of instances, and its product with the doublings beyond the curve
	mostBeyond       float64 // doublings
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

// add counts the requests of an execution that ends now. last is the largest size of its curve.
func (t *tally) add(requests []request, e execution, now, overhead float64, last int) {
	t.done += len(requests)
	if !t.counting {
		t.counting, t.begin = t.done >= t.skip && !t.held, now
		return
	}
	t.executions++
	t.rows += e.rows
	t.computed += now - e.begin
	if e.rows > last {
		doublings := math.Log2(float64(e.rows) / float64(last))
		t.beyond += doublings * (now - e.begin)
		t.mostBeyond = max(t.mostBeyond, doublings)
	}
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
	elapsed := end - t.begin
	var shares []float64
	for _, limit := range within {
		inTime := 0
		for _, latency := range t.latencies {
			if latency <= limit {
				inTime++
			}
		}
		shares = append(shares, float64(inTime)/n)
	}
	at := quantiles(t.latencies)
	r := Result{
		Within:     shares,
		Throughput: float64(t.rows) / elapsed,
		Mean:       t.latency / n,
		P50:        at[0],
		P90:        at[1],
		P95:        at[2],
		P99:        at[3],
		Queue:      t.queue / n,
		Path:       t.path / float64(max(t.passed, 1)),
		MeanBatch:  float64(t.rows) / float64(t.executions),
		Busy:       t.busy / elapsed,
		MostBeyond: t.mostBeyond,
	}
	if t.computed > 0 {
		r.Beyond = t.beyond / t.computed
	}
	return r
}

// quantiles returns the median and the quantiles 0.9, 0.95 and 0.99 of values, as stats.Quantile does of
// the sorted ones. It reorders the values, and sorts no more of them than it needs: sorting all takes
// a fifth of a simulation.
func quantiles(values []float64) (list [4]float64) {
	sorted := 0 // none before it is larger than those behind
	for k, q := range [...]float64{0.5, 0.9, 0.95, 0.99} {
		at := q * float64(len(values)-1)
		below := int(at)
		place(values[sorted:], below-sorted)
		sorted, list[k] = below, values[below]
		if rest := values[below+1:]; len(rest) > 0 {
			list[k] += (at - float64(below)) * (slices.Min(rest) - values[below])
		}
	}
	return list
}

// place reorders values so that the i-th is the one that it would be if they were sorted. None before
// it is larger, and none behind it is smaller (Hoare, Algorithm 65: Find, Communications of the ACM 4,
// 1961).
func place(values []float64, i int) {
	for first, last := 0, len(values)-1; first < last; {
		pivot, low, high := values[i], first, last
		for low <= high {
			for values[low] < pivot {
				low++
			}
			for values[high] > pivot {
				high--
			}
			if low <= high {
				values[low], values[high] = values[high], values[low]
				low, high = low+1, high-1
			}
		}
		if high < i {
			first = low
		}
		if i < low {
			last = high
		}
	}
}
