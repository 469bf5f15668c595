package trace

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
)

const (
	// waiting bounds the traces that wait to be written. It is enough for a pause of a disk: at a
	// rate of 1, 0.2 s of 20,000 requests a second.
	waiting = 4096
	// longestState bounds the trace state that spans keep, in bytes. The W3C's recommendation asks
	// for at least as much.
	longestState = 512
)

// Exporter sends traces to a collector.
type Exporter interface {
	// Export takes a trace that has ended. It does not block, and drops what it has no room for.
	Export(*Trace)
	// Close sends what is left, until ctx ends.
	Close(ctx context.Context) error
}

// Tracer decides which requests are traced, and has their traces written. Its methods are safe for
// concurrent use. A nil Tracer traces nothing.
type Tracer struct {
	log      *slog.Logger
	exporter Exporter // nil in Triton's mode
	clock    clock
	newest   atomic.Uint64 // ID
	memory   memory
	current  atomic.Pointer[settings]

	update    sync.Mutex // held while settings are changed
	byDefault Config

	begun   sync.Once
	closing sync.Once
	queue   chan *Trace
	retired chan *setting
	ending  chan struct{} // closed when no trace is taken any more
	ended   chan struct{} // closed when all is written
	lost    atomic.Bool   // since the last trace that was written
	short   atomic.Bool   // the log has said that memory is short
}

// settings are all settings at a moment. They are never changed.
type settings struct {
	isOn   bool // a level is not OFF
	global *setting
	models map[string]*setting
}

func (s *settings) of(model string) *setting {
	if own := s.models[model]; own != nil {
		return own
	}
	return s.global
}

// New makes a Tracer. exporter is nil in Triton's mode. The caller closes the Tracer.
func New(c Config, exporter Exporter, log *slog.Logger) *Tracer {
	t := &Tracer{
		log: log, exporter: exporter, clock: newClock(), byDefault: c,
		queue: make(chan *Trace, waiting), retired: make(chan *setting), ending: make(chan struct{}), ended: make(chan struct{}),
	}
	t.current.Store(&settings{isOn: c.Level != LevelOff, global: newSetting(c, 0)})
	return t
}

// IsOn reports whether any request may be traced. It is one atomic load.
func (t *Tracer) IsOn() bool { return t != nil && t.current.Load().isOn }

// Sample returns the trace of a request to a model, nil if it is not traced. headers may have the
// trace context of the caller.
func (t *Tracer) Sample(model string, headers propagation.TextMapCarrier) *Trace {
	if !t.IsOn() {
		return nil
	}
	s := t.current.Load().of(model)
	var caller oteltrace.SpanContext
	if s.config.Mode == ModeOpenTelemetry && s.config.Level != LevelOff {
		caller = callerOf(headers)
	}
	if !s.sample(caller.IsValid()) {
		return nil
	}
	return &Trace{ID: t.newest.Add(1), Sampled: time.Now(), Caller: caller, setting: s, tracer: t}
}

// callerOf reads the W3C's trace context.
func callerOf(headers propagation.TextMapCarrier) oteltrace.SpanContext {
	c := oteltrace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers))
	if len(c.TraceState().String()) > longestState {
		c = c.WithTraceState(oteltrace.TraceState{})
	}
	return c
}

// Settings returns the settings of a model, or those of the server for "".
func (t *Tracer) Settings(model string) Config { return t.current.Load().of(model).values() }

// Update changes the settings of a model, or those of the server for "". Models that follow the
// server's settings in some fields get them. The rules are those of Triton's TraceManager.
func (t *Tracer) Update(model string, u Update) error {
	t.update.Lock()
	defer t.update.Unlock()
	old := t.current.Load()
	next := &settings{global: old.global, models: maps.Clone(old.models)}
	if err := t.change(next, model, u); err != nil {
		return err
	}
	if model == "" {
		for name := range next.models {
			if err := t.change(next, name, Update{}); err != nil {
				return err
			}
		}
	}
	next.isOn = next.global.config.Level != LevelOff
	for _, s := range next.models {
		next.isOn = next.isOn || s.config.Level != LevelOff
	}
	t.current.Store(next)
	t.retire(old, next)
	return nil
}

