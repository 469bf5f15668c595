package analyze_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// byValue compares values whose fields are not exported.
var byValue = cmp.Options{
	cmp.Comparer(func(a, b search.Candidate) bool { return a.Key() == b.Key() }),
	cmp.Comparer(func(a, b verdict.Reach) bool { return reflect.DeepEqual(a, b) }),
}

func mustAnalyze(t *testing.T, b *analyzetest.Builder, o analyze.Options) analyze.Result {
	t.Helper()
	r, err := analyze.Analyze(b.Campaign(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(configs []analyze.Config) []string {
	var list []string
	for _, c := range configs {
		list = append(list, c.Name)
	}
	return list
}

func TestReplayReturnsWhatTheJournalHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8).
		Fail(analyzetest.Candidate(4, 1, 8), 8, measure.StageCrash, "signal: killed").
		Confirm(search.Candidate{}, 8).
		End("the space is exhausted", false)
	b.WriteJournal(dir)
	got, err := analyze.Replay(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := b.Campaign()
	want.Dir = dir
	if diff := cmp.Diff(want, got, byValue, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("replayed campaign differs (-want +got):\n%s", diff)
	}
}

func TestReplayWithoutJournal(t *testing.T) {
	t.Parallel()
	if _, err := analyze.Replay(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want fs.ErrNotExist", err)
	}
}

func TestConfigurationsAreNamedInOrderOfFirstTrial(t *testing.T) {
	t.Parallel()
	// The better configuration is tried second. Failed trials count as trials.
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 8).
		Fail(analyzetest.Candidate(4, 2, 4), 8, measure.StageStart, "not ready").
		Measure(analyzetest.Candidate(1, 1, 4), 8).
		Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{})
	want := []string{"minilm_config_2", "minilm_config_default", "minilm_config_1", "minilm_config_0"}
	if diff := cmp.Diff(want, names(r.Configs)); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	if got := r.Failures[0].Name; got != "minilm_config_0" {
		t.Errorf("failure is of %s, want minilm_config_0", got)
	}
	if last := r.Configs[3]; last.Rank != 0 || last.Best != nil {
		t.Errorf("a configuration without figures has rank %d and best point %v", last.Rank, last.Best)
	}
}

func TestDefaultIsAlwaysARow(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{})
	if got := r.Default().Name; got != "minilm_config_default" {
		t.Fatalf("default is %q", got)
	}
	if best, _ := r.Winner(); best.Gain != nil {
		t.Errorf("gain over an unmeasured default is %v, want none", *best.Gain)
	}
}

func TestGainIsTheRatioOfBestValues(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8).
		Measure(analyzetest.Candidate(2, 1, 16), 8, 16), analyze.Options{})
	best, ok := r.Winner()
	if !ok || best.Gain == nil {
		t.Fatalf("no winner with a gain: %+v", best)
	}
	// The objective is throughput alone, so the gain is the quotient of the two throughputs.
	own, base := best.Best.Values[measure.Throughput].Value, r.Default().Best.Values[measure.Throughput].Value
	if math.Abs(best.Gain.Value-own/base) > 1e-9 {
		t.Errorf("gain is %v, want %v / %v = %v", best.Gain.Value, own, base, own/base)
	}
	if best.Gain.Lo >= best.Gain.Value || best.Gain.Hi <= best.Gain.Value {
		t.Errorf("interval [%v, %v] does not hold %v", best.Gain.Lo, best.Gain.Hi, best.Gain.Value)
	}
}

