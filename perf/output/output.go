// Package output writes the results of `tuner perf`. The text, the CSV and the profile export have
// perf_analyzer's lines, columns and keys, so that scripts for it still work. Our own lines follow
// after them. JSON, benchstat's format and a picture serve other purposes.
//
// The package stands at the end of the data flow. Its functions take a writer and values of package
// perf, and use neither clock nor locale. It judges no figure and opens no file. Only the JSON has
// warnings and failures, since scripts read the others. People see warnings on standard error.
package output

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"tuner/measure"
	"tuner/perf"
)

// six formats a number with six significant digits, as C++ streams do by default, and so
// perf_analyzer.
func six(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// goodput returns the inferences per second that were answered within the limit of a run, if it has
// one.
func goodput(m measure.Measurement, load measure.Load, s perf.Settings) (measure.Estimate, bool) {
	if s.Goodput == 0 {
		return measure.Estimate{}, false
	}
	metric := measure.Goodput(s.Goodput)
	e, ok := m.Estimate(metric)
	return load.Bounded(metric, e), ok
}

// micros returns whole microseconds, rounded down as in perf_analyzer. The tolerance of 1 ns allows
// for rounding errors of seconds in floating point.
func micros(seconds float64) int64 { return int64(seconds*1e6 + 1e-3) }

// millis formats a duration in milliseconds without trailing zeros.
func millis(d time.Duration) string { return six(float64(d) / float64(time.Millisecond)) }

// percent formats a share with two significant digits, and from 10 % on without decimals.
func percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}

// percentiles returns the percentiles in reports: perf_analyzer's, and the one that the user names.
func percentiles(s perf.Settings) []int {
	list := []int{50, 90, 95, 99}
	if s.Percentile > 0 && !slices.Contains(list, s.Percentile) {
		list = append(list, s.Percentile)
		slices.Sort(list)
	}
	return list
}

// isOpen reports whether a load is an open loop.
func isOpen(l measure.Load) bool { return l.Concurrency == 0 }

// estimate returns the estimate of a metric, 0 if the measurement does not have it.
func estimate(m measure.Measurement, metric measure.Metric) measure.Estimate {
	e, _ := m.Estimate(metric)
	return e
}

// write writes a text in one piece.
func write(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cannot write %s: %w", what, err)
	}
	return nil
}
