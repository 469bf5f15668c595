package perf

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/internal/testserver"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/runner/load"
	"tuner/runner/meter"
	"tuner/runner/wire"
)

// blind is a gauge without readings.
type blind struct{ failure error }

func (b blind) Read(context.Context) (meter.Reading, error) { return meter.Reading{}, b.failure }

// target returns a server with a law for its latencies, and a request for it.
func target(t *testing.T, o testserver.Options) Target {
	t.Helper()
	return aim(t, wire.Options{Address: listen(t, o).HTTP}, 64)
}

// aim returns a server, and a request for it with an input of size bytes.
func aim(t *testing.T, w wire.Options, size int) Target {
	t.Helper()
	request := api.InferRequest{Model: "law", Inputs: []api.Tensor{{Name: "x", Datatype: "FP32", Shape: []int64{int64(size / 4)}, Data: make([]byte, size)}}}
	prepared, err := wire.Prepare(w, request, wire.Format{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Target{wire.Target{Options: w, Requests: []*wire.Prepared{prepared}}, blind{}}
}

// listen starts a server with a law for its latencies.
func listen(t *testing.T, o testserver.Options) testserver.Addresses {
	t.Helper()
	server, err := testserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return addresses
}

// counting returns options for n requests per level at concurrencies 1 and 2.
func counting(target Target, requests int) Options {
	return Options{
		Settings: Settings{Mode: ModeConcurrency, Levels: Levels{Start: 1, End: 2, Step: 1}, Search: SearchLinear, Batch: 1, RequestCount: requests},
		Target:   target, Timeout: 10 * time.Second,
	}
}

// diary records the calls of an observer and a sink.
type diary struct {
	lines   []string
	records int
	broken  error
}

func (d *diary) note(line string)          { d.lines = append(d.lines, line) }
func (d *diary) Live(p Progress)           { d.note("live " + p.Load.String()) }
func (d *diary) Measured(l Level)          { d.note("measured " + l.Load.String()) }
func (d *diary) End([]time.Duration) error { d.note("end"); return nil }

func (d *diary) Begin(l measure.Load, _ time.Time) error {
	d.note("begin " + l.String())
	return nil
}

func (d *diary) Record(r load.Record) error {
	if d.records++; r.Failed || len(r.Responses) != 1 || r.Responses[0] < r.Sent {
		d.note("odd record")
	}
	return d.broken
}

func TestRunCounts(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 30)
	var d diary
	o.Observer, o.Sink = &d, &d
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Levels) != 2 || report.Best != -1 || report.Interrupted {
		t.Fatalf("%d levels, best %d, %v", len(report.Levels), report.Best, err)
	}
	for i, l := range report.Levels {
		w := l.Measurement.Windows
		if l.Load.Concurrency != i+1 || l.Verdict != VerdictCounted || len(w) != 1 || w[0].Requests != 30 || len(l.Warnings) > 1 {
			t.Errorf("level %+v", l)
		}
	}
	want := "begin concurrency 1, live concurrency 1, end, measured concurrency 1, begin concurrency 2, live concurrency 2, end, measured concurrency 2"
	if got := strings.Join(d.lines, ", "); got != want || d.records != 60 {
		t.Errorf("%d records; %s", d.records, got)
	}
}

func TestRunOfAnOpenLoop(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 30)
	o.Mode, o.Arrivals, o.Seed, o.Levels = ModeRate, arrivals.Pattern{}, 5, Levels{Start: 1000, End: 2000, Step: 1000}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Levels) != 2 {
		t.Fatalf("%d levels, %v", len(report.Levels), err)
	}
	for i, l := range report.Levels {
		if l.Seed != 5+uint64(i) || l.Load.RequestRate != float64(1000*(i+1)) || l.Measurement.Windows[0].Scheduled != 30 {
			t.Errorf("seed %d, %v, %d scheduled", l.Seed, l.Load, l.Measurement.Windows[0].Scheduled)
		}
	}
	trace, err := arrivals.TraceOf([]time.Duration{ms, 3 * ms})
	if err != nil {
		t.Fatal(err)
	}
	o.Mode, o.Arrivals, o.Search = ModeIntervals, arrivals.Pattern{Kind: arrivals.TraceKind, Trace: &trace}, SearchNone
	if report, err = Run(t.Context(), o); err != nil || report.Levels[0].Load.RequestRate != 500 {
		t.Errorf("%v, %v; want 500 requests/s", report.Levels, err)
	}
}

