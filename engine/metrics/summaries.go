package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"tuner/engine/statistics"
	"tuner/model/modelconfig"

	"github.com/prometheus/client_golang/prometheus"
)

// A summary's quantiles cover the last minute, in five steps: the defaults of the library that
// Triton uses.
const (
	summaryAge   = time.Minute
	summarySteps = 5
)

// DefaultQuantiles returns Triton's quantiles with their allowed errors.
func DefaultQuantiles() map[float64]float64 {
	return map[float64]float64{0.5: 0.05, 0.9: 0.01, 0.95: 0.001, 0.99: 0.001, 0.999: 0.001}
}

// Summaries keep the quantiles of the latencies of every model. Observe is for the engine's
// options.
type Summaries struct {
	quantiles map[float64]float64

	mu      sync.Mutex
	present map[modelKey]*generation // the newest generation of each
}

// modelKey is a model and its version, as in labels.
type modelKey struct{ namespace, model, version string }

// generation holds the figures of a model from a load to an unload.
type generation struct {
	key   modelKey
	steps []step
}

// step is one of the durations of a request.
type step struct {
	values *prometheus.SummaryVec
	of     func(statistics.Timing) (d time.Duration, has bool)
}

// NewSummaries returns summaries without requests.
func NewSummaries(quantiles map[float64]float64) *Summaries {
	return &Summaries{quantiles: quantiles, present: map[modelKey]*generation{}}
}

// steps returns the summaries of models without a response cache, and those that others have in place of the
// first one. Names and texts are Triton's, which leaves that out, since a request's time in the cache is known later.
func (s *Summaries) steps() (plain, cached []step) {
	one := func(name, help string, of func(statistics.Timing) (time.Duration, bool)) step {
		return step{prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: name, Help: help, Objectives: s.quantiles, MaxAge: summaryAge, AgeBuckets: summarySteps,
		}, modelLabels()), of}
	}
	plain = []step{
		one("nv_inference_request_summary_us", "Summary of inference request duration in microseconds (includes cached requests)",
			func(t statistics.Timing) (time.Duration, bool) { return t.Total, !t.IsMissed }),
		one("nv_inference_queue_summary_us", "Summary of inference queuing duration in microseconds (includes cached requests)",
			func(t statistics.Timing) (time.Duration, bool) { return t.Queue, !t.IsMissed }),
		one("nv_inference_compute_input_summary_us", "Cumulative compute input duration in microseconds (does not include cached requests)",
			func(t statistics.Timing) (time.Duration, bool) { return t.Input, !t.IsMissed && !t.IsCached }),
		one("nv_inference_compute_infer_summary_us", "Cumulative compute inference duration in microseconds (does not include cached requests)",
			func(t statistics.Timing) (time.Duration, bool) { return t.Infer, !t.IsMissed && !t.IsCached }),
		one("nv_inference_compute_output_summary_us", "Cumulative inference compute output duration in microseconds (does not include cached requests)",
			func(t statistics.Timing) (time.Duration, bool) { return t.Output, !t.IsMissed && !t.IsCached }),
	}
	const help = "Summary of cache %s counts/durations per model, in microseconds."
	cached = []step{
		one("nv_cache_hit_summary_per_model", fmt.Sprintf(help, "hit"), func(t statistics.Timing) (time.Duration, bool) { return t.Cache, t.IsCached }),
		one("nv_cache_miss_summary_per_model", fmt.Sprintf(help, "miss"), func(t statistics.Timing) (time.Duration, bool) { return t.Cache, t.IsMissed }),
	}
	return plain, cached
}

// Observe begins the summaries of a model at zero. The Observer that it returns counts answered
// requests. Both are safe for concurrent use. Requests that the previous generation still answers
// are on no page.
func (s *Summaries) Observe(namespace, model string, version int64, c *modelconfig.Config) statistics.Observer {
	steps, cached := s.steps()
	if c.GetResponseCache().GetEnable() {
		steps = append(steps[1:], cached...)
	}
	g := &generation{modelKey{namespace, model, strconv.FormatInt(version, 10)}, steps}
	s.mu.Lock()
	s.present[g.key] = g
	s.mu.Unlock()
	return g.observe
}

func (g *generation) observe(t statistics.Timing) {
	for _, one := range g.steps {
		if d, has := one.of(t); has {
			one.values.WithLabelValues(g.key.model, g.key.version).Observe(float64(d.Microseconds()))
		}
	}
}

func (s *Summaries) describe(out chan<- *prometheus.Desc) {
	for _, one := range slices.Concat(s.steps()) {
		one.values.Describe(out)
	}
}

// collect shows the ready models, as Triton also before their first request, and frees the figures of the
// others.
func (s *Summaries) collect(ready map[modelKey]show) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, g := range s.present {
		for _, one := range g.steps {
			if ready[key] == nil {
				one.values.Reset()
				continue
			}
			one.values.WithLabelValues(key.model, key.version) // makes what is not there
			single := make(chan prometheus.Metric, 1)          // a generation has one set of labels
			one.values.Collect(single)
			close(single)
			for m := range single {
				ready[key](m)
			}
		}
	}
}
