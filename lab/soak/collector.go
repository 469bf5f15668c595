package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
)

// collector takes the engine's spans, as an OpenTelemetry collector does.
type collector struct {
	listener net.Listener
	server   *http.Server
	ended    chan error
	spans    atomic.Int64
	broken   atomic.Int64 // exports that cannot be read
}

// collect starts a collector. The caller closes it.
func collect(ctx context.Context) (*collector, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot collect spans: %w", err)
	}
	c := &collector{listener: l, ended: make(chan error, 1)}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: patience}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

func (c *collector) address() string { return "http://" + c.listener.Addr().String() + "/v1/traces" }

func (c *collector) close() {
	_ = c.server.Close() // the end of the program
	<-c.ended
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := countSpans(r)
	if err != nil {
		c.broken.Add(1)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.spans.Add(int64(n))
}

func countSpans(r *http.Request) (n int, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		packed, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		if body, err = io.ReadAll(packed); err != nil {
			return 0, err
		}
	}
	var export traces.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &export); err != nil {
		return 0, err
	}
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			n += len(scope.GetSpans())
		}
	}
	return n, nil
}

const retraceEvery = 3 * time.Second

// retrace changes what is traced, of all models and of one.
func (s *site) retrace(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := 0; ctx.Err() == nil; n++ {
		path, body := "/v2/trace/setting", fmt.Sprintf(`{"trace_level":["TIMESTAMPS"],"trace_rate":"%d"}`, 1+n%50)
		switch n % 3 {
		case 1:
			path, body = "/v2/models/"+simple+"/trace/setting", `{"trace_level":["OFF"]}`
		case 2:
			path, body = "/v2/models/"+simple+"/trace/setting", `{"trace_level":null,"trace_rate":null}`
		}
		s.operate(ctx, "trace setting", func(ctx context.Context) error {
			status, text, err := post(ctx, client, "http://"+s.at.HTTP+path, []byte(body))
			if err != nil || status != http.StatusOK {
				return errors.Join(fmt.Errorf("status %d with %s", status, text), err)
			}
			return nil
		})
		pause(ctx, retraceEvery)
	}
}

var cacheHits = regexp.MustCompile(`(?m)^nv_cache_num_hits_per_model\{model="` + cached + `".*\} (\S+)$`)

// conclude checks that the response cache and the traces did something.
func (s *site) conclude(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	page, err := api.Metrics(ctx, s.at.Metrics)
	if err != nil {
		s.tally.fail("the metrics at the end: %v", err)
		return
	}
	hits := 0.0
	if found := cacheHits.FindSubmatch(page); found != nil {
		hits, _ = strconv.ParseFloat(string(found[1]), 64) // the engine writes numbers
	}
	if hits == 0 {
		s.tally.fail("no answer came from the response cache")
	}
	if s.collector.spans.Load() == 0 || s.collector.broken.Load() > 0 {
		s.tally.fail("the collector got %d spans, and %d exports that it cannot read", s.collector.spans.Load(), s.collector.broken.Load())
	}
	s.tally.note("%.0f answers from the response cache, %d spans", hits, s.collector.spans.Load())
}
