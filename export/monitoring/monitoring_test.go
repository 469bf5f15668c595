package monitoring

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func two() Server {
	return Server{Name: "encoders", Models: []Model{
		{Name: "minilm", Requests: 615.2, Queue: 3 * time.Millisecond, P99: 31 * time.Millisecond, Limit: 50 * time.Millisecond},
		{Name: "resnet.v1", Requests: 80, Queue: 500 * time.Microsecond, P99: 20 * time.Millisecond},
	}}
}

// Thresholds follow from the figures: 90 % of the tuned load, twice the queue, the limit on p99 or
// 1.5 × the measured one, 1 % failures.
func TestThresholds(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, a := range two().Alerts().Groups[0].Rules {
		_, threshold, _ := strings.Cut(a.Expr, " > ")
		got[a.Alert+" "+a.Labels["model"]] = threshold
	}
	want := map[string]string{
		"TritonLoad ": "0.9", "TritonQueueTime minilm": "6000", "TritonLatencyP99 minilm": "50000", "TritonFailures minilm": "0.01",
		"TritonQueueTime resnet.v1": "1000", "TritonLatencyP99 resnet.v1": "30000", "TritonFailures resnet.v1": "0.01",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The shares of several models add up for each server.
func TestLoadOfSeveralModels(t *testing.T) {
	t.Parallel()
	want := `sum without (model) (sum without (version, gpu_uuid) (rate(nv_inference_request_success{model="minilm"}[5m])) / 615.2 or ` +
		`sum without (version, gpu_uuid) (rate(nv_inference_request_success{model="resnet.v1"}[5m])) / 80)`
	if diff := cmp.Diff(want, two().load()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No two rules have the same name and labels, which Prometheus' checks refuse.
func TestRulesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range two().Alerts().Groups[0].Rules {
		key := a.Alert + a.Labels["model"] + a.Labels["deployment"]
		if seen[key] {
			t.Errorf("there are two rules %s %v", a.Alert, a.Labels)
		}
		seen[key] = true
	}
}

// The dashboard has a row for the servers and one for each model. Panels do not overlap, and have
// numbers of their own. A red line is at each threshold of an alert.
func TestDashboard(t *testing.T) {
	t.Parallel()
	for _, hasGPUs := range []bool{false, true} {
		s := two()
		s.HasGPUs = hasGPUs
		text, err := s.Dashboard()
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		var rows []string
		var lines []float64
		taken, numbers := map[[2]int]bool{}, map[int]bool{}
		for _, p := range d.Panels {
			if p.Type == "row" {
				rows = append(rows, p.Title)
			}
			if numbers[p.ID] {
				t.Errorf("two panels have the number %d", p.ID)
			}
			numbers[p.ID] = true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if taken[at] || at[0] >= gridColumns {
						t.Fatalf("%q lies over another panel, or beside the grid: %+v", p.Title, p.GridPos)
					}
					taken[at] = true
				}
			}
			if p.FieldConfig != nil && p.FieldConfig.Defaults.Thresholds != nil {
				lines = append(lines, *p.FieldConfig.Defaults.Thresholds.Steps[1].Value)
			}
		}
		if diff := cmp.Diff([]string{"Servers", "Model minilm", "Model resnet.v1"}, rows); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if want := []float64{0.9, 615.2, 6000, 50000, 80, 1000, 30000}; !slices.Equal(lines, want) {
			t.Errorf("red lines at %v, want %v", lines, want)
		}
		if got := strings.Contains(string(text), "nv_gpu_utilization"); got != hasGPUs {
			t.Errorf("with GPUs %t, and shows them: %t", hasGPUs, got)
		}
	}
}
