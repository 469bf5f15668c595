package metrics_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/enginetest"
	"tuner/engine/metrics"
	"tuner/engine/statistics"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// durations matches the figures that differ from run to run.
var durations = regexp.MustCompile(`(?m)^(nv_\w+_(?:us|secs)\{.*\}) .*$`)

// ofProcess matches figures of the process. Their values differ between runs.
var ofProcess = regexp.MustCompile(`^(go|process)_`)

func TestPage(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	e := enginetest.Start(t, enginetest.Options{Backend: &enginetest.Backend{Fail: func(int) error {
		if broken.Load() {
			return errors.New("broken")
		}
		return nil
	}}})
	infer(t, e.Server, 1)
	infer(t, e.Server, 3)
	infer(t, e.Server, 3)
	broken.Store(true)
	if _, err := e.Server.Infer(t.Context(), request(1)); err == nil {
		t.Error("a broken model answered")
	}
	text, err := api.Metrics(t.Context(), e.Addresses.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(durations.ReplaceAllString(string(text), "$1 …")) {
		if !strings.HasPrefix(line, "#") && !ofProcess.MatchString(line) && !strings.Contains(line, `le="`) {
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
		"nv_pinned_memory_pool_total_bytes 0", "nv_pinned_memory_pool_used_bytes 0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	for _, name := range []string{"go_goroutines", "go_gc_heap_live_bytes", "process_resident_memory_bytes", "process_open_fds"} {
		if !strings.Contains(string(text), "\n"+name+" ") {
			t.Errorf("the page lacks %s", name)
		}
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
	for path, want := range map[string]string{
		"GET /metrics/": "200", "GET /metrics?x=1": "200", "GET /other": "200", "GET /": "200",
		"POST /metrics": "405", "HEAD /metrics": "405", "PUT /other": "405",
	} {
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

// Summaries count every answered request, in addition to the counters or instead of them. A model
// that is loaded again begins at zero.
func TestSummaries(t *testing.T) {
	t.Parallel()
	summaries := metrics.NewSummaries(map[float64]float64{0.5: 0.05})
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", "")
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{"fake"}, Observe: summaries.Observe,
		Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(metrics.New(s, metrics.Options{NoTotals: true, Summaries: summaries}).Handler)
	defer web.Close()
	page := func() string {
		text, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const m = `{model="fake",version="1"}`
	if got := page(); !strings.Contains(got, "nv_inference_queue_summary_us_count"+m+" 0\n") ||
		!strings.Contains(got, `nv_inference_queue_summary_us{model="fake",version="1",quantile="0.5"} NaN`) {
		t.Errorf("before the first request: got\n%s", got)
	}
	for range 3 {
		infer(t, s, 2)
	}
	got := page()
	for _, step := range []string{"request", "queue", "compute_input", "compute_infer", "compute_output"} {
		if name := "nv_inference_" + step + "_summary_us"; !strings.Contains(got, name+"_count"+m+" 3\n") ||
			!strings.Contains(got, name+`{model="fake",version="1",quantile="0.5"} `) {
			t.Errorf("the page lacks three requests in %s:\n%s", name, got)
		}
	}
	if strings.Contains(got, "_duration_us") {
		t.Errorf("the page has counters of latencies:\n%s", got)
	}
	if err := s.Unload("fake"); err != nil {
		t.Fatal(err)
	}
	if got := page(); strings.Contains(got, "summary_us") {
		t.Errorf("unloaded: the page has summaries:\n%s", got)
	}
	if err := s.Load(t.Context(), "fake", engine.Override{}); err != nil {
		t.Fatal(err)
	}
	infer(t, s, 2)
	if got := page(); !strings.Contains(got, "nv_inference_request_summary_us_count"+m+" 1\n") {
		t.Errorf("loaded again, one request: got\n%s", got)
	}
	if err := errors.Join(s.Load(t.Context(), "fake", engine.Override{}), s.Unload("fake"), s.Load(t.Context(), "fake", engine.Override{})); err != nil {
		t.Fatal(err)
	}
	infer(t, s, 2)
	if got := page(); !strings.Contains(got, "nv_inference_request_summary_us_count"+m+" 1\n") {
		t.Errorf("loaded again before anybody looked, one request: got\n%s", got)
	}
}

// Requests that an old generation counts after the next one has begun are not on the page.
func TestSummariesOfTheUnloaded(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	summaries := metrics.NewSummaries(metrics.DefaultQuantiles())
	old := summaries.Observe("", "fake", 1, nil)
	old(statistics.Timing{})
	current := summaries.Observe("", "fake", 1, nil)
	web := httptest.NewServer(metrics.New(e.Server, metrics.Options{Summaries: summaries}).Handler)
	defer web.Close()
	current(statistics.Timing{Total: 7 * time.Microsecond})
	old(statistics.Timing{})
	text, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	const m = `{model="fake",version="1"}`
	for _, want := range []string{"_count" + m + " 1\n", "_sum" + m + " 7\n"} {
		if !strings.Contains(string(text), "nv_inference_request_summary_us"+want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// A model with a response cache has summaries of the cache, and none of whole requests, as in Triton: what the
// cache took is known after a request has been counted. Another model has none of the cache.
func TestSummariesOfTheCached(t *testing.T) {
	t.Parallel()
	summaries := metrics.NewSummaries(metrics.DefaultQuantiles())
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", "response_cache { enable: true }")
	enginetest.WriteModel(t, root, "plain", "")
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{root}, Explicit: true, LoadModels: []string{"*"}, Observe: summaries.Observe, ResponseCache: 1 << 20,
		Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 { // the first is executed, and its answer is that of the others
		infer(t, s, 2)
	}
	web := httptest.NewServer(metrics.New(s, metrics.Options{Summaries: summaries}).Handler)
	defer web.Close()
	page, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(page)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(name, "_summary_") && strings.Contains(name, "_count{") {
			got[strings.Replace(name, `,version="1"`, "", 1)] = value
		}
	}
	want := map[string]string{`nv_cache_hit_summary_per_model_count{model="fake"}`: "2", `nv_cache_miss_summary_per_model_count{model="fake"}`: "1"}
	want[`nv_inference_request_summary_us_count{model="plain"}`] = "0"
	for step, n := range map[string]string{"queue": "3", "compute_input": "1", "compute_infer": "1", "compute_output": "1"} {
		want[`nv_inference_`+step+`_summary_us_count{model="fake"}`], want[`nv_inference_`+step+`_summary_us_count{model="plain"}`] = n, "0"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests in summaries (-want +got):\n%s", d)
	}
	for _, help := range []string{
		"nv_cache_hit_summary_per_model Summary of cache hit counts/durations per model, in microseconds.",
		"nv_cache_miss_summary_per_model Summary of cache miss counts/durations per model, in microseconds.",
	} {
		if !strings.Contains(string(page), "# HELP "+help+"\n") {
			t.Errorf("the page lacks the text %s", help)
		}
	}
}

func infer(t *testing.T, s *engine.Server, rows int64) {
	t.Helper()
	response, err := s.Infer(t.Context(), request(rows))
	if err != nil {
		t.Fatal(err)
	}
	response.Release()
}

func request(rows int64) *engine.Request {
	data := make([]byte, 64*rows)
	return &engine.Request{Model: "fake", Inputs: []engine.Tensor{
		{Name: "INPUT0", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{rows, 16}, Data: data},
		{Name: "INPUT1", DataType: configpb.DataType_TYPE_INT32, Shape: []int64{rows, 16}, Data: data},
	}}
}

// The tags of a model's configuration are labels of its metrics alone, as in Triton with an
// underscore in front. A model of the same name in another namespace does not collide.
func TestLabels(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	enginetest.WriteModel(t, a, "m", `metric_tags { key: "team" value: "search" } metric_tags { key: "a-b" value: "1" } metric_tags { key: "a.b" value: "2" }`)
	enginetest.WriteModel(t, b, "m", "")
	summaries := metrics.NewSummaries(metrics.DefaultQuantiles())
	s, err := engine.Open(t.Context(), engine.Options{
		Repositories: []string{a, b}, Namespacing: true, Observe: summaries.Observe, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	summaries.Observe(a, "m", 1, nil)(statistics.Timing{Total: 7 * time.Microsecond})
	web := httptest.NewServer(metrics.New(s, metrics.Options{Summaries: summaries}).Handler)
	defer web.Close()
	text, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	tagged := `{_a_b="1",_team="search",model="m",namespace="` + a + `",version="1"`
	for _, want := range []string{
		"nv_inference_request_success" + tagged + "} 0\n",
		`nv_inference_request_success{model="m",namespace="` + b + `",version="1"} 0` + "\n",
		"nv_inference_batch_size_bucket" + tagged + `,le="1"} 0` + "\n",
		"nv_inference_request_summary_us_sum" + tagged + "} 7\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %s:\n%s", want, text)
		}
	}
}

// A histogram has Triton's buckets, or those of the configuration, and counts in milliseconds. A
// model that is loaded again begins at zero.
func TestHistograms(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "plain", "")
	enginetest.WriteModel(t, root, "own", `model_metrics { metric_control {
		metric_identifier { family: "nv_inference_first_response_histogram_ms" } histogram_options { buckets: [ 8.5, 0.5, 8.5 ] } } }`)
	histograms := metrics.NewHistograms()
	observers := map[string]statistics.Observer{}
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Explicit: true, LoadModels: []string{"*"}, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
		Observe: func(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
			observers[model] = histograms.Observe(namespace, model, version, c)
			return observers[model]
		}, LoadThreads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(metrics.New(s, metrics.Options{Histograms: histograms}).Handler)
	defer web.Close()
	page := func() string {
		text, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "nv_inference_first_response_histogram_ms") {
				lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "nv_inference_first_response_histogram_ms"))
			}
		}
		return strings.Join(lines, "\n")
	}
	for _, model := range []string{"plain", "own"} {
		for _, d := range []time.Duration{400 * time.Microsecond, 8 * time.Millisecond, 600 * time.Millisecond} {
			observers[model](statistics.Timing{Total: d})
		}
	}
	// 0.4, 8 and 600 ms: 608.4 in all
	want := strings.Join([]string{
		`_bucket{model="own",version="1",le="0.5"} 1`, `_bucket{model="own",version="1",le="8.5"} 2`, `_bucket{model="own",version="1",le="+Inf"} 3`,
		`_sum{model="own",version="1"} 608.4`, `_count{model="own",version="1"} 3`,
		`_bucket{model="plain",version="1",le="100"} 2`, `_bucket{model="plain",version="1",le="500"} 2`, `_bucket{model="plain",version="1",le="2000"} 3`,
		`_bucket{model="plain",version="1",le="5000"} 3`, `_bucket{model="plain",version="1",le="+Inf"} 3`,
		`_sum{model="plain",version="1"} 608.4`, `_count{model="plain",version="1"} 3`,
	}, "\n")
	if diff := cmp.Diff(want, page()); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
	if err := errors.Join(s.Unload("own"), s.Unload("plain"), s.Load(t.Context(), "plain", engine.Override{})); err != nil {
		t.Fatal(err)
	}
	if got := page(); !strings.Contains(got, `_count{model="plain",version="1"} 0`) || strings.Contains(got, "own") {
		t.Errorf("one model unloaded, one loaded again:\n%s", got)
	}
}

// A page that is read while a model is loaded leaves its histograms, which begin before the model is ready.
func TestHistogramsOfTheLoading(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", "")
	histograms := metrics.NewHistograms()
	var page func() string
	s, err := engine.Open(t.Context(), engine.Options{Repositories: []string{root}, Explicit: true, Backend: &enginetest.Backend{}, Log: slog.New(slog.DiscardHandler),
		Observe: func(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
			observe := histograms.Observe(namespace, model, version, c)
			if got := page(); strings.Contains(got, "first_response_histogram_ms_count") {
				t.Errorf("a model is loading: the page has its histograms:\n%s", got)
			}
			return observe
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	web := httptest.NewServer(metrics.New(s, metrics.Options{Histograms: histograms}).Handler)
	defer web.Close()
	page = func() string {
		text, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 2 { // the second time, the page has shown those of the first load
		if err := s.Load(t.Context(), "fake", engine.Override{}); err != nil {
			t.Fatal(err)
		}
		infer(t, s, 2)
		if got := page(); !strings.Contains(got, `nv_inference_first_response_histogram_ms_count{model="fake",version="1"} 1`+"\n") {
			t.Errorf("loaded, one request: got\n%s", got)
		}
		if err := s.Unload("fake"); err != nil {
			t.Fatal(err)
		}
	}
}

// Each duration of a request has a histogram in microseconds. Answers of the cache have only the whole
// and the queue.
func TestHistogramsOfSteps(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	histograms := metrics.NewHistograms()
	observe := histograms.Observe("", "fake", 1, nil)
	observe(statistics.Timing{Total: 30 * time.Millisecond, Queue: 500 * time.Microsecond, Input: 600 * time.Microsecond, Infer: 20 * time.Millisecond, Output: 7 * time.Millisecond})
	observe(statistics.Timing{Total: 2 * time.Millisecond, Queue: 50 * time.Microsecond, Cache: time.Microsecond, IsCached: true})
	observe(statistics.Timing{Cache: time.Second, IsMissed: true}) // of the first one
	web := httptest.NewServer(metrics.New(e.Server, metrics.Options{Histograms: histograms}).Handler)
	defer web.Close()
	page, err := api.Metrics(t.Context(), strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	// how many are within each bound, then their sum and number
	for name, want := range map[string]string{
		"request_duration":        "1000:0 5000:1 25000:1 50000:2 100000:2 +Inf:2 32000 2",
		"queue_duration":          "100:1 1000:2 5000:2 10000:2 50000:2 +Inf:2 550 2",
		"compute_input_duration":  "100:0 500:0 1000:1 5000:1 10000:1 +Inf:1 600 1",
		"compute_infer_duration":  "1000:0 5000:0 25000:1 50000:1 100000:1 +Inf:1 20000 1",
		"compute_output_duration": "100:0 500:0 1000:0 5000:0 10000:1 +Inf:1 7000 1",
	} {
		var got []string
		for line := range strings.Lines(string(page)) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), "nv_inference_"+name+"_histogram_us_")
			if !ok {
				continue
			}
			labels, value, _ := strings.Cut(rest, " ")
			if _, bound, ok := strings.Cut(labels, `le="`); ok {
				value = strings.TrimSuffix(bound, `"}`) + ":" + value
			}
			got = append(got, value)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}

// Only a scraper that asks for protobuf gets native histograms.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, enginetest.Options{})
	histograms := metrics.NewHistograms()
	histograms.Observe("", "fake", 1, nil)(statistics.Timing{Total: time.Millisecond})
	web := httptest.NewServer(metrics.New(e.Server, metrics.Options{Histograms: histograms}).Handler)
	defer web.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header))
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); err != nil {
			t.Fatalf("no native histogram came: %v", err)
		}
		if family.GetName() == "nv_inference_first_response_histogram_ms" {
			if h := family.GetMetric()[0].GetHistogram(); len(h.GetPositiveSpan()) != 1 || len(h.GetBucket()) != 4 {
				t.Errorf("got %v, want one native bucket, and four classic ones", h)
			}
			return
		}
	}
}
