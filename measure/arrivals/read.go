package arrivals

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tuner/internal/durable"
)

// The columns of a trace.
const (
	TimestampColumn = "timestamp" // the instants
	SizeColumn      = "size"      // the sizes of the requests; not every trace has it
)

// recordHint helps with a file that is no trace.
const recordHint = "`tuner perf record LOG -o trace.csv` makes a trace of an access log"

// LineError is a mistake in a line of a file.
type LineError struct {
	Line    int // from 1
	Problem string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

func lineErrorf(line int, format string, args ...any) error {
	return &LineError{line, fmt.Sprintf(format, args...)}
}

// ReadTrace reads the file of a trace: CSV with a column timestamp and perhaps a column size, or
// intervals as in perf_analyzer's --request-intervals. It refuses a trace that is empty, goes backwards, or has more than MostInstants.
// Errors name the file, and the line of a mistake.
func ReadTrace(path string) (Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return Trace{}, fmt.Errorf("cannot read trace %q: %w", path, durable.Cause(err))
	}
	defer f.Close()
	digest := sha256.New()
	trace, err := ParseTrace(io.TeeReader(f, digest))
	if err != nil {
		return Trace{}, InFile(path, err)
	}
	trace.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return trace, nil
}

// InFile adds the file to an error, and the line of a LineError.
func InFile(path string, err error) error {
	var at *LineError
	if errors.As(err, &at) {
		return fmt.Errorf("%s:%d: %s", path, at.Line, at.Problem)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ParseTrace reads a trace as ReadTrace does. A mistake of a line is a *LineError.
func ParseTrace(r io.Reader) (Trace, error) {
	text := bufio.NewReader(r)
	isIntervals, err := hasIntervals(text)
	if err != nil {
		return Trace{}, err
	}
	if !isIntervals {
		return parseTable(text)
	}
	list, err := ParseIntervals(text)
	if err != nil {
		return Trace{}, err
	}
	return TraceOf(list)
}

// hasIntervals reports whether the first line that is not empty holds a whole number alone.
func hasIntervals(text *bufio.Reader) (bool, error) {
	const look = 4096
	head, err := text.Peek(look)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return false, err
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if len(line) == 0 && len(head) < look {
		return false, errors.New("the trace is empty; " + recordHint)
	}
	_, err = strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return err == nil, nil
}

// parseTable reads CSV with a column timestamp, and perhaps one of sizes. Other columns are not looked at.
func parseTable(text io.Reader) (Trace, error) {
	table := csv.NewReader(text)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return Trace{}, CSVError(err)
	}
	column, sizeColumn := columnNamed(header, TimestampColumn), columnNamed(header, SizeColumn)
	if column < 0 {
		return Trace{}, lineErrorf(1, "there is no column %q, and no whole number of microseconds; %s", TimestampColumn, recordHint)
	}
	var instants []time.Duration
	var sizes []int64
	var first int64 // ns since 1970, or since the beginning of the trace
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Trace{}, CSVError(err)
		}
		line, _ := table.FieldPos(column)
		at, err := ParseInstant(row[column])
		switch {
		case err != nil:
			return Trace{}, lineErrorf(line, "%s", err)
		case len(instants) == MostInstants:
			return Trace{}, lineErrorf(line, "the trace has more than %d requests; `tuner perf record --from … --for …` makes a shorter one", MostInstants)
		case len(instants) == 0:
			first = at
		}
		since := time.Duration(at - first)
		if n := len(instants); n > 0 && since < instants[n-1] {
			return Trace{}, lineErrorf(line, "the timestamp %q lies %v before the one above it: a trace must not go backwards", row[column], instants[n-1]-since)
		}
		instants = append(instants, since)
		if sizeColumn >= 0 {
			size, err := parseSize(row[sizeColumn])
			if err != nil {
				return Trace{}, lineErrorf(line, "%s", err)
			}
			sizes = append(sizes, size)
		}
	}
	if len(instants) == 0 {
		return Trace{}, errors.New("the trace is empty: it has a header and no requests")
	}
	trace, err := NewTrace(instants)
	trace.Sizes = sizes
	return trace, err
}

// columnNamed returns the column of a table's header with a name; -1 without one.
func columnNamed(header []string, name string) int {
	return slices.IndexFunc(header, func(heading string) bool {
		return strings.TrimSpace(strings.TrimPrefix(heading, "\ufeff")) == name
	})
}

// parseSize reads the size of a request.
func parseSize(text string) (int64, error) {
	size, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || size < 1 || size > math.MaxInt32 {
		return 0, fmt.Errorf("the size %q is not a whole number from 1 to %d", text, math.MaxInt32)
	}
	return size, nil
}

// CSVError turns a mistake in the form of a table into a LineError.
func CSVError(err error) error {
	var mistake *csv.ParseError
	if errors.As(err, &mistake) {
		return lineErrorf(mistake.Line, "the table is not valid CSV: %v", mistake.Err)
	}
	return err
}

// Bounds of numbers that are time stamps in ms, µs or ns since 1970. Smaller ones are seconds.
const (
	leastMillis = 1e11 // of 1973, and in seconds of the year 5138
	leastMicros = 1e14
	leastNanos  = 1e17
	latest      = 9e18 // ns: of the year 2255
)

// ParseInstant reads a time stamp, in ns since 1970 or since any beginning: seconds, the time since
// 1970 in s, ms, µs or ns, or RFC 3339.
func ParseInstant(text string) (int64, error) {
	text = strings.TrimSpace(text)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return 0, fmt.Errorf("the timestamp %q is neither a number of seconds nor a time as in 2026-01-31T12:00:00.5Z", text)
		}
		return at.UnixNano(), nil
	}
	unit := 1e9
	switch {
	case !(number >= 0) || math.IsInf(number, 0): // NaN too
		return 0, fmt.Errorf("the timestamp %q must be a finite number from 0 on", text)
	case number >= leastNanos:
		unit = 1
	case number >= leastMicros:
		unit = 1e3
	case number >= leastMillis:
		unit = 1e6
	}
	if number*unit > latest {
		return 0, fmt.Errorf("the timestamp %q is too large", text)
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil { // a float64 has too few digits
		return whole * int64(unit), nil
	}
	return int64(math.Round(number * unit)), nil
}

// ParseIntervals reads a file of intervals: one whole number of microseconds per line, as in
// perf_analyzer's --request-intervals. It skips empty lines. A mistake of a line is a *LineError.
func ParseIntervals(r io.Reader) ([]time.Duration, error) {
	var list []time.Duration
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		us, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || us < 0 || us > longestInterval.Microseconds():
			return nil, lineErrorf(n, "%q is not an interval: want a whole number of microseconds, at most %d", text, longestInterval.Microseconds())
		case len(list) == MostInstants:
			return nil, lineErrorf(n, "there are more than %d intervals", MostInstants)
		}
		list = append(list, time.Duration(us)*time.Microsecond)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("there are no intervals: each line must hold a whole number of microseconds")
	}
	return list, nil
}
