package meter

import (
	"math"
	"slices"
	"time"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

// sample is what was seen at an instant of what is no counter.
type sample struct {
	at        time.Time
	frequency float64 // Hz; 0: unknown
	memory    int64   // bytes; 0: unknown
	gpus      []hostinfo.GPUUsage
}

// lap gathers the samples between two readings.
type lap struct {
	frequencies float64 // sum
	samples     int     // with a frequency
	memory      int64   // bytes, the most that was seen
	gpus        []gpuLap
}

// gpuLap is what one GPU has done in a lap. A figure of a sample stands for the time since the sample before, since the
// driver's utilisation and power are means of the time just past.
type gpuLap struct {
	last  hostinfo.GPUUsage
	at    time.Time // of last
	seen  bool      // in this lap
	used  int64     // bytes, the most that was seen
	from  float64   // joules on the counter when the lap began
	busy  integral  // of the utilisation
	power integral
}

// integral is a figure's sum over the time in which it was known, in seconds.
type integral struct{ sum, seconds float64 }

func (i *integral) add(value, seconds float64) {
	if !math.IsNaN(value) {
		i.sum, i.seconds = i.sum+value*seconds, i.seconds+seconds
	}
}

// mean is that over the time; without any it is the last value, or zero when that is unknown.
func (i integral) mean(last float64) float64 {
	switch {
	case i.seconds > 0:
		return i.sum / i.seconds
	case math.IsNaN(last):
		return 0
	}
	return last
}

// add adds a sample that is not older than those before.
func (l *lap) add(s sample) {
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
		l.gpus[i].add(usage, s.at)
	}
}

func (g *gpuLap) add(usage hostinfo.GPUUsage, at time.Time) {
	seconds := at.Sub(g.at).Seconds()
	g.busy.add(usage.Utilization, seconds)
	g.power.add(usage.Power, seconds)
	g.used = max(g.used, usage.MemoryUsed)
	g.last, g.at, g.seen = usage, at, true
}

// end tells of the lap, and begins the next. The GPUs are those that were seen in it.
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

// window is what a GPU did. Without a counter of energy, or when it began anew, the energy is the power over the time.
func (g gpuLap) window() measure.GPUWindow {
	w := measure.GPUWindow{
		UUID: g.last.UUID, Utilization: g.busy.mean(g.last.Utilization), Power: g.power.mean(g.last.Power),
		MemoryUsed: g.used, MemoryTotal: g.last.MemoryTotal, Energy: g.power.sum,
	}
	if counted := g.last.Energy - g.from; counted >= 0 {
		w.Energy = counted
	}
	return w
}
