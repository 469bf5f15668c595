package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tuner/engine/enginetest"
	"tuner/engine/metrics"
)

// BenchmarkPage makes a page of one model.
func BenchmarkPage(b *testing.B) {
	e := enginetest.Start(b, enginetest.Options{})
	page := metrics.New(e.Server, metrics.Options{CPU: true, Interval: 2 * time.Second}).Handler
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	b.ReportAllocs()
	for b.Loop() {
		page.ServeHTTP(httptest.NewRecorder(), r)
	}
}
