package collector_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tuner/internal/collector"
	"tuner/internal/collector/collectortest"
	"tuner/internal/transcript"
)

// Spans that are sent at once are alone in their exports, although they end together.
func TestAtOnce(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "0")
	for name, o := range map[string]collector.Options{
		"by the options":     {Queue: 10, Batch: 10, IsAtOnce: true},
		"by the environment": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := collectortest.New(t)
			o.URL = r.URL
			provider, err := collector.New(t.Context(), o, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			const spans = 4
			tracer := provider.Tracer("t")
			for range spans {
				_, s := tracer.Start(t.Context(), "s")
				s.End()
			}
			for range spans {
				export := <-r.Got
				if n := len(export.ResourceSpans[0].ScopeSpans[0].Spans); n != 1 {
					t.Errorf("%d spans in an export", n)
				}
			}
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A collector that is too slow costs spans and one line, until nothing waits any more. Those that waited
// arrive.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-answer
	}))
	defer server.Close()
	var log transcript.Text
	const most = 3
	provider, err := collector.New(t.Context(), collector.Options{URL: server.URL, Queue: most, IsAtOnce: true}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tracer := provider.Tracer("t")
	for round := 1; round <= 2; round++ {
		for range 2 * most { // half of them find no room
			_, s := tracer.Start(t.Context(), "s")
			s.End()
		}
		for range most {
			<-asked
			answer <- struct{}{}
		}
		if err := provider.ForceFlush(t.Context()); err != nil { // the last export has ended
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "BatchSpanProcessor queue is full - dropping span."); n != round {
			t.Errorf("%d lines in round %d: %s", n, round, log.String())
		}
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
