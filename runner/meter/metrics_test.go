package meter

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/internal/alloctest"
	"tuner/internal/hostinfo"
)

// page is like Triton's with two GPUs: numbers with exponents, several labels, and families that
// ParseMetrics ignores.
const page = `# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="simple",version="1"} 42
# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.75
nv_gpu_utilization{host="a b",gpu_uuid="GPU-2",zone="}"} 1e-2
# TYPE nv_gpu_memory_total_bytes gauge
nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 1.6e+10
nv_gpu_memory_total_bytes{gpu_uuid="GPU-2"} 16000000000
# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1.2e+10 1395066363000
# TYPE nv_gpu_power_usage gauge
nv_gpu_power_usage{gpu_uuid="GPU-1"} 60.5
nv_gpu_power_usage{gpu_uuid="GPU-2"} NaN
nv_gpu_power_limit{gpu_uuid="GPU-1"} 300
# TYPE nv_energy_consumption counter
nv_energy_consumption{gpu_uuid="GPU-1"} 1.5e6
nv_gpu_utilization_of_another_kind 3
`

// realPage returns the answer of a Triton on a machine without GPUs.
func realPage(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/triton.metrics")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseMetrics(t *testing.T) {
	t.Parallel()
	unknown := math.NaN()
	want := []hostinfo.GPUUsage{
		{UUID: "GPU-1", Utilization: 0.75, MemoryTotal: 16e9, MemoryUsed: 12e9, Power: 60.5, PowerLimit: 300, Energy: 1.5e6},
		{UUID: "GPU-2", Utilization: 0.01, MemoryTotal: 16e9, Power: unknown, PowerLimit: unknown, Energy: unknown},
	}
	for name, text := range map[string]string{"as it is": page, "without the last line's end": strings.TrimSuffix(page, "\n"), "with other line ends": strings.ReplaceAll(page, "# HELP", "\n\n# HELP")} {
		got, err := ParseMetrics([]byte(text))
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, text := range []string{"", "\n", realPage(t), `nv_gpu_utilization 0.5`, `nv_gpu_utilization{gpu="1"} 0.5`, "other 1"} {
		if got, err := ParseMetrics([]byte(text)); err != nil || len(got) != 0 {
			t.Errorf("%q: %+v, %v, want no GPUs", text, got, err)
		}
	}
	for _, text := range []string{"<html><body>404</body></html>", `{"error":"not found"}`, `nv_gpu_utilization{gpu_uuid="GPU-1"} much`} {
		if got, err := ParseMetrics([]byte(text)); err == nil {
			t.Errorf("%q: %+v, no error", text, got)
		}
	}
}

// Every figure that ParseMetrics returns is known and in range. ParseMetrics reads the same from a
// page that is written from the figures.
func FuzzParseMetrics(f *testing.F) {
	f.Add([]byte(page))
	f.Add([]byte(realPage(f)))
	f.Add([]byte(`nv_gpu_memory_used_bytes{gpu_uuid="a\"b\\c"} +Inf`))
	f.Add([]byte("nv_gpu_power_usage{gpu_uuid=\"x\"} -1\nnv_gpu_utilization{gpu_uuid=\"x\"} 0x1p-2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer alloctest.Bound(t, len(text))()
		gpus, err := ParseMetrics(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, g := range gpus {
			if g.MemoryTotal < 0 || g.MemoryUsed < 0 || g.Energy < 0 || math.IsInf(g.Utilization+g.Power+g.PowerLimit+g.Energy, 0) {
				t.Errorf("%+v", g)
			}
			label := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(g.UUID)
			fmt.Fprintf(&again, "nv_gpu_utilization{gpu_uuid=\"%s\"} %v\nnv_gpu_memory_total_bytes{gpu_uuid=\"%s\"} %d\n", label, g.Utilization, label, g.MemoryTotal)
		}
		printed, err := ParseMetrics([]byte(again.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, again.String())
		}
		ignored := cmpopts.IgnoreFields(hostinfo.GPUUsage{}, "MemoryUsed", "Power", "PowerLimit", "Energy")
		if diff := cmp.Diff(gpus, printed, cmpopts.EquateNaNs(), ignored, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("reads back otherwise (-want +got):\n%s", diff)
		}
	})
}
