// Package metrics serves the engine's figures in Prometheus' text format, under Triton's names. It
// adds the sizes of executed batches (nv_inference_batch_size, a histogram), the time to load a
// model, and the usual figures of Prometheus' clients about a Go process (go_…, process_…). Every
// scrape reads the engine's own statistics, so that nothing is counted twice.
package metrics

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tuner/engine"
)

// readTime bounds the time for a client to send its request, writeTime the time to receive the
// answer.
const (
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
)

// liveHeap names the bytes that the last garbage collection found in use. Unlike the size of the
// heap, they show whether an engine accumulates memory.
var liveHeap = regexp.MustCompile(`^/gc/heap/live:bytes$`)

// Options choose the figures of the page beside the models' counters.
type Options struct {
	CPU bool // processors and memory of the machine
	GPU bool // its NVIDIA GPUs
	// least interval between readings of the machine's figures; 0: read at each scrape
	Interval   time.Duration
	NoTotals   bool        // leaves out the counters of latencies
	Summaries  *Summaries  // quantiles of latencies; nil: none
	Histograms *Histograms // latencies in buckets; nil: none
}

// New returns an HTTP server for /metrics. Every other path answers 200 with an empty body, as in
// Triton.
func New(s *engine.Server, o Options) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // fails only for two descriptions with the same name
		newModels(s, o),
		newCacheFigures(s),
		newMachine(o, thisMachine()),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: liveHeap})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// each holds a page in memory
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return &http.Server{Handler: handler(page), ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime}
}

func handler(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusMethodNotAllowed)
			// fails only for a client that has gone
			_, _ = w.Write([]byte(`{"error":"Method Not Allowed"}`))
		case strings.TrimSuffix(r.URL.Path, "/") == "/metrics":
			page.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
	})
}
