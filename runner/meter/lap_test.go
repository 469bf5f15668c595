package meter

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

// at returns the instant that lies the given seconds after a fixed beginning.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func gpu(uuid string, utilization, power, energy float64, used int64) hostinfo.GPUUsage {
	return hostinfo.GPUUsage{UUID: uuid, Utilization: utilization, Power: power, Energy: energy, MemoryUsed: used, MemoryTotal: 100}
}

// endAs compares the GPUs of a lap with want.
func (l *lap) endAs(t *testing.T, name string, want ...measure.GPUWindow) {
	t.Helper()
	_, _, gpus := l.end()
	if diff := cmp.Diff(want, gpus, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestLapOfAGPU(t *testing.T) {
	t.Parallel()
	var l lap
	l.addSample(sample{at: at(0), gpus: []hostinfo.GPUUsage{gpu("A", 0, 50, 1000, 10)}})
	l.endAs(t, "the first sight", measure.GPUWindow{UUID: "A", Power: 50, MemoryUsed: 10, MemoryTotal: 100})

	// 0.4 over 1 s and 1 over 3 s: 3.4/4. 100 W over 1 s and 200 W over 3 s: 700 J / 4 s. The
	// counter shows 690 J.
	l.addSample(sample{at: at(1), gpus: []hostinfo.GPUUsage{gpu("A", 0.4, 100, 1100, 60)}})
	l.addSample(sample{at: at(4), gpus: []hostinfo.GPUUsage{gpu("A", 1, 200, 1690, 20)}})
	l.endAs(t, "samples that are unequally far apart",
		measure.GPUWindow{UUID: "A", Utilization: 0.85, Power: 175, MemoryUsed: 60, MemoryTotal: 100, Energy: 690})

	// The next lap begins where this one ended: 2 s at 0.5 and 150 W. The largest memory is of the
	// new lap alone.
	l.addSample(sample{at: at(6), gpus: []hostinfo.GPUUsage{gpu("A", 0.5, 150, 1990, 30)}})
	l.endAs(t, "the next lap", measure.GPUWindow{UUID: "A", Utilization: 0.5, Power: 150, MemoryUsed: 30, MemoryTotal: 100, Energy: 300})

	// The driver was reloaded, so its counter restarted at zero. The value on it does not belong to
	// this lap.
	l.addSample(sample{at: at(8), gpus: []hostinfo.GPUUsage{gpu("A", 0.5, 150, 7, 30)}})
	l.endAs(t, "a counter that began anew", measure.GPUWindow{UUID: "A", Utilization: 0.5, Power: 150, MemoryUsed: 30, MemoryTotal: 100, Energy: 300})
}

func TestLapOfAGPUThatTellsLittle(t *testing.T) {
	t.Parallel()
	unknown := math.NaN()
	var l lap
	add := func(seconds float64, u ...hostinfo.GPUUsage) { l.addSample(sample{at: at(seconds), gpus: u}) }
	// Without a counter the energy is the integral of the power. If the power is unknown too, it is
	// zero.
	add(0, gpu("A", unknown, 60, unknown, 1), gpu("B", unknown, unknown, unknown, 2))
	add(2, gpu("A", unknown, 80, unknown, 1), gpu("B", unknown, unknown, unknown, 2))
	l.endAs(t, "no counter",
		measure.GPUWindow{UUID: "A", Power: 80, MemoryUsed: 1, MemoryTotal: 100, Energy: 160}, measure.GPUWindow{UUID: "B", MemoryUsed: 2, MemoryTotal: 100})

	// The time of a sample without a figure does not count for that figure.
	add(3, gpu("A", unknown, unknown, unknown, 1))
	add(4, gpu("A", 0.25, 100, unknown, 1))
	l.endAs(t, "one GPU is gone, the other lacks a sample",
		measure.GPUWindow{UUID: "A", Utilization: 0.25, Power: 100, MemoryUsed: 1, MemoryTotal: 100, Energy: 100})

	// B comes back. Its figures from the time between do not belong to this lap.
	add(5, gpu("B", 0.5, 90, 500, 2))
	l.endAs(t, "a GPU that comes back", measure.GPUWindow{UUID: "B", Utilization: 0.5, Power: 90, MemoryUsed: 2, MemoryTotal: 100})
	l.endAs(t, "no sample")
}

// Others count on a GPU on which the engine computes, as means over the time in which the driver told.
func TestOthersOnAGPU(t *testing.T) {
	t.Parallel()
	const engine, other, another = 7, 8, 9
	var l lap
	add := func(seconds float64, processes map[int]float64) {
		u := gpu("A", 0, 0, 0, 0)
		u.Processes = processes
		l.addSample(sample{at: at(seconds), gpus: []hostinfo.GPUUsage{u}, own: []int{5, engine}})
	}
	check := func(name string, want float64) {
		t.Helper()
		if _, _, gpus := l.end(); math.Abs(gpus[0].Foreign-want) > 1e-12 {
			t.Errorf("%s: others %g, want %g", name, gpus[0].Foreign, want)
		}
	}
	add(0, nil)
	add(1, map[int]float64{engine: 0.5, other: 0.2, another: 0.1})
	add(4, map[int]float64{engine: 0.5})
	check("0.3 in one of four seconds", 0.075)
	add(5, map[int]float64{engine: 0.5, other: 0.9, another: 0.9})
	check("not more than the whole", 1)
	add(6, nil)
	add(7, map[int]float64{engine: 0.5, other: 0.2})
	check("only where it is known", 0.2)
	add(8, map[int]float64{other: 0.2})
	check("a GPU that the engine does not use", 0)
	add(9, map[int]float64{other: 0.2, engine: 0})
	check("of whose computing the driver has no sample", 0.2)
	add(10, map[int]float64{})
	check("nobody", 0)
}

func TestLapOfClockAndMemory(t *testing.T) {
	t.Parallel()
	var l lap
	for _, s := range []sample{{frequency: 2e9, memory: 5}, {frequency: 0, memory: 9}, {frequency: 3e9, memory: 7}} {
		l.addSample(s)
	}
	if frequency, memory, _ := l.end(); frequency != 2.5e9 || memory != 9 {
		t.Errorf("%g Hz, %d bytes, want the mean of the known and the most", frequency, memory)
	}
	if frequency, memory, _ := l.end(); frequency != 0 || memory != 0 {
		t.Errorf("of no sample: %g Hz, %d bytes", frequency, memory)
	}
}
