package target

import (
	"errors"
	"testing"

	"tuner/internal/exit"
	"tuner/measure"
	"tuner/runner/meter"
	"tuner/search"
)

// A goal on a metric that the machine does not have is refused, with the field and the reason.
func TestMetricsThatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	limit := 1.0
	goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 2}, {Metric: measure.GPUPower, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.Energy, Max: &limit}, {Metric: measure.Memory, Max: &limit}}}
	none := meter.Sources{GPUNote: "no NVIDIA driver", CPUEnergy: errors.New("no counters")}
	err := CheckMetrics("p.yaml", goal, none, "on this machine")
	want := "p.yaml: weights.gpu_power: gpu_power cannot be measured on this machine: no NVIDIA driver\n" +
		"p.yaml: constraints.energy: energy cannot be measured on this machine: no NVIDIA driver; no counters"
	if err == nil || err.Error() != want || exit.CodeOf(err) != exit.Usage {
		t.Errorf("error %v (exit %d), want %q", err, exit.CodeOf(err), want)
	}
	goal.Objective.Terms = goal.Objective.Terms[:1]
	if err := CheckMetrics("p.yaml", goal, meter.Sources{GPUNote: "no NVIDIA driver"}, "on this machine"); err != nil {
		t.Errorf("with the CPU's counters: %v", err)
	}
}
