package arrivals

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Recording has the arrivals of requests in a log.
type Recording struct {
	Instants []time.Duration // since the first request, ascending
	Sizes    []int64         // of the requests, beside Instants, with Selection.Size
	Foreign  int             // lines without a time stamp
	Sizeless int             // lines with a time stamp and without a size, where sizes are wanted
	Other    int             // lines with one that do not match, or lie outside of the part
	// IsWhole means that the time stamps have whole seconds. The requests of a second were spread at
	// random over it.
	IsWhole bool
}

// Selection is the part of a log that is recorded.
type Selection struct {
	Match string        // only lines with this text; "": all
	From  time.Duration // since the first matching request
	For   time.Duration // 0: to the end
	Seed  uint64        // of the spread of whole seconds
	Size  string        // field of JSON lines, or column of a trace, with the sizes of requests; "": none
}

// longestLine bounds a line of a log.
const longestLine = 1 << 20

// Record reads the arrivals of requests from a log: an access log of nginx, Apache or Envoy, JSON
// lines, Triton's or tuner's own log, or a trace. A log is in the order in which requests ended, so
// they are put in order. Sizes are those of Selection.Size, or of a trace's column size. Requests
// without one are left out then. Its memory is bounded by MostInstants, and by the longest line.
func Record(r io.Reader, s Selection) (Recording, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	rec := Recording{IsWhole: true}
	var requests []logged
	reader, first := lineReader{timestamp: -1, size: -1, name: s.Size}, ""
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			first = shortened(string(line))
			if reader.open(string(line)) {
				continue
			}
		}
		got, found := reader.read(line)
		switch {
		case !found.time:
			rec.Foreign++
			continue
		case s.Match != "" && !bytes.Contains(line, []byte(s.Match)):
			rec.Other++
			continue
		case reader.wantsSize() && !found.size:
			rec.Sizeless++
			continue
		case len(requests) == MostInstants:
			return Recording{}, lineErrorf(n, "there are more than %d requests; choose some with --match, or split the log", MostInstants)
		}
		rec.IsWhole = rec.IsWhole && found.isWhole
		requests = append(requests, got)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return Recording{}, fmt.Errorf("a line is longer than %d bytes: the file is not a log", longestLine)
	} else if err != nil {
		return Recording{}, err
	}
	if len(requests) == 0 {
		return Recording{}, rec.emptiness(s, first)
	}
	if rec.IsWhole = rec.IsWhole && len(requests) > 1; rec.IsWhole {
		spread(requests, s.Seed)
	}
	slices.SortStableFunc(requests, func(a, b logged) int { return cmp.Compare(a.at, b.at) })
	rec, err := rec.cut(requests, s)
	if !reader.wantsSize() {
		rec.Sizes = nil
	}
	return rec, err
}

// emptiness says why a log has no requests to record. first is its first line, shortened.
func (rec Recording) emptiness(s Selection, first string) error {
	switch {
	case rec.Sizeless > 0:
		return fmt.Errorf("no request has a size: %q is no field with whole numbers from 1 to %d", cmp.Or(s.Size, SizeColumn), math.MaxInt32)
	case rec.Other > 0:
		return fmt.Errorf("no line with a time stamp has the text %q", s.Match)
	}
	return lineErrorf(1, "neither this line nor a later one has a time stamp of a request: %q; "+
		"known are the access logs of nginx, Apache and Envoy, JSON lines, Triton's log and traces", first)
}

// logged is a request in a log.
type logged struct {
	at   int64 // ns since any beginning
	size int64 // 0: not wanted
}

// lineReader reads the lines of a log or of a trace.
type lineReader struct {
	timestamp, size int    // columns of a trace; -1: a log, or no such column
	name            string // the field with sizes; "": none
	yearless        years
}

// years gives time stamps without a year the years that have gone by since the first line of a log.
type years struct{ past, last int64 } // ns: of whole years, and the last time

