package metrics_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/modelconfig/configpb"
)

// durations differ from run to run.
var durations = regexp.MustCompile(`(?m)^(nv_\w+_(?:us|secs)\{.*\}) .*$`)

func TestPage(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{Fail: func(int) error {
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	}}})
	infer := func(rows int64) {
		data := make([]byte, 64*rows)
		response, err := e.Server.Infer(t.Context(), &engine.Request{Model: "fake", Inputs: []engine.Tensor{
			{Name: "INPUT0", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{rows, 16}, Data: data},
			{Name: "INPUT1", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{rows, 16}, Data: data},
		}})
		if err == nil {
			response.Release()
		}
	}
	infer(1)
	infer(3)
	infer(3)
	broken.Store(true)
	infer(1)
	text, err := api.Metrics(t.Context(), e.Addresses.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(durations.ReplaceAllString(string(text), "$1 …")) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, `le="`) {
			got = append(got, strings.TrimSpace(line))
		}
	}
	const m = `{model="fake",version="1"}`
	want := []string{
		"nv_inference_batch_size_sum" + m + " 7", "nv_inference_batch_size_count" + m + " 3",
		"nv_inference_compute_infer_duration_us" + m + " …", "nv_inference_compute_input_duration_us" + m + " …",
		"nv_inference_compute_output_duration_us" + m + " …", "nv_inference_count" + m + " 7", "nv_inference_exec_count" + m + " 3",
		"nv_inference_pending_request_count" + m + " 0", "nv_inference_queue_duration_us" + m + " …", "nv_inference_request_duration_us" + m + " …",
		`nv_inference_request_failure{model="fake",reason="BACKEND",version="1"} 1`, `nv_inference_request_failure{model="fake",reason="CANCELED",version="1"} 0`,
		`nv_inference_request_failure{model="fake",reason="OTHER",version="1"} 0`, `nv_inference_request_failure{model="fake",reason="REJECTED",version="1"} 0`,
		"nv_inference_request_success" + m + " 3", "nv_model_load_duration_secs" + m + " …",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	for bound, count := range map[string]string{"1": "1", "2": "1", "4": "3", "1024": "3"} { // batches of 1, 3, 3
		if line := `nv_inference_batch_size_bucket{model="fake",version="1",le="` + bound + `"} ` + count + "\n"; !strings.Contains(string(text), line) {
			t.Errorf("the page lacks %s", line)
		}
	}
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	for path, want := range map[string]string{"GET /metrics/": "200", "GET /other": "200", "POST /metrics": "405"} {
		method, path, _ := strings.Cut(path, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+e.Addresses.Metrics+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || !strings.HasPrefix(response.Status, want) {
			t.Errorf("%s %s: %s, %v; want %s", method, path, response.Status, err, want)
		}
	}
}