func TestFinalPhaseTakesPrecedence(t *testing.T) {
	t.Parallel()
	c := analyzetest.Candidate(2, 1, 16)
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 8).Measure(c, 8, 16).
		Finals(c, 16), analyze.Options{})
	best, _ := r.Winner()
	if !best.Best.Confirmed || best.Best.Load.Concurrency != 16 {
		t.Fatalf("best point is %v at %v, want the confirmed one at concurrency 16", best.Best.Confirmed, best.Best.Load)
	}
	// There are two confirming trials. Each has two windows and a launch of its own.
	if got := [2]int{best.Best.Windows, best.Best.Launches}; got != [2]int{4, 2} {
		t.Errorf("windows and launches are %v, want [4 2]", got)
	}
	if best.Best.LaunchTime != 600*time.Millisecond { // the time of every launch in analyzetest
		t.Errorf("launch time is %v, want 600ms", best.Best.LaunchTime)
	}
	if best.Best.Searched == nil || best.Best.Searched.Windows != 2 {
		t.Errorf("figures of the search phase are %+v, want two windows", best.Best.Searched)
	}
}

// The best configuration of the search fails on a fresh launch, so a confirmed one comes first. A
// configuration that failed once and served again counts as confirmed.
func TestFailedFinals(t *testing.T) {
	t.Parallel()
	failing, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(2, 1, 4)
	begin := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(failing, 16).Measure(other, 8)
	}
	check := func(name string, r analyze.Result, areFailed bool, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, names(r.Configs)); diff != "" {
			t.Errorf("%s: ranking (-want +got):\n%s", name, diff)
		}
		for _, c := range r.Configs {
			if c.FailedFinals != (areFailed && c.Name == "minilm_config_0") {
				t.Errorf("%s: %s failed its finals: %t", name, c.Name, c.FailedFinals)
			}
		}
	}
	check("failed", mustAnalyze(t, begin().FailFinal(failing, 16).Confirm(other, 8).Confirm(search.Candidate{}, 8), analyze.Options{}), true,
		"minilm_config_1", "minilm_config_default", "minilm_config_0")
	check("served again", mustAnalyze(t, begin().FailFinal(failing, 16).Confirm(failing, 16).Confirm(search.Candidate{}, 8), analyze.Options{}), false,
		"minilm_config_0", "minilm_config_1", "minilm_config_default")
}

func TestGoalOverride(t *testing.T) {
	t.Parallel()
	limit := 0.012 // s; only the smallest load that was tried keeps it
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
	b := analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 2, 8).Measure(analyzetest.Candidate(2, 1, 16), 4, 16).
		Measure(search.Candidate{}, 2).Measure(analyzetest.Candidate(2, 1, 16), 4, 4, 4)
	best, ok := mustAnalyze(t, b, analyze.Options{Goal: &goal}).Winner()
	if !ok || best.Best.Load.Concurrency != 4 {
		t.Errorf("winner is %s at %v, want concurrency 4", best.Name, best.Best)
	}
}

func TestNothingSatisfies(t *testing.T) {
	t.Parallel()
	limit := 0.003
	goal := search.Goal{
		Objective:   search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}},
		Constraints: []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}},
	}
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).
		Measure(search.Candidate{}, 4, 8).
		Measure(analyzetest.Candidate(2, 1, 16), 2, 8).
		Measure(analyzetest.Candidate(1, 1, 4), 2), analyze.Options{Goal: &goal})
	if _, ok := r.Winner(); ok {
		t.Fatal("there is a winner")
	}
	nearest, ok := r.Nearest()
	// At concurrency 2, two instances answer in 5 ms. One instance takes 8 ms for a batch of two.
	if !ok || nearest.Name != "minilm_config_0" || nearest.Best.Load.Concurrency != 2 {
		t.Fatalf("nearest is %s at %v, want minilm_config_0 at concurrency 2", nearest.Name, nearest.Best)
	}
	if !slices.IsSortedFunc(r.Configs, func(a, b analyze.Config) int {
		return int(math.Copysign(1, a.Best.Violation()-b.Best.Violation()))
	}) {
		t.Errorf("failing configurations are not ordered by how much they miss: %v", names(r.Configs))
	}
	if nearest.Gain != nil {
		t.Errorf("a configuration that misses a constraint has the gain %v", *nearest.Gain)
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	// The parts are: one launch (0.6 s), one reconfiguration (0.08 s), two warm-ups of 0.4 s, 2 × 2
	// s of windows, and 2 × 20 ms of decisions.
	want := analyze.Account{
		Elapsed: 5520 * time.Millisecond, Windows: 4 * time.Second, Launches: 600 * time.Millisecond,
		Reconfigurations: 80 * time.Millisecond, WarmUps: 800 * time.Millisecond, Decisions: 40 * time.Millisecond,
	}
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8)
	killed := mustAnalyze(t, b, analyze.Options{})
	if diff := cmp.Diff(want, killed.Account); diff != "" {
		t.Errorf("account without an end (-want +got):\n%s", diff)
	}
	if !killed.Ending.Interrupted {
		t.Error("a campaign without an end does not count as interrupted")
	}
	ended := mustAnalyze(t, b.End("the space is exhausted", false), analyze.Options{})
	if diff := cmp.Diff(want, ended.Account); diff != "" {
		t.Errorf("account with an end (-want +got):\n%s", diff)
	}
	if ended.Ending.Interrupted {
		t.Error("a campaign that ended by itself counts as interrupted")
	}
	if got := want.Share(want.Windows); math.Abs(got-4.0/5.52) > 1e-12 {
		t.Errorf("share of windows is %v", got)
	}
}

