package record

import (
	"math"
	"sort"
	"time"

	"tuner/stats"
)

// Course is the machine's speed in the course of a recording: over minutes as the reference point shows it, and within them as all points
// that were measured more than once show it. A machine whose cores are others', too, is faster or slower by a tenth from one second to the next,
// which a reference every few minutes does not see.
type Course struct{ minutes, seconds smooth }

// The widths, in seconds, among which that of the fast part is chosen, and how often points and speeds are told from each other in turn.
var fastWidths = []float64{2.5, 5, 10, 20, 40, 80, 160, 320}

const fastRounds = 10

// NewCourse reads the speed off a file's points: the logarithm of a trial's throughput is its point's, plus the speed's (an additive model, fitted by
// backfitting with a Gaussian kernel; its width is the one that predicts trials best from those beside them).
func NewCourse(f File) Course {
	var reference smooth
	for _, p := range f.Points {
		if p.Reference && p.Failure == nil {
			reference.at, reference.logs = append(reference.at, p.At.Seconds()), append(reference.logs, p.logThroughput())
		}
	}
	n := len(reference.at)
	if n == 0 {
		return Course{}
	}
	mean := stats.Mean(reference.logs).Value
	for i := range reference.logs {
		reference.logs[i] -= mean
	}
	reference.width = max(1, (reference.at[n-1]-reference.at[0])/float64(n))
	return Course{minutes: reference, seconds: newFast(repeated(f, reference))}
}

// visits are trials of points that were measured more than once, in the order of their times.
type visits struct {
	at, logs []float64 // s; of the throughput, without the slow part of the course
	point    []int     // which, from 0
	count    []float64 // of each point
}

func repeated(f File, slow smooth) visits {
	var measured []Point
	trials := map[string]int{}
	for _, p := range f.Points {
		if !p.Reference && p.Failure == nil {
			measured = append(measured, p)
			trials[Key(p.Candidate, p.Level)]++
		}
	}
	var v visits
	number := map[string]int{}
	for _, p := range measured {
		k := Key(p.Candidate, p.Level)
		if trials[k] < 2 {
			continue
		}
		if _, known := number[k]; !known {
			number[k] = len(number)
			v.count = append(v.count, float64(trials[k]))
		}
		v.at, v.point = append(v.at, p.At.Seconds()), append(v.point, number[k])
		v.logs = append(v.logs, p.logThroughput()-slow.log(p.At.Seconds()))
	}
	return v
}

// newFast is the fast part of the course.
func newFast(v visits) smooth {
	var best smooth
	least := math.Inf(1)
	for _, width := range fastWidths {
		if s, squares := v.fit(width); squares < least {
			best, least = s, squares
		}
	}
	return best
}

// fit tells points and speeds from each other, and returns the speeds and the sum of squares of what neither explains.
func (v visits) fit(width float64) (s smooth, squares float64) {
	s = smooth{at: v.at, logs: make([]float64, len(v.at)), width: width}
	speeds, means := make([]float64, len(v.at)), make([]float64, len(v.count))
	for range fastRounds {
		clear(means)
		for i, p := range v.point {
			means[p] += (v.logs[i] - speeds[i]) / v.count[p]
		}
		for i, p := range v.point {
			s.logs[i] = v.logs[i] - means[p]
		}
		for i, at := range v.at {
			speeds[i] = s.log(at)
		}
	}
	for i, speed := range speeds {
		squares += (s.logs[i] - speed) * (s.logs[i] - speed)
	}
	return s, squares
}

// Speed is the machine's speed at a time against its mean. It is 1 without a reference.
func (c Course) Speed(at time.Duration) float64 {
	return math.Exp(c.minutes.log(at.Seconds()) + c.seconds.log(at.Seconds()))
}

// Deviation is the standard deviation of the logarithm of the speed over minutes.
func (c Course) Deviation() float64 {
	squares := 0.0
	for _, at := range c.minutes.at {
		log := c.minutes.log(at)
		squares += log * log
	}
	return math.Sqrt(squares / float64(max(len(c.minutes.at), 1)))
}

// smooth is a curve through noisy values, whose mean is about 0.
type smooth struct {
	at    []float64 // s, ascending
	logs  []float64
	width float64 // s, within which neighbours are averaged
}

// log is the mean of the values, weighted by how near they are, since a single one is as noisy as any window; 0 far from all. A value of that very
// instant is left out: it would take its own noise for the machine's speed.
func (s smooth) log(at float64) float64 {
	const reach = 4 // widths beyond which nothing counts
	sum, weights := 0.0, 1e-9
	for i := sort.SearchFloat64s(s.at, at-reach*s.width); i < len(s.at) && s.at[i] <= at+reach*s.width; i++ {
		if s.at[i] == at {
			continue
		}
		d := (s.at[i] - at) / s.width
		weight := math.Exp(-d * d / 2)
		sum, weights = sum+weight*s.logs[i], weights+weight
	}
	return sum / weights
}
