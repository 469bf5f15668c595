package output

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/gate"
	"tuner/gate/decide"
	"tuner/measure"
	"tuner/spec/gates"
)

// reportOfTwo makes a gate of two models on one server, of which one got slower.
func reportOfTwo(t *testing.T) Report {
	t.Helper()
	g, err := gates.Parse("gate.yaml", []byte(`models:
  encoder: {baseline: base.onnx, candidate: new.onnx, load: {request_rate: 60}, metrics: [latency_p99], limits: {latency_p99: 50ms, accuracy: {metric: cosine, min: 0.99}}}
  ranker: {baseline: ranker.onnx, candidate: ranker.onnx, load: {concurrency: 8}, metrics: [throughput]}
limits: {memory: {max: 1GB}}
`))
	if err != nil {
		t.Fatal(err)
	}
	mix, err := measure.NewMix(measure.Part{Model: "encoder", RequestRate: 60, BatchSize: 1}, measure.Part{Model: "ranker", Concurrency: 8, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := gate.Setup{Spec: g, Baseline: &gate.Subject{Runtime: "cpu@1.31.1"}, Candidate: gate.Subject{Runtime: "cpu@1.31.1"}, Load: measure.Load{Scale: 1, Mix: mix}, Tool: "1.0", Fingerprint: "0123456789abcdef"}
	for i, path := range []string{"base.onnx", "ranker.onnx"} {
		baseline, candidate := subject(path), subject(path)
		if i == 0 {
			candidate = subject("new.onnx")
		}
		s.Models = append(s.Models, gate.Setup{Spec: g.Models[i], Baseline: &baseline, Candidate: candidate, Load: g.Models[i].Load})
	}
	o := gate.Outcome{Verdict: decide.Fail, Looks: 1, Elapsed: 161 * time.Second, Reasons: []string{"encoder.latency_p99 differs by +20.0 % (+15.0 % to +25.0 %): 10 % higher is allowed"},
		Standings: []decide.Standing{
			{Verdict: decide.Fail, Value: math.Log(1.2), Lo: math.Log(1.15), Hi: math.Log(1.25), Pairs: 10},
			{Verdict: decide.Pass, Value: 0.001, Lo: -0.01, Hi: 0.012, Pairs: 10},
			{Verdict: decide.Pass, Value: math.Log(0.9), Lo: math.Log(0.89), Hi: math.Log(0.91), Pairs: 10},
			{Verdict: decide.Pass, Value: math.Log(0.3), Lo: math.Log(0.29), Hi: math.Log(0.31), Pairs: 10},
		}}
	of := func(encoder, ranker float64) measure.Measurement {
		m := side(encoder)
		m.Windows[0].Model, m.Windows[0].Scheduled = "encoder", m.Windows[0].Requests
		other := side(ranker).Windows[0]
		other.Model = "ranker"
		m.Windows = append(m.Windows, other)
		return m
	}
	for range 10 {
		o.Pairs = append(o.Pairs, gate.Pair{Baseline: of(200, 900), Candidate: of(170, 899)})
	}
	r := gate.NewResult(s, o, nil, time.Unix(1.75e9, 0), "abc123")
	r.Accuracy = []gate.Accuracy{{Model: "encoder", Limit: "cosine ≥ 0.99", Value: 0.995, Note: "on 64 rows"}}
	return Report{Result: r, History: []gate.Record{gate.NewRecord(r)}}
}

// CI systems show a verdict for each class, so each model is one, and the server is that of the gate.
func TestJUnitOfSeveralModels(t *testing.T) {
	t.Parallel()
	classes := func(r Report) map[string]bool { // whether a case fails
		found := map[string]bool{}
		for _, c := range r.cases() {
			found[c.Class] = found[c.Class] || c.Failure != nil
		}
		return found
	}
	r := reportOfTwo(t)
	r.Rows[0].Verdict = decide.Pass
	want := map[string]bool{"gate.encoder+ranker.encoder": false, "gate.encoder+ranker.ranker": false, "gate.encoder+ranker": false}
	r.Outcome.Verdict = decide.Pass
	if diff := cmp.Diff(want, classes(r)); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	// the model that crashes fails, although none of its criteria was judged
	r.Outcome.Verdict, r.Outcome.Broken, r.Outcome.Reasons = decide.Fail, []string{"ranker"}, []string{"the candidate failed"}
	want["gate.encoder+ranker.ranker"] = true
	for i := range r.Rows {
		r.Rows[i].Verdict = decide.Inconclusive
	}
	if diff := cmp.Diff(want, classes(r)); diff != "" {
		t.Errorf("crashed (-want +got):\n%s", diff)
	}
	if text := r.byModel(); text != "encoder: inconclusive, ranker: fail, server: inconclusive" {
		t.Errorf("%q", text)
	}
}

// A line of the history belongs to later gates of the same models and traffic, and to no others.
func TestHistoryOfSeveralModels(t *testing.T) {
	t.Parallel()
	r := reportOfTwo(t)
	path := filepath.Join(t.TempDir(), "history.jsonl")
	other := r.History[0]
	other.Load = measure.Load{Scale: 2, Mix: other.Load.Mix}
	for _, record := range []gate.Record{other, r.History[0], r.History[0]} {
		var err error
		if r.History, err = gate.AppendHistory(path, record); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.History, err = gate.ReadHistory(path); err != nil || len(r.History) != 3 || len(r.related()) != 2 {
		t.Errorf("%d lines, of which %d are related: %v", len(r.History), len(r.related()), err)
	}
}
