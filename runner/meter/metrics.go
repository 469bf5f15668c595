package meter

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tuner/internal/hostinfo"
)

// ParseMetrics reads the GPUs' figures from a page in Prometheus' text format (Triton:
// docs/user_guide/metrics.md). They are nv_gpu_… and nv_energy_consumption with the label gpu_uuid.
// A figure that the page does not have is NaN; a size is 0.
func ParseMetrics(page []byte) ([]hostinfo.GPUUsage, error) {
	seen, err := parsePage(page)
	return seen.gpus, err
}

// parsePage reads the GPUs' figures, and the memory in use on the machine.
func parsePage(page []byte) (figures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	// some pages end without a line break
	families, err := parser.TextToMetricFamilies(bytes.NewReader(append(slices.Clone(page), '\n')))
	if err != nil {
		return figures{}, fmt.Errorf("is not in Prometheus' text format: %w", err)
	}
	var seen figures
	for _, metric := range families["nv_cpu_memory_used_bytes"].GetMetric() {
		// only one of them is set
		value := metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
		if value >= 0 && value < math.MaxInt64 {
			seen.memory = int64(value)
		}
	}
	for _, figure := range gpuFigures() {
		for _, metric := range families[figure.name].GetMetric() {
			uuid := ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "gpu_uuid" {
					uuid = label.GetValue()
				}
			}
			// only one of them is set
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue()
			if uuid == "" || !(value >= 0 && value < math.MaxInt64) {
				continue
			}
			i := slices.IndexFunc(seen.gpus, func(g hostinfo.GPUUsage) bool { return g.UUID == uuid })
			if i < 0 {
				i = len(seen.gpus)
				seen.gpus = append(seen.gpus, unknownGPU(uuid))
			}
			figure.set(&seen.gpus[i], value)
		}
	}
	return seen, nil
}

func unknownGPU(uuid string) hostinfo.GPUUsage {
	unknown := math.NaN()
	return hostinfo.GPUUsage{UUID: uuid, Utilization: unknown, Power: unknown, PowerLimit: unknown, Energy: unknown}
}

// gpuFigure is a metric of the page, and the field for its value.
type gpuFigure struct {
	name string
	set  func(*hostinfo.GPUUsage, float64)
}

func gpuFigures() []gpuFigure {
	return []gpuFigure{
		{"nv_gpu_utilization", func(g *hostinfo.GPUUsage, v float64) { g.Utilization = v }},
		{"nv_gpu_memory_total_bytes", func(g *hostinfo.GPUUsage, v float64) { g.MemoryTotal = int64(v) }},
		{"nv_gpu_memory_used_bytes", func(g *hostinfo.GPUUsage, v float64) { g.MemoryUsed = int64(v) }},
		{"nv_gpu_power_usage", func(g *hostinfo.GPUUsage, v float64) { g.Power = v }},
		{"nv_gpu_power_limit", func(g *hostinfo.GPUUsage, v float64) { g.PowerLimit = v }},
		{"nv_energy_consumption", func(g *hostinfo.GPUUsage, v float64) { g.Energy = v }},
	}
}
