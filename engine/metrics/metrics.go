// Package metrics serves the engine's figures in Prometheus' text format, under Triton's names. Figures of its own are the
// sizes of executed batches (nv_inference_batch_size, a histogram), how long a model took to load, and the number of
// goroutines (go_goroutines). Every scrape reads the engine's statistics as they are: nothing is counted twice.
package metrics

import (
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tuner/engine"
)

// readTime bounds how long a client may take to send its request, writeTime how long to take the answer.
const (
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
)

// Options say what the page shows beside the models' counters.
type Options struct {
	CPU       bool          // processors and memory of the machine
	GPU       bool          // its NVIDIA GPUs
	Interval  time.Duration // figures of the machine are read at most this often; 0: at each scrape
	NoTotals  bool          // leaves out the counters of latencies
	Summaries *Summaries    // quantiles of latencies; nil: none
}

// New returns an HTTP server of /metrics; every other path answers 200 with nothing, as Triton does.
func New(s *engine.Server, o Options) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // fails only on two descriptions of the same name
		newModels(s, o.NoTotals, o.Summaries),
		newMachine(o, thisMachine()),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "go_goroutines", Help: "Number of goroutines that currently exist."},
			func() float64 { return float64(runtime.NumGoroutine()) }),
	)
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}) // each holds a page in memory
	return &http.Server{Handler: handler(page), ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime}
}

func handler(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = w.Write([]byte(`{"error":"Method Not Allowed"}`)) // fails only for a client that has gone
		case strings.TrimSuffix(r.URL.Path, "/") == "/metrics":
			page.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
	})
}