// Service trials take time and inform the strategy. They do not change any figure. A failed service
// trial counts as a failed trial.
func TestServiceTrialsAreNoFigures(t *testing.T) {
	t.Parallel()
	known, other := analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(1, 2, 8)
	campaign := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 8).Measure(known, 8, 16)
	}
	plain := mustAnalyze(t, campaign().End("the space is exhausted", false), analyze.Options{})
	with := mustAnalyze(t, campaign().Service(known, 1).Service(other, 1).End("the space is exhausted", false), analyze.Options{})
	same := cmp.Options{cmpopts.IgnoreFields(analyze.Result{}, "Account", "ServiceTrials", "Decide"), cmpopts.IgnoreFields(analyze.Config{}, "Deployed"),
		byValue}
	if diff := cmp.Diff(plain, with, same); diff != "" {
		t.Errorf("service trials change the result (-without +with):\n%s", diff)
	}
	if with.ServiceTrials != 2 {
		t.Errorf("%d service trials, want 2", with.ServiceTrials)
	}
	// Each has 2 s of windows. The second runs on another engine process.
	if more := with.Account.Windows - plain.Account.Windows; more != 4*time.Second || with.Account.Launches <= plain.Account.Launches {
		t.Errorf("account %+v, without service trials %+v", with.Account, plain.Account)
	}
	failing := campaign().Fail(other, 1, measure.StageCrash, "signal: killed").Campaign()
	failing.Events[len(failing.Events)-1].Trial.Phase = search.PhaseService
	r, err := analyze.Analyze(failing, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || r.Failures[0].Name != "minilm_config_1" || r.Trials != 5 || r.ServiceTrials != 0 {
		t.Errorf("failures %+v of %d trials and %d service trials, want the one of minilm_config_1", r.Failures, r.Trials, r.ServiceTrials)
	}
}

func TestSetupOfDefaultAndCandidate(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(analyzetest.Candidate(1, 2, 16), 8), analyze.Options{})
	if diff := cmp.Diff(analyze.Setup{Provider: "cpu", Runtime: "cpu@1.31.1", Precision: "fp32", Instances: 2, MaxBatchSize: 4}, r.Default().Setup); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
	want := analyze.Setup{Provider: "cpu", Runtime: "cpu@1.31.1", Precision: "fp32", Instances: 1, IntraOpThreads: 2, MaxBatchSize: 16}
	if diff := cmp.Diff(want, r.Configs[0].Setup); diff != "" {
		t.Errorf("candidate (-want +got):\n%s", diff)
	}
}

