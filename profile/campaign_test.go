package profile_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"tuner/measure"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// script is a strategy that requests the given concurrencies of the default configuration, one
// after the other.
type script struct {
	levels   []int
	told     []search.Event
	extended time.Duration
	confirms int // number of trials before the first wish to confirm; 0: none
}

func (s *script) Ask() search.Action {
	if len(s.told) >= len(s.levels) {
		return search.Action{Stop: true, Why: "script is over"}
	}
	load := measure.Load{Concurrency: s.levels[len(s.told)], BatchSize: 1}
	return search.Action{Trial: search.Trial{Load: load, Windows: 1, Window: time.Second}}
}

func (s *script) Tell(e search.Event) { s.told = append(s.told, e) }

// SoFar recommends the last trial that yielded figures.
func (s *script) SoFar() verdict.Verdict {
	for _, e := range slices.Backward(s.told) {
		if e.Measurement.Failure == nil {
			cell := posterior.Cell{Candidate: e.Trial.Candidate, Load: e.Trial.Load}
			return verdict.Verdict{State: verdict.Proven, Recommended: &verdict.Choice{Measured: posterior.Measured{Cell: cell}}}
		}
	}
	return verdict.Verdict{State: verdict.Unmeasured}
}

func (s *script) Extend(by time.Duration) { s.extended += by }

// Confirm ends the script after one more trial.
func (s *script) Confirm() {
	if s.confirms == 0 {
		s.confirms = len(s.told)
		s.levels = s.levels[:len(s.told)+1]
	}
}

// Statement returns the concurrencies so far.
func (s *script) Statement() []string {
	return []string{fmt.Sprintf("%d trials were told", len(s.told))}
}

// Remaining returns 1.5 s for each remaining trial.
func (s *script) Remaining() time.Duration {
	return time.Duration(len(s.levels)-len(s.told)) * 1500 * time.Millisecond
}

// clock is a fake clock that only trials advance.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// fakeTrialer answers each trial with throughput 100 × concurrency. A trial has one second of
// window and half a second of other work. before may change that.
type fakeTrialer struct {
	clock  *clock
	before func(trial search.Trial) (*measure.Measurement, error)
}

func (f fakeTrialer) Measure(_ context.Context, trial search.Trial) (measure.Measurement, error) {
	if f.before != nil {
		if m, err := f.before(trial); err != nil || m != nil {
			if m == nil {
				return measure.Measurement{}, err
			}
			return *m, err
		}
	}
	f.clock.now = f.clock.now.Add(1500 * time.Millisecond)
	n := 100 * trial.Load.Concurrency
	return measure.Measurement{
		Windows: []measure.Window{{Duration: time.Second, Requests: n, Inferences: n}},
		Times:   measure.Times{Launch: 200 * time.Millisecond, WarmUp: 200 * time.Millisecond, Windows: time.Second},
	}, nil
}

// MeasureBlock takes 300 ms longer than its trials.
func (f fakeTrialer) MeasureBlock(ctx context.Context, block []search.Trial) ([]measure.Measurement, error) {
	f.clock.now = f.clock.now.Add(300 * time.Millisecond)
	var measured []measure.Measurement
	for _, trial := range block {
		m, err := f.Measure(ctx, trial)
		if err != nil {
			return nil, err
		}
		measured = append(measured, m)
	}
	return measured, nil
}

// memory is a recorder that keeps events in memory.
type memory struct {
	kinds  []string
	events []search.Event
}

func (m *memory) Append(kind string, value any) error {
	m.kinds = append(m.kinds, kind)
	if e, ok := value.(search.Event); ok {
		m.events = append(m.events, e)
	}
	return nil
}

// silent is an observer that keeps the last status.
type silent struct {
	last    profile.Status
	refused string // reason of a refused block
}

func (*silent) Begun(search.Action)                            {}
func (s *silent) BlockRefused(reason string)                   { s.refused = reason }
func (s *silent) TrialEnded(_ search.Event, st profile.Status) { s.last = st }

