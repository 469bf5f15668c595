package spans_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"tuner/internal/collector/collectortest"
	"tuner/measure"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/profile/spans"
	"tuner/search"
)

// seen counts the calls that an observer gets.
type seen struct{ begun, refused, ended int }

func (s *seen) Begun(search.Action)                     { s.begun++ }
func (s *seen) BlockRefused(string)                     { s.refused++ }
func (s *seen) TrialEnded(search.Event, profile.Status) { s.ended++ }

// clock is set by the tests.
type clock struct{ now time.Time }

func (c *clock) at(seconds float64) { c.now = start.Add(time.Duration(seconds * float64(time.Second))) }

var start = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// window is one second long. It has 100 requests of 10 ms, and its failed ones.
func window(at time.Duration, failed int, flags ...measure.Flag) measure.Window {
	w := measure.Window{Start: at, Duration: time.Second, Requests: 100, Inferences: 100, Flags: flags, Errors: failed}
	if failed > 0 {
		w.FirstError = "no room"
	}
	sub := measure.SubWindow{Requests: 100, Duration: time.Second}
	r := measure.NewRecorder()
	for range 100 {
		r.Record(10 * time.Millisecond)
	}
	sub.Latency = r.Histogram()
	w.Sub = []measure.SubWindow{sub}
	return w
}

func around(t *testing.T, inner profile.Observer, c *clock, log *bytes.Buffer) (profile.Observer, func(profile.Outcome, error)) {
	t.Helper()
	o, end, err := spans.Around(t.Context(), inner, spans.About{
		Model: "m", Strategy: "guided", Server: "ONNX Runtime", Output: "out/m", Version: "7",
		Goal:    search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}},
		Earlier: 2, Past: 10 * time.Second, Now: func() time.Time { return c.now },
	}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return o, end
}

// campaign has a trial, a trial that fails when its engine starts, and a block of two.
func campaign(o profile.Observer, c *clock) {
	trial := func(concurrency int) search.Trial {
		return search.Trial{Candidate: search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: "8"}),
			Load: measure.Load{Concurrency: concurrency, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseSearch}
	}
	c.at(1)
	o.Begun(search.Action{Trial: trial(4)})
	c.at(4)
	o.TrialEnded(search.Event{Trial: trial(4), Measurement: measure.Measurement{Launch: 3, Memory: 5,
		Windows: []measure.Window{window(12500*time.Millisecond, 1, measure.FlagErrors)},
		Times:   measure.Times{Launch: time.Second, WarmUp: 500 * time.Millisecond, Windows: time.Second}}}, profile.Status{Trials: 3})
	o.Begun(search.Action{Trial: trial(8)})
	c.at(5)
	o.TrialEnded(search.Event{Trial: trial(8), Measurement: measure.Measurement{Launch: 4, Times: measure.Times{Launch: time.Second},
		Failure: &measure.Failure{Stage: measure.StageStart, Reason: "it aborts"}}}, profile.Status{Trials: 4, Failed: 1})
	block := []search.Trial{trial(1), trial(2)}
	for i := range block {
		block[i].Block, block[i].Phase = 1, search.PhaseFinal
	}
	c.at(6)
	o.Begun(search.Action{Trial: block[0], Block: block})
	c.at(10)
	for i, b := range block {
		o.TrialEnded(search.Event{Trial: b, Measurement: measure.Measurement{Launch: 5 + i,
			Windows: []measure.Window{window(time.Duration(18+i)*time.Second, 0)}, Times: measure.Times{Launch: 500 * time.Millisecond}}}, profile.Status{Trials: 5 + i})
	}
	o.BlockRefused("no room")
}

// tree writes a span and those below it: name, beginning and end in seconds since the start, status,
// and attributes.
func tree(all []*otlp.Span, span *otlp.Span, indent string) string {
	var b strings.Builder
	since := func(ns uint64) float64 { return time.Duration(int64(ns) - start.UnixNano()).Seconds() }
	fmt.Fprintf(&b, "%s%s %g to %g", indent, span.Name, since(span.StartTimeUnixNano), since(span.EndTimeUnixNano))
	if span.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		fmt.Fprintf(&b, " failed (%s)", span.Status.Message)
	}
	var list []string
	for _, a := range span.Attributes {
		list = append(list, strings.TrimPrefix(a.Key, "tuner.")+"="+text(a.Value))
	}
	slices.Sort(list)
	b.WriteString(": " + strings.Join(list, " ") + "\n")
	for _, child := range all {
		if bytes.Equal(child.ParentSpanId, span.SpanId) {
			b.WriteString(tree(all, child, indent+"  "))
		}
	}
	return b.String()
}

func text(v *common.AnyValue) string {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_DoubleValue:
		return fmt.Sprintf("%.3g", v.DoubleValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *common.AnyValue_ArrayValue:
		var list []string
		for _, e := range v.ArrayValue.Values {
			list = append(list, text(e))
		}
		return fmt.Sprint(list)
	}
	return "?"
}

