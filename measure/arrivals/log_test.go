package arrivals

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/internal/alloctest"
)

// Each log has requests at 0, 0.5 and 2 s, in another order, and a line that is none.
func TestRecordLogs(t *testing.T) {
	t.Parallel()
	want := []time.Duration{0, 500 * time.Millisecond, 2 * time.Second}
	for name, log := range map[string]string{
		"Envoy": `[2026-04-15T20:17:00.500Z] "POST /v2/models/m/infer HTTP/1.1" 200 - 154 10 226 100 "-" "curl"
[2026-04-15T20:17:00.000Z] "POST /v2/models/m/infer HTTP/1.1" 200 - 154 10 226 100
starting
[2026-04-15T20:17:02.000Z] "POST /v2/models/m/infer HTTP/1.1" 200 - 154 10 226 100
`,
		"nginx in JSON": `{"msec": "1700000001.500", "request_time": "1.000"}
{"msec": 1700000000.1, "request_time": 0.1}
{"level": "info"}
{"time_iso8601": "2023-11-14T22:13:22+00:00"}
`,
		"JSON": `{"start_time": "2026-04-15T20:17:00.5Z"}
{"@timestamp": "2026-04-15T20:17:00Z"}
{
{"time": "2026-04-15T20:17:02Z", "request_time": "-"}
`,
		"Triton": `I0415 20:17:00.500000 1 http_server.cc:3452] HTTP request: 2 /v2/models/m/infer
I0415 20:17:00.000000 1 http_server.cc:3452] HTTP request: 2 /v2/models/m/infer
+------+
I0415 20:17:02.000000 1 http_server.cc:3452] HTTP request: 2 /v2/models/m/infer
`,
		"Triton with ISO 8601": `2026-04-15T20:17:00.5Z I 1 http_server.cc:4599] "HTTP request: 2 /v2/models/m/infer"
2026-04-15T20:17:00Z I 1 http_server.cc:4599] "HTTP request: 2 /v2/models/m/infer"

2026-04-15T20:17:02Z I 1 http_server.cc:4599] "HTTP request: 2 /v2/models/m/infer"
`,
		// the time at the beginning of a line is that of the answer, and start_time that of the arrival
		"tuner": `I0415 20:17:09.000000 1 requests.go:9] "inference" model="m" status="200" start_time="2026-04-15T20:17:00.500000Z" request_time=8.5
2026-04-15T20:17:09Z I 1 requests.go:9] "inference" model="m" status="200" start_time="2026-04-15T20:17:00.000000Z" request_time=9
| m | 1 | READY |
{"time":"2026-04-15T20:17:09Z","level":"DEBUG","msg":"inference","start_time":"2026-04-15T20:17:02.000000Z","request_time":7}
`,
		"tuner with slog's lines": `time=2026-04-15T20:17:00.500Z level=DEBUG msg="inference request" model=m
time=2026-04-15T20:17:00.000Z level=DEBUG msg="inference request" model=m
-
time=2026-04-15T20:17:02.000+00:00 level=DEBUG msg="inference request" model=m
`,
		"a trace": "size,timestamp\n1,0.5\n1,0\nx\n1,2\n",
	} {
		rec, err := Record(strings.NewReader(log), Selection{})
		if err != nil || !close(rec.Instants, want) || rec.Foreign != 1 || rec.IsWhole {
			t.Errorf("%s: %+v, %v", name, rec, err)
			continue
		}
		// What is written is a trace with the same distances.
		var b bytes.Buffer
		if err := WriteTrace(&b, rec.Instants, rec.Sizes); err != nil {
			t.Fatal(err)
		}
		if trace, err := ParseTrace(&b); err != nil || !close(trace.Gaps[1:], []time.Duration{want[1], want[2] - want[1]}) {
			t.Errorf("%s: the trace is %+v, %v", name, trace, err)
		}
	}
}

// close compares instants to a µs.
func close(a, b []time.Duration) bool {
	return slices.EqualFunc(a, b, func(x, y time.Duration) bool { return (x - y).Abs() <= time.Microsecond })
}

