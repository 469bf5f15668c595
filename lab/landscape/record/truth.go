package record

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tuner/measure"
	"tuner/measure/stats"
	"tuner/search"
)

// Truth combines all trials of a point's class, without the machine's drift. The points of a class
// are the same server (search.Space.ClassKey), so they have one truth.
type Truth struct {
	Candidate  search.Candidate
	Level      float64
	Class      string  // equal for points that are the same server
	Throughput float64 // inferences/s: mean over the launches, on log scale
	P99        float64 // s, of the latencies of all windows together
	// Error: standard error of the throughput's logarithm, from launch to launch; +Inf with one
	// launch
	Error    float64
	Memory   int64            // bytes, the largest figure of the point itself
	Failure  *measure.Failure // last failure of a point without windows of its own; else nil
	Launches int              // number of launches on which the class was measured
	Visits   []Visit          // of the class, in time order; none after a failure
}

// Visit holds the windows of one trial, in their order.
type Visit struct {
	Launch  int
	Windows []Timed
}

// Timed is a window with the machine's speed during it.
type Timed struct {
	Window
	Speed float64
}

// Key names a point: equal for equal candidates at equal levels.
func Key(c search.Candidate, level float64) string {
	return c.Key() + " @ " + strconv.FormatFloat(level, 'g', -1, 64)
}

// class names the server of a trial at its load.
func (f File) class(p Point) string {
	space := f.Header.Space
	return space.ClassKey(p.Candidate, space.Load.At(p.Level)) + " @ " + strconv.FormatFloat(p.Level, 'g', -1, 64)
}

// Truths returns the truths of a file's points, in the order of their first trials.
func Truths(f File, course Course) []Truth {
	var order []Point // the first trial of each
	own, classes := map[string][]Point{}, map[string][]Point{}
	for _, p := range f.Points {
		if p.Reference {
			continue
		}
		k := Key(p.Candidate, p.Level)
		if own[k] == nil {
			order = append(order, p)
		}
		own[k] = append(own[k], p)
		if p.Failure == nil {
			classes[f.class(p)] = append(classes[f.class(p)], p)
		}
	}
	pooled := map[string]Truth{}
	for class, trials := range classes {
		pooled[class] = newTruth(trials, f.Header.Space.Load.BatchSize, course)
	}
	list := make([]Truth, len(order))
	for i, p := range order {
		trials := own[Key(p.Candidate, p.Level)]
		failures, memory := 0, int64(0)
		for _, trial := range trials {
			if memory = max(memory, trial.Memory); trial.Failure != nil {
				failures++
			}
		}
		if failures == len(trials) {
			list[i].Failure = trials[len(trials)-1].Failure
		} else {
			list[i] = pooled[f.class(p)]
			list[i].Memory = memory
		}
		list[i].Candidate, list[i].Level, list[i].Class = p.Candidate, p.Level, f.class(p)
	}
	return list
}

// newTruth combines the trials of a class, none of which failed.
func newTruth(trials []Point, clientBatch int, course Course) Truth {
	var t Truth
	var launches []int
	var all []Timed
	sums, counts := map[int]float64{}, map[int]float64{} // by launch
	for _, p := range trials {
		if counts[p.Launch] == 0 {
			launches = append(launches, p.Launch)
		}
		v := Visit{Launch: p.Launch}
		for _, w := range p.Windows {
			timed := Timed{w, course.under(p.At, w.Steal)}
			v.Windows = append(v.Windows, timed)
			sums[p.Launch] += math.Log(w.Throughput() / timed.Speed * float64(clientBatch))
			counts[p.Launch]++
		}
		t.Visits, all = append(t.Visits, v), append(all, v.Windows...)
	}
	logs := make([]float64, len(launches))
	for i, launch := range launches {
		logs[i] = sums[launch] / counts[launch]
	}
	t.Throughput, t.Error, t.Launches = math.Exp(stats.Mean(logs).Value), StandardError(logs), len(launches)
	t.P99 = pooledQuantile(all, 0.99)
	return t
}

// StandardError returns the standard error of the mean of values, +Inf for a single one.
func StandardError(values []float64) float64 {
	if len(values) < 2 {
		return math.Inf(1)
	}
	mean, squares := stats.Mean(values).Value, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	return math.Sqrt(squares / (n - 1) / n)
}

// pooledQuantile returns a quantile of the latencies of all windows together.
func pooledQuantile(windows []Timed, level float64) float64 {
	const values = 400 // per window
	all := make([]float64, 0, values*len(windows))
	for _, w := range windows {
		for i := range values {
			all = append(all, w.Speed*w.Latency.Quantile((float64(i)+0.5)/values))
		}
	}
	slices.Sort(all)
	return stats.Quantile(all, level)
}

// Limits returns limits on the 99th percentile for searches of a landscape: the p99 that a quarter
// of the points keeps, and the one that 60 % keep. Both are rounded to two digits, as a user would
// give them. p99s is not empty.
func Limits(p99s []float64) (tight, middle float64) {
	sorted := slices.Sorted(slices.Values(p99s))
	at := func(share float64) float64 {
		x := sorted[int(share*float64(len(sorted)-1))]
		digit := math.Pow(10, math.Floor(math.Log10(x))-1)
		return math.Round(x/digit) * digit
	}
	return at(0.25), at(0.60)
}

// Best returns the points with the highest throughputs within a limit on the 99th percentile, at
// most n, best first. From each class it takes only the point that was measured first.
func Best(truths []Truth, p99 float64, n int) []Truth {
	seen := map[string]bool{}
	within := slices.DeleteFunc(slices.Clone(truths), func(t Truth) bool {
		isOut := t.Failure != nil || t.P99 > p99 || seen[t.Class]
		seen[t.Class] = seen[t.Class] || !isOut
		return isOut
	})
	slices.SortStableFunc(within, func(a, b Truth) int { return cmp.Compare(b.Throughput, a.Throughput) })
	return within[:min(n, len(within))]
}
