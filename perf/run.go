package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// run is one run of levels.
type run struct {
	options Options
	begun   time.Time
	report  Report
	others  others
	// measures one level; with an error perhaps without windows
	measure func(ctx context.Context, value float64) (Level, error)
}

// Run measures level after level. It returns at the end of the levels or of the search, or with the
// first error. That is an error of the server, of the sink, or the cause of the context. With an
// error too, the report holds all that was measured.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{options: o, begun: time.Now(), report: Report{Settings: o.Settings}}
	r.measure = r.measureLevel
	err := r.alongside(ctx, r.search)
	r.report.Best = r.report.best()
	r.report.Interrupted = errors.Is(err, context.Canceled)
	return r.report, err
}

// search measures the levels in the order of the search.
func (r *run) search(ctx context.Context) error {
	switch r.options.Search {
	case SearchLinear:
		return r.linear(ctx)
	case SearchBinary:
		return r.binary(ctx)
	default:
		_, err := r.within(ctx, r.options.Levels.Start)
		return err
	}
}

// linear measures upwards until a level misses the limit.
func (r *run) linear(ctx context.Context) error {
	l := r.options.Levels
	for i := 0; ; i++ {
		value := l.Start + float64(i)*l.Step // so that rounding errors do not add up
		if !l.Open && i > 0 && value > l.End*(1+1e-9) {
			return nil
		}
		within, err := r.within(ctx, value)
		if err != nil || !within {
			return err
		}
	}
}

// binary halves the range down to the step, as perf_analyzer does. First it checks that the start
// is within the limit and the end above it. A single measurement decides each time, so the last
// level is measured once more.
func (r *run) binary(ctx context.Context) error {
	low, high := r.options.Levels.Start, r.options.Levels.End
	for _, end := range []struct {
		value float64
		right bool // the answer that the search needs there
	}{{low, true}, {high, false}} {
		within, err := r.within(ctx, end.value)
		if err != nil || within != end.right {
			return err
		}
	}
	for high-low > r.options.Levels.Step {
		middle := r.between(low, high)
		within, err := r.within(ctx, middle)
		if err != nil {
			return err
		}
		if within {
			low = middle
		} else {
			high = middle
		}
	}
	within, err := r.within(ctx, low)
	if err == nil && !within {
		r.warn("the level %g was within the latency limit first, and over it in a second measurement: the boundary is not sharp", low)
	}
	return err
}

// between returns the middle of two levels. For concurrencies it is a whole number.
func (r *run) between(low, high float64) float64 {
	middle := (low + high) / 2
	if r.options.Mode == ModeConcurrency {
		middle = float64(int(middle))
	}
	return middle
}

func (r *run) warn(format string, args ...any) {
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}

// within measures a level, adds it to the report, and reports whether it is within the limit. In a
// binary search, a level at which the server refuses every request counts as above the limit. At
// the first level such a refusal is an error, since the server then refuses any load.
func (r *run) within(ctx context.Context, value float64) (bool, error) {
	level, err := r.measure(ctx, value)
	if len(level.Measurement.Windows) > 0 {
		r.report.Levels = append(r.report.Levels, level)
		if r.options.Observer != nil {
			r.options.Observer.Measured(level)
		}
	}
	var refused *load.RefusedError
	if errors.As(err, &refused) && len(r.report.Levels) > 0 && r.options.Search == SearchBinary {
		r.warn("%s: %v", level.Load, err)
		return false, nil
	}
	if err != nil {
		return false, r.describe(ctx, level, err)
	}
	return level.Limit == "" && r.options.LatencyLimit == 0 || level.Limit.Within(), nil
}

// describe adds the level to an error. The error of a context stays as it is.
func (r *run) describe(ctx context.Context, level Level, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, total := len(level.Measurement.Windows), r.options.RequestCount
	switch {
	case n == 0:
		return fmt.Errorf("%s: %w", level.Load, err)
	case total > 0:
		completed, _ := requests(level.Measurement)
		return fmt.Errorf("%s, after %d of %d requests: %w", level.Load, completed+level.Measurement.Errors(), total, err)
	}
	last := level.Measurement.Windows[n-1]
	return fmt.Errorf("%s, after %d complete windows (%v): %w", level.Load, n, (last.Start + last.Duration).Round(100*time.Millisecond), err)
}

// best returns the index of the level with the highest throughput among those within the limit in
// each measurement. -1 without one, or without a limit.
func (r Report) best() int {
	missed := map[measure.Load]bool{}
	for _, l := range r.Levels {
		missed[l.Load] = missed[l.Load] || !l.Limit.Within()
	}
	best, most := -1, 0.0
	for i, l := range r.Levels {
		rate, _ := l.Measurement.Estimate(measure.Throughput)
		if !missed[l.Load] && rate.Value > most {
			best, most = i, rate.Value
		}
	}
	return best
}
