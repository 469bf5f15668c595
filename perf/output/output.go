// Package output writes what `tuner perf` measured. The text, the CSV and the profile export have perf_analyzer's lines, columns
// and keys, so that scripts made for it go on working, with lines of our own after them; JSON, benchstat's text and a picture are
// for the rest. It stands at the end of the data flow: functions of a writer and values of package perf, without clock or locale.
// It judges no figure and opens no file. Warnings and failures are in the JSON alone: the others are read by scripts, and people
// are told on standard error.
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

// six prints a number as C++ streams do by default, and with them perf_analyzer: six significant digits.
func six(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// micros are whole microseconds, rounded down like perf_analyzer's; the tolerance of 1 ns is for seconds that have gone through
// floating point.
func micros(seconds float64) int64 { return int64(seconds*1e6 + 1e-3) }

// millis prints a duration in milliseconds without needless digits.
func millis(d time.Duration) string { return six(float64(d) / float64(time.Millisecond)) }

// percent prints a share with two significant digits, or none after the point from 10 % on.
func percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}

// percentiles are those that reports list: perf_analyzer's, and the one that was asked for.
func percentiles(s perf.Settings) []int {
	list := []int{50, 90, 95, 99}
	if s.Percentile > 0 && !slices.Contains(list, s.Percentile) {
		list = append(list, s.Percentile)
		slices.Sort(list)
	}
	return list
}

// isOpen says whether a load is an open loop.
func isOpen(l measure.Load) bool { return l.Concurrency == 0 }

// estimate is a metric's value, 0 where the measurement does not tell.
func estimate(m measure.Measurement, metric measure.Metric) measure.Estimate {
	e, _ := m.Estimate(metric)
	return e
}

// write hands a text over in one piece.
func write(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("cannot write %s: %w", what, err)
	}
	return nil
}
