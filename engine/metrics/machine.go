package metrics

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tuner/internal/hostinfo"
)

// sources are functions that read the machine's figures.
type sources struct {
	now    func() time.Time
	cpu    func() (hostinfo.CPUSnapshot, error)
	memory func() (hostinfo.Memory, error)
	gpus   func() []hostinfo.GPUUsage
}

func thisMachine() sources {
	return sources{time.Now, hostinfo.CPUTimes, hostinfo.ReadMemory, hostinfo.ReadGPUUsage}
}

// machine shows processors, memory and GPUs. It reads them on request, but at most once per
// interval.
type machine struct {
	from     sources
	interval time.Duration
	figures  map[string]*prometheus.Desc
	noGPUs   bool // there were none at the start, and none will come later

	mu     sync.Mutex
	read   time.Time
	times  hostinfo.CPUSnapshot // at the last reading
	energy map[string]float64   // joules of each GPU at the start
	shown  []prometheus.Metric
}

// figures returns the names and help texts of the machine's metrics.
func figures() map[string]string {
	return map[string]string{
		"nv_pinned_memory_pool_total_bytes": "Pinned memory pool total memory size, in bytes",
		"nv_pinned_memory_pool_used_bytes":  "Pinned memory pool used memory size, in bytes",
		"nv_cpu_utilization":                "CPU utilization rate [0.0 - 1.0]",
		"nv_cpu_memory_total_bytes":         "CPU total memory (RAM), in bytes",
		"nv_cpu_memory_used_bytes":          "CPU used memory (RAM), in bytes",
		"nv_gpu_utilization":                "GPU utilization rate [0.0 - 1.0)",
		"nv_gpu_memory_total_bytes":         "GPU total memory, in bytes",
		"nv_gpu_memory_used_bytes":          "GPU used memory, in bytes",
		"nv_gpu_power_usage":                "GPU power usage in watts",
		"nv_gpu_power_limit":                "GPU power management limit in watts",
		"nv_energy_consumption":             "GPU energy consumption in joules since the Triton Server started",
	}
}

func newMachine(o Options, from sources) *machine {
	m := &machine{from: from, interval: o.Interval, figures: map[string]*prometheus.Desc{}, energy: map[string]float64{}, noGPUs: true}
	for name, help := range figures() {
		var labels []string
		switch name {
		case "nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes":
		case "nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes":
			if !o.CPU {
				continue
			}
		default:
			if !o.GPU {
				continue
			}
			labels = []string{"gpu_uuid"}
		}
		m.figures[name] = prometheus.NewDesc(name, help, labels, nil)
	}
	if o.CPU {
		m.times, _ = from.cpu() // figures that cannot be read are not shown
	}
	if o.GPU {
		for _, gpu := range from.gpus() {
			m.noGPUs = false
			m.energy[gpu.UUID] = gpu.Energy
		}
	}
	return m
}

// Describe lists the metrics.
func (m *machine) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range m.figures {
		out <- desc
	}
}

// Collect shows the figures.
func (m *machine) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.from.now(); m.read.IsZero() || now.Sub(m.read) >= m.interval {
		m.read, m.shown = now, nil
		// There is no pool of pinned memory here: its size is zero.
		m.show(prometheus.GaugeValue, "nv_pinned_memory_pool_total_bytes", 0)
		m.show(prometheus.GaugeValue, "nv_pinned_memory_pool_used_bytes", 0)
		m.readCPU()
		m.readGPUs()
	}
	for _, metric := range m.shown {
		out <- metric
	}
}

// show shows a figure in this scrape and those until the next reading, unless it is unwanted or
// unknown (NaN).
func (m *machine) show(kind prometheus.ValueType, name string, value float64, labels ...string) {
	if desc := m.figures[name]; desc != nil && !math.IsNaN(value) {
		m.shown = append(m.shown, prometheus.MustNewConstMetric(desc, kind, value, labels...))
	}
}

func (m *machine) readCPU() {
	if m.figures["nv_cpu_utilization"] == nil {
		return
	}
	if times, err := m.from.cpu(); err == nil {
		m.show(prometheus.GaugeValue, "nv_cpu_utilization", usedShare(times.Since(m.times)))
		m.times = times
	}
	if memory, err := m.from.memory(); err == nil {
		m.show(prometheus.GaugeValue, "nv_cpu_memory_total_bytes", float64(memory.Total))
		m.show(prometheus.GaugeValue, "nv_cpu_memory_used_bytes", float64(memory.Total-memory.Available))
	}
}

// usedShare is NaN as long as the kernel has counted no time, since it counts in steps.
func usedShare(u hostinfo.CPUUsage) float64 {
	used := float64(u.Busy + u.Steal)
	return used / (used + float64(u.Idle))
}

func (m *machine) readGPUs() {
	if m.noGPUs {
		return
	}
	for _, gpu := range m.from.gpus() {
		m.show(prometheus.GaugeValue, "nv_gpu_utilization", gpu.Utilization, gpu.UUID)
		if gpu.MemoryTotal > 0 {
			m.show(prometheus.GaugeValue, "nv_gpu_memory_total_bytes", float64(gpu.MemoryTotal), gpu.UUID)
			m.show(prometheus.GaugeValue, "nv_gpu_memory_used_bytes", float64(gpu.MemoryUsed), gpu.UUID)
		}
		m.show(prometheus.GaugeValue, "nv_gpu_power_usage", gpu.Power, gpu.UUID)
		m.show(prometheus.GaugeValue, "nv_gpu_power_limit", gpu.PowerLimit, gpu.UUID)
		m.show(prometheus.CounterValue, "nv_energy_consumption", gpu.Energy-m.energy[gpu.UUID], gpu.UUID)
	}
}
