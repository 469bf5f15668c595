package export

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/export/tuned"
	"tuner/measure"
	"tuner/model/modelconfig"
)

// KServe's autoscaler acts beyond its tolerance of 10 %, so 1.1 × the target is at most what a
// server uses at its tuned load. A server gets a core more than it uses, so without that it may
// never reach the target.
func TestKServeAddsServersAtTheTunedLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		busy    float64 // cores
		threads int
		want    int // percent
		notes   int
	}{
		"of 3 cores":   {1.9, 2, 57, 0}, // 1.9 / 3 / 1.1
		"of 5 cores":   {3.8, 4, 69, 0}, // 3.8 / 5 / 1.1
		"of a limit":   {5.2, 8, 59, 0}, // 5.2 / 8 / 1.1
		"of 21 cores":  {20, 20, 80, 0}, // 20 / 21 / 1.1 is 86 %
		"not measured": {0, 2, 80, 1},
	} {
		models := []tuned.Model{{Config: &modelconfig.Config{}, Instances: c.threads, Threads: 1, Values: map[measure.Metric]measure.Estimate{measure.CPU: {Value: c.busy}}}}
		d := Deployment{Models: models, CPUs: tuned.Cores(models), Replicas: 1, MaxReplicas: 3}
		if got := d.inferenceService().Spec.(predictorSpec).Predictor; got.ScaleTarget != c.want || got.ScaleMetric != "cpu" {
			t.Errorf("%s: %s %d, want %d", name, got.ScaleMetric, got.ScaleTarget, c.want)
		}
		if got := kserveNotes(d, Options{}); len(got) != c.notes {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// KServe gives the annotations of the object to the pods. Its runtime for Triton has none for
// Prometheus, and its own ones name a port of Knative's.
func TestKServeNamesThePortOfTheMetrics(t *testing.T) {
	t.Parallel()
	d := Deployment{Models: []tuned.Model{{Config: &modelconfig.Config{}}}, Replicas: 1, MaxReplicas: 1}
	want := map[string]string{
		"serving.kserve.io/deploymentMode": "Standard", "serving.kserve.io/enable-prometheus-scraping": "false",
		"prometheus.io/scrape": "true", "prometheus.io/port": "8002", "prometheus.io/path": "/metrics",
	}
	if diff := cmp.Diff(want, d.inferenceService().Metadata.Annotations); diff != "" {
		t.Error(diff)
	}
}
