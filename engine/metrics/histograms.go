package metrics

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tuner/engine/statistics"
	"tuner/model/modelconfig"
)

// latency is one of the durations of a request, as a histogram.
type latency struct {
	name, help string
	unit       time.Duration
	bounds     []float64 // upper bounds of buckets, in that unit, unless a configuration has others
	of         func(statistics.Timing) time.Duration
	executed   bool // answers of the cache have no such duration
}

// latencies are the histograms that Triton has, and those that core's pull request 474 adds to it.
// Names, texts and bounds are theirs.
func latencies() []latency {
	whole, small := []float64{1000, 5000, 25000, 50000, 100000}, []float64{100, 500, 1000, 5000, 10000}
	total := func(t statistics.Timing) time.Duration { return t.Total }
	return []latency{
		{"nv_inference_first_response_histogram_ms", "Duration from request to first response in milliseconds", time.Millisecond,
			[]float64{100, 500, 2000, 5000}, total, false},
		{"nv_inference_request_duration_histogram_us", "Histogram of end-to-end inference request duration, in microseconds", time.Microsecond,
			whole, total, false},
		{"nv_inference_queue_duration_histogram_us", "Histogram of inference queuing duration, in microseconds", time.Microsecond,
			[]float64{100, 1000, 5000, 10000, 50000}, func(t statistics.Timing) time.Duration { return t.Queue }, false},
		{"nv_inference_compute_input_duration_histogram_us", "Histogram of compute input duration, in microseconds", time.Microsecond,
			small, func(t statistics.Timing) time.Duration { return t.Input }, true},
		{"nv_inference_compute_infer_duration_histogram_us", "Histogram of compute inference duration, in microseconds", time.Microsecond,
			whole, func(t statistics.Timing) time.Duration { return t.Infer }, true},
		{"nv_inference_compute_output_duration_histogram_us", "Histogram of compute output duration, in microseconds", time.Microsecond,
			small, func(t statistics.Timing) time.Duration { return t.Output }, true},
	}
}

// Bounds of native histograms, which only scrapers see that ask for Prometheus' protobuf format.
const (
	nativeFactor  = 1.1 // between the bounds of two buckets: 10 % of a latency
	nativeBuckets = 160 // at most; beyond, buckets become wider
	nativeReset   = time.Hour
)

// Histograms keep the latencies of every model in buckets. Observe is for the engine's options.
type Histograms struct {
	mu      sync.Mutex
	present map[modelKey]*series // of the newest generation of each
}

// series are the histograms of a model from a load to an unload.
type series struct {
	values  []prometheus.Histogram // beside latencies
	isShown bool                   // the model has been ready since
}

// NewHistograms returns histograms without requests.
func NewHistograms() *Histograms { return &Histograms{present: map[modelKey]*series{}} }

// Observe begins the histograms of a model at zero, with the buckets of its configuration's
// model_metrics, else Triton's. The Observer that it returns counts answered requests.
func (h *Histograms) Observe(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
	key := modelKey{namespace, model, strconv.FormatInt(version, 10)}
	all := latencies()
	var values []prometheus.Histogram
	for _, l := range all {
		values = append(values, l.histogram(prometheus.Labels{"model": key.model, "version": key.version}, l.buckets(c)))
	}
	h.mu.Lock()
	h.present[key] = &series{values: values}
	h.mu.Unlock()
	return func(t statistics.Timing) {
		for i := range all {
			if l := &all[i]; !t.IsMissed && (!l.executed || !t.IsCached) {
				values[i].Observe(float64(l.of(t)) / float64(l.unit))
			}
		}
	}
}

func (l *latency) histogram(labels prometheus.Labels, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: l.name, Help: l.help, ConstLabels: labels, Buckets: buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
	})
}

// buckets returns the upper bounds of a model's buckets. A configuration gives them in any order.
func (l *latency) buckets(c *modelconfig.Config) []float64 {
	out := l.bounds
	for _, control := range c.GetModelMetrics().GetMetricControl() {
		if control.GetMetricIdentifier().GetFamily() == l.name {
			out = slices.Compact(slices.Sorted(slices.Values(control.GetHistogramOptions().GetBuckets())))
		}
	}
	return slices.DeleteFunc(out, math.IsNaN)
}

func (h *Histograms) describe(out chan<- *prometheus.Desc) {
	for _, l := range latencies() {
		l.histogram(prometheus.Labels{"model": "", "version": ""}, nil).Describe(out)
	}
}

// collect shows the ready models, and frees the figures of those that were ready before. One that was
// never ready may be loading: its figures begin before it is.
func (h *Histograms) collect(ready map[modelKey]show) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, one := range h.present {
		switch {
		case ready[key] != nil:
			one.isShown = true
			for _, value := range one.values {
				ready[key](value)
			}
		case one.isShown:
			delete(h.present, key)
		}
	}
}
