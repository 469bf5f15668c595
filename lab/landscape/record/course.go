package record

import (
	"math"
	"sort"
	"time"

	"tuner/measure/stats"
)

// Course is the machine's speed in the course of a recording. The reference point shows it over
// minutes. Within minutes, all classes with more than one measurement show it. It also holds the
// hypervisor's share. The speed of a machine with shared cores changes by a tenth from one second
// to the next. A reference every few minutes does not show that.
type Course struct {
	minutes, seconds smooth  // logarithms
	steal            smooth  // share of the CPU time that the hypervisor took
	slope, mean      float64 // of the logarithm by that share; of the share
}

// The candidate widths of the fast part; the one that predicts best is chosen. They start at half a
// second, which is below the distance of any two trials, and each is twice the one before.
const (
	leastWidth = 0.5 // s
	widths     = 10
	fastRounds = 10 // number of alternations between estimating classes and speeds
)

// NewCourse reads the speed from a file's points. The logarithm of a trial's throughput is its
// class's plus the speed's; a class is a set of points that are one server. It is an additive
// model, fitted by backfitting with a Gaussian kernel. The chosen width predicts trials best from
// their neighbours.
func NewCourse(f File) Course {
	c := newBurden(f)
	for _, p := range f.Points {
		if p.Reference && p.Failure == nil {
			c.minutes.at, c.minutes.values = append(c.minutes.at, p.At.Seconds()), append(c.minutes.values, c.undisturbed(p))
		}
	}
	n := len(c.minutes.at)
	if n == 0 {
		return Course{}
	}
	mean := stats.Mean(c.minutes.values).Value
	for i := range c.minutes.values {
		c.minutes.values[i] -= mean
	}
	c.minutes.width = max(1, c.minutes.spacing())
	c.seconds = newFast(c.repeated(f))
	c.steal.width = max(c.seconds.width, c.steal.spacing()) // a narrower width would give 0 between trials
	return c
}

// newBurden returns a course that has only the hypervisor's share and its effect on classes with
// more than one measurement. The effect is estimated by least squares over each class's differences
// from its mean.
func newBurden(f File) Course {
	var c Course
	var classes []string
	var logs []float64
	for _, p := range f.Points {
		if p.Failure == nil {
			classes, logs = append(classes, f.class(p)), append(logs, p.logThroughput())
			c.steal.at, c.steal.values = append(c.steal.at, p.At.Seconds()), append(c.steal.values, p.stolen())
		}
	}
	const none = 1e-9 // the trials of no class differ in it
	products, squares := stats.WithinGroups(classes, c.steal.values, logs)
	c.slope, c.mean = products/(squares+none), stats.Mean(c.steal.values).Value
	return c
}

// undisturbed returns the logarithm of a point's throughput at the mean share of the hypervisor.
func (c Course) undisturbed(p Point) float64 { return p.logThroughput() - c.slope*(p.stolen()-c.mean) }

// visits are trials of classes with more than one measurement, in time order.
type visits struct {
	at, logs []float64 // s; of the throughput, without the slow part of the course
	class    []int     // index of the class, from 0
	count    []float64 // by class
}

func (c Course) repeated(f File) visits {
	var measured []Point
	trials := map[string]int{}
	for _, p := range f.Points {
		if !p.Reference && p.Failure == nil {
			measured = append(measured, p)
			trials[f.class(p)]++
		}
	}
	var v visits
	number := map[string]int{}
	for _, p := range measured {
		k := f.class(p)
		if trials[k] < 2 {
			continue
		}
		if _, known := number[k]; !known {
			number[k] = len(number)
			v.count = append(v.count, float64(trials[k]))
		}
		v.at, v.class = append(v.at, p.At.Seconds()), append(v.class, number[k])
		v.logs = append(v.logs, c.undisturbed(p)-c.minutes.value(p.At.Seconds()))
	}
	return v
}

// newFast returns the fast part of the course.
func newFast(v visits) smooth {
	var best smooth
	least := math.Inf(1)
	for i := range widths {
		if s, squares := v.fit(math.Ldexp(leastWidth, i)); squares < least {
			best, least = s, squares
		}
	}
	return best
}

// fit separates classes and speeds. It returns the speeds and the sum of squares of the residuals.
func (v visits) fit(width float64) (s smooth, squares float64) {
	s = smooth{at: v.at, values: make([]float64, len(v.at)), width: width}
	speeds, means := make([]float64, len(v.at)), make([]float64, len(v.count))
	for range fastRounds {
		clear(means)
		for i, p := range v.class {
			means[p] += (v.logs[i] - speeds[i]) / v.count[p]
		}
		for i, p := range v.class {
			s.values[i] = v.logs[i] - means[p]
		}
		for i, at := range v.at {
			speeds[i] = s.value(at)
		}
	}
	for i, speed := range speeds {
		squares += (s.values[i] - speed) * (s.values[i] - speed)
	}
	return s, squares
}

// Speed returns the machine's speed at a time, relative to its mean. It is 1 without a reference.
func (c Course) Speed(at time.Duration) float64 { return c.under(at, c.Steal(at)) }

// under returns the speed at a time at which the hypervisor took a share of the machine's CPU time.
func (c Course) under(at time.Duration, steal float64) float64 {
	return math.Exp(c.minutes.value(at.Seconds()) + c.seconds.value(at.Seconds()) + c.slope*(steal-c.mean))
}

// Steal returns the share of the machine's CPU time that the hypervisor took at a time, 0..1.
func (c Course) Steal(at time.Duration) float64 { return c.steal.value(at.Seconds()) }

// Deviation returns the standard deviation of the logarithm of the speed over minutes.
func (c Course) Deviation() float64 {
	squares := 0.0
	for _, at := range c.minutes.at {
		log := c.minutes.value(at)
		squares += log * log
	}
	return math.Sqrt(squares / float64(max(len(c.minutes.at), 1)))
}

// smooth is a curve through noisy values with a mean of about 0.
type smooth struct {
	at     []float64 // s, ascending
	values []float64
	width  float64 // s, within which neighbours are averaged
}

// spacing returns the mean distance of its values in seconds.
func (s smooth) spacing() float64 {
	n := len(s.at)
	return (s.at[n-1] - s.at[0]) / float64(n)
}

// value returns the mean of the values, weighted by their nearness, since a single one is as noisy
// as any window. It is 0 far from all. A value of that exact instant is left out, since its own
// noise would count as the machine's speed.
func (s smooth) value(at float64) float64 {
	const reach = 4 // widths beyond which values do not count
	sum, weights := 0.0, 1e-9
	for i := sort.SearchFloat64s(s.at, at-reach*s.width); i < len(s.at) && s.at[i] <= at+reach*s.width; i++ {
		if s.at[i] == at {
			continue
		}
		d := (s.at[i] - at) / s.width
		weight := math.Exp(-d * d / 2)
		sum, weights = sum+weight*s.values[i], weights+weight
	}
	return sum / weights
}
