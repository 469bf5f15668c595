package measure

import "slices"

// GPUWindow is what one GPU did during a window.
type GPUWindow struct {
	UUID        string  `json:"uuid"`
	Utilization float64 `json:"utilization" jsonschema:"minimum=0,maximum=1"` // share of the time in which it computed, 0..1
	Power       float64 `json:"power" jsonschema:"minimum=0"`                 // W, mean
	MemoryUsed  int64   `json:"memory_used" jsonschema:"minimum=0"`           // bytes, the most that was seen
	MemoryTotal int64   `json:"memory_total" jsonschema:"minimum=0"`          // bytes
	Energy      float64 `json:"energy" jsonschema:"minimum=0"`                // J
}

// Plus is what the GPU did in the seconds of g and in those of a later window together.
func (g GPUWindow) Plus(seconds float64, later GPUWindow, laterSeconds float64) GPUWindow {
	mean := func(a, b float64) float64 { return (a*seconds + b*laterSeconds) / (seconds + laterSeconds) }
	later.Utilization, later.Power = mean(g.Utilization, later.Utilization), mean(g.Power, later.Power)
	later.MemoryUsed, later.Energy = max(g.MemoryUsed, later.MemoryUsed), g.Energy+later.Energy
	return later
}

// GPUs is what each GPU did in all windows together, in the order in which they were first seen.
func (m Measurement) GPUs() []GPUWindow {
	var all []GPUWindow
	seconds := map[string]float64{}
	for _, w := range m.Windows {
		for _, g := range w.GPUs {
			i := slices.IndexFunc(all, func(known GPUWindow) bool { return known.UUID == g.UUID })
			if i < 0 {
				all = append(all, g)
			} else {
				all[i] = all[i].Plus(seconds[g.UUID], g, w.Duration.Seconds())
			}
			seconds[g.UUID] += w.Duration.Seconds()
		}
	}
	return all
}

// gpuMemory is the most that was in use on all GPUs together, without an interval.
func (m Measurement) gpuMemory() (Estimate, bool) {
	var most int64
	for _, w := range m.Windows {
		most = max(most, sumOf(w.GPUs, func(g GPUWindow) int64 { return g.MemoryUsed }))
	}
	bytes := float64(most)
	return Estimate{Value: bytes, Lo: bytes, Hi: bytes}, most > 0
}

// gpuUtilization is the mean over the GPUs. An idle one has 0, which is a value.
func (m Measurement) gpuUtilization() (Estimate, bool) {
	e, ok := m.ratio(func(w Window) (float64, float64) {
		busy := sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Utilization })
		return busy * w.Duration.Seconds(), float64(len(w.GPUs)) * w.Duration.Seconds()
	})
	e.Hi = min(e.Hi, 1)
	return e, ok
}

// gpuPower is that of all GPUs together.
func (m Measurement) gpuPower() (Estimate, bool) {
	return m.ratio(func(w Window) (float64, float64) {
		watts := sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Power })
		if watts == 0 { // not told
			return 0, 0
		}
		return watts * w.Duration.Seconds(), w.Duration.Seconds()
	})
}

// energy is what GPUs and CPU packages took for an inference, over all windows in which they were looked at: also where nothing was inferred, and where
// a counter that is renewed every two seconds, as on a Triton's metrics page, stood still. What it left out there is in the window after.
func (m Measurement) energy() (Estimate, bool) {
	e, ok := m.ratio(func(w Window) (float64, float64) {
		if w.CPUEnergy == 0 && len(w.GPUs) == 0 { // not looked at
			return 0, 0
		}
		joules := w.CPUEnergy + sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Energy })
		return joules, float64(w.Inferences)
	})
	return e, ok && e.Value > 0 // else nothing tells
}

// sumOf adds a figure of the GPUs up.
func sumOf[T int64 | float64](gpus []GPUWindow, figure func(GPUWindow) T) T {
	var sum T
	for _, g := range gpus {
		sum += figure(g)
	}
	return sum
}