// The strategy learns of the time that the user adds before it chooses the next trial, once.
func TestMoreTime(t *testing.T) {
	t.Parallel()
	campaign, strategy, _, _, _ := newCampaign(1, 2, 3)
	added := []time.Duration{0, 2 * time.Minute}
	campaign.More = func() time.Duration {
		if len(added) == 0 {
			return 0
		}
		next := added[0]
		added = added[1:]
		return next
	}
	if _, err := campaign.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strategy.extended != 2*time.Minute {
		t.Errorf("the strategy got %v more", strategy.extended)
	}
}

// A wish to confirm the answer is told before the next trial is chosen.
func TestConfirm(t *testing.T) {
	t.Parallel()
	campaign, strategy, _, _, _ := newCampaign(1, 2, 3, 4)
	campaign.IsEnough = func() bool { return len(strategy.told) >= 2 }
	if _, err := campaign.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strategy.confirms != 2 || len(strategy.told) != 3 {
		t.Errorf("asked after %d trials, %d in all; want 2, 3", strategy.confirms, len(strategy.told))
	}
}

func newCampaign(levels ...int) (*profile.Campaign, *script, *memory, *silent, *clock) {
	strategy, recorder, observer, c := &script{levels: levels}, &memory{}, &silent{}, &clock{now: time.Unix(0, 0)}
	return &profile.Campaign{
		Strategy: strategy, Trialer: fakeTrialer{clock: c}, Recorder: recorder, Observer: observer, Now: c.Now,
	}, strategy, recorder, observer, c
}

// set returns a time as a wall clock shows it that somebody has set: its monotonic part is the same.
func set(t *testing.T, now time.Time, by time.Duration) time.Time {
	t.Helper()
	was := now
	parts := (*struct { // of time.Time
		wall     uint64
		ext      int64
		location *time.Location
	})(unsafe.Pointer(&now))
	parts.wall += uint64(by/time.Second) << 30
	if now.Sub(was) != 0 || now.Round(0).Sub(was.Round(0)) != by {
		t.Fatalf("%v set by %v is %v: time.Time has other parts", was, by, now)
	}
	return now
}

// timed is a script that ends when its time is over.
type timed struct{ *script }

func (s timed) Ask() search.Action {
	if n := len(s.told); n > 0 && s.told[n-1].Elapsed >= 9*time.Second {
		return search.Action{Stop: true, Why: "time is over"}
	}
	return s.script.Ask()
}

// Somebody may set the wall clock during a campaign, by an hour and more, forth and back. It takes
// the same time, makes the same trials, and records them in the same order.
func TestClockJumpsDuringACampaign(t *testing.T) {
	t.Parallel()
	levels := make([]int, 100)
	for i := range levels {
		levels[i] = i + 1
	}
	var ends []profile.Outcome
	var events [][]search.Event
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour, 1000 * time.Hour} {
		campaign, strategy, recorder, _, c := newCampaign(levels...)
		c.now = time.Now() // with a monotonic part
		looks := 0
		campaign.Strategy = timed{strategy}
		campaign.Now = func() time.Time {
			looks++
			return set(t, c.now, jump*time.Duration(looks%3))
		}
		outcome, err := campaign.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends, events = append(ends, outcome), append(events, recorder.events)
		if len(recorder.events) != 6 { // of 1.5 s each
			t.Errorf("jumps of %v: %d trials, want 6", jump, len(recorder.events))
		}
		if !reflect.DeepEqual(outcome, ends[0]) || !reflect.DeepEqual(recorder.events, events[0]) {
			t.Errorf("jumps of %v: the campaign is another one:\n%+v\n%+v", jump, outcome, ends[0])
		}
	}
}