const (
	aYear     = int64(366 * 24 * time.Hour) // of a year without a name: it may have a 29th of February
	mostYears = 100                         // of a log; more would not fit in 64 bits some day
)

// of returns the time of a stamp in such a year. More than half a year back is a new one. Lines around
// New Year may be in another order: then more than half a year ahead is the old one.
func (y *years) of(stamp int64) int64 {
	switch at := stamp + y.past; {
	case at < y.last-aYear/2 && y.past < mostYears*aYear:
		y.past += aYear
	case y.past > 0 && at > y.last+aYear/2:
		return at - aYear
	}
	y.last = stamp + y.past
	return y.last
}

// open reads the first line of a file. It returns true for the header of a trace.
func (l *lineReader) open(line string) bool {
	header, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return false
	}
	if l.timestamp = columnNamed(header, TimestampColumn); l.timestamp < 0 {
		return false
	}
	l.size = columnNamed(header, cmp.Or(l.name, SizeColumn))
	return true
}

// wantsSize reports whether requests without a size are left out.
func (l *lineReader) wantsSize() bool { return l.name != "" || l.size >= 0 }

// found tells which parts a line has, and whether its time stamp has whole seconds.
type found struct{ time, size, isWhole bool }

// read reads a line.
func (l *lineReader) read(line []byte) (r logged, has found) {
	var size string
	var took int64
	switch {
	case l.timestamp >= 0:
		row, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil || l.timestamp >= len(row) {
			return r, has
		}
		r.at, has.time = parsed(row[l.timestamp])
		if l.size >= 0 && l.size < len(row) {
			size = row[l.size]
		}
	case len(line) > 0 && line[0] == '{':
		fields := fieldsOf(line)
		r.at, took, has.time = fields.stamp()
		size = fields.text(l.name)
	default:
		r.at, has.time = l.stampOf(line)
		size = l.sizeIn(line)
	}
	has.isWhole = r.at%int64(time.Second) == 0
	r.at -= took
	var err error
	r.size, err = parseSize(size)
	has.size = err == nil
	return r, has
}

// sizeIn returns the value of NAME=VALUE in a line of text; "" without one.
func (l *lineReader) sizeIn(line []byte) string {
	if l.name == "" {
		return ""
	}
	for _, word := range bytes.Fields(line) {
		if name, value, found := bytes.Cut(word, []byte("=")); found && string(name) == l.name {
			return string(bytes.Trim(value, `",;`))
		}
	}
	return ""
}

