package meter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/engine/api"
	"tuner/measure"
)

// Three of five readings remain; each includes the one left out before it. The sixth has no partner
// and is left out.
func TestJoin(t *testing.T) {
	t.Parallel()
	reading := func(second float64, requests uint64, hz float64, memory int64, gpus ...measure.GPUWindow) Reading {
		return Reading{At: at(second), Models: []Counters{{Own: []api.ModelStatistics{counters("1", requests)}}}, Frequency: hz, Memory: memory, GPUs: gpus, told: true}
	}
	gpu := func(id string, utilization, power float64, used int64, energy float64) measure.GPUWindow {
		return measure.GPUWindow{UUID: id, Utilization: utilization, Power: power, MemoryUsed: used, MemoryTotal: 100, Energy: energy}
	}
	given := []Reading{
		reading(0, 0, 9e9, 9),
		reading(1, 10, 1e9, 5, gpu("A", 0.1, 100, 30, 100), gpu("B", 1, 1, 1, 1)),
		reading(4, 30, 2e9, 4, gpu("A", 0.5, 200, 20, 600)), // 1 s before it, 3 s in it
		reading(5, 31, 0, 1), // its clock is unknown
		reading(6, 32, 3e9, 2, gpu("A", 0.2, 50, 10, 50)),
		reading(7, 33, 3e9, 2),
	}
	want := []Reading{
		reading(0, 0, 9e9, 9),
		reading(4, 30, 1.75e9, 5, gpu("A", 0.4, 175, 30, 700), gpu("B", 1, 1, 1, 1)),
		reading(6, 32, 3e9, 2, gpu("A", 0.2, 50, 10, 50)),
	}
	compare := []cmp.Option{cmpopts.EquateApprox(1e-12, 0), cmp.AllowUnexported(Reading{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Reading{}, "Machine", "Energy")}
	if diff := cmp.Diff(want, Join(given), compare...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Fill(0, make([]measure.Window, 2), Join(given)); got[0].Server.Requests != 30 || got[1].Server.Requests != 2 {
		t.Errorf("windows of %d and %d requests, want 30 and 2", got[0].Server.Requests, got[1].Server.Requests)
	}
}