func TestRunRecordsBeforeItTells(t *testing.T) {
	t.Parallel()
	campaign, strategy, recorder, observer, _ := newCampaign(1, 4, 2)
	outcome, err := campaign.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(recorder.events) != 3 || len(strategy.told) != 3 || recorder.kinds[3] != journal.KindEnd {
		t.Fatalf("recorded %v, told %d events", recorder.kinds, len(strategy.told))
	}
	// Three trials of 1.5 s: 1 s of window, 0.2 s launch, 0.2 s warm-up and 0.1 s of other work
	// each.
	want := journal.End{Reason: "script is over", Elapsed: 4500 * time.Millisecond, Windows: 3 * time.Second,
		Launches: 600 * time.Millisecond, WarmUps: 600 * time.Millisecond, Decisions: 300 * time.Millisecond, Statement: []string{"3 trials were told"}}
	if diff := cmp.Diff(want, outcome.End); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if s := observer.last; s.Trials != 3 || s.Remaining != 0 || s.Answer() == nil || s.Answer().Load.Concurrency != 2 {
		t.Errorf("status is %+v, want 3 trials, nothing left, and the strategy's answer", s)
	}
}

func TestResumedRunGoesOnWhereTheEventsEnd(t *testing.T) {
	t.Parallel()
	first, _, recorder, _, _ := newCampaign(1, 2)
	if _, err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, strategy, again, _, _ := newCampaign(1, 2, 4)
	second.Past = recorder.events
	outcome, err := second.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(again.events) != 1 || again.events[0].Trial.Load.Concurrency != 4 || len(strategy.told) != 3 {
		t.Errorf("the second run measured %d trials and told %d events", len(again.events), len(strategy.told))
	}
	if end := outcome.End; end.Elapsed != 4500*time.Millisecond || end.Windows != 3*time.Second {
		t.Errorf("times of both runs must add up: %+v", end)
	}
	if outcome.Status.Trials != 3 || outcome.Before != 2 {
		t.Errorf("%d trials, %d of them before; want 3 and 2", outcome.Status.Trials, outcome.Before)
	}
}

func TestInterruptDropsTheTrialUnderWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	campaign, strategy, recorder, _, c := newCampaign(1, 2, 4)
	campaign.Trialer = fakeTrialer{clock: c, before: func(trial search.Trial) (*measure.Measurement, error) {
		if trial.Load.Concurrency == 2 {
			cancel()
			return nil, context.Canceled
		}
		return nil, nil
	}}
	outcome, err := campaign.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if end := outcome.End; !end.Interrupted || len(strategy.told) != 1 || len(recorder.events) != 1 {
		t.Errorf("end %+v with %d events recorded, want interrupted with 1", end, len(recorder.events))
	}
}

func TestEngineFailureIsAResult(t *testing.T) {
	t.Parallel()
	campaign, strategy, _, observer, c := newCampaign(1, 2)
	campaign.Trialer = fakeTrialer{clock: c, before: func(trial search.Trial) (*measure.Measurement, error) {
		if trial.Load.Concurrency == 1 {
			return &measure.Measurement{Failure: &measure.Failure{Stage: measure.StageCrash, Reason: "signal: aborted"}}, nil
		}
		return nil, nil
	}}
	if _, err := campaign.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(strategy.told) != 2 || observer.last.Failed != 1 || observer.last.Answer() == nil {
		t.Errorf("status %+v after %d events: the failure must count and the campaign go on", observer.last, len(strategy.told))
	}
}

func TestFaultOfTheCampaignEndsIt(t *testing.T) {
	t.Parallel()
	fault := errors.New("no such program")
	campaign, strategy, recorder, _, c := newCampaign(1, 2)
	campaign.Trialer = fakeTrialer{clock: c, before: func(search.Trial) (*measure.Measurement, error) { return nil, fault }}
	if _, err := campaign.Run(t.Context()); err == nil || len(strategy.told) != 0 || len(recorder.events) != 0 {
		t.Errorf("err = %v after %d events, want an error and none", err, len(recorder.events))
	}
}

// blocks is a script that requests all its trials in one block.
type blocks struct{ script }

