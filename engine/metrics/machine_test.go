package metrics

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tuner/internal/hostinfo"
)

// bench is a machine with figures that the test sets.
type bench struct {
	now    time.Time
	gpus   []hostinfo.GPUUsage
	memory hostinfo.Memory
	broken error
	reads  int
}

func (b *bench) sources() sources {
	return sources{
		now:    func() time.Time { return b.now },
		cpu:    func() (hostinfo.CPUSnapshot, error) { return hostinfo.CPUSnapshot{}, b.broken },
		memory: func() (hostinfo.Memory, error) { b.reads++; return b.memory, b.broken },
		gpus:   func() []hostinfo.GPUUsage { return b.gpus },
	}
}

// values returns the page's figures, without its help texts.
func values(t *testing.T, m *machine) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(page.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

func TestMachine(t *testing.T) {
	t.Parallel()
	b := &bench{now: time.Unix(1000, 0), memory: hostinfo.Memory{Total: 100, Available: 70}, gpus: []hostinfo.GPUUsage{
		{UUID: "GPU-1", Utilization: 0.5, MemoryTotal: 10, MemoryUsed: 4, Power: 60.5, PowerLimit: 300, Energy: 1000},
	}}
	m := newMachine(Options{CPU: true, GPU: true, Interval: 2 * time.Second}, b.sources())
	b.gpus[0].Energy = 1250 // 250 J since the start
	want := strings.Join([]string{
		`nv_cpu_memory_total_bytes 100`, `nv_cpu_memory_used_bytes 30`, `nv_energy_consumption{gpu_uuid="GPU-1"} 250`,
		`nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 10`, `nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 4`,
		`nv_gpu_power_limit{gpu_uuid="GPU-1"} 300`, `nv_gpu_power_usage{gpu_uuid="GPU-1"} 60.5`, `nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5`,
		`nv_pinned_memory_pool_total_bytes 0`, `nv_pinned_memory_pool_used_bytes 0`,
	}, "\n")
	if got := values(t, m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.memory.Available = 10
	b.now = b.now.Add(time.Second)
	if got := values(t, m); got != want || b.reads != 1 {
		t.Errorf("within the interval: %d readings, got\n%s", b.reads, got)
	}
	b.now = b.now.Add(time.Second)
	if got := values(t, m); !strings.Contains(got, "nv_cpu_memory_used_bytes 90") {
		t.Errorf("after the interval: got\n%s", got)
	}
}

// Figures that a machine does not have are not shown, nor are figures that were not asked for.
func TestMachineThatTellsLittle(t *testing.T) {
	t.Parallel()
	const pool = "nv_pinned_memory_pool_total_bytes 0\nnv_pinned_memory_pool_used_bytes 0"
	silent := &bench{broken: errors.New("no /proc")}
	if got := values(t, newMachine(Options{CPU: true, GPU: true}, silent.sources())); got != pool {
		t.Errorf("silent: got\n%s", got)
	}
	talkative := &bench{memory: hostinfo.Memory{Total: 1}, gpus: []hostinfo.GPUUsage{{UUID: "GPU-1"}}}
	if got := values(t, newMachine(Options{}, talkative.sources())); got != pool {
		t.Errorf("not asked: got\n%s", got)
	}
	unknown := &bench{gpus: []hostinfo.GPUUsage{{UUID: "GPU-1", MemoryTotal: 16, Utilization: math.NaN(), Power: math.NaN(), PowerLimit: math.NaN(), Energy: math.NaN()}}}
	want := "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-1\"} 16\nnv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 0\n" + pool
	if got := values(t, newMachine(Options{GPU: true}, unknown.sources())); got != want {
		t.Errorf("memory alone: got\n%s", got)
	}
	integrated := &bench{gpus: []hostinfo.GPUUsage{{UUID: "GPU-1", Utilization: math.NaN(), Power: 5, PowerLimit: math.NaN(), Energy: math.NaN()}}}
	if got := values(t, newMachine(Options{GPU: true}, integrated.sources())); got != "nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 5\n"+pool {
		t.Errorf("no memory of its own: got\n%s", got)
	}
}

// Time that the hypervisor took counts as used, as in Triton.
func TestUsedShare(t *testing.T) {
	t.Parallel()
	for usage, want := range map[hostinfo.CPUUsage]float64{
		{Busy: 20, Steal: 10, Idle: 90}: 0.25, {Busy: 7}: 1, {Idle: 7}: 0,
	} {
		if got := usedShare(usage); got != want {
			t.Errorf("%+v: got %v, want %v", usage, got, want)
		}
	}
	if got := usedShare(hostinfo.CPUUsage{}); !math.IsNaN(got) {
		t.Errorf("no time: got %v, want NaN", got)
	}
}
