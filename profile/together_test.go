package profile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/engine/api"
	"tuner/internal/hostinfo"
	"tuner/measure"
	"tuner/model/isolation"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

// twoModels is a profile of two models, with four configurations each.
const twoModels = `output: out
models:
  encoder: {model: encoder.onnx, load: {request_rate: 60}, constraints: {latency_p50: {max: 50ms}}, space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 8]}}
  ranker: {model: ranker.onnx, load: {request_rate: 400}, constraints: {latency_p50: {max: 5ms}}, space: {intra_op_threads: 1, instance_count: [1, 2], max_batch_size: [1, 8]}}
search: {strategy: alternating, budget: {time: 10m, trials: 16}, window: 1s}
`

// severalSetup opens the models of a profile of several.
func severalSetup(t *testing.T, text string) profile.Setup {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"encoder", "ranker"} {
		if err := build.MLP().Write(filepath.Join(dir, name+".onnx"), 0); err != nil {
			t.Fatal(err)
		}
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	own := search.Facts{Cores: 2, Batching: true, Precisions: []string{"fp32"}}
	s := profile.Setup{Profile: p, Facts: search.Facts{Cores: 2, Parts: map[string]search.Facts{}}}
	for _, m := range p.Models {
		subject, err := profile.OpenSubject(m, profile.Place{})
		if err != nil {
			t.Fatal(err)
		}
		s.Parts = append(s.Parts, profile.Setup{Profile: m, Subject: subject, Facts: own})
		s.Facts.Parts[m.Name] = own
	}
	return s
}

// duet measures two models by a law. A request takes its service time of one of two cores, and all wait
// in one queue. Full batches take less.
type duet struct {
	clock *clock
	fails func(search.Trial) *measure.Failure // nil: nothing fails
	// blocks is the time for which a full batch of the encoder keeps the ranker waiting
	blocks time.Duration
}

// service returns the service time of a model, in s.
func (duet) service(model string, c search.Candidate) float64 {
	seconds := map[string]float64{"encoder": 0.010, "ranker": 0.001}[model]
	if v, _ := c.Get(search.KnobMaxBatchSize); v == "8" {
		seconds *= 0.6
	}
	return seconds
}

func (d duet) Measure(_ context.Context, t search.Trial) (measure.Measurement, error) {
	m := measure.Measurement{Launch: 1, Memory: 100e6, Scale: t.Load.Scale, Times: measure.Times{WarmUp: 500 * time.Millisecond, Windows: time.Duration(t.Windows) * t.Window}}
	d.clock.now = d.clock.now.Add(m.Times.Total())
	if d.fails != nil {
		if m.Failure = d.fails(t); m.Failure != nil {
			return m, nil
		}
	}
	busy := 0.0
	for _, p := range t.Load.Mix.Parts() {
		busy += t.Load.Of(p.Model).RequestRate * d.service(p.Model, t.Candidate.Of(p.Model)) / 2
	}
	for k := range t.Windows {
		for _, p := range t.Load.Mix.Parts() {
			latency := 10 * time.Second
			if busy < 1 {
				latency = time.Duration(d.service(p.Model, t.Candidate.Of(p.Model)) / (1 - busy) * float64(time.Second))
			}
			if v, _ := t.Candidate.Get("encoder.max_batch_size"); p.Model == "ranker" && v == "8" {
				latency += d.blocks
			}
			n := int(t.Load.Of(p.Model).RequestRate * t.Window.Seconds())
			recorder := measure.NewRecorder()
			recorder.Record(latency) // a median needs no more
			m.Windows = append(m.Windows, measure.Window{Model: p.Model, Start: time.Duration(k) * t.Window, Duration: t.Window, Requests: n, Inferences: n, Scheduled: n,
				Sub: []measure.SubWindow{{Requests: n, Duration: t.Window, Latency: recorder.Histogram(), Sum: latency}}})
		}
	}
	return m, nil
}

