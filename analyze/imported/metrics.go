package imported

import (
	"strings"

	"tuner/analyze"
	"tuner/measure"
	"tuner/spec/goals"
)

// Factors from the units of other programs to base units.
const (
	milliseconds = 1e-3
	microseconds = 1e-6
	megabytes    = 1e6
	percent      = 1e-2
)

// metricOf returns the metric of a Model Analyzer tag, and the factor to its base unit. It covers
// tags that are not about GPUs. It returns "" for a tag without a metric in tuner.
func metricOf(tag string) (measure.Metric, float64) {
	if tag == "perf_latency" { // in old versions
		tag = "perf_latency_p99"
	}
	metric := goals.TagMetric(tag)
	info, _ := metric.Info()
	switch {
	case strings.HasPrefix(tag, "gpu_"):
		return "", 0
	case info.Unit == measure.Seconds:
		return metric, milliseconds
	case info.Unit == measure.Bytes:
		return metric, megabytes
	}
	return metric, 1
}

// addGPU adds the figures of one GPU. Memory and power are summed, utilizations are averaged.
func (p *gpuPoint) addGPU(uuid string, records []record) {
	g, known := measure.GPUWindow{UUID: uuid}, 0
	for _, r := range records {
		switch r.tag {
		case "gpu_used_memory":
			g.MemoryUsed = int64(r.value * megabytes)
			p.Values[measure.GPUMemory] += r.value * megabytes
			known++
		case "gpu_total_memory":
			g.MemoryTotal = int64(r.value * megabytes)
		case "gpu_utilization":
			g.Utilization = r.value * percent
			p.utilizations++
			mean := p.Values[measure.GPUUtilization]
			p.Values[measure.GPUUtilization] = mean + (g.Utilization-mean)/float64(p.utilizations)
			known++
		case "gpu_power_usage":
			g.Power = r.value
			p.Values[measure.GPUPower] += r.value
			known++
		}
	}
	if known == 3 { // the table of GPUs shows all three
		p.GPUs = append(p.GPUs, g)
	}
}

// gpuPoint is a point to which GPUs are being added.
type gpuPoint struct {
	*analyze.RecordedPoint
	utilizations int // GPUs that report it
}
