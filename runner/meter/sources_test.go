package meter

import (
	"errors"
	"math"
	"testing"

	"tuner/internal/hostinfo"
	"tuner/measure"
)

func TestLackOfMetrics(t *testing.T) {
	t.Parallel()
	unknown, noRAPL := math.NaN(), errors.New("no counters")
	full, old := gpu("A", 0.5, 100, 7, 1), gpu("B", unknown, unknown, unknown, 1)
	powered, integrated := gpu("C", unknown, 100, unknown, 1), hostinfo.GPUUsage{UUID: "D", Utilization: 0.5, Power: 100, Energy: 7}
	const silent = "the GPU's driver does not report it"
	for name, c := range map[string]struct {
		sources                           Sources
		memory, utilization, power, joule string
	}{
		"all":                 {Sources{GPUs: []hostinfo.GPUUsage{full}}, "", "", "", ""},
		"a GPU alone":         {Sources{GPUs: []hostinfo.GPUUsage{full}, CPUEnergy: noRAPL}, "", "", "", ""},
		"an old GPU":          {Sources{GPUs: []hostinfo.GPUUsage{old}, CPUEnergy: noRAPL}, "", silent, silent, silent + "; no counters"},
		"one of two":          {Sources{GPUs: []hostinfo.GPUUsage{old, full}, CPUEnergy: noRAPL}, "", "", "", ""},
		"energy is power":     {Sources{GPUs: []hostinfo.GPUUsage{powered}, CPUEnergy: noRAPL}, "", silent, "", ""},
		"an integrated GPU":   {Sources{GPUs: []hostinfo.GPUUsage{integrated}, CPUEnergy: noRAPL}, silent, "", "", ""},
		"a CPU alone":         {Sources{GPUNote: "no NVIDIA driver"}, "no NVIDIA driver", "no NVIDIA driver", "no NVIDIA driver", ""},
		"nothing":             {Sources{GPUNote: "no NVIDIA driver", CPUEnergy: noRAPL}, "no NVIDIA driver", "no NVIDIA driver", "no NVIDIA driver", "no NVIDIA driver; no counters"},
		"GPUs that were lost": {Sources{CPUEnergy: noRAPL}, "no GPU can be read", "no GPU can be read", "no GPU can be read", "no GPU can be read; no counters"},
	} {
		for metric, want := range map[measure.Metric]string{measure.GPUMemory: c.memory, measure.GPUUtilization: c.utilization,
			measure.GPUPower: c.power, measure.Energy: c.joule, measure.Throughput: "", measure.Cost: ""} {
			if got := c.sources.Lack(metric); got != want {
				t.Errorf("%s: the lack of %s is %q, want %q", name, metric, got, want)
			}
		}
	}
}

// On any machine, Meter reads all figures that ReadSources announces.
func TestSourcesOfThisMachine(t *testing.T) {
	t.Parallel()
	s := ReadSources()
	if lack := s.Lack(measure.GPUMemory); (lack == "") != (len(s.GPUs) > 0) {
		t.Errorf("%d GPUs, and memory lacks: %q", len(s.GPUs), lack)
	}
	m, err := Open(t.Context(), Options{GPUs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := m.Read(t.Context())
	if _, known := r.Energy.Since(r.Energy); err != nil || len(r.GPUs) != len(s.GPUs) || known != (s.CPUEnergy == nil) {
		t.Errorf("read %d GPUs and energy %t, %v; the sources are %+v", len(r.GPUs), known, err, s)
	}
}
