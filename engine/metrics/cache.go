package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/cache"
)

// cacheCounters returns the counters of models whose configuration enables the response cache. As
// in Triton, they are there even if the server has no cache.
func cacheCounters() []counter {
	one := func(name, help string, value func(*api.InferenceStatistics) float64) counter {
		return counter{prometheus.NewDesc(name, help, modelLabels(), nil), func(s *api.ModelStatistics) float64 { return value(&s.InferenceStats) }}
	}
	return []counter{
		one("nv_cache_num_hits_per_model", "Number of cache hits per model", func(s *api.InferenceStatistics) float64 { return float64(s.CacheHit.Count) }),
		one("nv_cache_hit_duration_per_model", "Total cache hit duration per model, in microseconds", func(s *api.InferenceStatistics) float64 { return micros(s.CacheHit) }),
		one("nv_cache_num_misses_per_model", "Number of cache misses per model", func(s *api.InferenceStatistics) float64 { return float64(s.CacheMiss.Count) }),
		one("nv_cache_miss_duration_per_model", "Total cache miss (insert+lookup) duration per model, in microseconds", func(s *api.InferenceStatistics) float64 { return micros(s.CacheMiss) }),
	}
}

// cacheFigures turns the figures of the whole response cache into metrics. There are none without a
// cache. Triton's local cache has the same, all of them gauges.
type cacheFigures struct {
	server *engine.Server
	gauges []cacheGauge
}

type cacheGauge struct {
	desc  *prometheus.Desc
	value func(*cache.Statistics) float64
}

func newCacheFigures(s *engine.Server) *cacheFigures {
	gauge := func(name, help string, value func(*cache.Statistics) float64) cacheGauge {
		return cacheGauge{prometheus.NewDesc(name, help, nil, nil), value}
	}
	return &cacheFigures{s, []cacheGauge{
		gauge("nv_cache_util", "Cache utilization [0.0 - 1.0]", func(s *cache.Statistics) float64 { return float64(s.Used) / float64(s.Max) }),
		gauge("nv_cache_num_entries", "Number of responses stored in response cache", func(s *cache.Statistics) float64 { return float64(s.Entries) }),
		gauge("nv_cache_num_hits", "Number of cache hits in response cache", func(s *cache.Statistics) float64 { return float64(s.Hits) }),
		gauge("nv_cache_num_misses", "Number of cache misses in response cache", func(s *cache.Statistics) float64 { return float64(s.Misses) }),
		gauge("nv_cache_num_lookups", "Number of cache lookups in response cache", func(s *cache.Statistics) float64 { return float64(s.Hits + s.Misses) }),
		gauge("nv_cache_num_evictions", "Number of cache evictions in response cache", func(s *cache.Statistics) float64 { return float64(s.Evictions) }),
		gauge("nv_cache_lookup_duration", "Total cache lookup duration (hit and miss), in microseconds", func(s *cache.Statistics) float64 { return float64(s.LookUps.Microseconds()) }),
		gauge("nv_cache_insertion_duration", "Total cache insertion duration, in microseconds", func(s *cache.Statistics) float64 { return float64(s.Insertions.Microseconds()) }),
	}}
}

// Describe lists the metrics.
func (c *cacheFigures) Describe(out chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		out <- g.desc
	}
}

// Collect reads the figures.
func (c *cacheFigures) Collect(out chan<- prometheus.Metric) {
	figures, found := c.server.CacheStatistics()
	if !found {
		return
	}
	for _, g := range c.gauges {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(&figures))
	}
}
