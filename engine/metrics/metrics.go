// Package metrics serves the engine's figures in Prometheus' text format, under Triton's names, with two additions: the
// sizes of executed batches (nv_inference_batch_size, a histogram) and the queue's depth under the name that Triton gives
// it. Every scrape reads the statistics as they are; nothing is counted twice.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tuner/engine"
	"tuner/engine/api"
)

// readTime bounds how long a client may take to send its request.
const readTime = 10 * time.Second

// New returns an HTTP server of /metrics; every other path answers 200 with nothing, as Triton does.
func New(s *engine.Server) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(s)) // fails only on two descriptions of the same name
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	mux.Handle("GET /metrics/{$}", page)
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	return &http.Server{Handler: mux, ReadHeaderTimeout: readTime, ReadTimeout: readTime}
}

// collector turns the engine's figures into metrics.
type collector struct {
	server    *engine.Server
	counters  []counter
	failures  *prometheus.Desc
	pending   *prometheus.Desc
	loadTime  *prometheus.Desc
	batchSize *prometheus.Desc
}

// counter is a figure of the statistics that only grows.
type counter struct {
	desc  *prometheus.Desc
	value func(*api.ModelStatistics) float64
}

func newCollector(s *engine.Server) *collector {
	labels := []string{"model", "version"}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(labels[:2:2], more...), nil)
	}
	c := &collector{
		server:    s,
		failures:  desc("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "reason"),
		pending:   desc("nv_inference_pending_request_count", "Instantaneous number of pending requests awaiting execution per-model."),
		loadTime:  desc("nv_model_load_duration_secs", "Model load time in seconds"),
		batchSize: desc("nv_inference_batch_size", "Rows in the executed batches"),
	}
	add := func(name, help string, value func(*api.ModelStatistics) float64) {
		c.counters = append(c.counters, counter{desc(name, help), value})
	}
	add("nv_inference_request_success", "Number of successful inference requests, all batch sizes",
		func(m *api.ModelStatistics) float64 { return float64(m.InferenceStats.Success.Count) })
	add("nv_inference_count", "Number of inferences performed (does not include cached requests)",
		func(m *api.ModelStatistics) float64 { return float64(m.InferenceCount) })
	add("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)",
		func(m *api.ModelStatistics) float64 { return float64(m.ExecutionCount) })
	add("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds (includes cached requests)",
		func(m *api.ModelStatistics) float64 { return micros(m.InferenceStats.Success) })
	add("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds (includes cached requests)",
		func(m *api.ModelStatistics) float64 { return micros(m.InferenceStats.Queue) })
	add("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds (does not include cached requests)",
		func(m *api.ModelStatistics) float64 { return micros(m.InferenceStats.ComputeInput) })
	add("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds (does not include cached requests)",
		func(m *api.ModelStatistics) float64 { return micros(m.InferenceStats.ComputeInfer) })
	add("nv_inference_compute_output_duration_us", "Cumulative inference compute output duration in microseconds (does not include cached requests)",
		func(m *api.ModelStatistics) float64 { return micros(m.InferenceStats.ComputeOutput) })
	return c
}

func micros(d api.Duration) float64 { return float64(d.NS / 1000) }

// Describe lists the metrics.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, counter := range c.counters {
		out <- counter.desc
	}
	for _, d := range []*prometheus.Desc{c.failures, c.pending, c.loadTime, c.batchSize} {
		out <- d
	}
}

// Collect reads the statistics of all models that are ready.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.server.Metrics() {
		labels := []string{m.Statistics.Name, m.Statistics.Version}
		for _, counter := range c.counters {
			out <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, counter.value(&m.Statistics), labels...)
		}
		for _, why := range engine.Failures() {
			out <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(m.Failures[why]), labels[0], labels[1], string(why))
		}
		out <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, float64(m.Pending), labels...)
		out <- prometheus.MustNewConstMetric(c.loadTime, prometheus.GaugeValue, m.LoadDuration.Seconds(), labels...)
		out <- batchSizes(c.batchSize, m.Statistics.BatchStats, labels)
	}
}

// batchSizes makes a histogram with a bucket for each power of two.
func batchSizes(desc *prometheus.Desc, batches []api.BatchStatistics, labels []string) prometheus.Metric {
	buckets := map[float64]uint64{}
	for bound := uint64(1); bound <= 1024; bound *= 2 {
		buckets[float64(bound)] = 0
	}
	var count, sum uint64
	for _, b := range batches {
		n := b.ComputeInfer.Count
		count += n
		sum += n * b.BatchSize
		for bound := range buckets {
			if float64(b.BatchSize) <= bound {
				buckets[bound] += n
			}
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, float64(sum), buckets, labels...)
}