func (b *blocks) Ask() search.Action {
	first := b.script.Ask()
	if first.Stop {
		return first
	}
	var seats []search.Trial
	for _, level := range b.levels[len(b.told):] {
		seats = append(seats, search.Trial{Load: measure.Load{Concurrency: level, BatchSize: 1}, Phase: search.PhaseFinal})
	}
	return search.Settings{}.Block(seats, 4).Numbered(1)
}

// A block gives one event for each of its trials. The differences of their times are the times of
// the trials. The block's additional time counts for the last one.
func TestBlockIsToldTrialByTrial(t *testing.T) {
	t.Parallel()
	campaign, _, recorder, observer, _ := newCampaign()
	strategy := &blocks{script{levels: []int{1, 2, 4}}}
	campaign.Strategy = strategy
	outcome, err := campaign.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for i, e := range recorder.events {
		if e.Trial.Block != 1 || e.Trial.Load.Concurrency != strategy.levels[i] || e.Measurement.Windows[0].Requests != 100*strategy.levels[i] {
			t.Errorf("event %d is %+v", i, e)
		}
		got = append(got, e.Elapsed)
	}
	// Each has 1.4 s of launch, warm-up and window. The block has 4.8 s.
	if diff := cmp.Diff([]time.Duration{1400 * time.Millisecond, 2800 * time.Millisecond, 4800 * time.Millisecond}, got); diff != "" {
		t.Errorf("elapsed (-want +got):\n%s", diff)
	}
	if len(strategy.told) != 3 || observer.last.Trials != 3 || observer.refused != "" {
		t.Errorf("%d events told, %d trials counted, refused: %q", len(strategy.told), observer.last.Trials, observer.refused)
	}
	end := outcome.End
	if end.Elapsed != 4800*time.Millisecond || end.Windows != 3*time.Second || end.Launches != 600*time.Millisecond || end.WarmUps != 600*time.Millisecond || end.Decisions != 600*time.Millisecond {
		t.Errorf("the account is %+v", end)
	}
}

// If a block's trials do not fit side by side, they are measured one after the other.
func TestRefusedBlockIsMeasuredAlone(t *testing.T) {
	t.Parallel()
	campaign, _, recorder, observer, c := newCampaign()
	strategy := &blocks{script{levels: []int{1, 2}}}
	campaign.Strategy = strategy
	campaign.Trialer = fakeTrialer{clock: c, before: func(trial search.Trial) (*measure.Measurement, error) {
		if trial.Block > 0 {
			return nil, fmt.Errorf("not so: %w", &runner.CrowdedError{Reason: "two are too many"})
		}
		return nil, nil
	}}
	if _, err := campaign.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, e := range recorder.events {
		if e.Trial.Block != 0 || e.Trial.Windows != 1 || e.Trial.Window != 4*search.TurnWindow || !e.Trial.Fresh || e.Elapsed != time.Duration(i+1)*1500*time.Millisecond+300*time.Millisecond {
			t.Errorf("event %d after %v: %+v", i, e.Elapsed, e.Trial)
		}
	}
	if len(strategy.told) != 2 || observer.refused != "two are too many" {
		t.Errorf("%d events, refused: %q", len(strategy.told), observer.refused)
	}
}

func TestInterruptDropsTheBlockUnderWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	campaign, _, recorder, _, c := newCampaign()
	campaign.Strategy = &blocks{script{levels: []int{1, 2}}}
	campaign.Trialer = fakeTrialer{clock: c, before: func(trial search.Trial) (*measure.Measurement, error) {
		if trial.Load.Concurrency == 2 {
			cancel()
			return nil, context.Canceled
		}
		return nil, nil
	}}
	outcome, err := campaign.Run(ctx)
	if err != nil || !outcome.End.Interrupted || len(recorder.events) != 0 {
		t.Errorf("end %+v, %v with %d events recorded, want interrupted with none", outcome.End, err, len(recorder.events))
	}
}