// change puts another setting of a model, or of the server, into next.
func (t *Tracer) change(next *settings, model string, u Update) error {
	current, above := next.models[model], t.byDefault
	if model == "" {
		current = next.global
	} else {
		above = next.global.values()
	}
	c, specified := u.apply(current, above)
	if model != "" && specified == 0 {
		delete(next.models, model)
		return nil
	}
	if err := c.check(); err != nil {
		return err
	}
	if model == "" {
		next.global = newSetting(c, specified)
		return nil
	}
	if next.models == nil {
		next.models = map[string]*setting{}
	}
	next.models[model] = newSetting(c, specified)
	return nil
}

// retire ends the settings that are no longer in use.
func (t *Tracer) retire(old, next *settings) {
	replaced := func(s, by *setting) {
		if s == by || !s.retire() {
			return
		}
		t.begin()
		select {
		case t.retired <- s:
		case <-t.ended:
		}
	}
	replaced(old.global, next.global)
	for name, s := range old.models {
		replaced(s, next.models[name])
	}
}

// write passes a trace to the tracer's goroutine. A trace that finds no room is lost.
func (t *Tracer) write(trace *Trace) {
	t.begin()
	select {
	case <-t.ending:
	case t.queue <- trace:
		return
	default:
		if !t.lost.Swap(true) {
			t.log.Warn("traces are lost: they come faster than they can be written")
		}
	}
	trace.release()
	trace.setting.written()
}

// shorten logs once that traces are shorter than they should be.
func (t *Tracer) shorten() {
	if !t.short.Swap(true) {
		t.log.Warn("tensors are left out of traces: they come faster than they can be written", "bytes", largestMemory)
	}
}

// begin starts the goroutine, once there is work for it.
func (t *Tracer) begin() {
	t.begun.Do(func() {
		go func() {
			defer close(t.ended)
			w := writer{tracer: t, files: map[string]*file{}, parts: map[*setting]bool{}}
			w.run()
		}()
	})
}

// Close writes what is left. It waits until ctx ends. Later traces are dropped.
func (t *Tracer) Close(ctx context.Context) error {
	t.closing.Do(func() {
		close(t.ending)
		t.begun.Do(func() { close(t.ended) }) // nothing has been traced
	})
	select {
	case <-t.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.exporter != nil {
		return t.exporter.Close(ctx)
	}
	return nil
}

// writer writes traces, one after the other.
type writer struct {
	tracer *Tracer
	files  map[string]*file  // by path
	parts  map[*setting]bool // settings whose traces wait for their file
	text   []byte
}

// keptText bounds the memory that is kept for the next trace, in bytes.
const keptText = 1 << 20

// run writes until the tracer is closed.
func (w *writer) run() {
	for {
		select {
		case trace := <-w.tracer.queue:
			w.write(trace)
		case s := <-w.tracer.retired:
			w.end(s)
		case <-w.tracer.ending:
			w.finish()
			return
		}
	}
}

// finish writes what is left.
func (w *writer) finish() {
	for {
		select {
		case trace := <-w.tracer.queue:
			w.write(trace)
			continue
		default:
		}
		break
	}
	for s := range w.parts {
		w.end(s)
	}
	for _, f := range w.files {
		w.report(f.close())
	}
}

// write writes a trace.
func (w *writer) write(trace *Trace) {
	s := trace.setting
	if s.config.Mode == ModeOpenTelemetry {
		w.tracer.exporter.Export(trace)
	} else {
		w.text = appendTrace(w.text[:0], trace, w.tracer.clock)
		w.report(s.sink.write(w.file(s.config.File), s, w.text))
		if w.parts[s] = true; s.sink.part == nil {
			delete(w.parts, s)
		}
		if cap(w.text) > keptText {
			w.text = nil
		}
	}
	trace.release()
	w.tracer.lost.Store(false)
	if s.written() {
		w.end(s)
	}
}

// file returns the file with a path.
func (w *writer) file(path string) *file {
	if w.files[path] == nil {
		w.files[path] = &file{path: path}
	}
	return w.files[path]
}

// end writes the traces of a setting that still wait.
func (w *writer) end(s *setting) {
	if w.parts[s] {
		delete(w.parts, s)
		w.report(s.sink.end(w.file(s.config.File), s))
	}
}

// report logs a failure.
func (w *writer) report(err error) {
	if err != nil {
		w.tracer.log.Error("traces are lost", "error", err)
	}
}