// shortened returns the beginning of a line for a message.
func shortened(line string) string {
	const most = 80
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// spread adds a random part of a second to each instant. Requests that came within a second would
// otherwise make a burst at its beginning.
func spread(requests []logged, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range requests {
		requests[i].at += random.Int64N(int64(time.Second))
	}
}

// cut keeps the part of ascending requests that is selected.
func (rec Recording) cut(requests []logged, s Selection) (Recording, error) {
	begin := requests[0].at + int64(s.From)
	before := func(r logged, at int64) int { return cmp.Compare(r.at, at) }
	from, _ := slices.BinarySearchFunc(requests, begin, before)
	to := len(requests)
	if s.For > 0 {
		to, _ = slices.BinarySearchFunc(requests, begin+int64(s.For), before)
	}
	rec.Other += len(requests) - max(to-from, 0)
	if from >= to {
		return Recording{}, fmt.Errorf("there is no request from %v on for %v: the log has %d in %v", s.From, s.For, len(requests),
			time.Duration(requests[len(requests)-1].at-requests[0].at).Round(time.Millisecond))
	}
	for _, r := range requests[from:to] {
		rec.Instants = append(rec.Instants, time.Duration(r.at-requests[from].at))
		rec.Sizes = append(rec.Sizes, r.size)
	}
	if rec.Instants[len(rec.Instants)-1] == 0 {
		return Recording{}, fmt.Errorf("all %d requests have the same time stamp: a trace needs two that differ", len(rec.Instants))
	}
	return rec, nil
}

// WriteTrace writes a trace: CSV with a column timestamp, in seconds, and a column size if there are
// sizes. These stand beside the instants.
func WriteTrace(w io.Writer, instants []time.Duration, sizes []int64) error {
	out := bufio.NewWriter(w)
	header := TimestampColumn
	if sizes != nil {
		header += "," + SizeColumn
	}
	fmt.Fprintln(out, header)
	for i, at := range instants {
		row := strconv.FormatFloat(at.Seconds(), 'f', 6, 64)
		if sizes != nil {
			row += "," + strconv.FormatInt(sizes[i], 10)
		}
		fmt.Fprintln(out, row)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write trace: %w", err)
	}
	return nil
}

// The time stamps of logs.
var (
	started   = regexp.MustCompile(`\bstart_time="?([^"\s]{1,40})`)           // tuner's log of inferences, in Triton's forms
	bracketed = regexp.MustCompile(`\[([^\]\s]{1,40}(?: [+-]\d{4})?)\]`)      // nginx, Apache, Envoy
	named     = regexp.MustCompile(`\btime=(\S{1,40})`)                       // tuner's log as slog has it
	glog      = regexp.MustCompile(`^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{1,9})\s`) // Triton's log
	iso       = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\S{1,40}) [A-Z] `)      // Triton's, with --log-format=ISO8601
)

// clfLayout is the time in the common log format.
const clfLayout = "02/Jan/2006:15:04:05 -0700"

// stampOf returns the time stamp of a line of text in ns since any beginning. It returns false for a
// line without one.
func (l *lineReader) stampOf(line []byte) (int64, bool) {
	if m := started.FindSubmatch(line); m != nil {
		return parsed(string(m[1]))
	}
	if m := iso.FindSubmatch(line); m != nil {
		return parsed(string(m[1]))
	}
	if m := glog.FindSubmatch(line); m != nil {
		at, err := time.Parse("20060102 15:04:05", "2000"+string(m[1])) // a leap year, since it has none
		if err != nil {
			return 0, false
		}
		return l.yearless.of(at.UnixNano()), true
	}
	for _, m := range bracketed.FindAllSubmatch(line, 3) {
		if at, err := time.Parse(clfLayout, string(m[1])); err == nil {
			return at.UnixNano(), true
		}
		if at, err := time.Parse(time.RFC3339Nano, string(m[1])); err == nil {
			return at.UnixNano(), true
		}
	}
	if m := named.FindSubmatch(line); m != nil {
		return parsed(string(m[1]))
	}
	return 0, false
}

// fields are those of a JSON line.
type fields map[string]json.RawMessage

// fieldsOf returns the fields of a line; none if it is not a JSON object.
func fieldsOf(line []byte) (f fields) {
	if json.Unmarshal(line, &f) != nil {
		return nil
	}
	return f
}

// text returns a field, without quotes.
func (f fields) text(name string) string {
	var s string
	if raw := f[name]; json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	return s
}

// stamp returns the time stamp of a JSON line in ns since any beginning. The log of nginx is written
// when a request ends: took is its field request_time, which must be subtracted.
func (f fields) stamp() (at, took int64, ok bool) {
	for _, name := range []string{"start_time", "timestamp", "@timestamp", "time", "ts", "msec", "time_iso8601", "time_local"} {
		if _, has := f[name]; !has {
			continue
		}
		at, ok = parsed(f.text(name))
		if local, err := time.Parse(clfLayout, f.text(name)); !ok && err == nil {
			at, ok = local.UnixNano(), true
		}
		if seconds, err := strconv.ParseFloat(f.text("request_time"), 64); err == nil && name != "start_time" && seconds >= 0 && seconds < longestRequest {
			took = int64(seconds * float64(time.Second))
		}
		return at, took, ok
	}
	return 0, 0, false
}

// longestRequest bounds the field request_time, in s.
const longestRequest = 86_400

// parsed is ParseInstant without the reason.
func parsed(text string) (int64, bool) {
	at, err := ParseInstant(text)
	return at, err == nil
}