// The synthetic campaign below wrote the journal in testdata. The test ensures that later versions
// can still read the format.
func TestRecordedJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "testdata", "journals", "minilm")
	if golden.Updates() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		best := analyzetest.Candidate(2, 1, 16)
		analyzetest.New(t, analyzetest.Profile).
			Measure(search.Candidate{}, 4, 8).
			Fail(analyzetest.Candidate(2, 2, 16), 16, measure.StageStart, "the engine was not ready after 1m0s").
			Measure(best, 8, 16).
			Confirm(best, 16).Confirm(search.Candidate{}, 8).
			End("the space is exhausted", false).
			WriteJournal(dir)
		if err := os.Remove(filepath.Join(dir, "journal.lock")); err != nil {
			t.Fatal(err)
		}
	}
	campaign, err := analyze.Replay(dir)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	r, err := analyze.Analyze(campaign, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"minilm_config_1", "minilm_config_default", "minilm_config_0"}, names(r.Configs)); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
	if best, _ := r.Winner(); !best.Best.Confirmed || best.Gain == nil || math.Abs(best.Gain.Value-1.59) > 0.03 {
		// At concurrency 16 the formula gives 2 · 8 / 26 ms = 615/s. The default gets 387/s at
		// concurrency 8, since its threads share the cores.
		t.Errorf("winner is %+v, want a confirmed one, 1.59 × the default", best)
	}
}

// The profile asks for batches of 8 and 16. The default's batches of 4 on one thread serve more,
// but they are outside the space and must not win.
func TestCurveNeverWins(t *testing.T) {
	t.Parallel()
	chosen := analyzetest.Candidate(2, 2, 16)
	curve := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"})
	profile := strings.Replace(analyzetest.Profile, "max_batch_size: [4, 8, 16]", "max_batch_size: [8, 16]", 1)
	begin := func() *analyzetest.Builder {
		return analyzetest.New(t, profile).Measure(search.Candidate{}, 4, 4).Measure(chosen, 8, 8, 8)
	}
	for name, b := range map[string]*analyzetest.Builder{
		"search only": begin(),
		"confirmed":   begin().Confirm(chosen, 8).Confirm(search.Candidate{}, 4),
	} {
		r := mustAnalyze(t, b.Curve(curve, 8, 8, 8), analyze.Options{})
		best, ok := r.Winner()
		if !ok || best.Candidate.Key() != chosen.Key() {
			t.Fatalf("%s: the winner is %v, want %v", name, best.Candidate, chosen)
		}
		// Two instances with one thread each use both cores without sharing any.
		if last := r.Configs[2]; last.Candidate.Key() != curve.Key() || !last.CurveOnly || last.Best.Score.Value <= best.Best.Score.Value || last.Rank != 3 {
			t.Errorf("%s: the last is %v (rank %d), want %v with a better score", name, last.Candidate, last.Rank, curve)
		}
	}
}

// It must not win by the mean of three loads either.
func TestCurveNeverWinsByTheMean(t *testing.T) {
	t.Parallel()
	chosen := analyzetest.Candidate(2, 2, 16)
	curve := search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"})
	profile := strings.Replace(analyzetest.Profile, "max_batch_size: [4, 8, 16]", "max_batch_size: [8, 16]", 1)
	r := mustAnalyze(t, analyzetest.New(t, profile).Measure(search.Candidate{}, 1, 2, 4).Measure(chosen, 2, 4, 8).Curve(curve, 2, 4, 8),
		analyze.Options{Rank: spec.RankTop3Mean})
	last := r.Configs[2]
	if r.Configs[0].Candidate.Key() != chosen.Key() || !last.CurveOnly || last.Score.Value <= r.Configs[0].Score.Value {
		t.Errorf("the order is %v, of which the last must be better and outside of the space", names(r.Configs))
	}
}

// A configuration that failed on a fresh launch cannot be deployed, even if nothing else was
// measured.
func TestFailedFinalsNeverWin(t *testing.T) {
	t.Parallel()
	r := mustAnalyze(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8, 8).FailFinal(search.Candidate{}, 8), analyze.Options{})
	nearest, ok := r.Nearest()
	if _, won := r.Winner(); won || !ok || !nearest.FailedFinals || r.Verdict.Satisfies() {
		t.Errorf("there is a winner: %t; nearest is %s", won, nearest.Name)
	}
}

