package perf

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/measure"
	"tuner/runner/load"
)

// fake is a run with invented levels: the latency is a function of the level and of how often it
// was measured.
func fake(t *testing.T, s Settings, latency func(value float64, time int) (time.Duration, error)) (report Report, order []float64, err error) {
	t.Helper()
	r := &run{options: Options{Settings: s}, report: Report{Settings: s}}
	times := map[float64]int{}
	r.measure = func(_ context.Context, value float64) (Level, error) {
		order = append(order, value)
		times[value]++
		d, err := latency(value, times[value])
		l := Level{Load: measure.Load{RequestRate: value, BatchSize: 1}}
		if s.Mode == ModeConcurrency {
			l.Load = measure.Load{Concurrency: int(value), BatchSize: 1}
		}
		if err == nil {
			l.Measurement.Windows = repeat(3, window(t, d, int(value)))
			l.Limit = s.limitOf(l.Measurement)
		}
		return l, err
	}
	err = r.search(t.Context())
	r.report.Best = r.report.best()
	return r.report, order, err
}

func TestOrderOfLevels(t *testing.T) {
	t.Parallel()
	proportional := func(value float64, _ int) (time.Duration, error) { return time.Duration(value) * ms, nil }
	for name, c := range map[string]struct {
		s    Settings
		want []float64
		best int
	}{
		"one":            {Settings{Search: SearchNone, Levels: Levels{Start: 3, End: 3, Step: 1}}, []float64{3}, -1},
		"range":          {Settings{Search: SearchLinear, Levels: Levels{Start: 1, End: 8, Step: 3}}, []float64{1, 4, 7}, -1},
		"fractions":      {Settings{Mode: ModeRate, Search: SearchLinear, Levels: Levels{Start: 1, End: 1.3, Step: 0.1}}, []float64{1, 1.1, 1.2, 1.3}, -1},
		"to the limit":   {Settings{Search: SearchLinear, Levels: Levels{Start: 1, End: 8, Step: 1}, LatencyLimit: 3500 * time.Microsecond}, []float64{1, 2, 3, 4}, 2},
		"open":           {Settings{Search: SearchLinear, Levels: Levels{Start: 2, Step: 2, Open: true}, LatencyLimit: 5 * ms}, []float64{2, 4, 6}, 1},
		"over at once":   {Settings{Search: SearchLinear, Levels: Levels{Start: 5, End: 8, Step: 1}, LatencyLimit: 3500 * time.Microsecond}, []float64{5}, -1},
		"binary":         {Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 1, End: 16, Step: 1}, LatencyLimit: 6500 * time.Microsecond}, []float64{1, 16, 8, 4, 6, 7, 6}, 4},
		"binary, coarse": {Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 1, End: 16, Step: 4}, LatencyLimit: 6500 * time.Microsecond}, []float64{1, 16, 8, 4, 4}, 3},
		"binary, all":    {Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 1, End: 4, Step: 1}, LatencyLimit: 6500 * time.Microsecond}, []float64{1, 4}, 1},
		"binary, none":   {Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 8, End: 16, Step: 1}, LatencyLimit: 6500 * time.Microsecond}, []float64{8}, -1},
	} {
		report, order, err := fake(t, c.s, proportional)
		near := func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
		if err != nil || !slices.EqualFunc(order, c.want, near) || report.Best != c.best {
			t.Errorf("%s: levels %v, best %d, %v; want %v, %d", name, order, report.Best, err, c.want, c.best)
		}
	}
}

// The last level of a binary search is measured once more. If it misses the limit then, it is not
// the best.
func TestBoundaryIsConfirmed(t *testing.T) {
	t.Parallel()
	s := Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 1, End: 9, Step: 1}, LatencyLimit: 6500 * time.Microsecond}
	report, order, err := fake(t, s, func(value float64, times int) (time.Duration, error) {
		if value == 6 && times == 2 {
			return 7 * ms, nil
		}
		return time.Duration(value) * ms, nil
	})
	if err != nil || !slices.Equal(order, []float64{1, 9, 5, 7, 6, 6}) {
		t.Fatalf("levels %v, %v", order, err)
	}
	if len(report.Warnings) != 1 || report.Best < 0 || report.Levels[report.Best].Load.Concurrency != 5 {
		t.Errorf("best %d, warnings %q; want concurrency 5 and a warning", report.Best, report.Warnings)
	}
}

// A server answers 1,000 requests/s in 16 ms, however many are due: the rest is dropped. A search
// ends at the highest rate of which hardly anything is dropped.
func TestDroppedRequestsMissTheLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		search Search
		levels Levels
		want   []float64
	}{
		"binary": {SearchBinary, Levels{Start: 100, End: 5000, Step: 1000}, []float64{100, 5000, 2550, 1325, 712.5, 712.5}},
		"open":   {SearchLinear, Levels{Start: 500, Step: 500, Open: true}, []float64{500, 1000, 1500}},
	} {
		s := Settings{Mode: ModeRate, Search: c.search, Levels: c.levels, LatencyLimit: 50 * ms}
		r := &run{options: Options{Settings: s}}
		var order []float64
		r.measure = func(_ context.Context, rate float64) (Level, error) {
			if order = append(order, rate); len(order) > 20 {
				return Level{}, errors.New("there is no end")
			}
			w := window(t, 16*ms, int(min(rate, 1000))/10)
			w.Scheduled = int(rate)
			w.Dropped = max(0, w.Scheduled-1000)
			l := Level{Load: measure.Load{RequestRate: rate, BatchSize: 1}, Measurement: measure.Measurement{Windows: repeat(3, w)}}
			l.Limit = s.limitOf(l.Measurement)
			l.Warnings = s.warnings(l, nil)
			return l, nil
		}
		err := r.search(t.Context())
		if err != nil || !slices.Equal(order, c.want) {
			t.Errorf("%s: rates %v, %v; want %v", name, order, err, c.want)
		}
		if best := r.report.best(); best < 0 || r.report.Levels[best].Load.RequestRate > 1000 {
			t.Errorf("%s: best %d", name, best)
		}
		for _, l := range r.report.Levels {
			if warned := strings.Contains(strings.Join(l.Warnings, "\n"), "requests were not sent"); warned != (l.Load.RequestRate > 1000) {
				t.Errorf("%s: %s: warnings %q", name, l.Load, l.Warnings)
			}
		}
	}
}

func TestFailedLevels(t *testing.T) {
	t.Parallel()
	refusing := func(value float64, _ int) (time.Duration, error) {
		if value > 4 {
			return 0, &load.RefusedError{Requests: 10, First: "no"}
		}
		return time.Duration(value) * ms, nil
	}
	s := Settings{Mode: ModeConcurrency, Search: SearchBinary, Levels: Levels{Start: 1, End: 16, Step: 1}, LatencyLimit: 100 * ms}
	report, order, err := fake(t, s, refusing)
	if err != nil || !slices.Equal(order, []float64{1, 16, 8, 4, 6, 5, 4}) || len(report.Warnings) != 4 {
		t.Errorf("binary: levels %v, warnings %q, %v", order, report.Warnings, err)
	}
	s.Search = SearchLinear
	var refused *load.RefusedError
	report, order, err = fake(t, s, refusing)
	if !errors.As(err, &refused) || len(order) != 5 || len(report.Levels) != 4 {
		t.Errorf("linear: levels %v, %d in the report, %v", order, len(report.Levels), err)
	}
}
