package traffic

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tuner/measure/arrivals"
)

// The columns of a table of rates, beside the column timestamp of a trace. A row counts until the
// next one.
const (
	rateColumn     = "rate"     // requests/s
	requestsColumn = "requests" // number of requests until the next row
)

// Parse reads a file: a trace of instants, or a table of rates. A mistake of a row is an
// *arrivals.LineError. The seed draws requests around rates.
func Parse(r io.Reader, seed uint64) (Traffic, error) {
	text := bufio.NewReader(r)
	const look = 4096
	head, err := text.Peek(look)
	if err != nil && !errors.Is(err, io.EOF) {
		return Traffic{}, err
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	header, _ := csv.NewReader(bytes.NewReader(line)).Read()
	for _, name := range []string{rateColumn, requestsColumn} {
		if at, column := columnNamed(header, arrivals.TimestampColumn), columnNamed(header, name); at >= 0 && column >= 0 {
			return parseRates(text, at, column, name, seed)
		}
	}
	trace, err := arrivals.ParseTrace(text)
	if err != nil {
		return Traffic{}, err
	}
	return ofTrace(trace)
}

// columnNamed returns the column with a name; -1 without one.
func columnNamed(header []string, name string) int {
	for i, heading := range header {
		if strings.TrimSpace(strings.TrimPrefix(heading, "\ufeff")) == name {
			return i
		}
	}
	return -1
}

// ofTrace counts the requests of a trace in its steps. The last step that is not whole is left out.
func ofTrace(trace arrivals.Trace) (Traffic, error) {
	if err := checkLength(trace.Length); err != nil {
		return Traffic{}, err
	}
	seconds := make([]float64, int(trace.Length/time.Second)+1)
	at := -trace.Gaps[0] // the first request comes at the beginning
	for _, gap := range trace.Gaps {
		at += gap
		seconds[at/time.Second]++
	}
	t := Traffic{Text: fmt.Sprintf("a trace of %d requests in %v", trace.Requests, trace.Length.Round(time.Second))}
	perStep := int(Step / time.Second)
	for len(seconds) >= perStep {
		sum := 0.0
		for _, n := range seconds[:perStep] {
			sum += n
		}
		t.Requests, seconds = append(t.Requests, sum), seconds[perStep:]
	}
	t.Dispersion = dispersion(trace, t.Requests)
	return t, nil
}

// dispersion returns the variance over the mean of the requests in a second, around the mean of their
// step.
func dispersion(trace arrivals.Trace, steps []float64) float64 {
	perStep := int(Step / time.Second)
	squares, freedom := 0.0, 0.0
	counts := make([]float64, perStep)
	at, step := -trace.Gaps[0], 0
	finish := func() {
		mean := steps[step] / float64(perStep)
		for i, n := range counts {
			squares += (n - mean) * (n - mean)
			counts[i] = 0
		}
		freedom += mean * float64(perStep-1)
	}
	for _, gap := range trace.Gaps {
		at += gap
		for int(at/Step) > step && step < len(steps) {
			finish()
			step++
		}
		if step >= len(steps) {
			break
		}
		counts[at%Step/time.Second]++
	}
	if step < len(steps) {
		finish()
	}
	if freedom == 0 {
		return 1
	}
	return max(1, squares/freedom)
}

func checkLength(d time.Duration) error {
	if d < Shortest || d > Longest {
		return fmt.Errorf("the traffic lasts %v, and must last from %v to %d days; `tuner perf record --from … --for …` cuts a log",
			d.Round(time.Second), Shortest, int(Longest/day))
	}
	return nil
}

// parseRates reads a table of rates. Its last row lasts as long as the one before it.
func parseRates(text io.Reader, at, column int, name string, seed uint64) (Traffic, error) {
	table := csv.NewReader(text)
	table.ReuseRecord = true
	if _, err := table.Read(); err != nil {
		return Traffic{}, arrivals.CSVError(err)
	}
	var begin []time.Duration
	var values []float64
	var first int64
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Traffic{}, arrivals.CSVError(err)
		}
		line, _ := table.FieldPos(column)
		instant, err := arrivals.ParseInstant(row[at])
		if err != nil {
			return Traffic{}, &arrivals.LineError{Line: line, Problem: err.Error()}
		}
		if len(begin) == 0 {
			first = instant
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(row[column]), 64)
		since := time.Duration(instant - first)
		switch n := len(begin); {
		case err != nil || !isRate(value) && name == rateColumn || !(value >= 0 && value <= HighestRate*Longest.Seconds()):
			return Traffic{}, lineErrorf(line, "%s %q is not a number from 0 to %g", name, row[column], HighestRate)
		case since > Longest:
			return Traffic{}, lineErrorf(line, "the row lies %v after the first one, and the traffic may last %d days", since, int(Longest/day))
		case n > 0 && since <= begin[n-1]:
			return Traffic{}, lineErrorf(line, "the timestamp %q does not lie after that of the row above it", row[at])
		}
		begin, values = append(begin, since), append(values, value)
	}
	if len(begin) < 2 {
		return Traffic{}, fmt.Errorf("the table has %d rows: it needs two at least, each of which counts until the next one", len(begin))
	}
	end := 2*begin[len(begin)-1] - begin[len(begin)-2]
	if err := checkLength(end); err != nil {
		return Traffic{}, err
	}
	if name == requestsColumn {
		for i := range values {
			until := end
			if i+1 < len(begin) {
				until = begin[i+1]
			}
			if values[i] /= (until - begin[i]).Seconds(); !isRate(values[i]) {
				return Traffic{}, fmt.Errorf("row %d has %g requests/s, and at most %g are allowed", i+2, values[i], HighestRate)
			}
		}
	}
	r := sampled(begin, values, end)
	return r.traffic(fmt.Sprintf("%d rates in %v", len(values), end.Round(time.Second)), seed), nil
}

// sampled returns the mean rates of whole steps, of rates that each count from their beginning on.
func sampled(begin []time.Duration, values []float64, end time.Duration) rates {
	r := make(rates, int(end/Step))
	row := 0
	for i := range r {
		from, to := time.Duration(i)*Step, time.Duration(i+1)*Step
		for at := from; at < to; {
			for row+1 < len(begin) && begin[row+1] <= at {
				row++
			}
			until := to
			if row+1 < len(begin) {
				until = min(until, begin[row+1])
			}
			r[i] += values[row] * float64(until-at) / float64(Step)
			at = until
		}
	}
	return r
}

func lineErrorf(line int, format string, args ...any) error {
	return &arrivals.LineError{Line: line, Problem: fmt.Sprintf(format, args...)}
}
