package measure

import "slices"

// GPUWindow has the figures of one GPU during a window.
type GPUWindow struct {
	UUID string `json:"uuid"` // the GPU, as NVIDIA's driver names it
	// share of the time in which the GPU computed, 0..1
	Utilization float64 `json:"utilization" jsonschema:"minimum=0,maximum=1"`
	Power       float64 `json:"power" jsonschema:"minimum=0"` // mean power in W
	// largest memory in use, in bytes
	MemoryUsed  int64   `json:"memory_used" jsonschema:"minimum=0"`
	MemoryTotal int64   `json:"memory_total" jsonschema:"minimum=0"` // memory of the GPU, in bytes
	Energy      float64 `json:"energy" jsonschema:"minimum=0"`       // energy that it used, in J
	// share of the time in which other programs computed on it, 0..1, if the engine computed on it
	// too; absent without any, or if the driver does not report it
	Foreign float64 `json:"foreign,omitempty" jsonschema:"minimum=0,maximum=1"`
}

// ForeignGPU returns the largest share of the window in which other programs computed on a GPU of the
// engine, 0..1.
func (w Window) ForeignGPU() float64 {
	most := 0.0
	for _, g := range w.GPUs {
		most = max(most, g.Foreign)
	}
	return most
}

// Plus combines the figures of g, which took seconds, with those of a later window, which took
// laterSeconds.
func (g GPUWindow) Plus(seconds float64, later GPUWindow, laterSeconds float64) GPUWindow {
	mean := func(a, b float64) float64 { return (a*seconds + b*laterSeconds) / (seconds + laterSeconds) }
	later.Utilization, later.Power = mean(g.Utilization, later.Utilization), mean(g.Power, later.Power)
	later.Foreign = mean(g.Foreign, later.Foreign)
	later.MemoryUsed, later.Energy = max(g.MemoryUsed, later.MemoryUsed), g.Energy+later.Energy
	return later
}

// GPUs returns the figures of each GPU over all windows, in the order of their first appearance.
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

// gpuMemory returns the largest sum of memory in use on all GPUs, without an interval.
func (m Measurement) gpuMemory() (Estimate, bool) {
	var most int64
	for _, w := range m.Windows {
		most = max(most, sumOf(w.GPUs, func(g GPUWindow) int64 { return g.MemoryUsed }))
	}
	bytes := float64(most)
	return Estimate{Value: bytes, Lo: bytes, Hi: bytes}, most > 0
}

// gpuUtilization returns the mean over the GPUs. An idle GPU counts as 0.
func (m Measurement) gpuUtilization() (Estimate, bool) {
	e, ok := m.ratio(func(w Window) (float64, float64) {
		busy := sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Utilization })
		return busy * w.Duration.Seconds(), float64(len(w.GPUs)) * w.Duration.Seconds()
	})
	e.Hi = min(e.Hi, 1)
	return e, ok
}

// gpuPower returns the power of all GPUs together.
func (m Measurement) gpuPower() (Estimate, bool) {
	return m.ratio(func(w Window) (float64, float64) {
		watts := sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Power })
		if watts == 0 { // unknown
			return 0, 0
		}
		return watts * w.Duration.Seconds(), w.Duration.Seconds()
	})
}

// energy returns the energy of GPUs and CPU packages per inference. It pools all windows in which
// somebody read a counter, including those in which nothing was inferred. A counter may stand still
// for a window, as on a Triton's metrics page, which is renewed every two seconds. The following
// window then has the missing energy.
func (m Measurement) energy() (Estimate, bool) {
	e, ok := m.ratio(func(w Window) (float64, float64) {
		if w.CPUEnergy == 0 && len(w.GPUs) == 0 { // nobody read a counter
			return 0, 0
		}
		joules := w.CPUEnergy + sumOf(w.GPUs, func(g GPUWindow) float64 { return g.Energy })
		return joules, float64(w.Inferences)
	})
	return e, ok && e.Value > 0 // no counter tells
}

// sumOf adds up one figure of all GPUs.
func sumOf[T int64 | float64](gpus []GPUWindow, figure func(GPUWindow) T) T {
	var sum T
	for _, g := range gpus {
		sum += figure(g)
	}
	return sum
}
