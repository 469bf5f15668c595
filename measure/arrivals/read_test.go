package arrivals

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/internal/alloctest"
)

func TestParseTrace(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	want := []time.Duration{1500 * ms, time.Second, 2 * time.Second}
	for name, text := range map[string]string{
		"seconds":             "timestamp\n0\n1\n3\n",
		"other columns":       "size,timestamp\r\n7,10.0\r\n8,11.0\r\n9,13.0\r\n",
		"since 1970, in s":    "timestamp\n1700000000\n1700000001\n1700000003",
		"since 1970, in ms":   "timestamp\n1700000000000\n1700000001000\n1700000003000",
		"since 1970, in µs":   "timestamp\n1700000000000000\n1700000001000000\n1700000003000000",
		"since 1970, in ns":   "timestamp\n1700000000000000000\n1700000001000000000\n1700000003000000000",
		"RFC 3339":            "timestamp\n2026-01-31T12:00:00Z\n2026-01-31T13:00:01+01:00\n2026-01-31T12:00:03.0Z",
		"intervals":           "\n1500000\n1000000\n2000000\n",
		"spaces, and a mark":  "\ufeffsize, timestamp\n1, 0\n1, 1\n1, 3\n",
		"a quoted other cell": "path,timestamp\n\"a,\nb\",0\nc,1\nd,3\n",
	} {
		trace, err := ParseTrace(strings.NewReader(text))
		if err != nil || !slices.Equal(trace.Gaps, want) || trace.Requests != 3 || trace.Length != 4500*ms {
			t.Errorf("%s: %+v, %v, want the gaps %v", name, trace, err, want)
		}
	}
}

func TestTracesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "the trace is empty",
		"\n\n":                          "the trace is empty",
		"timestamp\n":                   "a header and no requests",
		"timestamp\n1\n":                "only one instant, of 1 requests",
		"timestamp\n1\n1\n":             "only one instant, of 2 requests",
		"timestamp\n0\n3\n2.5\n":        `t.csv:4: the timestamp "2.5" lies 500ms before the one above it`,
		"timestamp\n0\nNaN\n":           `t.csv:3: the timestamp "NaN" must be a finite number`,
		"timestamp\n0\n+Inf\n":          `t.csv:3: the timestamp "+Inf" must be a finite number`,
		"timestamp\n-1\n":               `t.csv:2: the timestamp "-1" must be a finite number`,
		"timestamp\n0\nyesterday\n":     `t.csv:3: the timestamp "yesterday" is neither`,
		"timestamp\n1e300\n":            `t.csv:2: the timestamp "1e300" is too large`,
		"timestamp,size\n0,1\n1\n":      "t.csv:3: the table is not valid CSV: wrong number of fields",
		"time,size\n0,1\n":              `t.csv:1: there is no column "timestamp"`,
		"127.0.0.1 - - [10/Oct/2026] x": `tuner perf record LOG`,
		"100\n2.5\n":                    `t.csv:2: "2.5" is not an interval`,
		"0\n0\n":                        "intervals that add up to 0",
	} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := ReadTrace(path)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q gives %+v, %v, want %q with the file", text, trace, err, want)
		}
	}
	if _, err := ReadTrace("no/such/file"); err == nil || !strings.Contains(err.Error(), `"no/such/file"`) {
		t.Errorf("a missing file gives %v", err)
	}
}

// lines yields a header and many equal lines, without their memory.
type lines struct {
	header, line string
	left         int
	rest         string
}

func (l *lines) Read(p []byte) (int, error) {
	if l.rest == "" {
		l.rest, l.header = l.header, ""
	}
	if l.rest == "" {
		if l.left == 0 {
			return 0, fmt.Errorf("read too far")
		}
		l.left--
		l.rest = l.line
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// A trace beyond the bound is refused at the first line too many, and not read on.
func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten million lines take seconds")
	}
	_, err := ParseTrace(&lines{header: "timestamp\n", line: strings.Repeat("1\n", 1<<16), left: MostInstants>>16 + 1})
	if err == nil || err.Error() != fmt.Sprintf("line %d: the trace has more than %d requests; `tuner perf record --from … --for …` makes a shorter one", MostInstants+2, MostInstants) {
		t.Errorf("the error is %v", err)
	}
}

func TestParseIntervals(t *testing.T) {
	t.Parallel()
	list, err := ParseIntervals(strings.NewReader("100\r\n\n 2000 \n0"))
	if want := []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 0}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
	for text, want := range map[string]string{
		"":                    "no intervals",
		"1\n2.5\n":            `line 2: "2.5"`,
		"1\n\n-3":             `line 3: "-3"`,
		"1e3":                 "line 1",
		"9999999999999999999": "line 1",
		"86400000001":         "line 1",
	} {
		if list, err := ParseIntervals(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v, want %q", text, list, err, want)
		}
	}
}

func FuzzParseIntervals(f *testing.F) {
	for _, text := range []string{"100\n200\n", "", "0", "-1", "a\n", "86400000000\n86400000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		list, err := ParseIntervals(strings.NewReader(text))
		if err != nil {
			return
		}
		trace, err := TraceOf(list)
		if err != nil {
			return // all intervals are 0
		}
		ascends(t, schedule(t, Pattern{Kind: TraceKind, Trace: &trace}, max(trace.Rate(), LowestRate)))
	})
}

// ascends checks that no instant comes before another.
func ascends(t *testing.T, s Schedule) {
	t.Helper()
	var last time.Duration
	for _, at := range take(s, 10) {
		if at < last {
			t.Fatalf("%v comes after %v", at, last)
		}
		last = at
	}
}

// A trace that is accepted can be replayed: its gaps are not negative, and add up to its period.
func FuzzParseTrace(f *testing.F) {
	for _, text := range []string{"timestamp\n0\n1.5\n", "size,timestamp\n1,2026-01-31T12:00:00Z\n2,2026-01-31T12:00:01Z\n", "100\n200\n", "timestamp\nNaN", "", "\"", "timestamp\n1e17\n1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer alloctest.Bound(t, len(text))()
		trace, err := ParseTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		p := Pattern{Kind: TraceKind, Trace: &trace}
		if err := p.Check(); err != nil {
			t.Fatalf("%+v: %v", trace, err)
		}
		if n := len(trace.Sizes); n > 0 && n != len(trace.Gaps) {
			t.Fatalf("%d sizes of %d requests", n, len(trace.Gaps))
		}
		for _, gap := range trace.Gaps {
			if gap < 0 {
				t.Fatalf("the gap %v", gap)
			}
		}
		if rate := trace.Rate(); rate >= LowestRate && rate <= HighestRate {
			ascends(t, schedule(t, p, rate))
		}
	})
}

func TestSizesOfATrace(t *testing.T) {
	t.Parallel()
	trace, err := ParseTrace(strings.NewReader("timestamp,size\n0,16\n1, 64\n"))
	if err != nil || !slices.Equal(trace.Sizes, []int64{16, 64}) {
		t.Errorf("%+v, %v", trace, err)
	}
	for _, size := range []string{"", "0", "-1", "1.5", "x", "2147483648"} {
		_, err := ParseTrace(strings.NewReader("timestamp,size\n0,1\n1," + size + "\n"))
		if want := `line 3: the size "` + size + `" is not a whole number from 1 to 2147483647`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
