package otlp_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"tuner/engine"
	"tuner/engine/api/inferencepb"
	"tuner/engine/enginetest"
	"tuner/engine/frontends"
	"tuner/engine/trace"
	"tuner/engine/trace/otlp"
	"tuner/internal/collector/collectortest"
	"tuner/internal/transcript"
)

// started is an engine whose requests are traced, and its collector.
type started struct {
	*collectortest.Receiver
	tracer  *trace.Tracer
	address frontends.Addresses
	grpc    inferencepb.GRPCInferenceServiceClient
}

const ensembleConfig = `platform: "ensemble" max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] } ]
ensemble_scheduling {
  step [ { model_name: "fake" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } input_map { key: "INPUT1" value: "INPUT1" } output_map { key: "OUTPUT0" value: "x" } output_map { key: "OUTPUT1" value: "y" } } ]
  step [ { model_name: "second" model_version: -1 input_map { key: "INPUT0" value: "x" } input_map { key: "INPUT1" value: "y" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ]
}`

// start starts an engine with two models that echo, and fail for three rows, and with an ensemble of
// both.
func start(t *testing.T, config trace.Config) *started {
	t.Helper()
	s := &started{Receiver: collectortest.New(t)}
	config.Mode = trace.ModeOpenTelemetry
	exporter, err := otlp.New(t.Context(), otlp.Options{
		URL: strings.TrimPrefix(s.URL, "http://") + "/v1/traces", Resource: []trace.Option{{Name: "service.version", Value: "7"}},
		Queue: 100, Delay: time.Millisecond, Batch: 10,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tracer := trace.New(config, exporter, slog.New(slog.DiscardHandler))
	s.tracer = tracer
	t.Cleanup(func() {
		if err := tracer.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	root := t.TempDir()
	for name, config := range map[string]string{
		"fake": enginetest.FakeConfig(4), "second": strings.Replace(enginetest.FakeConfig(4), `"fake"`, `"second"`, 1), "both": ensembleConfig,
	} {
		enginetest.WriteModel(t, root, name, config)
	}
	backend := &enginetest.Backend{Fail: func(rows int) error {
		if rows == 3 {
			return errors.New("three rows are too many")
		}
		return nil
	}}
	_, s.address = enginetest.Serve(t, engine.Options{Repositories: []string{root}, Backend: backend, Tracer: tracer})
	connection, err := grpc.NewClient(s.address.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	s.grpc = inferencepb.NewGRPCInferenceServiceClient(connection)
	return s
}

// trees waits for n requests, and returns their spans as trees: a line for each span, with its events.
func (s *started) trees(t *testing.T, n int) []string {
	t.Helper()
	var all []*spans.Span
	roots := 0
	for roots < n {
		select {
		case export := <-s.Got:
			for _, r := range export.ResourceSpans {
				checkResource(t, r)
				for _, scope := range r.ScopeSpans {
					all = append(all, scope.Spans...)
				}
			}
		case <-t.Context().Done():
			t.Fatal("the collector has not got all spans")
		}
		roots = 0
		for _, span := range all {
			if span.Name == "InferRequest" {
				roots++
			}
		}
	}
	slices.SortFunc(all, func(a, b *spans.Span) int { return int(a.StartTimeUnixNano - b.StartTimeUnixNano) })
	for _, span := range all {
		if span.EndTimeUnixNano < span.StartTimeUnixNano {
			t.Errorf("span %s ends before it starts", span.Name)
		}
	}
	var trees []string
	for _, span := range all {
		if span.Name == "InferRequest" {
			trees = append(trees, tree(all, span, ""))
		}
	}
	return trees
}

func checkResource(t *testing.T, r *spans.ResourceSpans) {
	t.Helper()
	got := map[string]string{}
	for _, a := range r.Resource.Attributes {
		got[a.Key] = a.Value.GetStringValue()
	}
	if got["service.name"] != "triton-inference-server" || got["service.version"] != "7" {
		t.Errorf("resource %v", got)
	}
	for _, scope := range r.ScopeSpans {
		if scope.Scope.Name != "triton-server" {
			t.Errorf("scope %q, want Triton's", scope.Scope.Name)
		}
	}
}

// tree writes a span, its attributes but the IDs of traces, its events, and the spans below it.
func tree(all []*spans.Span, span *spans.Span, indent string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s", indent, span.Name)
	if span.Kind != spans.Span_SPAN_KIND_SERVER {
		fmt.Fprintf(&b, " of kind %v", span.Kind)
	}
	for _, a := range span.Attributes {
		if !strings.HasSuffix(a.Key, "_id") || a.Key == "triton.request_id" {
			fmt.Fprintf(&b, " %s=%s%d", strings.TrimPrefix(a.Key, "triton."), a.Value.GetStringValue(), a.Value.GetIntValue())
		}
	}
	b.WriteString(":")
	for _, e := range span.Events {
		b.WriteString(" " + e.Name)
	}
	b.WriteString("\n")
	for _, child := range all {
		if string(child.ParentSpanId) == string(span.SpanId) {
			b.WriteString(tree(all, child, indent+"  "))
		}
	}
	return b.String()
}

// Requests differ in their rows: three make the model fail.
func body(id string, rows int) string {
	data := strings.TrimSuffix(strings.Repeat("1,", 16*rows), ",")
	input := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"datatype":"INT32","shape":[%d,16],"data":[%s]}`, name, rows, data)
	}
	return fmt.Sprintf(`{"id":%q,"inputs":[%s,%s]}`, id, input("INPUT0"), input("INPUT1"))
}

func (s *started) post(t *testing.T, model, body string, headers map[string]string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address.HTTP+"/v2/models/"+model+"/infer", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range headers {
		request.Header.Set(key, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func message(model string) *inferencepb.ModelInferRequest {
	r := &inferencepb.ModelInferRequest{ModelName: model, Id: "g"}
	for _, name := range []string{"INPUT0", "INPUT1"} {
		r.Inputs = append(r.Inputs, &inferencepb.ModelInferRequest_InferInputTensor{Name: name, Datatype: "INT32", Shape: []int64{1, 16}})
		r.RawInputContents = append(r.RawInputContents, make([]byte, 16*binary.Size(int32(0))))
	}
	return r
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	parent  = "00-" + traceID + "-" + spanID + "-01"
)

const (
	httpRoot = "InferRequest: HTTP_RECV_START HTTP_RECV_END INFER_RESPONSE_COMPLETE HTTP_SEND_START HTTP_SEND_END\n"
	grpcRoot = "InferRequest: GRPC_WAITREAD_START GRPC_WAITREAD_END INFER_RESPONSE_COMPLETE GRPC_SEND_START GRPC_SEND_END\n"
	events   = ": REQUEST_START QUEUE_START REQUEST_END\n"
	compute  = "compute: COMPUTE_START COMPUTE_INPUT_END COMPUTE_OUTPUT_START COMPUTE_END\n"
)

func model(name, id string) string {
	return fmt.Sprintf("%s model_name=%s0 model_version=1 request_id=%s0%s", name, name, id, events)
}

// The trees are Triton's. TestTraceSpans of lab/conformance compares them.
func TestSpans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(t *testing.T, s *started)
		want string
	}{
		"HTTP": {
			func(t *testing.T, s *started) { s.post(t, "fake", body("h", 1), nil) },
			httpRoot + "  " + model("fake", "h") + "    " + compute,
		},
		"an ensemble": {
			func(t *testing.T, s *started) { s.post(t, "both", body("e", 1), nil) },
			httpRoot + "  " + model("both", "e") + "    " + model("fake", "e") + "      " + compute + "    " + model("second", "e") + "      " + compute,
		},
		"a failure": {
			func(t *testing.T, s *started) {
				if status := s.post(t, "fake", body("f", 3), nil); status < http.StatusBadRequest {
					t.Errorf("status %d", status)
				}
			},
			httpRoot + "  " + model("fake", "f") + "    " + compute,
		},
		"a failure in an ensemble": {
			func(t *testing.T, s *started) { s.post(t, "both", body("f", 3), nil) },
			httpRoot + "  " + model("both", "f") + "    " + model("fake", "f") + "      " + compute,
		},
		"no JSON": {
			func(t *testing.T, s *started) { s.post(t, "fake", "{", nil) },
			"InferRequest: HTTP_RECV_START HTTP_RECV_END\n",
		},
		"inputs that do not fit": {
			func(t *testing.T, s *started) { s.post(t, "fake", `{"inputs":[]}`, nil) },
			"InferRequest: HTTP_RECV_START HTTP_RECV_END\n",
		},
		"gRPC": {
			func(t *testing.T, s *started) {
				if _, err := s.grpc.ModelInfer(t.Context(), message("fake")); err != nil {
					t.Error(err)
				}
			},
			grpcRoot + "  " + model("fake", "g") + "    " + compute,
		},
		// as Triton's backend identity notes them; an end without a beginning is an event
		"activities of the backend": {
			func(_ *testing.T, s *started) {
				x, now := s.tracer.Sample("own", none{}), time.Now()
				x.Begin("own", 1, "o", now)
				for i, name := range []string{"A_START", "A_END", "EVENT", "B0_START", "B1_START", "EVENT", "B1_END", "B0_END", "C_END"} {
					x.Note(trace.Activity{Name: name, At: now.Add(time.Duration(i))})
				}
				x.End()
			},
			"InferRequest:\n  own model_name=own0 model_version=1 request_id=o0: REQUEST_START EVENT C_END\n" +
				"    A: A_START A_END\n    B0: B0_START B0_END\n      B1: B1_START EVENT B1_END\n",
		},
		"a stream": {
			func(t *testing.T, s *started) { stream(t.Context(), t, s) },
			grpcRoot + "  " + model("fake", "g") + "    " + compute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, trace.Config{Level: trace.LevelTimestamps, Rate: 1, Count: -1})
			s.post(t, "unknown", body("u", 1), nil) // has no trace
			c.send(t, s)
			if diff := cmp.Diff(c.want, s.trees(t, 1)[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// stream sends one request over a stream.
func stream(ctx context.Context, t *testing.T, s *started) {
	t.Helper()
	stream, err := s.grpc.ModelStreamInfer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(message("fake")); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// Requests with a trace context are traced whatever the rate, and belong to their caller's trace.
func TestCaller(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(t *testing.T, s *started){
		"HTTP": func(t *testing.T, s *started) {
			s.post(t, "fake", body("h", 1), map[string]string{"Traceparent": parent, "tracestate": "k=v"})
		},
		"gRPC": func(t *testing.T, s *started) {
			if _, err := s.grpc.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent, "tracestate", "k=v"), message("fake")); err != nil {
				t.Error(err)
			}
		},
		"a stream": func(t *testing.T, s *started) {
			stream(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent, "tracestate", "k=v"), t, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, trace.Config{Level: trace.LevelTimestamps, Rate: 0, Count: -1})
			s.post(t, "fake", body("none", 1), nil)
			send(t, s)
			export := <-s.Got
			for _, span := range export.ResourceSpans[0].ScopeSpans[0].Spans {
				if got := hex.EncodeToString(span.TraceId); got != traceID {
					t.Errorf("span %s is of trace %s", span.Name, got)
				}
				if got := hex.EncodeToString(span.ParentSpanId); span.Name == "InferRequest" && got != spanID {
					t.Errorf("the span above is %s", got)
				}
				if span.TraceState != "k=v" {
					t.Errorf("span %s has state %q", span.Name, span.TraceState)
				}
			}
		})
	}
}

// A collector that refuses spans costs one line in the log, and its return another one.
func TestRefusingCollector(t *testing.T) {
	t.Parallel()
	r := collectortest.New(t)
	r.Answer(http.StatusBadRequest)
	var log transcript.Text
	exporter, err := otlp.New(t.Context(), otlp.Options{URL: r.URL, Queue: 10, Delay: time.Millisecond, Batch: 1}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tracer := trace.New(trace.Config{Level: trace.LevelTimestamps, Rate: 1, Count: -1, Mode: trace.ModeOpenTelemetry}, exporter, slog.New(slog.DiscardHandler))
	for range 3 { // each has been answered before the next begins
		tracer.Sample("m", none{}).End()
		<-r.Got
	}
	for strings.Count(log.String(), "spans are lost") == 0 {
		time.Sleep(time.Millisecond)
	}
	r.Answer(http.StatusOK)
	tracer.Sample("m", none{}).End()
	<-r.Got
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lost, again := strings.Count(log.String(), "spans are lost"), strings.Count(log.String(), "takes spans again"); lost != 1 || again != 1 {
		t.Errorf("%d and %d lines, want one of each: %s", lost, again, log.String())
	}
}

// none are no headers.
type none struct{}

func (none) Get(string) string  { return "" }
func (none) Set(string, string) {}
func (none) Keys() []string     { return nil }

// A collector that is not there loses spans, and no requests.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close() // its port refuses connections now
	var log transcript.Text
	exporter, err := otlp.New(t.Context(), otlp.Options{URL: server.URL, Queue: 4, Delay: time.Millisecond, Batch: 2}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tracer := trace.New(trace.Config{Level: trace.LevelTimestamps, Rate: 1, Count: -1, Mode: trace.ModeOpenTelemetry}, exporter, slog.New(slog.DiscardHandler))
	root := t.TempDir()
	enginetest.WriteModel(t, root, "fake", enginetest.FakeConfig(4))
	s := &started{}
	_, s.address = enginetest.Serve(t, engine.Options{Repositories: []string{root}, Backend: &enginetest.Backend{}, Tracer: tracer})
	for range 50 {
		if status := s.post(t, "fake", body("x", 1), nil); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = tracer.Close(ctx) // it gives up
	if n := strings.Count(log.String(), "spans are lost"); n > 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	if _, err := otlp.New(t.Context(), otlp.Options{URL: "http://a b:x/%zz", Queue: 1, Delay: time.Second, Batch: 1}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no error")
	}
}
