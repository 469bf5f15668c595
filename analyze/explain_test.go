package analyze_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/analyze/bottleneck"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/search"
)

// guidedProfile has a space that contains the default.
const guidedProfile = `model: minilm.onnx
name: minilm
output: out
search: {budget: {trials: 40}}
space:
  instance_count: [1, 2]
  max_batch_size: [1, 4, 8, 16]
  max_queue_delay: [0, 1ms]
load: {concurrency: {min: 1, max: 64, scale: pow2}, inputs: {shape: {input_ids: [32]}}}
constraints: {latency_p99: {max: 1s}}
`

func explained(t *testing.T, c analyze.Campaign) (analyze.Result, analyze.Explanation) {
	t.Helper()
	r, err := analyze.Analyze(c, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Explanation.Subjects) == 0 {
		t.Fatal("nothing is explained")
	}
	return r, r.Explanation
}

// The server is the queue simulation with known service times. So the test knows its bottleneck,
// the effect of each knob, and the error of the predictions.
func TestExplanationOfAGuidedCampaign(t *testing.T) {
	t.Parallel()
	r, x := explained(t, campaignOn(t, guidedProfile, server{overhead: 0.0003, tail: 0.3}))
	best := x.Subjects[0]
	if best.Name != r.Configs[0].Name || best.Change != nil || x.Subjects[len(x.Subjects)-1].Name != r.Default().Name {
		t.Errorf("subjects are %+v", x.Subjects)
	}
	if b := best.Breakdown; best.Bottleneck != bottleneck.Compute || b == nil || b.Busy < 1.9 || b.Busy > 2.1 {
		t.Errorf("of 64 requests in flight: bottleneck %q, %+v; want compute, 2 instances busy", best.Bottleneck, b)
	}
	if best.Curve == nil || math.Abs(best.Curve.Alone[0]-0.003) > 0.0003 {
		t.Errorf("service curve %+v, want 3 ms for a batch of one", best.Curve)
	}
	checkPredictions(t, best)
	checkKnobs(t, x.Knobs)
	u := x.Untried
	sum := u.Measured + u.Predicted + u.Unreached
	for _, f := range u.Skipped {
		sum += f.Count
	}
	// a batch of one has no delay, so there are 2 · (1 + 3 · 2) candidates
	if u.Candidates != 14 || sum != 14 || u.Unreached != 0 || u.Gain == nil || *u.Gain > 0.2 {
		t.Errorf("untried: %+v", u)
	}
}

// The simulation is right except for the tail: p99 is e^0.3 times larger. The search has learned
// that factor.
func checkPredictions(t *testing.T, s analyze.Subject) {
	t.Helper()
	seen := map[measure.Metric]bool{}
	for _, p := range s.Predictions {
		seen[p.Metric] = true
		if p.Simulated == nil {
			t.Errorf("%s is not simulated", p.Metric)
			continue
		}
		want, off := 0.0, *p.Simulated/p.Measured.Value-1
		if p.Metric == measure.LatencyP99 {
			want = math.Exp(-0.3) - 1
		}
		if math.Abs(off-want) > 0.06 {
			t.Errorf("the simulation of %s is off by %.3f, want %.3f", p.Metric, off, want)
		}
		if isGoal := p.Metric != measure.LatencyAvg; isGoal != p.Holds() {
			t.Errorf("%s: believed %v, measured %v", p.Metric, p.Believed, p.Measured)
		}
	}
	if want := map[measure.Metric]bool{measure.Throughput: true, measure.LatencyAvg: true, measure.LatencyP99: true}; !cmp.Equal(want, seen) {
		t.Errorf("predicted are %v, want %v", seen, want)
	}
}

// In the finals the machine is a quarter faster than in the search. A prediction from before the
// finals misses by that factor.
func TestPredictionsKnowNoFinals(t *testing.T) {
	t.Parallel()
	faster := math.Log(1.25)
	c := campaignOn(t, guidedProfile, server{overhead: 0.0003, finals: faster})
	check := func(c analyze.Campaign, areFinals bool, off float64) {
		t.Helper()
		r, x := explained(t, c)
		s := x.Subjects[slices.IndexFunc(x.Subjects, func(s analyze.Subject) bool {
			c, _ := r.Config(s.Name)
			return c.Best.Confirmed == areFinals
		})]
		i := slices.IndexFunc(s.Predictions, func(p analyze.Prediction) bool { return p.Metric == measure.Throughput })
		if i < 0 {
			t.Fatalf("predicted are %+v", s.Predictions)
		}
		p := s.Predictions[i]
		if (p.Believed != nil) != areFinals || areFinals && math.Abs(math.Log(p.Measured.Value/p.Believed.Value)-off) > 0.03 {
			t.Errorf("believed %v, measured %v", p.Believed, p.Measured)
		}
		if math.Abs(math.Log(p.Measured.Value/(*p.Simulated))-off) > 0.06 {
			t.Errorf("simulated %v, measured %v", *p.Simulated, p.Measured)
		}
	}
	check(c, true, faster)
	c.Events = slices.DeleteFunc(slices.Clone(c.Events), func(e search.Event) bool {
		return e.Trial.Phase == search.PhaseFinal || e.Trial.Phase == search.PhaseLoadCurve
	})
	c.End = nil
	check(c, false, 0) // the measured figures are windows of the search, which its beliefs contain
}

