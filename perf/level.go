package perf

import (
	"context"
	"errors"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// trial is the measurement of one level while it goes on.
type trial struct {
	options  *Options
	begun    time.Time // when the run began
	level    Level
	readings readings
	windows  int   // that were complete so far, before any were joined
	broken   error // why the sink takes no more
}

// mostWindows is at how many a level's windows are joined in pairs: 600 sub-windows are enough for any interval.
const mostWindows = 60

// measureLevel measures one level. On an error the level has the windows that were complete, maybe none.
func (r *run) measureLevel(ctx context.Context, value float64) (Level, error) {
	o := &r.options
	l := measure.Load{BatchSize: o.Batch}
	t := &trial{options: o, begun: r.begun, readings: readings{gauge: o.Target.Gauge}}
	var arrivals load.Arrivals
	var err error
	switch o.Mode {
	case ModeConcurrency:
		l.Concurrency = int(value)
	case ModeRate:
		l.RequestRate = value
		arrivals, t.level.Seed, err = r.schedule(value)
	case ModeIntervals:
		l.RequestRate = rateOf(o.Intervals)
		arrivals, err = load.Intervals(o.Intervals)
	}
	if err != nil {
		return Level{}, err
	}
	r.others.forget()
	t.level.Load, t.level.Begin = l, time.Now()
	if o.Sink != nil {
		if err := o.Sink.Begin(l, t.level.Begin); err != nil {
			return Level{}, err
		}
	}
	t.live(Progress{})
	result, err := load.Run(ctx, t.loadOptions(arrivals))
	t.finish(ctx, result, err)
	t.level.Others = r.others.during(t.level)
	return t.level, errors.Join(err, t.endSink(result.Windows))
}

// schedule makes the arrivals of a level of a request rate.
func (r *run) schedule(rate float64) (load.Arrivals, uint64, error) {
	if r.options.Distribution != Poisson {
		a, err := load.Constant(rate)
		return a, 0, err
	}
	seed := r.options.Seed + uint64(len(r.report.Levels)) // a schedule of its own, or levels would share their luck
	a, err := load.Poisson(rate, seed)
	return a, seed, err
}

// rateOf is the mean rate of intervals, in requests per second.
func rateOf(intervals []time.Duration) float64 {
	var sum time.Duration
	for _, d := range intervals {
		sum += d
	}
	if sum == 0 {
		return 0
	}
	return float64(len(intervals)) / sum.Seconds()
}

// loadOptions are the level's load.
func (t *trial) loadOptions(arrivals load.Arrivals) load.Options {
	o := t.options
	options := load.Options{
		Load:           t.level.Load,
		Arrivals:       arrivals,
		Dial:           o.Target.dialer(t.level.Load),
		MaxInFlight:    o.MaxInFlight,
		Large:          o.Target.IsLarge(),
		Timeout:        o.Timeout,
		Patience:       o.Timeout,
		WarmUp:         o.WarmUp,
		WarmUpRequests: o.WarmUpRequests,
		Length:         o.Stop.windowLength,
		Requests:       o.Stop.Requests,
		Total:          o.RequestCount,
		Edge: func(ctx context.Context, _ int) error {
			t.readings.edge(ctx)
			return nil
		},
		More: t.more,
	}
	if o.Stop.Rule == RulePrecision { // the rule of stability has a number of windows
		options.Budget = o.Stop.Budget
		options.MostWindows, options.Joined = mostWindows, t.readings.join
	}
	if o.Sink != nil {
		options.Sink = func(r load.Record) {
			if t.broken == nil {
				t.broken = o.Sink.Record(r)
			}
		}
	}
	return options
}

// The length of windows that the user leaves open: short, so that there are soon enough of them, but long in comparison with
// the latency, so that they differ little by the requests on their edges.
const (
	shortestWindow     = time.Second
	latenciesPerWindow = 10
)

// windowLength is the asked length, or one that suits the 99th percentile of the latency and leaves room in the budget for as
// many windows as the rule of precision wants.
func (s Stop) windowLength(p99 time.Duration) time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return min(max(shortestWindow, latenciesPerWindow*p99), s.Budget/fewestWindows)
}

// more judges after each window.
func (t *trial) more(windows []measure.Window) bool {
	t.progress(windows)
	verdict, done := t.options.judge(t.readings.complete(windows))
	t.level.Verdict = verdict
	return !done && t.broken == nil
}

// progress tells the observer of the last window.
func (t *trial) progress(windows []measure.Window) {
	t.windows++
	last := measure.Measurement{Windows: windows[len(windows)-1:]}
	rate, _ := last.Estimate(measure.Throughput)
	p := Progress{Window: t.windows, Throughput: rate.Value, InFlight: last.Windows[0].InFlight}
	p.P50, p.P99 = quantile(last, 0.50), quantile(last, 0.99)
	for _, w := range windows {
		p.Errors, p.Late, p.Dropped = p.Errors+w.Errors, p.Late+w.Late, p.Dropped+w.Dropped
	}
	t.live(p)
}

func quantile(m measure.Measurement, q float64) time.Duration {
	e, _ := m.Percentile(q)
	return time.Duration(e.Value * float64(time.Second))
}

// live tells the observer where the level stands.
func (t *trial) live(p Progress) {
	if t.options.Observer == nil {
		return
	}
	p.Load, p.Elapsed = t.level.Load, time.Since(t.begun)
	t.options.Observer.Live(p)
}

// finish makes the level of what the load yielded.
func (t *trial) finish(ctx context.Context, result load.Result, err error) {
	l := &t.level
	l.WarmUp, l.Unfinished, l.Waited, l.Resent = result.WarmUp, result.Unfinished, result.Waited, result.Resent
	if !result.Begin.IsZero() {
		l.Begin = result.Begin
	}
	windows := t.readings.complete(result.Windows)
	l.Measurement = measure.Measurement{Windows: t.options.counting(windows), Memory: t.readings.memory()}
	l.Composing = t.readings.composing(len(l.Measurement.Windows), len(windows))
	l.Limit = t.options.limitOf(l.Measurement)
	switch {
	case ctx.Err() != nil:
		l.Verdict = VerdictInterrupted
	case err != nil:
		l.Verdict, l.Failure = VerdictFailed, err.Error()
	case t.options.RequestCount > 0:
		l.Verdict = VerdictCounted
	}
	l.Warnings = t.options.warnings(*l, t.readings.failed)
}

// endSink tells the sink where the windows were, and returns its error.
func (t *trial) endSink(windows []measure.Window) error {
	if t.options.Sink == nil {
		return nil
	}
	if t.broken != nil {
		return t.broken
	}
	var edges []time.Duration
	for i, w := range windows {
		if i == 0 {
			edges = append(edges, w.Start)
		}
		edges = append(edges, w.Start+w.Duration)
	}
	return t.options.Sink.End(edges)
}