// The windows' times count from the beginning of the campaign's first run, 10 s before this one.
const wantTree = `campaign 0 to 11: earlier_trials=2 end=done failed_trials=1 interrupted=false model=m output=out/m server=ONNX Runtime strategy=guided trials=6
  trial 1 to 4: configuration=max_batch_size=8 flags=[errors] knob.max_batch_size=8 latency_p99=0.01 launch=3 load.batch_size=1 load.concurrency=4 phase=search throughput=100 trial=3 warm_up=0.5
    launch 1 to 2: launch=3
    window 2.5 to 3.5 failed (no room): errors=1 flags=[errors] foreign=0 latency_p99=0.01 load.batch_size=1 load.concurrency=4 requests=100 steal=0 throughput=100
  trial 4 to 5 failed (start: it aborts): configuration=max_batch_size=8 flags=[] knob.max_batch_size=8 launch=4 load.batch_size=1 load.concurrency=8 phase=search trial=4 warm_up=0
    launch 4 to 5 failed (it aborts): launch=4
  trial 6 to 10: block=1 configuration=max_batch_size=8 flags=[] knob.max_batch_size=8 latency_p99=0.01 launch=5 load.batch_size=1 load.concurrency=1 phase=final throughput=100 trial=5 warm_up=0
    launch 6 to 6.5: launch=5
    window 8 to 9: errors=0 flags=[] foreign=0 latency_p99=0.01 load.batch_size=1 load.concurrency=1 requests=100 steal=0 throughput=100
  trial 6 to 10: block=1 configuration=max_batch_size=8 flags=[] knob.max_batch_size=8 latency_p99=0.01 launch=6 load.batch_size=1 load.concurrency=2 phase=final throughput=100 trial=6 warm_up=0
    launch 6.5 to 7: launch=6
    window 9 to 10: errors=0 flags=[] foreign=0 latency_p99=0.01 load.batch_size=1 load.concurrency=2 requests=100 steal=0 throughput=100
`

func TestSpansOfACampaign(t *testing.T) {
	r := collectortest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_SERVICE_NAME", "bench")
	var log bytes.Buffer
	var inner seen
	c := &clock{start}
	o, end := around(t, &inner, c, &log)
	campaign(o, c)
	c.at(11)
	end(profile.Outcome{End: journal.End{Reason: "done"}, Status: profile.Status{Trials: 6, Failed: 1}}, nil)
	if want := (seen{3, 1, 4}); inner != want {
		t.Errorf("the observer got %+v, want %+v", inner, want)
	}
	close(r.Got) // end has waited for the collector
	var all []*otlp.Span
	for export := range r.Got {
		for _, resource := range export.ResourceSpans {
			got := map[string]string{}
			for _, a := range resource.Resource.Attributes {
				got[a.Key] = text(a.Value)
			}
			if got["service.name"] != "bench" || got["service.version"] != "7" {
				t.Errorf("resource %v", got)
			}
			for _, scope := range resource.ScopeSpans {
				all = append(all, scope.Spans...)
			}
		}
	}
	var roots []string
	traces := map[string]bool{}
	for _, s := range all {
		traces[hex.EncodeToString(s.TraceId)] = true
		if len(s.ParentSpanId) == 0 {
			roots = append(roots, tree(all, s, ""))
		}
	}
	if len(roots) != 1 || len(traces) != 1 {
		t.Fatalf("%d roots in %d traces, want one", len(roots), len(traces))
	}
	if diff := cmp.Diff(wantTree, roots[0]); diff != "" {
		t.Error(diff)
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
}

func TestCampaignThatFails(t *testing.T) {
	r := collectortest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", r.URL+"/v1/traces")
	var log bytes.Buffer
	_, end := around(t, &seen{}, &clock{start}, &log)
	end(profile.Outcome{}, errors.New("the disk is full"))
	export := <-r.Got
	if s := export.ResourceSpans[0].ScopeSpans[0].Spans[0].Status; s.GetMessage() != "the disk is full" || s.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("status %v", s)
	}
}

// Without a collector in the environment the campaign keeps its own observer, and nothing else.
func TestNoCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	inner := &seen{}
	o, end := around(t, inner, &clock{start}, &bytes.Buffer{})
	if o != profile.Observer(inner) {
		t.Errorf("the observer is a %T", o)
	}
	end(profile.Outcome{}, nil)
}

// A collector that refuses, one that is gone and one that never answers lose spans, and nothing else:
// the campaign ends, and the log has a line.
func TestDeadCollector(t *testing.T) {
	never := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-never }))
	defer silent.Close()
	defer close(never)
	refusing := collectortest.New(t)
	refusing.Answer(http.StatusBadRequest)
	for name, address := range map[string]string{"gone": "http://127.0.0.1:1", "refusing": refusing.URL, "silent": silent.URL, "no URL": "collector:4318"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
			var log bytes.Buffer
			var inner seen
			c := &clock{start}
			o, end := around(t, &inner, c, &log)
			for range 1000 { // 10,000 spans are more than the queue holds
				campaign(o, c)
			}
			end(profile.Outcome{End: journal.End{Reason: "done"}}, nil)
			if want := (seen{3000, 1000, 4000}); inner != want {
				t.Errorf("the observer got %+v, want %+v", inner, want)
			}
			if !strings.Contains(log.String(), "spans are lost") {
				t.Errorf("the log does not say it: %s", log.String())
			}
		})
	}
}
