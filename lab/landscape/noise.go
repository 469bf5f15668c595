package landscape

import (
	"math"
	"math/rand/v2"
	"time"

	"tuner/lab/landscape/record"
)

// Noise describes the disturbances of a machine's windows, as standard deviations of logarithms. A
// window of 1 s varies by about the root of the sum of the squares of Drift, Flicker and Launch.
type Noise struct {
	Drift   float64 // drift within minutes: Ornstein-Uhlenbeck, time constant 120 s
	Flicker float64 // drift within seconds: the same process, 1.5 s
	Launch  float64 // of one engine launch against another
	Tail    float64 // of a window's upper percentiles, beyond that of all latencies
	// Burst: share of the speed that a neighbour takes while it is busy, 20 s of every 80 s in the
	// mean; 0: no neighbour
	Burst float64
}

// noiseOf returns the noise with which windows of a second vary by about a standard deviation. Its
// parts were observed on shared machines: most of it is slow (reference/search.md §5.7).
func noiseOf(deviation float64) Noise {
	return Noise{Drift: 0.6 * deviation, Flicker: 0.7 * deviation, Launch: min(0.01, deviation/4), Tail: deviation}
}

// The time constants of the noise.
const (
	driftTime   = 120.0 // s
	flickerTime = 1.5   // s
	busyTime    = 20.0  // s, mean
	idleTime    = 60.0  // s, mean
	grain       = 0.1   // s, resolution
)

// trace is the course of a recorded machine's speed.
type trace struct {
	course record.Course
	span   time.Duration // of the recording; 0 without one
}

// weather is one course of a machine's speed in time. Equal seeds give equal courses for any order
// of queries. The course is that of a recording from some time on, or else of a noise.
type weather struct {
	trace          trace
	from           time.Duration // in the recording
	noise          Noise
	random         *rand.Rand
	speeds         []float64 // factor on the machine's speed, by grain
	drift, flicker float64
	bursts         bursts    // of the noise
	neighbour      neighbour // of the replay, in addition to recording or noise
}

func newWeather(t trace, n Noise, neighbour float64, seed uint64) *weather {
	w := &weather{trace: t, noise: n, random: rand.New(rand.NewPCG(seed, 0x77656174686572))}
	w.neighbour = newNeighbour(neighbour, seed)
	if t.span > 0 {
		w.from = time.Duration(w.random.Int64N(int64(t.span)))
		return w
	}
	w.drift, w.flicker = n.Drift*w.random.NormFloat64(), n.Flicker*w.random.NormFloat64()
	w.bursts = newBursts(w.random)
	return w
}

// speed returns the factor on the machine's speed at a time.
func (w *weather) speed(at time.Duration) float64 {
	i := int(at.Seconds() / grain)
	for len(w.speeds) <= i {
		w.step()
	}
	return w.speeds[i]
}

// steal returns the share of the machine's CPU time that the hypervisor takes at a time; 0 for a
// noise.
func (w *weather) steal(at time.Duration) float64 {
	if w.trace.span == 0 {
		return 0
	}
	return w.trace.course.Steal((w.from + at) % w.trace.span)
}

// taken returns the share of the cores' time that the neighbour takes over a span, 0..1.
func (w *weather) taken(from, to time.Duration) float64 {
	return w.neighbour.taken(int(from.Seconds()/grain), int(to.Seconds()/grain))
}

// mean returns the factor over a span, without the neighbour.
func (w *weather) mean(from, to time.Duration) float64 {
	first, last := int(from.Seconds()/grain), int(to.Seconds()/grain)
	w.speed(to)
	sum := 0.0
	for _, s := range w.speeds[first : last+1] {
		sum += s
	}
	return sum / float64(last-first+1)
}

// step advances by one grain. A recording restarts after its end.
func (w *weather) step() {
	if w.trace.span > 0 {
		at := w.from + time.Duration(len(w.speeds))*time.Duration(grain*float64(time.Second))
		w.speeds = append(w.speeds, w.trace.course.Speed(at%w.trace.span))
		return
	}
	w.drift = wander(w.drift, w.noise.Drift, driftTime, w.random.NormFloat64())
	w.flicker = wander(w.flicker, w.noise.Flicker, flickerTime, w.random.NormFloat64())
	speed := math.Exp(w.drift + w.flicker)
	if w.noise.Burst > 0 {
		if w.bursts.step() {
			speed *= 1 - w.noise.Burst
		}
		speed /= 1 - w.noise.Burst*busyTime/(busyTime+idleTime) // the truth is the average over hours
	}
	w.speeds = append(w.speeds, speed)
}

// wander returns the next value of an Ornstein-Uhlenbeck process, given a standard normal number.
func wander(x, deviation, constant, normal float64) float64 {
	keep := math.Exp(-grain / constant)
	return keep*x + math.Sqrt(1-keep*keep)*deviation*normal
}
