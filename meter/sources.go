package meter

import (
	"math"
	"slices"

	"tuner/hostinfo"
	"tuner/measure"
)

// Sources are what tells of GPUs and energy on a machine.
type Sources struct {
	GPUs      []hostinfo.GPUUsage
	GPUNote   string // why there are none
	CPUEnergy error  // why the energy of the CPU cannot be read; nil when it can
}

// ReadSources looks at this machine.
func ReadSources() Sources {
	reader, note := hostinfo.OpenGPUs()
	defer reader.Close()
	_, err := hostinfo.CPUEnergy()
	return Sources{GPUs: reader.Read(), GPUNote: note, CPUEnergy: err}
}

// Lack says why a metric cannot be measured there; "" when it can.
func (s Sources) Lack(metric measure.Metric) string {
	told := func(figures ...float64) bool { return !slices.ContainsFunc(figures, math.IsNaN) }
	switch metric {
	case measure.GPUMemory:
		return s.lackOf(func(hostinfo.GPUUsage) bool { return true })
	case measure.GPUUtilization:
		return s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Utilization) })
	case measure.GPUPower:
		return s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Power) })
	case measure.Energy:
		// Without a counter a GPU's energy is its power over the time.
		gpus := s.lackOf(func(g hostinfo.GPUUsage) bool { return told(g.Energy) || told(g.Power) })
		if gpus == "" || s.CPUEnergy == nil {
			return ""
		}
		return gpus + "; " + s.CPUEnergy.Error()
	}
	return ""
}

// lackOf says why no GPU tells a figure; "" when one does.
func (s Sources) lackOf(told func(hostinfo.GPUUsage) bool) string {
	switch {
	case slices.ContainsFunc(s.GPUs, told):
		return ""
	case len(s.GPUs) > 0:
		return "the GPU's driver does not tell it"
	case s.GPUNote == "":
		return "no GPU can be read"
	}
	return s.GPUNote
}
