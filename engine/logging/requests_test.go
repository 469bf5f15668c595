package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tuner/measure/arrivals"
)

// begun is when the requests of the tests began: 2026-04-15 20:17 and some milliseconds.
func begun(ms int) time.Time {
	return time.Date(2026, 4, 15, 20, 17, 0, ms*int(time.Millisecond), time.UTC)
}

// inference is a request to model m that began then, and took a second.
func inference(ms int) Request {
	q := Request{Begun: begun(ms), Took: time.Second, Protocol: "http", Client: "127.0.0.1:9", Call: "POST /v2/models/m/infer", Status: "200"}
	q.Of("m", 2, "seven")
	return q
}

// write writes requests, and returns the access log and the log.
func write(t *testing.T, s Settings, all ...Request) (access, log string) {
	t.Helper()
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "access")
	r, err := NewRequests(newLog(t, &out, s), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		r.Add(q)
	}
	r.Close()
	r.Write()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), out.String()
}

// The access log has every request, and so has the log, if it is verbose.
func TestRequestsAreWritten(t *testing.T) {
	t.Parallel()
	health := Request{Begun: begun(5), Took: 1500 * time.Microsecond, Protocol: "grpc", Client: "[::1]:9", Call: "/grpc.health.v1.Health/Check", Status: "OK"}
	access, log := write(t, all, inference(0), health)
	want := `{"start_time":"2026-04-15T20:17:00.000000Z","client":"127.0.0.1:9","protocol":"http","call":"POST /v2/models/m/infer","model":"m","version":"2","id":"seven","status":"200","request_time":1}
{"start_time":"2026-04-15T20:17:00.005000Z","client":"[::1]:9","protocol":"grpc","call":"/grpc.health.v1.Health/Check","status":"OK","request_time":0.0015}
`
	if access != want {
		t.Errorf("access log:\n%swant\n%s", access, want)
	}
	other := `"request" protocol="grpc" call="/grpc.health.v1.Health/Check" status="OK" request_time=0.0015` + "\n"
	log, found := strings.CutSuffix(log, other)
	if log = log[:strings.LastIndexByte(log, '\n')+1]; !found {
		t.Errorf("log: %q, want %q at the end", log, other)
	}
	line := `"inference" protocol="http" model="m" version=2 id="seven" status="200" start_time="2026-04-15T20:17:00.000000Z" request_time=1` + "\n"
	if !strings.HasPrefix(log, "I0415 20:17:01.000000 ") || !strings.HasSuffix(log, line) || strings.Count(log, "\n") != 1 {
		t.Errorf("log: %q, want one line that ends with %q", log, line)
	}
	if _, log := write(t, Settings{Info: true, Warning: true, Error: true, Format: Default}, inference(0)); log != "" {
		t.Errorf("log that is not verbose: %q", log)
	}
}

// `tuner perf record` makes a trace of the log in each form, and of the access log: the distances of
// the arrivals, not of the answers.
func TestRecordReadsEachForm(t *testing.T) {
	t.Parallel()
	late := inference(0)
	late.Took = time.Hour
	requests := []Request{inference(500), late, inference(750)}
	for _, format := range Formats() {
		s := all
		s.Format = format
		access, log := write(t, s, requests...)
		for name, text := range map[string]string{"access log": access, "log": log} {
			rec, err := arrivals.Record(strings.NewReader(text), arrivals.Selection{Match: "m"})
			if want := "[0s 500ms 750ms]"; err != nil || fmt.Sprint(rec.Instants) != want || rec.Foreign+rec.Other > 0 || rec.IsWhole {
				t.Errorf("%s as %s: %+v, %v, want %s", name, format, rec, err, want)
			}
		}
	}
}

// Requests that come while nothing is written are left out once the queue is full. Whoever adds them
// does not wait, and the log says how many they were.
func TestLostRequests(t *testing.T) {
	t.Parallel()
	many := make([]Request, queued+3)
	for i := range many {
		many[i] = inference(i)
	}
	access, log := write(t, Settings{Warning: true, Format: Default}, many...)
	if n := strings.Count(access, "\n"); n != queued {
		t.Errorf("%d lines, want %d", n, queued)
	}
	if !strings.Contains(log, "requests=3\n") {
		t.Errorf("log: %q", log)
	}
}

// Texts of clients are cut, so that a request with a long name takes no more memory than others.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	q := inference(0)
	q.ID, q.Call, q.Model = strings.Repeat("é", 1<<20), strings.Repeat("x", 1<<20), "\"\n\xff"
	access, _ := write(t, Settings{Format: Default}, q)
	var line struct{ Call, ID, Model string }
	if err := json.Unmarshal([]byte(access), &line); err != nil || len(line.Call) > longest+len("…") || len(line.ID) > longest+len("…") || line.Model != "\"\n\ufffd" {
		t.Errorf("%d bytes, %v: %.300s", len(access), err, access)
	}
}

// A full disk is reported once, and not for each request.
func TestAccessLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	var out bytes.Buffer
	r, err := NewRequests(newLog(t, &out, Settings{Error: true, Format: Default}), "/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	w := writer{requests: r, log: r.log.Logger(), handler: newHandler(r.log)}
	for i := range 3 {
		q := inference(i)
		w.add(&q)
		w.flush()
	}
	if n := strings.Count(out.String(), "cannot write the access log"); n != 1 {
		t.Errorf("%d messages: %s", n, out.String())
	}
}

// Without an access log and with verbosity 0 nothing is wanted; nil is that, too.
func TestWanted(t *testing.T) {
	t.Parallel()
	var none *Requests
	l := newLog(t, os.Stderr, Settings{})
	r, err := NewRequests(l, "")
	if err != nil || none.Wanted() || r.Wanted() {
		t.Errorf("wanted without a log: %v, %v", r.Wanted(), err)
	}
	if l.SetVerbose(1); !r.Wanted() {
		t.Error("not wanted by a verbose log")
	}
	r.Reopen() // there is no file
	if _, err := NewRequests(l, filepath.Join(t.TempDir(), "missing", "log")); err == nil || !strings.Contains(err.Error(), "cannot open --access-log=") {
		t.Errorf("got %v", err)
	}
}

// A line that is off costs a comparison and a load.
func BenchmarkNotWanted(b *testing.B) {
	r, _ := NewRequests(new(Log), "")
	for b.Loop() {
		if r.Wanted() {
			b.Fatal("wanted")
		}
	}
}
