package imported

import (
	"tuner/analyze"
	"tuner/measure"
)

// Factors from the units of other programs to base units.
const (
	milliseconds = 1e-3
	microseconds = 1e-6
	megabytes    = 1e6
	percent      = 1e-2
)

// metricOf is the metric behind a tag of Model Analyzer, and the factor to its base unit; "" for a tag that tuner has no metric for.
func metricOf(tag string) (measure.Metric, float64) {
	switch tag {
	case "perf_throughput":
		return measure.Throughput, 1
	case "perf_latency_avg":
		return measure.LatencyAvg, milliseconds
	case "perf_latency_p90":
		return measure.LatencyP90, milliseconds
	case "perf_latency_p95":
		return measure.LatencyP95, milliseconds
	case "perf_latency_p99", "perf_latency": // the second of old versions
		return measure.LatencyP99, milliseconds
	case "perf_server_queue":
		return measure.QueueTime, milliseconds
	case "perf_server_compute_input":
		return measure.ComputeInput, milliseconds
	case "perf_server_compute_infer":
		return measure.ComputeInfer, milliseconds
	case "perf_server_compute_output":
		return measure.ComputeOutput, milliseconds
	case "cpu_used_ram":
		return measure.Memory, megabytes
	}
	return "", 0
}

// addGPU adds what one GPU did: memory and power of all together, and the mean of their utilizations.
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
	if known == 3 { // a row of the GPUs' table shows all three
		p.GPUs = append(p.GPUs, g)
	}
}

// gpuPoint is a point while its GPUs are added.
type gpuPoint struct {
	*analyze.RecordedPoint
	utilizations int // GPUs that tell it
}
