package perf

import (
	"context"
	"errors"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// trial is the measurement of one level in progress.
type trial struct {
	options  *Options
	begun    time.Time // beginning of the run
	level    Level
	readings readings
	windows  int   // complete windows so far, counted before joining
	broken   error // error of the sink
}

// mostWindows is the number at which a level's windows are joined in pairs. 600 sub-windows are
// enough for any interval.
const mostWindows = 60

// measureLevel measures one level. With an error, the level has the windows that were complete,
// perhaps none.
func (r *run) measureLevel(ctx context.Context, value float64) (Level, error) {
	o := &r.options
	l := measure.Load{BatchSize: o.Batch}
	t := &trial{options: o, begun: r.begun, readings: readings{gauge: o.Target.Gauge}}
	var schedule load.Arrivals
	var err error
	switch o.Mode {
	case ModeConcurrency:
		l.Concurrency = int(value)
	case ModeRate:
		l.RequestRate = value
		schedule, t.level.Seed, err = r.schedule(value)
	case ModeIntervals:
		l.RequestRate = o.Arrivals.Trace.Rate()
		schedule, err = o.Arrivals.Schedule(l.RequestRate, 0)
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
	result, err := load.Run(ctx, t.loadOptions(schedule))
	t.finish(ctx, result, err)
	t.level.Others = r.others.during(t.level)
	return t.level, errors.Join(err, t.endSink(result.Windows))
}

// schedule makes the arrivals of a level at a request rate. It returns their seed.
func (r *run) schedule(rate float64) (load.Arrivals, uint64, error) {
	// each level has its own schedule, so that their random deviations are independent
	seed := r.options.Seed + uint64(len(r.report.Levels))
	if !r.options.Arrivals.IsRandom() {
		seed = 0
	}
	a, err := r.options.Arrivals.Schedule(rate, seed)
	return a, seed, err
}

// loadOptions returns the load of the level.
func (t *trial) loadOptions(schedule load.Arrivals) load.Options {
	o := t.options
	rate := t.level.Load.RequestRate
	var period time.Duration
	length := o.Stop.windowLength
	if schedule != nil {
		period = o.Arrivals.Period(rate)
		length = func(p99 time.Duration) time.Duration { return o.Arrivals.Whole(o.Stop.windowLength(p99), rate) }
	}
	part := load.Part{
		Load:           t.level.Load,
		Arrivals:       schedule,
		Period:         period,
		Dial:           o.Target.dialer(t.level.Load),
		MaxInFlight:    o.MaxInFlight,
		Large:          o.Target.IsLarge(),
		Timeout:        o.Timeout,
		Patience:       o.Timeout,
		WarmUp:         o.WarmUp,
		WarmUpRequests: o.WarmUpRequests,
	}
	windows := load.Windows{
		Length:   func(p99 []time.Duration) time.Duration { return length(p99[0]) },
		Requests: o.Stop.Requests,
		Total:    o.RequestCount,
		Edge: func(ctx context.Context, _ int) error {
			t.readings.edge(ctx)
			return nil
		},
		More: func(windows [][]measure.Window) bool { return t.more(windows[0]) },
	}
	if o.Stop.Rule == RulePrecision { // the rule of stability counts windows instead
		windows.Budget = o.Stop.Budget
		windows.MostWindows, windows.Joined = mostWindows, t.readings.join
	}
	if o.Sink != nil {
		part.Sink = func(r load.Record) {
			if t.broken == nil {
				t.broken = o.Sink.Record(r)
			}
		}
	}
	return load.Options{Part: part, Windows: windows}
}

// Bounds for the length of windows that the user leaves open. Short windows make a decision
// possible early. But they must be long compared with the latency, so that requests at their edges
// hardly make them differ.
const (
	shortestWindow     = time.Second
	latenciesPerWindow = 10
)

// windowLength returns the user's length, or one that suits p99, the 99th percentile of the
// latency. Then the budget has room for as many windows as the rule of precision needs.
func (s Stop) windowLength(p99 time.Duration) time.Duration {
	if s.Window > 0 {
		return s.Window
	}
	return min(max(shortestWindow, latenciesPerWindow*p99), s.Budget/fewestWindows)
}

// more decides after each window whether another follows.
func (t *trial) more(windows []measure.Window) bool {
	t.progress(windows)
	verdict, done := t.options.judge(t.readings.complete(windows))
	t.level.Verdict = verdict
	return !done && t.broken == nil
}

// progress reports the last window to the observer.
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

// live reports the state of the level to the observer.
func (t *trial) live(p Progress) {
	if t.options.Observer == nil {
		return
	}
	p.Load, p.Elapsed = t.level.Load, time.Since(t.begun)
	t.options.Observer.Live(p)
}

// finish makes the level from the result of the load.
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

// endSink passes the edges of the windows to the sink and returns its error.
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
