package joint_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/search"
	"tuner/search/joint"
)

// partOf is a model with two engines, two numbers of instances and three batches, of which the
// search folds some.
func partOf(model string, rate float64) search.Part {
	return search.Part{Model: model, Space: search.Space{
		Knobs: []search.Knob{
			{Name: search.KnobIntraOpThreads, Scope: search.ScopeEngine, Values: []search.Value{"1", "2"}},
			{Name: search.KnobInstanceCount, Scope: search.ScopePool, Values: []search.Value{"1", "2", "4"}},
			{Name: search.KnobMaxBatchSize, Scope: search.ScopeBatcher, Values: []search.Value{"1", "8"}},
			{Name: search.KnobMaxQueueDelay, Scope: search.ScopeBatcher, Values: []search.Value{"0us", "500us"}},
			{Name: "session.set_denormal_as_zero", Scope: search.ScopeEngine, Values: []search.Value{"0", "1"}},
		},
		Load:  search.LoadAxis{Rate: true, Levels: []float64{rate}, BatchSize: 1},
		Facts: search.Facts{Cores: 2, Batching: true, Base: map[string]search.Value{search.KnobInstanceCount: "1"}, Precisions: []string{"fp32"}},
	}}
}

func together(t *testing.T, parts ...search.Part) search.Space {
	t.Helper()
	s, err := joint.Space(parts, nil, []float64{0.5, 1, 2}, search.Facts{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Of few requests in flight, scales between two numbers of them are one load: its scale is the
// highest one. A rate is another one at each scale.
func TestScalesOfOneLoadAreOne(t *testing.T) {
	t.Parallel()
	closed, open := partOf("ranker", 2), partOf("encoder", 10)
	closed.Space.Load.Rate = false
	scales := []float64{0.25, 0.3, 0.5, 0.75, 1, 1.25, 1.5, 1.6}
	for _, c := range []struct {
		parts []search.Part
		want  []float64
	}{
		{[]search.Part{closed}, []float64{0.5, 1, 1.5, 1.6}}, // 1, 2, 3 and 4 in flight
		{[]search.Part{closed, open}, scales},
	} {
		s, err := joint.Space(c.parts, nil, scales, search.Facts{Cores: 2})
		if err != nil || !slices.Equal(s.Load.Levels, c.want) {
			t.Errorf("%d models: %v, %v, want %v", len(c.parts), s.Load.Levels, err, c.want)
		}
	}
}

// The knobs of one model keep their names, their scopes and therefore their keys, whatever stands
// before their dots.
func TestKnobsOfOneModelHaveNoModel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"intra_op_threads", "session.intra_op.allow_spinning", "openvino.num_streams", "tensorrt.max_batch_size", "parameters.precision",
		"dynamic_batching.preserve_ordering", "dynamic_batching.max_batch_size", "optimization.execution_accelerators", "isolation", "a.b", "x.",
	} {
		if model, knob := search.SplitKnob(name); (name != "a.b") && (model != "" || knob != name) {
			t.Errorf("%s is the knob %s of model %q", name, knob, model)
		}
	}
	for name, want := range map[string]search.Scope{
		"encoder.max_batch_size": search.ScopeBatcher, "encoder.precision": search.ScopeArtifact, "encoder.session.x": search.ScopeEngine,
		"encoder.instance_count": search.ScopePool, "encoder.openvino.num_streams": search.ScopeEngine,
	} {
		if scope, known := search.KnobScope(name); !known || scope != want {
			t.Errorf("%s has the scope %v (known: %t), want %v", name, scope, known, want)
		}
	}
	one := search.NewCandidate(search.Setting{Knob: "dynamic_batching.max_batch_size", Value: "2"}, search.Setting{Knob: "max_batch_size", Value: "4"})
	if key := one.PoolKey(); key != "dynamic_batching.max_batch_size=2" {
		t.Errorf("the pool of a candidate of one model is %q", key)
	}
}

func TestNamesOfModels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"encoder": true, "a": true, "resnet-50_v1": true, "2nd": true,
		"": false, "a.b": false, "-a": false, "_a": false, "a b": false, "session": false, "parameters": false, "optimization": false, "openvino": false, "ü": false,
	} {
		if search.IsModelName(name) != want {
			t.Errorf("%q is a name of a model: %t, want %t", name, !want, want)
		}
	}
}

// Every candidate is the choice of one candidate of each part, each choice occurs once, and taking a
// candidate apart and together again changes nothing.
func TestCandidatesOfSeveralModelsAreTheProduct(t *testing.T) {
	t.Parallel()
	a, b := partOf("encoder", 120), partOf("ranker", 900)
	b.Space.Knobs = b.Space.Knobs[:2] // no batcher
	s := together(t, a, b)
	candidates := s.Candidates()
	of := func(p search.Part) int { n, _ := p.Space.Candidates().Len(); return n }
	if n, exact := candidates.Len(); !exact || n != of(a)*of(b) {
		t.Errorf("%d candidates (exact: %t), want %d · %d", n, exact, of(a), of(b))
	}
	seen := map[string]bool{}
	for _, c := range candidates.All() {
		seen[c.Key()] = true
		joined := s.Joined(s.Joined(search.Candidate{}, "ranker", c.Of("ranker")), "encoder", c.Of("encoder"))
		if joined.Key() != c.Key() {
			t.Fatalf("%s, taken apart and together again, is %s", c, joined)
		}
		if own, illegal := a.Space.Canonical(c.Of("encoder")); illegal != "" || own.Key() != c.Of("encoder").Key() {
			t.Fatalf("%s is no candidate of the model alone", c.Of("encoder"))
		}
		if canonical, illegal := s.Canonical(c); illegal != "" || canonical.Key() != c.Key() {
			t.Fatalf("%s is not canonical: %s %s", c, canonical, illegal)
		}
		if !s.Has(c) {
			t.Fatalf("%s lies outside its space", c)
		}
	}
	if n := of(a) * of(b); len(seen) != n {
		t.Errorf("%d different candidates, want %d", len(seen), n)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		pool, ok := candidates.Draw(random)
		c := candidates.Member(pool, random.IntN(candidates.Batchers()))
		if !ok || !seen[c.Key()] || c.PoolKey() != pool.PoolKey() {
			t.Fatalf("drew %s of pool %s, which the space does not have", c, pool)
		}
	}
	for _, f := range candidates.Folds() {
		if !strings.HasPrefix(f.Reason, "encoder: ") && !strings.HasPrefix(f.Reason, "ranker: ") {
			t.Errorf("a fold names no model: %s", f.Reason)
		}
	}
}