// Batches of 16 take 18 ms, so one inference takes 1.125 ms. In batches of 8 it takes 1.25, of 4
// 1.5, of one 3. A second instance gives a factor of 2/1.1. A delay changes nothing, since the
// queue is never empty.
func checkKnobs(t *testing.T, knobs []search.KnobEffect) {
	t.Helper()
	if len(knobs) != 3 || knobs[0].Knob != search.KnobMaxBatchSize || knobs[1].Knob != search.KnobInstanceCount {
		t.Fatalf("knobs in the order of their effects: %+v", knobs)
	}
	check := func(k search.KnobEffect, chosen search.Value, want map[search.Value]float64) {
		t.Helper()
		if k.Chosen != chosen || len(k.Others) != len(want) {
			t.Errorf("%s: chosen %q with %d others, want %q with %d", k.Knob, k.Chosen, len(k.Others), chosen, len(want))
		}
		for _, e := range k.Others {
			if math.Abs(e.Change.Value-want[e.Value]) > 0.05 || e.Change.Lo > want[e.Value]+0.03 || e.Change.Hi < want[e.Value]-0.03 {
				t.Errorf("%s %s: change %+v (%s), want %.3f", k.Knob, e.Value, e.Change, e.Basis, want[e.Value])
			}
		}
	}
	check(knobs[0], "16", map[search.Value]float64{"1": 1.125/3 - 1, "4": 1.125/1.5 - 1, "8": 1.125/1.25 - 1})
	check(knobs[1], "2", map[search.Value]float64{"1": 1.1/2 - 1})
	if delay := knobs[2]; len(delay.Others) != 1 || math.Abs(delay.Others[0].Change.Value) > 0.03 {
		t.Errorf("effect of the delay: %+v, want none", delay)
	}
}

func TestBottlenecks(t *testing.T) {
	t.Parallel()
	at := func(concurrency, space string) string {
		p := strings.Replace(guidedProfile, "{min: 1, max: 64, scale: pow2}", concurrency, 1)
		// p: grid also measures configurations that cannot win
		p = strings.Replace(p, "{budget: {trials: 40}}", "{strategy: grid, budget: {trials: 20}}", 1)
		begin, end := strings.Index(p, "space:"), strings.Index(p, "load:")
		return p[:begin] + "space: " + space + "\n" + p[end:]
	}
	check := func(name, profile string, s server, pick func(analyze.Config) bool, want bottleneck.Kind) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, x := explained(t, campaignOn(t, profile, s))
			i := slices.IndexFunc(x.Subjects, func(s analyze.Subject) bool {
				c, _ := r.Config(s.Name)
				return pick(c)
			})
			if i < 0 {
				t.Fatalf("not explained: %+v", x.Subjects)
			}
			if got := x.Subjects[i]; got.Bottleneck != want {
				t.Errorf("%s at %s: bottleneck %q, want %q: %+v", got.Name, got.Load, got.Bottleneck, want, got.Breakdown)
			}
		})
	}
	first := func(c analyze.Config) bool { return c.Rank == 1 }
	isDefault := func(c analyze.Config) bool { return c.Candidate.IsDefault() }
	notDefault := func(c analyze.Config) bool { return !c.Candidate.IsDefault() }
	quick := server{overhead: 0.0003}
	small := "{instance_count: [1, 2], max_batch_size: [1, 4]}"
	check("full instances", at("[16]", small), quick, first, bottleneck.Compute)
	check("a request at a time", at("[1]", small), quick, isDefault, bottleneck.Load)
	check("far clients", at("[2, 4]", small), server{overhead: 0.040}, first, bottleneck.Client)
	check("a slow load generator", at("[16]", small), server{overhead: 0.0003, flags: []measure.Flag{measure.FlagSendDelay}}, first, bottleneck.Client)
	// Four requests never fill a batch of 16, so they wait 50 ms. An execution takes 6 ms.
	check("a long delay", at("[4]", "{instance_count: [1], max_batch_size: [16], max_queue_delay: [50ms]}"), quick, notDefault, bottleneck.Queue)
}

