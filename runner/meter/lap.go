package meter

import (
	"math"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

// sample holds the figures of an instant that have no counter.
type sample struct {
	at        time.Time
	frequency float64 // Hz; 0: unknown
	memory    int64   // bytes; 0: unknown
	gpus      []hostinfo.GPUUsage
	own       []int // processes of server and clients
}

// lap gathers the samples between two readings.
type lap struct {
	frequencies float64 // sum of the known frequencies
	samples     int     // number of the known frequencies
	memory      int64   // bytes, the largest value seen
	gpus        []gpuLap
}

// gpuLap sums up one GPU in a lap. A sample's figure counts for the time since the sample before,
// since the driver reports utilisation and power as means of the recent past.
type gpuLap struct {
	last  hostinfo.GPUUsage
	at    time.Time // instant of last
	seen  bool      // whether a sample of this lap has the GPU
	used  int64     // bytes, the largest value seen
	from  float64   // joules on the counter when the lap began
	busy  integral  // integral of the utilisation
	power integral
	// share of the time in which others computed
	others integral
	isOwn  bool // the server or the clients were on the GPU in a sample
}

// integral is the integral of a figure over the time in which it was known. seconds is that time.
type integral struct{ sum, seconds float64 }

func (i *integral) addValue(value, seconds float64) {
	if !math.IsNaN(value) {
		i.sum, i.seconds = i.sum+value*seconds, i.seconds+seconds
	}
}

// mean returns the integral over the time. Without any time it returns the last value, or zero if
// that is unknown.
func (i integral) mean(last float64) float64 {
	switch {
	case i.seconds > 0:
		return i.sum / i.seconds
	case math.IsNaN(last):
		return 0
	}
	return last
}

// addSample adds a sample, which must not be older than those before.
func (l *lap) addSample(s sample) {
	if s.frequency > 0 {
		l.frequencies += s.frequency
		l.samples++
	}
	l.memory = max(l.memory, s.memory)
	for _, usage := range s.gpus {
		i := slices.IndexFunc(l.gpus, func(g gpuLap) bool { return g.last.UUID == usage.UUID })
		if i < 0 {
			i = len(l.gpus)
			l.gpus = append(l.gpus, gpuLap{at: s.at, from: usage.Energy})
		}
		l.gpus[i].addUsage(usage, s.own, s.at)
	}
}

func (g *gpuLap) addUsage(usage hostinfo.GPUUsage, own []int, at time.Time) {
	seconds := at.Sub(g.at).Seconds()
	if usage.Processes != nil {
		others := 0.0
		for pid, share := range usage.Processes {
			if slices.Contains(own, pid) {
				g.isOwn = true
			} else {
				others += share
			}
		}
		g.others.addValue(min(1, others), seconds)
	}
	g.busy.addValue(usage.Utilization, seconds)
	g.power.addValue(usage.Power, seconds)
	g.used = max(g.used, usage.MemoryUsed)
	g.last, g.at, g.seen = usage, at, true
}

// end returns the figures of the lap, and begins the next one. gpus has those that a sample of the
// lap had.
func (l *lap) end() (frequency float64, memory int64, gpus []measure.GPUWindow) {
	if l.samples > 0 {
		frequency = l.frequencies / float64(l.samples)
	}
	memory = l.memory
	next := lap{}
	for _, g := range l.gpus {
		if g.seen {
			gpus = append(gpus, g.window())
			next.gpus = append(next.gpus, gpuLap{last: g.last, at: g.at, from: g.last.Energy})
		}
	}
	*l = next
	return frequency, memory, gpus
}

// window returns the figures of a GPU. If the GPU has no energy counter, or the counter restarted,
// the energy is the integral of the power.
func (g gpuLap) window() measure.GPUWindow {
	w := measure.GPUWindow{
		UUID: g.last.UUID, Utilization: g.busy.mean(g.last.Utilization), Power: g.power.mean(g.last.Power),
		MemoryUsed: g.used, MemoryTotal: g.last.MemoryTotal, Energy: g.power.sum,
	}
	if counted := g.last.Energy - g.from; counted >= 0 {
		w.Energy = counted
	}
	if g.isOwn {
		w.Foreign = g.others.mean(0)
	}
	return w
}
