package measure

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func twoModels(t *testing.T) Mix {
	t.Helper()
	m, err := NewMix(Part{Model: "encoder", RequestRate: 120, BatchSize: 1}, Part{Model: "ranker", Concurrency: 3, BatchSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A load of several models is a value: equal loads are equal keys of a map, also after a journal.
func TestLoadsOfSeveralModelsAreValues(t *testing.T) {
	t.Parallel()
	load := Load{Scale: 1.5, Mix: twoModels(t)}
	text, err := json.Marshal(load)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"scale":1.5,"mix":[{"model":"encoder","request_rate":120,"batch_size":1},{"model":"ranker","concurrency":3,"batch_size":4}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var again Load
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if again != load || again.Level() != 1.5 || again.String() != "scale 1.5" || again.Check() != nil {
		t.Errorf("got %v, check %v; want the load that was written", again, again.Check())
	}
	if one := (Load{Concurrency: 8, BatchSize: 1}); one.Of("") != one || one.Of("encoder") != one {
		t.Error("the load of one model has another share")
	}
	if text, _ := json.Marshal(Load{RequestRate: 2, BatchSize: 1}); string(text) != `{"request_rate":2,"batch_size":1}` {
		t.Errorf("a load of one model is written as %s, unlike in earlier versions", text)
	}
}

func TestShareOfAScale(t *testing.T) {
	t.Parallel()
	mix, err := NewMix(append(twoModels(t).Parts(), Part{Model: "ten", Concurrency: 10, BatchSize: 1})...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale  float64
		model  string
		wanted Load
	}{
		{1.5, "encoder", Load{RequestRate: 180, BatchSize: 1}}, // 1.5 · 120
		{1.5, "ranker", Load{Concurrency: 5, BatchSize: 4}},    // 4.5, rounded up
		{1.4, "ranker", Load{Concurrency: 5, BatchSize: 4}},    // 4.2
		{1.1, "ten", Load{Concurrency: 11, BatchSize: 1}},      // 11.000000000000002
		{0.1, "ranker", Load{Concurrency: 1, BatchSize: 4}},    // 0.3
		{2, "unknown", Load{}},
	} {
		if got := (Load{Scale: c.scale, Mix: mix}).Of(c.model); got != c.wanted {
			t.Errorf("%s at scale %g: got %v, want %v", c.model, c.scale, got, c.wanted)
		}
	}
}

// A share of a scale has as many digits as people read.
func TestShareOfAScaleIsReadable(t *testing.T) {
	t.Parallel()
	for want, load := range map[string]Load{
		"193.259 requests/s":      Load{Scale: 1.6104903319492543, Mix: twoModels(t)}.Of("encoder"),
		"123456 requests/s":       {RequestRate: 123456, BatchSize: 1},
		"0.5 requests/s":          {RequestRate: 0.5, BatchSize: 1},
		"20 requests/s × batch 4": {RequestRate: 20, BatchSize: 4},
	} {
		if got := load.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestImpossibleMixes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"model":"a","request_rate":1,"batch_size":1},{"model":"a","request_rate":1,"batch_size":1}]`: "two shares",
		`[{"request_rate":1,"batch_size":1}]`:                             "no model",
		`[{"model":"a","batch_size":1}]`:                                  "do not make a load",
		`[{"model":"a","request_rate":1,"concurrency":1,"batch_size":1}]`: "do not make a load",
		`[{"model":"a","request_rate":-1,"batch_size":1}]`:                "do not make a load",
		`[{"model":"a","request_rate":1}]`:                                "do not make a load",
		`[{"model":"a","request_rate":1,"batch_size":1,"weight":3}]`:      "unknown field",
		`{}`: "cannot read",
	} {
		if err := new(Mix).UnmarshalJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", text, err, want)
		}
	}
	for _, l := range []Load{{Scale: 1}, {Mix: twoModels(t)}, {Scale: 1, Mix: twoModels(t), Concurrency: 1}, {Scale: -1, Mix: twoModels(t)}} {
		if l.Check() == nil {
			t.Errorf("%+v is accepted as a load", l)
		}
	}
}

func TestMetricsOfSeveralModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		metric Metric
		model  string
		of     Metric
	}{
		{"encoder.latency_p99", "encoder", LatencyP99},
		{"encoder.latency_p99.9", "encoder", "latency_p99.9"},
		{"encoder.goodput_2.5ms", "encoder", "goodput_2.5ms"},
		{"latency_p99.9", "", "latency_p99.9"}, // the dot is the percentile's
		{"goodput_2.5ms", "", "goodput_2.5ms"},
		{"scale", "", Scale},
		{"encoder.scale", "", "encoder.scale"}, // the scale is of all models
		{"encoder.speed", "", "encoder.speed"},
		{".throughput", "", ".throughput"},
	} {
		if model, of := c.metric.Split(); model != c.model || of != c.of {
			t.Errorf("%s: got %q and %q, want %q and %q", c.metric, model, of, c.model, c.of)
		}
		if c.model != "" && c.of.Of(c.model) != c.metric {
			t.Errorf("%s of %s is %s, want %s", c.of, c.model, c.of.Of(c.model), c.metric)
		}
	}
	if q, ok := Metric("encoder.latency_p90").Quantile(); !ok || q != 0.9 {
		t.Errorf("the quantile of a model's percentile is %v", q)
	}
	if limit, ok := Metric("encoder.goodput_50ms").Within(); !ok || limit != 50*time.Millisecond {
		t.Errorf("the limit of a model's goodput is %v", limit)
	}
}

// windowOf is a second with requests of one latency, in which the engine used half a core.
func windowOf(model string, requests, errors int, latency time.Duration) Window {
	r := NewRecorder()
	for range requests {
		r.Record(latency)
	}
	return Window{Model: model, Duration: time.Second, Requests: requests, Inferences: requests, Errors: errors, EngineCPU: time.Second / 2,
		Sub: []SubWindow{{Requests: requests, Duration: time.Second, Latency: r.Histogram()}}}
}

func TestFiguresOfSeveralModels(t *testing.T) {
	t.Parallel()
	m := Measurement{Memory: 7e6, Scale: 1.5, Windows: []Window{
		windowOf("encoder", 20, 0, 10*time.Millisecond), windowOf("ranker", 60, 20, time.Millisecond),
		windowOf("encoder", 20, 0, 10*time.Millisecond), windowOf("ranker", 60, 20, time.Millisecond),
	}}
	for metric, want := range map[Metric]float64{
		"encoder.throughput": 20, "ranker.throughput": 60,
		Throughput:            80, // the sum
		"encoder.latency_p50": 0.010, "ranker.latency_p50": 0.001,
		ErrorRate: 0.25, // the worst model's 40 of 160, not 40 of 200
		CPU:       0.5,  // once, not for each model
		Memory:    7e6,
		Scale:     1.5,
	} {
		if got, ok := m.Value(metric); !ok || got < want*0.99 || got > want*1.01 {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
		e, ok := m.Estimate(metric)
		if !ok || e.Value < want*0.99 || e.Value > want*1.01 || e.Lo > e.Value || e.Hi < e.Value {
			t.Errorf("the estimate of %s is %+v, want %v", metric, e, want)
		}
	}
	for _, metric := range []Metric{LatencyP99, LatencyAvg, QueueTime, "other.throughput"} {
		if x, ok := m.Value(metric); ok {
			t.Errorf("%s is %v, but has no value for several models", metric, x)
		}
	}
	if got := m.Lasted(); got != 2*time.Second {
		t.Errorf("two windows of two models last %v, want 2 s", got)
	}
	if diff := cmp.Diff([]string{"encoder", "ranker"}, m.Models()); diff != "" {
		t.Error(diff)
	}
}
