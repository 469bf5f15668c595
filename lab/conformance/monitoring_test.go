//go:build conformance

package conformance

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"tuner/export/monitoring"
	"tuner/lab/peers"
)

var (
	metricName = regexp.MustCompile(`nv_[a-z0-9_]+`)
	labelName  = regexp.MustCompile(`([a-z_]+)="`)
)

// TestMonitoring looks for each metric of exported alerts and dashboards on the pages of Triton and
// of the engine, after some requests. The metrics of models must have no labels that the rules do not
// know: these add up what remains after them.
func TestMonitoring(t *testing.T) {
	p := newPair(t, newRepository(t, "none"), monitoring.Arguments()...)
	s := monitoring.Server{Name: "simple", Models: []monitoring.Model{{Name: "simple", Requests: 100, Queue: time.Millisecond, P99: 10 * time.Millisecond}}}
	text, err := s.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	wanted := metricName.FindAllString(string(text)+fmt.Sprint(s.Alerts()), -1)
	if len(wanted) < 10 {
		t.Fatalf("only %v is shown", wanted)
	}
	known := map[string]bool{"model": true, "version": true, "reason": true, "quantile": true, "gpu_uuid": true}
	for name, server := range map[string]*peers.Server{"Triton": p.triton, "tuner": p.tuner} {
		runTool(t, "", environment(t, "TUNER_BINARY"), "perf", "-m", "simple", "-i", "grpc", "-u", server.GRPC, "--concurrency-range", "2", "--measurement-interval", "200")
		time.Sleep(3 * time.Second) // Triton looks at the machine every two seconds
		labels := map[string]string{}
		for line := range strings.Lines(metricsPage(t, server)) {
			if metric, rest, _ := strings.Cut(line, "{"); !strings.HasPrefix(line, "#") {
				metric, _, _ = strings.Cut(metric, " ")
				labels[metric] += rest
			}
		}
		for _, metric := range wanted {
			of, isThere := labels[metric]
			if !isThere {
				t.Errorf("%s has no %s", name, metric)
			}
			for _, label := range labelName.FindAllStringSubmatch(of, -1) {
				if !known[label[1]] {
					t.Errorf("%s: %s has the label %s", name, metric, label[1])
				}
			}
		}
		if of := labels["nv_inference_request_summary_us"]; !strings.Contains(of, `quantile="0.99"`) || !strings.Contains(of, `quantile="0.5"`) {
			t.Errorf("%s has no percentiles: %s", name, of)
		}
	}
}