func (d duet) MeasureBlock(ctx context.Context, block []search.Trial) ([]measure.Measurement, error) {
	measured := make([]measure.Measurement, len(block))
	for i, t := range block {
		measured[i], _ = d.Measure(ctx, t) // never fails
	}
	return measured, nil
}

// play begins or resumes a campaign on a duet, and runs it to its end.
func play(t *testing.T, s profile.Setup, law duet) profile.Outcome {
	t.Helper()
	log, err := profile.OpenLog(s, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	strategy, err := plan.New(s.Profile.Search.Strategy, s.Profile.Settings(s.Facts))
	if err != nil {
		t.Fatal(err)
	}
	law.clock = &clock{time.Unix(0, 0)}
	c := profile.Campaign{Strategy: strategy, Trialer: law, Recorder: log, Observer: &silent{}, Now: law.clock.Now, Past: log.Past}
	outcome, err := c.Run(t.Context())
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return outcome
}

// trialsOf returns the trials in a folder's journal, as they were written.
func trialsOf(t *testing.T, dir string) []string {
	t.Helper()
	_, records, err := journal.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range records {
		if r.Kind == journal.KindTrial {
			list = append(list, string(r.Data))
		}
	}
	return list
}

// A campaign of several models that is killed while it writes any record continues as if nothing
// had happened: the same trials with the same figures, and the same statement.
func TestCampaignOfSeveralKilledAtEveryRecord(t *testing.T) {
	t.Parallel()
	s := severalSetup(t, twoModels)
	whole := play(t, s, duet{})
	want := trialsOf(t, s.Profile.Output)
	if whole.Status.Answer() == nil || len(want) < 10 {
		t.Fatalf("%d trials, %+v", len(want), whole.End)
	}
	text, err := os.ReadFile(filepath.Join(s.Profile.Output, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	if !strings.Contains(lines[0], `"format":3`) {
		t.Errorf("the journal begins with %.200s", lines[0])
	}
	for k := 1; k < len(lines); k++ {
		killed := s
		killed.Profile.Output = t.TempDir()
		kept := strings.Join(lines[:k], "") + lines[k][:len(lines[k])/2]
		if err := os.WriteFile(filepath.Join(killed.Profile.Output, journal.FileName), []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		outcome := play(t, killed, duet{})
		if diff := cmp.Diff(want, trialsOf(t, killed.Profile.Output)); diff != "" {
			t.Fatalf("killed in record %d: %s", k+1, diff)
		}
		if diff := cmp.Diff(whole.End.Statement, outcome.End.Statement); diff != "" {
			t.Errorf("killed in record %d: %s", k+1, diff)
		}
	}
}

// A model that crashes in company is named in the journal, and its configuration is no answer. The
// other model is tuned all the same.
func TestCampaignOfSeveralWithACrash(t *testing.T) {
	t.Parallel()
	crash := measure.Failure{Stage: measure.StageCrash, Model: "ranker", Reason: `model "ranker": the engine ended: signal: aborted`}
	s := severalSetup(t, twoModels)
	outcome := play(t, s, duet{fails: func(trial search.Trial) *measure.Failure {
		if v, _ := trial.Candidate.Get("ranker.max_batch_size"); v == "1" {
			return &crash
		}
		return nil
	}})
	read, err := campaign.Read(s.Profile.Output)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, e := range read.Events {
		if f := e.Measurement.Failure; f != nil {
			failed++
			if *f != crash || len(e.Measurement.Windows) > 0 {
				t.Errorf("%+v", e.Measurement)
			}
		}
	}
	answer := outcome.Status.Answer()
	if failed == 0 || failed != outcome.Status.Failed || answer == nil {
		t.Fatalf("%d failed trials, %+v", failed, outcome.Status)
	}
	if v, _ := answer.Candidate.Get("encoder.max_batch_size"); v != "8" {
		t.Errorf("the answer is %s, want full batches of the encoder", answer.Candidate)
	}
}

// Where each model's limit is kept by some configuration, and those of both by none, the statement names
// both, and what each would have to give.
func TestLimitsOfTwoModelsThatConflict(t *testing.T) {
	t.Parallel()
	// The encoder takes 10 ms or more, or 6 ms in full batches, which keep the ranker waiting for 3 ms.
	s := severalSetup(t, strings.NewReplacer("max: 50ms", "max: 8ms", "max: 5ms", "max: 2ms").Replace(twoModels))
	statement := strings.Join(play(t, s, duet{blocks: 3 * time.Millisecond}).End.Statement, "\n")
	for _, want := range []string{"A constraint would have to give: ", "encoder.latency_p50 to 1", "ranker.latency_p50 to 3"} {
		if !strings.Contains(statement, want) {
			t.Errorf("the statement lacks %q:\n%s", want, statement)
		}
	}
}

// idle is an engine that serves nothing, and its client.
type idle struct {
	api.Client
	done     chan struct{}
	launched []runner.Server
	loads    []string // models
	configs  []string // with which they are loaded
	refused  string   // model that does not load
}

func (e *idle) Launch(_ context.Context, s runner.Server) (runner.Engine, error) {
	e.launched = append(e.launched, s)
	return e, nil
}

func (e *idle) LoadModel(_ context.Context, model, config string, _ ...api.File) error {
	e.loads, e.configs = append(e.loads, model), append(e.configs, config)
	if model == e.refused {
		return fmt.Errorf("cannot serve %s", config)
	}
	return nil
}

func (*idle) Address() api.Announcement { return api.Announcement{} }
func (*idle) PID() int                  { return 0 }
func (e *idle) Done() <-chan struct{}   { return e.done }
func (*idle) Exit() runner.Exit         { return runner.Exit{} }
func (*idle) LastWords() string         { return "" }
func (*idle) Stop(context.Context)      {}
func (*idle) Close() error              { return nil }

// A trial of several models serves the variants of all from one repository. A model that does not load
// names itself.
func TestEnginesOfSeveralModels(t *testing.T) {
	t.Parallel()
	s := severalSetup(t, twoModels)
	e := &idle{done: make(chan struct{}), refused: "ranker"}
	r := runner.New(runner.Options{Launcher: e, Dial: func(api.Announcement) (api.Client, error) { return e, nil }, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
	engines := profile.NewEngines(s, r, nil, runner.Requests{{}}, runner.Requests{{}})
	settings := s.Profile.Settings(s.Facts)
	c := search.NewCandidate(search.Setting{Knob: "ranker.max_batch_size", Value: "8"})
	m, err := engines.Measure(t.Context(), settings.Trial(c, 1.5, search.PhaseSearch))
	if err != nil || m.Failure == nil || m.Scale != 1.5 {
		t.Fatalf("%+v, %v", m, err)
	}
	if f := m.Failure; f.Model != "ranker" || f.Stage != measure.StageLoad || !strings.Contains(f.Reason, `"max_batch_size":8`) {
		t.Errorf("%+v", *f)
	}
	if diff := cmp.Diff([]string{"encoder", "ranker"}, e.loads); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"encoder", "ranker"} {
		if _, err := os.Stat(filepath.Join(e.launched[0].Repository, name, "1", "model.onnx")); err != nil {
			t.Error(err)
		}
	}
	// a changed batcher keeps the process
	if _, err := engines.Measure(t.Context(), settings.Trial(search.Candidate{}, 1.5, search.PhaseSearch)); err != nil || len(e.launched) != 1 {
		t.Errorf("%d launches, %v", len(e.launched), err)
	}
	// a service trial of one model loads it alone, from the repository of both
	e.loads, e.refused = nil, "encoder"
	m, err = engines.Measure(t.Context(), search.Trial{
		Candidate: c.With("encoder.max_batch_size", "8"), Model: "encoder", Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 2, Window: time.Second, Phase: search.PhaseService, Sizes: []int{1, 2},
	})
	if err != nil || m.Failure == nil || m.Failure.Stage != measure.StageLoad || len(m.Windows) > 0 || len(e.launched) != 1 {
		t.Errorf("%+v, %v after %d launches", m, err, len(e.launched))
	}
	if diff := cmp.Diff([]string{"encoder"}, e.loads); diff != "" {
		t.Error(diff)
	}
	if _, err := engines.Measure(t.Context(), search.Trial{Candidate: c, Model: "other", Load: measure.Load{Concurrency: 1, BatchSize: 1}, Phase: search.PhaseService, Sizes: []int{1}}); err == nil {
		t.Error("a service trial of a model that the campaign does not have is measured")
	}
	change(t, s.Parts[1].Subject.Files[0].Source.Path)
	_, err = engines.Measure(t.Context(), settings.Trial(c, 2, search.PhaseSearch))
	checkChanged(t, "beside another model", s.Parts[1].Subject.Files[0].Source.Path, err)
}

// Where a candidate divides the cores, the server gets a policy for each model, and its instances name it. A
// process with other policies is another one. Service trials of a model are bound, too.
func TestEnginesOfModelsWithCoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := severalSetup(t, twoModels+"isolation: [shared, cores]\n")
	e := &idle{done: make(chan struct{}), refused: "ranker"}
	r := runner.New(runner.Options{Launcher: e, Dial: func(api.Announcement) (api.Client, error) { return e, nil }, Log: slog.New(slog.DiscardHandler), Epoch: time.Now()})
	settings := s.Profile.Settings(s.Facts)
	divided := search.NewCandidate(search.Setting{Knob: search.KnobIsolation, Value: search.DividedCores([]int{1, 2})})
	if _, err := profile.NewEngines(s, r, nil, runner.Requests{{}}, runner.Requests{{}}).Measure(t.Context(), settings.Trial(divided, 1, search.PhaseSearch)); err == nil {
		t.Error("cores are divided that the campaign does not know")
	}
	// two processors of a node each; the ranker gets those of the first
	s.Processors = &isolation.Machine{BindsMemory: true, Cores: []hostinfo.Core{{ID: 0}, {ID: 2, Sibling: 2}, {ID: 1, Sibling: 1, Node: 1}, {ID: 3, Sibling: 3, Node: 1}}}
	engines := profile.NewEngines(s, r, nil, runner.Requests{{}}, runner.Requests{{}})
	service := search.Trial{
		Candidate: divided, Model: "ranker", Load: measure.Load{Concurrency: 1, BatchSize: 1}, Windows: 1, Window: time.Second, Phase: search.PhaseService, Sizes: []int{1},
	}
	for _, trial := range []search.Trial{settings.Trial(divided, 1, search.PhaseSearch), service, settings.Trial(search.Candidate{}, 1, search.PhaseSearch)} {
		if _, err := engines.Measure(t.Context(), trial); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"encoder", "ranker", "ranker", "encoder", "ranker"}, e.loads); diff != "" {
		t.Fatal(diff)
	}
	for i, want := range []string{"cores_1-1", "cores_0-0_2-2", "cores_0-0_2-2", "", ""} {
		if !strings.Contains(e.configs[i], `"host_policy":"`+want+`"`) {
			t.Errorf("load %d has not the policy %q: %s", i+1, want, e.configs[i])
		}
	}
	var policies [][]string
	for _, launched := range e.launched {
		var options []string
		for _, p := range launched.Policies {
			options = append(options, p.Options()...)
		}
		policies = append(policies, options)
	}
	want := [][]string{{"cores_1-1,cpu-cores=1-1", "cores_1-1,numa-node=1", "cores_0-0_2-2,cpu-cores=0-0,2-2", "cores_0-0_2-2,numa-node=0"}, nil}
	if diff := cmp.Diff(want, policies); diff != "" {
		t.Errorf("launches (-want +got):\n%s", diff)
	}
}
