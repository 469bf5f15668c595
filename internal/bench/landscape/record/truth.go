package record

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"tuner/measure"
	"tuner/search"
	"tuner/stats"
)

// Truth is what all trials of a point say together, the machine's drift taken out.
type Truth struct {
	Candidate  search.Candidate
	Level      float64
	Throughput float64          // inferences/s: mean over the launches, on log scale
	P99        float64          // s, of the latencies of all windows together
	Error      float64          // standard error of the throughput's logarithm, from launch to launch; +Inf with one launch
	Memory     int64            // bytes, the most that was seen
	Failure    *measure.Failure // of a point without windows, the last one; else nil
	Launches   [][]Timed        // the windows, by launch
}

// Timed is a window with the machine's speed meanwhile.
type Timed struct {
	Window
	Speed float64
}

// Key names a point: equal for equal candidates at equal levels.
func Key(c search.Candidate, level float64) string {
	return c.Key() + " @ " + strconv.FormatFloat(level, 'g', -1, 64)
}

// Truths are those of a file's points, in the order of their first trials.
func Truths(f File, course Course) []Truth {
	var order []string
	trials := map[string][]Point{}
	for _, p := range f.Points {
		if p.Reference {
			continue
		}
		k := Key(p.Candidate, p.Level)
		if trials[k] == nil {
			order = append(order, k)
		}
		trials[k] = append(trials[k], p)
	}
	list := make([]Truth, len(order))
	for i, k := range order {
		list[i] = newTruth(trials[k], f.Header.Space.Load.BatchSize, course)
	}
	return list
}

// newTruth joins the trials of a point.
func newTruth(trials []Point, clientBatch int, course Course) Truth {
	t := Truth{Candidate: trials[0].Candidate, Level: trials[0].Level}
	var launches []int
	for _, p := range trials {
		if p.Failure != nil {
			t.Failure = p.Failure
			continue
		}
		t.Memory = max(t.Memory, p.Memory)
		i := slices.Index(launches, p.Launch)
		if i < 0 {
			i = len(launches)
			launches, t.Launches = append(launches, p.Launch), append(t.Launches, nil)
		}
		for _, w := range p.Windows {
			t.Launches[i] = append(t.Launches[i], Timed{w, course.under(p.At, w.Steal)})
		}
	}
	if len(t.Launches) == 0 {
		return t
	}
	t.Failure = nil
	var logs []float64
	for _, windows := range t.Launches {
		sum := 0.0
		for _, w := range windows {
			sum += math.Log(w.Throughput() / w.Speed * float64(clientBatch))
		}
		logs = append(logs, sum/float64(len(windows)))
	}
	t.Throughput, t.Error = math.Exp(stats.Mean(logs).Value), StandardError(logs)
	t.P99 = pooledQuantile(slices.Concat(t.Launches...), 0.99)
	return t
}

// StandardError is that of the mean of values, +Inf for a single one.
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

// pooledQuantile is a quantile of the latencies of all windows together.
func pooledQuantile(windows []Timed, level float64) float64 {
	const values = 400 // of each window
	all := make([]float64, 0, values*len(windows))
	for _, w := range windows {
		for i := range values {
			all = append(all, w.Speed*w.Latency.Quantile((float64(i)+0.5)/values))
		}
	}
	slices.Sort(all)
	return stats.Quantile(all, level)
}

// Limits are limits on the 99th percentile under which a landscape is searched: the p99 that a quarter of the points keeps, and
// the one that 60 % of them keep, both to two digits, as a user would give them. p99s is not empty.
func Limits(p99s []float64) (tight, middle float64) {
	sorted := slices.Sorted(slices.Values(p99s))
	at := func(share float64) float64 {
		x := sorted[int(share*float64(len(sorted)-1))]
		digit := math.Pow(10, math.Floor(math.Log10(x))-1)
		return math.Round(x/digit) * digit
	}
	return at(0.25), at(0.60)
}

// Best are the points with the highest throughputs within a limit on the 99th percentile, at most n, the best first.
func Best(truths []Truth, p99 float64, n int) []Truth {
	within := slices.DeleteFunc(slices.Clone(truths), func(t Truth) bool { return t.Failure != nil || t.P99 > p99 })
	slices.SortStableFunc(within, func(a, b Truth) int { return cmp.Compare(b.Throughput, a.Throughput) })
	return within[:min(n, len(within))]
}