// The first stage changes only what serves the model. It keeps the default's 2 instances and
// batches of 4.
func TestFirstStage(t *testing.T) {
	t.Parallel()
	precisions := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]", "intra_op_threads: [1, 2]\n  precision: [fp32, int8]", 1)
	threads := func(n int) search.Candidate {
		return search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: search.IntValue(n)})
	}
	int8 := func(c search.Candidate) search.Candidate { return c.With(search.KnobPrecision, "int8") }
	check := func(name string, b *analyzetest.Builder, want string) {
		t.Helper()
		if got := mustAnalyze(t, b, analyze.Options{}).FirstStage; got != want {
			t.Errorf("%s: first stage is %q, want %q", name, got, want)
		}
	}
	begin := func() *analyzetest.Builder {
		return analyzetest.New(t, precisions).Measure(search.Candidate{}, 4, 8, 16)
	}
	check("only the default", begin(), "minilm_config_default")
	check("not measured", begin().Measure(int8(analyzetest.Candidate(2, 1, 16)), 16), "")
	check("a winner with nothing of it", begin().Measure(search.NewCandidate(search.Setting{Knob: search.KnobMaxBatchSize, Value: "16"}), 32), "minilm_config_default")
	check("measured for the curve", begin().Measure(int8(analyzetest.Candidate(2, 1, 16)), 16).Curve(int8(threads(1)), 4, 8), "minilm_config_1")
	check("seen by the search", begin().Measure(int8(analyzetest.Candidate(2, 1, 4)), 8).Measure(int8(analyzetest.Candidate(2, 1, 16)), 16), "minilm_config_0")
	// fp32 is better on one thread. That does not tell how int8 does with its own settings, which
	// are not measured. Once measured, they are better.
	unrelated := func() *analyzetest.Builder {
		return begin().Measure(analyzetest.Candidate(2, 1, 4), 8).Measure(int8(analyzetest.Candidate(2, 1, 16)), 16)
	}
	check("unrelated to the winner", unrelated(), "")
	check("the better of two", unrelated().Curve(int8(threads(1)), 4, 8), "minilm_config_2")
	// All cores, set explicitly, are equal to the default. Measured at a lower load they are no
	// better.
	check("no better than the default", begin().Curve(threads(2), 4), "minilm_config_default")
}

// The profile asks for batches of 8 and one instance, which is slower than the default's setting.
// So the first stage lies outside the space and is better than the best. The result names the best
// in its place.
func TestFirstStageIsAtMostTheBest(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "instance_count: [1, 2]\n  max_batch_size: [4, 8, 16]", "instance_count: [1]\n  max_batch_size: [8]", 1)
	chosen, stage := analyzetest.Candidate(1, 1, 8), search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: "1"})
	slow := func(b *analyzetest.Builder, c search.Candidate, throughput float64) *analyzetest.Builder {
		return b.Given(c, 4, throughput, 10*time.Millisecond).Given(c, 4, throughput, 10*time.Millisecond)
	}
	b := slow(slow(analyzetest.New(t, profile), search.Candidate{}, 100), chosen, 200).Curve(stage, 4, 4, 4)
	r := mustAnalyze(t, b, analyze.Options{})
	best, ok := r.Winner()
	c, _ := r.Config("minilm_config_1")
	if !ok || best.Candidate.Key() != chosen.Key() || !c.CurveOnly || c.Score.Value <= best.Score.Value {
		t.Fatalf("the best is %v, and %v at the end does %.1f: the test shows nothing", best.Candidate, c.Candidate, math.Exp(c.Score.Value))
	}
	if r.FirstStage != best.Name {
		t.Errorf("the first stage is %s, want the best, %s", r.FirstStage, best.Name)
	}
}