// Other names of the models change the names alone.
func TestNamesChangeNothing(t *testing.T) {
	t.Parallel()
	text := func(first, second string) string {
		s := together(t, partOf(first, 120), partOf(second, 900))
		var b strings.Builder
		for _, c := range s.Candidates().All() {
			load := s.Load.At(2)
			fmt.Fprintln(&b, c, c.PoolKey(), c.ArtifactKey(), c.Describe(), s.ClassKey(c, load), s.MaxBatch(c), s.Instances(c), load.Of(first), load.Of(second), s.FirstStage(c))
		}
		for _, f := range s.Candidates().Folds() {
			fmt.Fprintln(&b, f)
		}
		return b.String()
	}
	swapped := strings.NewReplacer("encoder", "ranker", "ranker", "encoder").Replace(text("encoder", "ranker"))
	if diff := cmp.Diff(swapped, text("ranker", "encoder")); diff != "" {
		t.Errorf("swapped names change more than names:\n%s", diff)
	}
}

func TestOneOfSeveralModelsAlone(t *testing.T) {
	t.Parallel()
	s := together(t, partOf("encoder", 120), partOf("ranker", 900))
	c := search.NewCandidate(
		search.Setting{Knob: "encoder.intra_op_threads", Value: "2"}, search.Setting{Knob: "encoder.session.x", Value: "1"},
		search.Setting{Knob: "ranker.max_batch_size", Value: "8"})
	if got := c.Of("encoder").Key(); got != "intra_op_threads=2 session.x=1" {
		t.Errorf("the encoder's configuration is %q", got)
	}
	if got := c.Describe(); got != "encoder 2 threads, session.x 1; ranker batch 8" {
		t.Errorf("the candidate is described as %q", got)
	}
	if !c.Of("other").IsDefault() || !c.Of("").IsDefault() {
		t.Error("the candidate has settings of nobody")
	}
	if got := s.Value(c, "ranker.instance_count"); got != "1" {
		t.Errorf("the ranker's default has %q instances, want 1", got)
	}
	if got := s.MaxBatch(c); got != 4+8 { // Triton's completion, and the candidate's
		t.Errorf("the largest batches are %d together, want 12", got)
	}
	if got := s.Load.At(2); got.Of("ranker") != (measure.Load{RequestRate: 1800, BatchSize: 1}) || got.Level() != 2 {
		t.Errorf("at scale 2 the ranker has %v", got.Of("ranker"))
	}
	text, err := json.Marshal(c)
	var again search.Candidate
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil || again.Key() != c.Key() {
		t.Errorf("after a journal the candidate is %s (%v)", again, err)
	}
}

func TestModelWithoutKnobsKeepsItsDefault(t *testing.T) {
	t.Parallel()
	fixed := partOf("ranker", 900)
	fixed.Space.Knobs = []search.Knob{}
	s := together(t, partOf("encoder", 120), fixed)
	all := s.Candidates().All()
	if n, _ := partOf("encoder", 1).Space.Candidates().Len(); len(all) != n {
		t.Errorf("%d candidates, want the %d of the other model", len(all), n)
	}
	if slices.ContainsFunc(all, func(c search.Candidate) bool { return !c.Of("ranker").IsDefault() }) {
		t.Error("a model without knobs has another configuration")
	}
}

// An event of several models has windows of these alone, and its requests have their client batches.
func TestEventsOfSeveralModels(t *testing.T) {
	t.Parallel()
	s := together(t, partOf("encoder", 120), partOf("ranker", 900))
	event := func(models ...string) search.Event {
		e := search.Event{Trial: search.Trial{Load: s.Load.At(1), Windows: 1, Window: 1e9}, Elapsed: 2e9}
		for _, m := range models {
			e.Measurement.Windows = append(e.Measurement.Windows, measure.Window{Model: m, Duration: 1e9, Requests: 3, Inferences: 3})
		}
		return e
	}
	if err := event("encoder", "ranker").Check(); err != nil {
		t.Error(err)
	}
	for _, models := range [][]string{{"encoder", "other"}, {""}} {
		if event(models...).Check() == nil {
			t.Errorf("windows of %q are accepted", models)
		}
	}
	larger := event("encoder", "ranker")
	larger.Measurement.Windows[1].Inferences = 6
	if larger.Check() == nil {
		t.Error("requests with two inferences each are accepted at a client batch of 1")
	}
}