// The windows of arrivals with a period are whole periods. A period of 40 ms is on for 10: a window
// asked to last 50 ms lasts 80, and there is no flag of unsteady load.
func TestWindowsAreWholePeriods(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 0)
	o.Mode, o.Levels, o.Search = ModeRate, Levels{Start: 1000, End: 1000, Step: 1}, SearchNone
	o.Arrivals = arrivals.Pattern{Kind: arrivals.OnOffKind, On: 10 * ms, Off: 30 * ms}
	o.WarmUp, o.Stop = time.Second, Stop{Rule: RuleStability, Stability: 10, Trials: 3, Window: 50 * ms}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Levels) != 1 || len(report.Levels[0].Measurement.Windows) != 3 {
		t.Fatalf("%+v, %v", report.Levels, err)
	}
	for _, w := range report.Levels[0].Measurement.Windows {
		if w.Duration < 80*ms || w.Periods < 2 || slices.Contains(w.Flags, measure.FlagUnsteady) {
			t.Errorf("a window lasts %v and %d periods, with the flags %v", w.Duration, w.Periods, w.Flags)
		}
	}
}

// Faults of the server appear at the level. All that was measured stays.
func TestRunWithFailures(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), counting(target(t, testserver.Options{Faults: testserver.Faults{FailEvery: 10}}), 30))
	if err != nil || len(report.Levels) != 2 {
		t.Fatalf("%d levels, %v", len(report.Levels), err)
	}
	first := report.Levels[0]
	if first.Measurement.Errors() != 3 || first.Measurement.Windows[0].Requests != 27 || !strings.Contains(first.Warnings[0], "concurrency 1: 3 of 30 requests failed (10 %), the first with: server answered 500") {
		t.Errorf("%d errors, warnings %q", first.Measurement.Errors(), first.Warnings)
	}

	o := counting(target(t, testserver.Options{Faults: testserver.Faults{DieAfter: 45}}), 30)
	report, err = Run(t.Context(), o)
	var lost *load.LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "concurrency 2, after ") || len(report.Levels) != 2 {
		t.Fatalf("a server that dies: %v, %d levels", err, len(report.Levels))
	}
	// The answered requests stay: 15, and those that ended with the connections.
	if l := report.Levels[1]; l.Verdict != VerdictFailed || l.Measurement.Windows[0].Requests > 15 || l.Measurement.Errors() == 0 {
		t.Errorf("%s, %d requests, %d errors", l.Verdict, l.Measurement.Windows[0].Requests, l.Measurement.Errors())
	}
}

func TestStatisticsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 10)
	o.Target.Gauge = blind{errors.New("no such page")}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Levels) != 2 || !strings.Contains(strings.Join(report.Levels[0].Warnings, "\n"), "no such page") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestRunEndsWithItsSinkAndItsContext(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 10)
	full := errors.New("disk full")
	o.Sink = &diary{broken: full}
	if report, err := Run(t.Context(), o); !errors.Is(err, full) || len(report.Levels) != 1 {
		t.Errorf("sink: %v, %d levels", err, len(report.Levels))
	}
	o.Sink = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if report, err := Run(ctx, o); !errors.Is(err, context.Canceled) || !report.Interrupted || len(report.Levels) != 0 {
		t.Errorf("context: %v, %+v", err, report)
	}
}

// clock is a gauge that signals each reading at a window's edge, if somebody listens.
type clock chan struct{}

func (c clock) Read(context.Context) (meter.Reading, error) {
	select {
	case c <- struct{}{}:
	default:
	}
	return meter.Reading{}, nil
}

// patient is a gauge whose first reading lasts until another load has passed some edges.
type patient struct {
	other clock
	edges int
}

func (p *patient) Read(context.Context) (meter.Reading, error) {
	for ; p.edges > 0; p.edges-- {
		<-p.other
	}
	return meter.Reading{}, nil
}

// The load on another model runs while levels are measured. Its windows come with the level's.
func TestRunBesideAnotherModel(t *testing.T) {
	t.Parallel()
	o := counting(target(t, testserver.Options{}), 0)
	o.RequestCount = 0
	o.Levels, o.Search = Levels{Start: 1, End: 1, Step: 1}, SearchNone
	o.Stop = Stop{Rule: RuleStability, Stability: 1e9, Trials: 3, Window: 100 * ms}
	other := target(t, testserver.Options{Law: testserver.Deterministic(ms)})
	edges := make(clock)
	other.Gauge = edges
	// The level's first window begins before its first reading. The first edge that is signalled
	// then may lie before it. The windows between the second and the fourth edge lie within. At the
	// fifth both are complete.
	o.Target.Gauge = &patient{edges, 5}
	o.Beside = []Beside{{Model: "other", Target: other, Load: measure.Load{Concurrency: 2, BatchSize: 1}}}
	report, err := Run(t.Context(), o)
	if err != nil || len(report.Levels) != 1 || len(report.Levels[0].Others) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	beside := report.Levels[0].Others[0]
	if n, _ := requests(beside.Measurement); beside.Model != "other" || n == 0 {
		t.Errorf("%d requests on %q", n, beside.Model)
	}
	o.Beside[0].Target.Options.Address = "127.0.0.1:1"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `the load on the second model "other"`) {
		t.Errorf("a model that cannot be reached: %v", err)
	}
}
