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

// firstResponse is the histogram of latencies that Triton has.
const firstResponse = "nv_inference_first_response_histogram_ms"

// Bounds of native histograms, which only scrapers see that ask for Prometheus' protobuf format.
const (
	nativeFactor  = 1.1 // between the bounds of two buckets: 10 % of a latency
	nativeBuckets = 160 // at most; beyond, buckets become wider
	nativeReset   = time.Hour
)

// Histograms keep the latencies of every model in buckets. Observe is for the engine's options.
type Histograms struct {
	mu      sync.Mutex
	present map[modelKey]prometheus.Histogram // of the newest generation of each
}

// NewHistograms returns histograms without requests.
func NewHistograms() *Histograms { return &Histograms{present: map[modelKey]prometheus.Histogram{}} }

// Observe begins the histogram of a model at zero, with the buckets of its configuration's
// model_metrics, else Triton's. The Observer that it returns counts answered requests.
func (h *Histograms) Observe(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
	key := modelKey{namespace, model, strconv.FormatInt(version, 10)}
	values := newHistogram(prometheus.Labels{"model": key.model, "version": key.version}, buckets(c))
	h.mu.Lock()
	h.present[key] = values
	h.mu.Unlock()
	return func(t statistics.Timing) { values.Observe(float64(t.Total) / float64(time.Millisecond)) }
}

func newHistogram(labels prometheus.Labels, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: firstResponse, Help: "Duration from request to first response in milliseconds", ConstLabels: labels, Buckets: buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
	})
}

// buckets returns the upper bounds of a model's buckets, in milliseconds. A configuration gives them
// in any order.
func buckets(c *modelconfig.Config) []float64 {
	out := []float64{100, 500, 2000, 5000}
	for _, control := range c.GetModelMetrics().GetMetricControl() {
		if control.GetMetricIdentifier().GetFamily() == firstResponse {
			out = slices.Compact(slices.Sorted(slices.Values(control.GetHistogramOptions().GetBuckets())))
		}
	}
	return slices.DeleteFunc(out, math.IsNaN)
}

// collect shows the ready models, and frees the figures of the others.
func (h *Histograms) collect(ready map[modelKey]show) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, values := range h.present {
		if ready[key] == nil {
			delete(h.present, key)
		} else {
			ready[key](values)
		}
	}
}
