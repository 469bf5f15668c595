package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/statistics"
)

// models turns the engine's figures into metrics.
type models struct {
	server     *engine.Server
	counters   []counter
	cached     []counter // only of models with a response cache
	failures   *prometheus.Desc
	pending    *prometheus.Desc
	loadTime   *prometheus.Desc
	batchSize  *prometheus.Desc
	summaries  *Summaries  // nil: none
	histograms *Histograms // nil: none
}

// counter is a figure of the statistics that only grows.
type counter struct {
	desc  *prometheus.Desc
	value func(*api.ModelStatistics) float64
}

func modelLabels() []string { return []string{"model", "version"} }

func newModels(s *engine.Server, o Options) *models {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(modelLabels(), more...), nil)
	}
	m := &models{
		server:    s,
		failures:  desc("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", "reason"),
		pending:   desc("nv_inference_pending_request_count", "Instantaneous number of pending requests awaiting execution per-model."),
		loadTime:  desc("nv_model_load_duration_secs", "Model load time in seconds"),
		batchSize: desc("nv_inference_batch_size", "Rows in the executed batches"),
		summaries: o.Summaries, histograms: o.Histograms,
		cached: cacheCounters(),
	}
	add := func(name, help string, value func(*api.ModelStatistics) float64) {
		m.counters = append(m.counters, counter{desc(name, help), value})
	}
	add("nv_inference_request_success", "Number of successful inference requests, all batch sizes",
		func(s *api.ModelStatistics) float64 { return float64(s.InferenceStats.Success.Count) })
	add("nv_inference_count", "Number of inferences performed (does not include cached requests)",
		func(s *api.ModelStatistics) float64 { return float64(s.InferenceCount) })
	add("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)",
		func(s *api.ModelStatistics) float64 { return float64(s.ExecutionCount) })
	if !o.NoTotals {
		addTotals(add)
	}
	return m
}

// addTotals adds the sums of latencies.
func addTotals(add func(name, help string, value func(*api.ModelStatistics) float64)) {
	add("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds (includes cached requests)",
		func(s *api.ModelStatistics) float64 { return micros(s.InferenceStats.Success) })
	add("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds (includes cached requests)",
		func(s *api.ModelStatistics) float64 { return micros(s.InferenceStats.Queue) })
	add("nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds (does not include cached requests)",
		func(s *api.ModelStatistics) float64 { return micros(s.InferenceStats.ComputeInput) })
	add("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds (does not include cached requests)",
		func(s *api.ModelStatistics) float64 { return micros(s.InferenceStats.ComputeInfer) })
	add("nv_inference_compute_output_duration_us", "Cumulative inference compute output duration in microseconds (does not include cached requests)",
		func(s *api.ModelStatistics) float64 { return micros(s.InferenceStats.ComputeOutput) })
}

func micros(d api.Duration) float64 { return float64(d.NS / 1000) }

// Describe lists the metrics.
func (m *models) Describe(out chan<- *prometheus.Desc) {
	for _, counter := range slices.Concat(m.counters, m.cached) {
		out <- counter.desc
	}
	for _, d := range []*prometheus.Desc{m.failures, m.pending, m.loadTime, m.batchSize} {
		out <- d
	}
	if m.summaries != nil {
		m.summaries.describe(out)
	}
	if m.histograms != nil {
		m.histograms.describe(out)
	}
}

// Collect reads the statistics of all ready models.
func (m *models) Collect(out chan<- prometheus.Metric) {
	ready := map[modelKey]show{}
	for _, one := range m.server.Metrics() {
		labels := []string{one.Statistics.Name, one.Statistics.Version}
		show := withLabels(out, moreLabels(&one))
		ready[modelKey{one.Namespace, labels[0], labels[1]}] = show
		counters := m.counters
		if one.IsCached {
			counters = slices.Concat(counters, m.cached)
		}
		for _, counter := range counters {
			show(prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, counter.value(&one.Statistics), labels...))
		}
		for _, why := range statistics.Failures() {
			show(prometheus.MustNewConstMetric(m.failures, prometheus.CounterValue, float64(one.Failures[why]), labels[0], labels[1], string(why)))
		}
		show(prometheus.MustNewConstMetric(m.pending, prometheus.GaugeValue, float64(one.Pending), labels...))
		show(prometheus.MustNewConstMetric(m.loadTime, prometheus.GaugeValue, one.LoadDuration.Seconds(), labels...))
		show(batchSizes(m.batchSize, one.Statistics.BatchStats, labels))
	}
	if m.summaries != nil {
		m.summaries.collect(ready)
	}
	if m.histograms != nil {
		m.histograms.collect(ready)
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
