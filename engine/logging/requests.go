package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// queued bounds the requests that wait to be written. At 10,000 requests a second, writing may
	// stall for 0.4 s.
	queued = 4096
	// longest bounds a text of a client in a line, in bytes.
	longest = 256
	// written is the number of bytes after which the access log is written, even if more requests wait.
	written = 64 << 10
)

// Request is a request that has been answered.
type Request struct {
	Begun     time.Time
	Took      time.Duration // until the answer was handed over for writing
	Protocol  string        // http or grpc
	Client    string        // address and port
	Call      string        // method and target of HTTP, or gRPC's full name of the method
	Status    string        // number of HTTP, or gRPC's name of the code
	Inference bool
	Model     string // of an inference
	Version   int64  // that answered, or was asked for; 0: the newest
	ID        string
}

// Of says which inference it is. nil: nobody wants to know.
func (q *Request) Of(model string, version int64, id string) {
	if q != nil {
		q.Inference, q.Model, q.Version, q.ID = true, model, version, id
	}
}

// Requests writes a line for each request to the access log, and for each inference to the log if
// that is verbose. Whoever adds a request never waits: if the files cannot keep up, lines are left
// out, and their number is logged. nil writes nothing.
type Requests struct {
	log    *Log
	access *file // nil: none
	queue  chan Request
	lost   atomic.Int64
	stop   chan struct{}
}

// NewRequests opens the access log at path. "" is none.
func NewRequests(l *Log, path string) (*Requests, error) {
	r := &Requests{log: l, queue: make(chan Request, queued), stop: make(chan struct{})}
	if path == "" {
		return r, nil
	}
	r.access = &file{path: path, flag: "access-log"}
	return r, r.access.open()
}

// Wanted reports whether requests are written. It is one comparison and one atomic load.
func (r *Requests) Wanted() bool {
	return r != nil && (r.access != nil || r.log.verbose.Load() > 0)
}

// Add adds a request. It never blocks.
func (r *Requests) Add(q Request) {
	q.Call, q.Model, q.ID = clip(q.Call), clip(q.Model), clip(q.ID)
	select {
	case r.queue <- q:
	default:
		r.lost.Add(1)
	}
}

// clip returns the beginning of a text. A long one is copied, so that its memory can be freed.
func clip(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:longest]), "") + "…"
}

// Reopen opens the access log again. If that fails, it continues in the earlier file, and the log
// says so.
func (r *Requests) Reopen() {
	if err := r.access.open(); err != nil {
		r.log.Logger().Error("cannot open the access log, so it stays in the earlier file", "error", err)
	}
}

// Write writes requests until Close, and then those that wait.
func (r *Requests) Write() {
	w := writer{requests: r, log: r.log.Logger(), handler: newHandler(r.log)}
	for {
		select {
		case q := <-r.queue:
			w.add(&q)
		case <-r.stop:
			w.rest()
			w.flush()
			return
		}
		w.rest()
		w.flush()
	}
}

// Close ends Write. Requests that are added later are not written.
func (r *Requests) Close() { close(r.stop) }

// writer is the state of Write.
type writer struct {
	requests *Requests
	log      *slog.Logger
	handler  *handler
	lines    bytes.Buffer // for the access log
	isBroken bool         // the last write failed, and the log has said so
}

// rest takes what waits, at most as much as the queue holds.
func (w *writer) rest() {
	for range queued {
		select {
		case q := <-w.requests.queue:
			w.add(&q)
		default:
			return
		}
	}
}

func (w *writer) add(q *Request) {
	if w.requests.log.on(slog.LevelDebug) {
		w.debug(q)
	}
	if w.requests.access == nil {
		return
	}
	w.line(q)
	if w.lines.Len() >= written {
		w.flush()
	}
}

// debug writes a request to the log. The line has the time at which it was answered. That of an
// inference has start_time, from which `tuner perf record` makes a trace.
func (w *writer) debug(q *Request) {
	pc, _, _, _ := runtime.Caller(0)
	if !q.Inference {
		line := slog.NewRecord(q.Begun.Add(q.Took), slog.LevelDebug, "request", pc)
		line.AddAttrs(slog.String("protocol", q.Protocol), slog.String("call", q.Call), slog.String("status", q.Status), slog.Float64("request_time", secondsOf(q)))
		_ = w.handler.Handle(context.Background(), line) // as below
		return
	}
	line := slog.NewRecord(q.Begun.Add(q.Took), slog.LevelDebug, "inference", pc)
	line.AddAttrs(slog.String("protocol", q.Protocol), slog.String("model", q.Model), slog.Int64("version", q.Version), slog.String("id", q.ID),
		slog.String("status", q.Status), slog.String("start_time", startOf(q)), slog.Float64("request_time", secondsOf(q)))
	_ = w.handler.Handle(context.Background(), line) // there is no other place to report a log that cannot be written
}

// access is a line of the access log. The names are those that `tuner perf record` knows from other
// servers.
type access struct {
	Start    string  `json:"start_time"`
	Client   string  `json:"client"`
	Protocol string  `json:"protocol"`
	Call     string  `json:"call"`
	Model    string  `json:"model,omitempty"`
	Version  string  `json:"version,omitempty"`
	ID       string  `json:"id,omitempty"`
	Status   string  `json:"status"`
	Took     float64 `json:"request_time"` // seconds
}

func (w *writer) line(q *Request) {
	a := access{startOf(q), q.Client, q.Protocol, q.Call, q.Model, "", q.ID, q.Status, secondsOf(q)}
	if q.Version > 0 {
		a.Version = strconv.FormatInt(q.Version, 10)
	}
	out := json.NewEncoder(&w.lines)
	out.SetEscapeHTML(false)
	_ = out.Encode(a) // texts and numbers always have a form, and a buffer takes them all
}

func (w *writer) flush() {
	if n := w.requests.lost.Swap(0); n > 0 {
		w.log.Warn("lines about requests are left out, since they came faster than they could be written", "requests", n)
	}
	if w.lines.Len() == 0 {
		return
	}
	_, err := w.requests.access.Write(w.lines.Bytes())
	w.lines.Reset()
	if err != nil && !w.isBroken {
		w.log.Error("cannot write the access log", "error", err)
	}
	w.isBroken = err != nil
}

// startOf returns when a request began, to a microsecond.
func startOf(q *Request) string { return q.Begun.UTC().Format("2006-01-02T15:04:05.000000Z") }

func secondsOf(q *Request) float64 { return q.Took.Round(time.Microsecond).Seconds() }
