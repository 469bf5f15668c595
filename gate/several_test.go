package gate

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/gate/decide"
	"tuner/measure"
	"tuner/runner"
	"tuner/spec"
	"tuner/spec/gates"
)

// pairOf is an engine that serves two models. Each window of a job gives one of each model, between the same edges.
type pairOf struct{ encoder, ranker measure.Window }

func (b pairOf) Measure(_ context.Context, job runner.Job) (measure.Measurement, error) {
	m := measure.Measurement{Memory: 1e8}
	for range job.Windows {
		time.Sleep(500 * time.Millisecond)
		for model, w := range map[string]measure.Window{"encoder": b.encoder, "ranker": b.ranker} {
			w.Model = model
			m.Windows = append(m.Windows, w)
		}
	}
	return m, nil
}

func (pairOf) Pause()                {}
func (pairOf) Close(context.Context) {}

// gateOf runs a gate of two models. The second has a request rate.
func gateOf(t *testing.T, baseline, candidate Engine, criteria ...Criterion) Outcome {
	t.Helper()
	var o Outcome
	synctest.Test(t, func(t *testing.T) {
		job := runner.Job{Parts: []runner.Job{{Model: "encoder", Load: measure.Load{Concurrency: 8}}, {Model: "ranker", Load: measure.Load{RequestRate: 60, BatchSize: 1}}}}
		g := Gate{Baseline: &Side{Engine: baseline, Job: job}, Candidate: Side{Engine: candidate, Job: job}, Criteria: criteria, Budget: time.Hour, Now: time.Now}
		var err error
		if o, err = g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return o
}

// A criterion takes the windows of its model. A model that got slower fails the gate by its name, and the
// other's criteria pass.
func TestGateOfSeveralModels(t *testing.T) {
	t.Parallel()
	fast, slow := windowOf(200, 0.04, 0, 1), windowOf(200, 0.05, 0, 1)
	criteria := []Criterion{{Metric: "encoder.latency_p99", Margin: 0.1}, {Metric: "ranker.latency_p99", Margin: 0.1}, {Metric: measure.Memory, Margin: 0.02},
		{Metric: "ranker.latency_p99", Bound: 0.06}}
	o := gateOf(t, pairOf{fast, fast}, pairOf{fast, slow}, criteria...)
	var verdicts []decide.Verdict
	for _, s := range o.Standings {
		verdicts = append(verdicts, s.Verdict)
	}
	if diff := cmp.Diff([]decide.Verdict{decide.Pass, decide.Fail, decide.Pass, decide.Pass}, verdicts); diff != "" || o.Verdict != decide.Fail {
		t.Errorf("%s: %v", o.Verdict, verdicts)
	}
	if len(o.Reasons) != 1 || !strings.HasPrefix(o.Reasons[0], "ranker.latency_p99 differs by +25") {
		t.Errorf("reasons %q", o.Reasons)
	}
	if o := gateOf(t, pairOf{fast, slow}, pairOf{fast, slow}, criteria...); o.Verdict != decide.Pass {
		t.Errorf("equal sides: %s, %q", o.Verdict, o.Reasons)
	}
}

// A share of failed requests names the model, however much traffic the others have.
func TestBrokenModelIsNamed(t *testing.T) {
	t.Parallel()
	fine := windowOf(20000, 0.04, 0, 1)
	failing := windowOf(200, 0.04, 0, 1)
	failing.Errors, failing.FirstError = failing.Requests/10, "out of memory"
	o := gateOf(t, pairOf{fine, fine}, pairOf{fine, failing}, Criterion{Metric: "encoder.latency_p99", Margin: 0.1})
	if o.Verdict != decide.Fail || len(o.Reasons) != 1 || o.Reasons[0] != "9.1 % of the candidate's requests to ranker failed, the first with: out of memory" {
		t.Errorf("%s: %q", o.Verdict, o.Reasons)
	}
	if diff := cmp.Diff([]string{"ranker"}, o.Broken); diff != "" {
		t.Errorf("broken (-want +got):\n%s", diff)
	}
}

// A queue that grows names its model. The times of that model prove nothing then, and those of the others hold,
// however much traffic they have.
func TestQueueOfOneModelGrows(t *testing.T) {
	t.Parallel()
	fine, late := windowOf(20000, 0.04, 0, 1), windowOf(200, 0.04, 0, 1)
	late.Scheduled = 2 * late.Requests
	o := gateOf(t, pairOf{fine, late}, pairOf{fine, late}, Criterion{Metric: "encoder.latency_p99", Margin: 0.1}, Criterion{Metric: "ranker.latency_p99", Margin: 0.1})
	if o.Verdict != decide.Inconclusive || !o.Backlog || o.Standings[0].Verdict != decide.Pass || o.Standings[1].Verdict != decide.Inconclusive {
		t.Errorf("%s: %+v", o.Verdict, o.Standings)
	}
	if want := "the candidate does not keep up with 60 requests/s to ranker: its queue keeps growing"; len(o.Reasons) != 1 || !strings.HasPrefix(o.Reasons[0], want) {
		t.Errorf("reasons %q, want %q", o.Reasons, want)
	}
}

// scattering is an engine of several models. The windows of each scatter by random numbers of their own.
type scattering struct{ models []*scattered }

type scattered struct {
	name    string
	random  *rand.Rand
	latency float64 // s, on average
}

func (s scattering) Measure(_ context.Context, job runner.Job) (measure.Measurement, error) {
	m := measure.Measurement{Memory: 1e8}
	for range job.Windows {
		time.Sleep(500 * time.Millisecond)
		for _, of := range s.models {
			rate := 8 / of.latency * math.Exp(0.01*of.random.NormFloat64())
			m.Windows = append(m.Windows, named(of.name, windowOf(rate, of.latency*math.Exp(0.02*of.random.NormFloat64()), 0, 1)))
		}
	}
	return m, nil
}

func (scattering) Pause()                {}
func (scattering) Close(context.Context) {}

// scatter makes the engine of a side. Each model has the seed and the latency of its name.
func scatter(side uint64, seeds map[string]uint64, latencies map[string]float64, order ...string) scattering {
	var s scattering
	for _, name := range order {
		s.models = append(s.models, &scattered{name, rand.New(rand.NewPCG(seeds[name], side)), latencies[name]})
	}
	return s
}

// A model's criteria stand alike whatever company it has, and whatever the models are called and in which order
// they stand.
func TestCompanyDoesNotDecide(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		worse := 0.9 + 0.02*float64(seed) // from a faster candidate to one that misses all margins
		judge := func(own, other string, company uint64, order ...string) Outcome {
			seeds := map[string]uint64{own: seed, other: company}
			return gateOf(t, scatter(1, seeds, map[string]float64{own: 0.04, other: 0.03}, order...), scatter(2, seeds, map[string]float64{own: 0.04 * worse, other: 0.05}, order...),
				Criterion{Metric: measure.Throughput.Of(own), Margin: 0.02}, Criterion{Metric: measure.LatencyP99.Of(own), Margin: 0.1}, Criterion{Metric: measure.LatencyP99.Of(own), Bound: 0.042})
		}
		want := judge("a", "b", 100, "a", "b")
		for name, got := range map[string]Outcome{"other company": judge("a", "b", 200, "a", "b"), "another order": judge("a", "b", 100, "b", "a"), "other names": judge("b", "a", 100, "a", "b")} {
			if diff := cmp.Diff(want.Standings, got.Standings); diff != "" || got.Verdict != want.Verdict || len(got.Pairs) != len(want.Pairs) {
				t.Errorf("seed %d, %s: %s after %d pairs, want %s after %d (-want +got):\n%s", seed, name, got.Verdict, len(got.Pairs), want.Verdict, len(want.Pairs), diff)
			}
		}
	}
}

// The gate fails exactly if a model or the server fails, and passes exactly if all pass.
func TestGateIsTheWorstOfItsModels(t *testing.T) {
	t.Parallel()
	g, err := gates.Parse("g.yaml", []byte(`
models:
  a: {baseline: b, candidate: c, load: {concurrency: 8}, metrics: [throughput, latency_p99]}
  b: {baseline: b, candidate: c, load: {concurrency: 8}, metrics: [latency_p99], limits: {latency_p99: 45ms}}
limits: {memory: 1GB}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Spec: g, Models: []Setup{{Spec: g.Models[0]}, {Spec: g.Models[1]}}}
	seen := map[decide.Verdict]int{}
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 3))
		seeds := map[string]uint64{"a": seed, "b": seed + 100}
		latencies := func() map[string]float64 {
			return map[string]float64{"a": 0.04 * math.Exp(0.05*random.NormFloat64()), "b": 0.04 * math.Exp(0.05*random.NormFloat64())}
		}
		o := gateOf(t, scatter(1, seeds, latencies(), "a", "b"), scatter(2, seeds, latencies(), "a", "b"), Criteria(g)...)
		parts := NewResult(s, o, nil, time.Time{}, "").Parts()
		if len(parts) != 3 || parts[0].Name() != "a" || parts[1].Name() != "b" || parts[2].Name() != "server" {
			t.Fatalf("seed %d: %v", seed, parts)
		}
		want := decide.Verdict("")
		for _, p := range parts {
			want = both(want, p.Verdict)
		}
		if seen[o.Verdict]++; o.Verdict != want {
			t.Errorf("seed %d: %s, of %v", seed, o.Verdict, parts)
		}
	}
	if seen[decide.Pass] == 0 || seen[decide.Fail] == 0 {
		t.Errorf("verdicts %v: all must occur", seen)
	}
}

// A part's verdict is that of its worst criterion, its comparison of outputs, and its process.
func TestParts(t *testing.T) {
	t.Parallel()
	verdicts := []decide.Verdict{decide.Pass, decide.Inconclusive, decide.Fail} // from good to bad
	names := []string{"a", "b", ""}
	random := rand.New(rand.NewPCG(4, 5))
	for range 1000 {
		r := Result{Setup: Setup{Models: []Setup{{Spec: spec.Gate{Name: "a"}}, {Spec: spec.Gate{Name: "b"}}}}}
		worst := map[string]int{}
		add := func(name string, bad int) { worst[name] = max(worst[name], bad) }
		for range random.IntN(4) {
			name, bad := names[random.IntN(3)], random.IntN(3)
			r.Rows = append(r.Rows, Row{Criterion: Criterion{Metric: measure.CPU.Of(name)}, Verdict: verdicts[bad]})
			add(name, bad)
		}
		if random.IntN(2) == 0 {
			r.Accuracy = append(r.Accuracy, Accuracy{Model: "b", Miss: "too far"})
			add("b", 2)
		} else {
			r.Accuracy = append(r.Accuracy, Accuracy{Model: "a"})
			add("a", 0)
		}
		if random.IntN(3) == 0 {
			name := names[random.IntN(3)]
			r.Outcome.Broken = append(r.Outcome.Broken, name)
			add(name, 2)
		}
		var want []Part
		for _, name := range names {
			if bad, has := worst[name]; has {
				want = append(want, Part{name, verdicts[bad]})
			}
		}
		if diff := cmp.Diff(want, r.Parts()); diff != "" {
			t.Fatalf("%+v (-want +got):\n%s", r, diff)
		}
		if r.Setup.Models = nil; r.Parts() != nil {
			t.Fatal("one model has parts")
		}
	}
}

func named(model string, w measure.Window) measure.Window {
	w.Model = model
	return w
}

// A model's figure is that of a gate of it alone, whatever stands between its windows. Figures of the server do not
// grow with the number of models.
func TestFiguresOfAModelAreItsOwn(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var alone, together measure.Measurement
		alone.Memory, together.Memory = 1e8, 1e8
		for range 1 + random.IntN(12) {
			w := windowOf(10+200*random.Float64(), 0.001+random.Float64(), random.Float64(), 1+random.Float64())
			w.EngineCPU = time.Duration(random.IntN(100)) * time.Second
			other := windowOf(10+200*random.Float64(), 0.001+random.Float64(), 0, 1)
			other.EngineCPU = w.EngineCPU // of the process
			alone.Windows = append(alone.Windows, w)
			together.Windows = append(together.Windows, named("a", w), named("b", other))
		}
		for _, m := range []measure.Metric{measure.Throughput, measure.LatencyAvg, measure.LatencyP99} {
			x, _ := Figure(m, alone)
			if y, ok := Figure(m.Of("a"), together); !ok || math.Abs(y/x-1) > 1e-12 {
				t.Fatalf("%s is %g alone, and %g (%t) beside another model", m, x, y, ok)
			}
		}
		for _, m := range []measure.Metric{measure.Memory, measure.CPU} {
			x, isKnown := Figure(m, alone)
			if y, ok := Figure(m, together); ok != isKnown || isKnown && math.Abs(y/x-1) > 1e-12 {
				t.Fatalf("%s is %g of one model, and %g (%t) of two", m, x, y, ok)
			}
		}
	}
}

// Each side of a gate of several models is one job, with a part and a folder of the repository for each. They lie in the
// gate's output folder, also where a flag names it.
func TestOpenSeveral(t *testing.T) {
	t.Parallel()
	s := newSetup(t, `models:
  a: {baseline: simple.onnx, candidate: simple.onnx, load: {request_rate: 50}}
  b: {baseline: simple.onnx, candidate: simple.onnx, load: {concurrency: 2, client_batch_size: 2}}
window: 1s
`)
	if text := s.LoadText(); text != "a 50 requests/s, b concurrency 2 × batch 2" || s.Fingerprint == "" || s.Load.Scale != 1 {
		t.Errorf("load %q, %+v", text, s.Load)
	}
	s.Spec.Output = t.TempDir()
	for name, prepare := range map[string]func() (runner.Job, error){"candidate": s.CandidateJob, "baseline": s.BaselineJob} {
		job, err := prepare()
		if err != nil {
			t.Fatal(err)
		}
		var models []string
		var loads []measure.Load
		for _, part := range job.Parts {
			models, loads = append(models, part.Model), append(loads, part.Load)
			if _, err := os.Stat(filepath.Join(job.Repository, part.Model, "config.pbtxt")); err != nil || part.Window != time.Second {
				t.Errorf("%s of %s: window %v, %v", name, part.Model, part.Window, err)
			}
		}
		if diff := cmp.Diff([]string{"a", "b"}, models); diff != "" {
			t.Errorf("%s: models (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]measure.Load{{RequestRate: 50, BatchSize: 1}, {Concurrency: 2, BatchSize: 2}}, loads); diff != "" {
			t.Errorf("%s: loads (-want +got):\n%s", name, diff)
		}
		if !strings.HasPrefix(job.Repository, s.Spec.Output) {
			t.Errorf("%s: the repository %q is not in %q", name, job.Repository, s.Spec.Output)
		}
	}
}

// The criteria of several models have their names.
func TestCriteriaOfSeveralModels(t *testing.T) {
	t.Parallel()
	g, err := gates.Parse("g.yaml", []byte("models: {a: {baseline: b, candidate: c, load: {concurrency: 1}, metrics: [throughput], limits: {latency_p99: {max: 30ms}}}}\nlimits: {memory: 1GB}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Criterion{{Metric: "a.throughput", Margin: 0.02}, {Metric: "a.latency_p99", Bound: 0.03}, {Metric: "memory", Bound: 1e9}}
	if diff := cmp.Diff(want, Criteria(g)); diff != "" {
		t.Errorf("criteria (-want +got):\n%s", diff)
	}
}
