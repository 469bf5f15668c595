//go:build conformance

package conformance

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/peers"
)

// ours are the beginnings of the names that only the engine has.
var ours = []string{"nv_inference_batch_size", "nv_model_load_duration_secs", "go_", "process_", "nv_inference_first_response_histogram_ms",
	"nv_inference_request_duration_histogram_us", "nv_inference_queue_duration_histogram_us", "nv_inference_compute_"}

// TestMetricNames compares the names, kinds, texts and labels on the pages of metrics, after a request
// to one model. The values are left out.
func TestMetricNames(t *testing.T) {
	p := newPair(t, newRepository(t, "none"), "--metrics-config=summary_latencies=true", "--metrics-config=histogram_latencies=true")
	for _, server := range []*peers.Server{p.triton, p.tuner} {
		c := Case{Verb: http.MethodPost, Target: "/v2/models/simple/infer", Parts: []string{simpleRequest()}}
		if answer, err := p.http.Do(t.Context(), server.HTTP, c); err != nil || !strings.HasPrefix(answer.Status, "200") {
			t.Fatal(answer.Status, err)
		}
	}
	pages := [2][]string{seriesOf(t, p.triton), seriesOf(t, p.tuner)}
	pages[1] = slices.DeleteFunc(pages[1], func(line string) bool {
		return !slices.Contains(pages[0], line) && slices.ContainsFunc(ours, func(name string) bool {
			return strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), name)
		})
	})
	if diff := cmp.Diff(pages[0], pages[1]); diff != "" || len(pages[0]) == 0 {
		t.Errorf("%d lines (-Triton +tuner):\n%s", len(pages[0]), diff)
	}
}

// simpleRequest is a request to model simple.
func simpleRequest() string {
	data := "[" + strings.Repeat("1,", 15) + "1]"
	input := func(name string) string {
		return `{"name":"` + name + `","shape":[1,16],"datatype":"INT32","data":` + data + `}`
	}
	return `{"inputs":[` + input("INPUT0") + "," + input("INPUT1") + `]}`
}

// metricsPage returns a server's page of metrics.
func metricsPage(t *testing.T, s *peers.Server) string {
	t.Helper()
	r, err := http.Get("http://" + s.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// seriesOf returns the lines of a server's page of metrics without their values, sorted.
func seriesOf(t *testing.T, s *peers.Server) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(metricsPage(t, s)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			line = line[:strings.LastIndexByte(line, ' ')]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
