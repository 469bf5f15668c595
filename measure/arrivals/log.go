package arrivals

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	Foreign  int             // lines without a time stamp
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
}

// longestLine bounds a line of a log.
const longestLine = 1 << 20

// Record reads the arrivals of requests from a log: an access log of nginx, Apache or Envoy, JSON
// lines, Triton's or tuner's own log, or a trace. A log is in the order in which requests ended, so
// the instants are put in order. Its memory is bounded by MostInstants, and by the longest line.
func Record(r io.Reader, s Selection) (Recording, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	var rec Recording
	var instants []int64 // ns
	rec.IsWhole = true
	column, first := -1, ""
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			first = shortened(string(line))
			if column = columnOf(string(line)); column >= 0 {
				continue
			}
		}
		at, ok := stampOf(line, column)
		switch {
		case !ok:
			rec.Foreign++
			continue
		case s.Match != "" && !bytes.Contains(line, []byte(s.Match)):
			rec.Other++
			continue
		case len(instants) == MostInstants:
			return Recording{}, lineErrorf(n, "there are more than %d requests; choose some with --match, or split the log", MostInstants)
		}
		rec.IsWhole = rec.IsWhole && at%int64(time.Second) == 0
		instants = append(instants, at)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return Recording{}, fmt.Errorf("a line is longer than %d bytes: the file is not a log", longestLine)
	} else if err != nil {
		return Recording{}, err
	}
	if len(instants) == 0 && rec.Other > 0 {
		return Recording{}, fmt.Errorf("no line with a time stamp has the text %q", s.Match)
	}
	if len(instants) == 0 {
		return Recording{}, lineErrorf(1, "neither this line nor a later one has a time stamp of a request: %q; "+
			"known are the access logs of nginx, Apache and Envoy, JSON lines, Triton's log and traces", first)
	}
	if rec.IsWhole = rec.IsWhole && len(instants) > 1; rec.IsWhole {
		spread(instants, s.Seed)
	}
	slices.Sort(instants)
	return rec.cut(instants, s)
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
func spread(instants []int64, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range instants {
		instants[i] += random.Int64N(int64(time.Second))
	}
}

// cut keeps the part of ascending instants that is selected.
func (rec Recording) cut(instants []int64, s Selection) (Recording, error) {
	begin := instants[0] + int64(s.From)
	from, _ := slices.BinarySearch(instants, begin)
	to := len(instants)
	if s.For > 0 {
		to, _ = slices.BinarySearch(instants, begin+int64(s.For))
	}
	rec.Other += len(instants) - max(to-from, 0)
	if from >= to {
		return Recording{}, fmt.Errorf("there is no request from %v on for %v: the log has %d in %v", s.From, s.For, len(instants),
			time.Duration(instants[len(instants)-1]-instants[0]).Round(time.Millisecond))
	}
	for _, at := range instants[from:to] {
		rec.Instants = append(rec.Instants, time.Duration(at-instants[from]))
	}
	if rec.Instants[len(rec.Instants)-1] == 0 {
		return Recording{}, fmt.Errorf("all %d requests have the same time stamp: a trace needs two that differ", len(rec.Instants))
	}
	return rec, nil
}

// WriteTrace writes instants as a trace: CSV with a column timestamp, in seconds.
func WriteTrace(w io.Writer, instants []time.Duration) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, TimestampColumn)
	for _, at := range instants {
		fmt.Fprintln(out, strconv.FormatFloat(at.Seconds(), 'f', 6, 64))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write trace: %w", err)
	}
	return nil
}

// columnOf returns the column with the time stamps if a line is a trace's header; -1 for another line.
func columnOf(line string) int {
	header, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return -1
	}
	return timestampColumn(header)
}

// The time stamps of logs.
var (
	bracketed = regexp.MustCompile(`\[([^\]\s]{1,40}(?: [+-]\d{4})?)\]`)      // nginx, Apache, Envoy
	named     = regexp.MustCompile(`\btime=(\S{1,40})`)                       // tuner's log
	glog      = regexp.MustCompile(`^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{1,9})\s`) // Triton's log
)

// clfLayout is the time in the common log format.
const clfLayout = "02/Jan/2006:15:04:05 -0700"

// stampOf returns the time stamp of a line in ns since any beginning. column is that of a trace; -1
// for a log. It returns false for a line without one.
func stampOf(line []byte, column int) (int64, bool) {
	switch {
	case column >= 0:
		row, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil || column >= len(row) {
			return 0, false
		}
		return parsed(row[column])
	case len(line) > 0 && line[0] == '{':
		return stampOfJSON(line)
	}
	if m := glog.FindSubmatch(line); m != nil {
		at, err := time.Parse("20060102 15:04:05", "2000"+string(m[1])) // it has no year
		return at.UnixNano(), err == nil
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

// stampOfJSON returns the time stamp of a JSON line. The log of nginx is written when a request ends:
// its field request_time is subtracted.
func stampOfJSON(line []byte) (int64, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return 0, false
	}
	text := func(name string) string {
		var s string
		if raw := fields[name]; json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		return s
	}
	for _, name := range []string{"start_time", "timestamp", "@timestamp", "time", "ts", "msec", "time_iso8601", "time_local"} {
		if _, has := fields[name]; !has {
			continue
		}
		at, ok := parsed(text(name))
		if local, err := time.Parse(clfLayout, text(name)); !ok && err == nil {
			at, ok = local.UnixNano(), true
		}
		if took, err := strconv.ParseFloat(text("request_time"), 64); err == nil && name != "start_time" && took >= 0 && took < longestRequest {
			at -= int64(took * float64(time.Second))
		}
		return at, ok
	}
	return 0, false
}

// longestRequest bounds the field request_time, in s.
const longestRequest = 86_400

// parsed is parseInstant without the reason.
func parsed(text string) (int64, bool) {
	at, err := parseInstant(text)
	return at, err == nil
}