// The common log format has whole seconds: the requests of each second are spread over it.
func TestWholeSecondsAreSpread(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 4000 {
		log.WriteString(`10.0.0.1 - - [10/Oct/2026:13:55:3` + string(rune('0'+i/1000)) + ` +0200] "POST /v2/models/m/infer HTTP/1.1" 200 12` + "\n")
	}
	rec, err := Record(strings.NewReader(log.String()), Selection{Seed: 1})
	if err != nil || !rec.IsWhole || len(rec.Instants) != 4000 {
		t.Fatalf("%d instants, %+v, %v", len(rec.Instants), rec.IsWhole, err)
	}
	// 2,000 of 4,000 uniform instants are below 2 s, with a standard deviation of 32 at most; the first
	// is within some ms of 0.
	half, _ := slices.BinarySearch(rec.Instants, 2*time.Second)
	if math.Abs(float64(half)-2000) > 160 || rec.Instants[3999] < 3900*time.Millisecond {
		t.Errorf("%d are in the first half, the last is at %v", half, rec.Instants[3999])
	}
}

// A log with whole seconds and the times of requests has requests that end within each second. They are
// spread over it before their times are subtracted.
func TestWholeSecondsLessTheRequestsTimesAreSpread(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, `{"time_iso8601": "2026-10-10T13:55:36+02:00", "request_time": "%.3f"}`+"\n", float64(i%10)/1000)
	}
	rec, err := Record(strings.NewReader(log.String()), Selection{Seed: 1})
	if err != nil || !rec.IsWhole || len(rec.Instants) != 1000 {
		t.Fatalf("%d instants, whole seconds: %t, %v", len(rec.Instants), rec.IsWhole, err)
	}
	// 500 of 1,000 uniform instants are below 0.5 s, with a standard deviation of 16.
	half, _ := slices.BinarySearch(rec.Instants, 500*time.Millisecond)
	if math.Abs(float64(half)-500) > 80 {
		t.Errorf("%d are in the first half", half)
	}
}

// Triton's log has no year. It continues after the end of one, also where lines are in another order.
func TestTritonsLogAcrossNewYear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stamps []string
		want   []time.Duration
	}{
		"New Year":       {[]string{"1231 23:59:59.0", "0101 00:00:00.5", "0101 00:00:02.0"}, []time.Duration{0, 1500 * time.Millisecond, 3 * time.Second}},
		"another order":  {[]string{"1231 23:59:58.0", "0101 00:00:00.0", "1231 23:59:59.5", "0101 00:00:01.0"}, []time.Duration{0, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second}},
		"the other day":  {[]string{"0102 00:00:00.5", "0101 23:59:59.0"}, []time.Duration{0, 1500 * time.Millisecond}},
		"a long silence": {[]string{"0101 00:00:00.5", "0830 00:00:00.5"}, []time.Duration{0, 242 * 24 * time.Hour}}, // of a leap year
	} {
		log := ""
		for _, stamp := range c.stamps {
			log += "I" + stamp + "00000 1 http_server.cc:3452] HTTP request: 2 /v2/models/m/infer\n"
		}
		if rec, err := Record(strings.NewReader(log), Selection{}); err != nil || !close(rec.Instants, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, rec.Instants, err, c.want)
		}
	}
}