// Two instances take 290 MB, more than the limit. They have a higher throughput than the one
// instance that fits.
func TestMemoryBars(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "{latency_p99: {max: 50ms}}", "{latency_p99: {max: 50ms}, memory: {max: 200MB}}", 1)
	two := analyzetest.Candidate(2, 1, 16)
	r, x := explained(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 8).Measure(two, 16).Measure(analyzetest.Candidate(1, 2, 16), 16).Campaign())
	if x.Barred == nil || x.Barred.Name != "minilm_config_0" || x.Barred.Change <= 0 || x.Subjects[0].Bottleneck != bottleneck.Memory {
		t.Fatalf("barred is %+v, the bottleneck %q", x.Barred, x.Subjects[0].Bottleneck)
	}
	if c, _ := r.Config(x.Barred.Name); c.Candidate.Key() != two.Key() {
		t.Errorf("barred is %v", c.Candidate)
	}
}

// If the strategy does not predict, measurements alone tell how much a knob matters.
func TestExplanationByMeasurementsAlone(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	r, x := explained(t, analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 8, 16).Measure(analyzetest.Candidate(1, 1, 16), 8).Measure(analyzetest.Candidate(2, 1, 4), 8, 16).
		Measure(best, 16, 32).Confirm(best, 16).Confirm(search.Candidate{}, 8).Campaign())
	winner, _ := r.Winner()
	if winner.Candidate.Key() != best.Key() {
		t.Fatalf("the winner is %v", winner.Candidate)
	}
	subject := x.Subjects[0]
	if subject.Predictions != nil || subject.Curve != nil || x.Untried.Gain != nil || x.Untried.Predicted != 0 {
		t.Errorf("a grid predicts: %+v, %+v", subject, x.Untried)
	}
	if h := subject.Higher; h == nil || h.Load.Concurrency != 32 || len(h.Misses) != 1 {
		t.Errorf("next higher load is %+v, want concurrency 32, which misses p99", subject.Higher)
	}
	// 2 numbers of threads × 2 of instances × 3 batches give 12 candidates. Three of them were
	// measured.
	if u := x.Untried; u.Candidates != 12 || u.Measured != 3 || u.Unreached != 9 {
		t.Errorf("untried: %+v", u)
	}
	effects := map[string]search.Effect{}
	for _, k := range x.Knobs {
		for _, e := range k.Others {
			effects[k.Knob+" "+string(e.Value)] = e
		}
	}
	// One instance has half the throughput: 8 / 26 ms instead of 2 · 8 / 26 ms. Two threads and
	// batches of 8 were not measured.
	if e := effects["instance_count 1"]; e.Basis != search.BasisMeasured || math.Abs(e.Change.Value+0.5) > 0.06 {
		t.Errorf("one instance: %+v", e)
	}
	for _, unknown := range []string{"intra_op_threads 2", "max_batch_size 8"} {
		if e, ok := effects[unknown]; !ok || e.Basis != search.BasisUnknown {
			t.Errorf("%s: %+v, %v", unknown, e, ok)
		}
	}
	if x.Knobs[0].Knob != search.KnobInstanceCount {
		t.Errorf("what matters most is %s", x.Knobs[0].Knob)
	}
}

// The explanation is about the best configuration. A result without it explains nothing.
func TestOnlyTheBestIsExplained(t *testing.T) {
	t.Parallel()
	best, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 4)
	r, all := explained(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Measure(other, 8).Campaign())
	with, _ := r.Only([]string{"minilm_config_0"})
	if x := with.Explanation; len(x.Subjects) != 2 || x.Subjects[0].Name != "minilm_config_0" || len(x.Knobs) != len(all.Knobs) || len(x.Knobs) == 0 {
		t.Errorf("the best is explained by %+v", x)
	}
	if len(with.Ending.Statement) == 0 {
		t.Error("with the best there is no statement: else the test shows nothing")
	}
	without, _ := r.Only([]string{"minilm_config_1"})
	if s := without.Ending.Statement; s != nil {
		t.Errorf("without the best it is stated: %q", s)
	}
	if x := without.Explanation; len(without.Configs) != 2 || len(x.Subjects) > 0 || len(x.Knobs) > 0 || x.Untried.Candidates > 0 {
		t.Errorf("without the best the explanation is %+v", x)
	}
}

func TestNothingToExplain(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{})
	if x := r.Explanation; len(x.Subjects) > 0 || len(x.Knobs) > 0 {
		t.Errorf("explained is %+v", x)
	}
}

// A guided campaign on the server above wrote the journal in testdata. With it, scripts test
// explanations without ONNX Runtime.
func TestRecordedGuidedJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "testdata", "journals", "guided")
	if golden.Updates() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		analyzetest.WriteJournal(t, campaignOn(t, guidedProfile, server{overhead: 0.0003, tail: 0.3}), dir)
		if err := os.Remove(filepath.Join(dir, "journal.lock")); err != nil {
			t.Fatal(err)
		}
	}
	c, err := analyze.Replay(dir)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	_, x := explained(t, c)
	if len(x.Subjects[0].Predictions) == 0 || len(x.Knobs) != 3 {
		t.Errorf("the explanation is %+v", x)
	}
}