func TestRecordPartOfALog(t *testing.T) {
	t.Parallel()
	const log = "timestamp,path\n0,a\n1,b\n2,a\n2.5,a\n4,a\n"
	rec, err := Record(strings.NewReader(log), Selection{Match: ",a", From: time.Second, For: 2 * time.Second})
	if err != nil || !close(rec.Instants, []time.Duration{0, 500 * time.Millisecond}) || rec.Other != 3 {
		t.Errorf("%+v, %v", rec, err)
	}
	for want, s := range map[string]Selection{
		`has the text "z"`:       {Match: "z"},
		"no request from 1h0m0s": {From: time.Hour},
		"all 1 requests have":    {From: 4 * time.Second},
	} {
		if rec, err := Record(strings.NewReader(log), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %+v, %v, want %q", s, rec, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                 "line 1: neither this line",
		"hello\nworld\n":                   `line 1: neither this line nor a later one has a time stamp of a request: "hello"`,
		strings.Repeat("x", 2*longestLine): "longer than",
	} {
		if rec, err := Record(strings.NewReader(text), Selection{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q gives %+v, %v, want %q", text, rec, err, want)
		}
	}
}

// Sizes come from the field of the given name, stay beside their instants, and are written and read.
func TestRecordSizes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ field, log string }{
		"JSON":       {"tokens", `{"ts": 2.5, "tokens": 64}` + "\n" + `{"ts": 1.5, "tokens": "16"}` + "\n" + `{"ts": 1.7}` + "\n"},
		"text":       {"bytes", "time=2.5 path=/a bytes=64\ntime=1.5 bytes=16,\ntime=1.7 bytes=-\n"},
		"a trace":    {"", "size,timestamp\n64,2.5\n16,1.5\n0,1.7\n"},
		"its column": {"n", "timestamp,size,n\n2.5,1,64\n1.5,1,16\n1.7,1,x\n"},
	} {
		rec, err := Record(strings.NewReader(c.log), Selection{Size: c.field})
		if err != nil || !close(rec.Instants, []time.Duration{0, time.Second}) || !slices.Equal(rec.Sizes, []int64{16, 64}) || rec.Sizeless != 1 {
			t.Errorf("%s: %+v, %v", name, rec, err)
			continue
		}
		var b bytes.Buffer
		if err := WriteTrace(&b, rec.Instants, rec.Sizes); err != nil {
			t.Fatal(err)
		}
		if trace, err := ParseTrace(&b); err != nil || !slices.Equal(trace.Sizes, rec.Sizes) {
			t.Errorf("%s: the trace is %+v, %v", name, trace, err)
		}
	}
	_, err := Record(strings.NewReader("time=1\ntime=2\n"), Selection{Size: "tokens"})
	if err == nil || !strings.Contains(err.Error(), `no request has a size: "tokens" is no field`) {
		t.Errorf("the error is %v", err)
	}
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("ten million lines take seconds")
	}
	_, err := Record(&lines{header: "", line: strings.Repeat("time=1\n", 1<<16), left: MostInstants>>16 + 1}, Selection{})
	if err == nil || !strings.Contains(err.Error(), "line 10000001: there are more than 10000000 requests; choose some with --match") {
		t.Errorf("the error is %v", err)
	}
}

// Whatever a log holds, its recording is a trace that can be read.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{"time=1\ntime=2\n", `{"msec": 1, "request_time": 5}` + "\n" + `{"ts": "2026-01-01T00:00:00Z"}`, "[10/Oct/2026:13:55:36 +0200]\n[10/Oct/2026:13:55:37 +0200]",
		"I0229 20:17:00.5 1 x\nI0301 20:17:00.5 1 x", strings.Repeat("I0101 00:00:00.5 1 x\nI0615 00:00:00.5 1 x\nI1130 00:00:00.5 1 x\n", 400), "timestamp\n1\n1.5\n", "\"", "{", "[", "time=9e18\ntime=0"} {
		f.Add(text, "")
	}
	f.Add("time=1 n=2\ntime=2 n=3", "n")
	f.Add(`{"ts": 1, "n": 5}`+"\n"+`{"ts": 2, "n": 1e3}`, "n")
	f.Fuzz(func(t *testing.T, text, size string) {
		defer alloctest.Bound(t, len(text))()
		rec, err := Record(strings.NewReader(text), Selection{Size: size})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteTrace(&b, rec.Instants, rec.Sizes); err != nil {
			t.Fatal(err)
		}
		if rec.Instants[len(rec.Instants)-1] < time.Microsecond || rec.Instants[len(rec.Instants)-1] > LongestTrace {
			return // less than a trace's digits show, or too long
		}
		if trace, err := ParseTrace(&b); err != nil || !slices.Equal(trace.Sizes, rec.Sizes) {
			t.Fatalf("%v, %v: %v, %v", rec.Instants, rec.Sizes, trace.Sizes, err)
		}
	})
}
