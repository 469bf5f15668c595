// Package trace records what happens to single requests, as Triton's trace extension does: which
// requests are traced, the moments and the tensors of each, and the files of Triton's mode.
//
// A front end asks a Tracer for the trace of a request. The request carries it, and whoever handles
// the request notes the moments that it knows anyway. When the request is over, a goroutine of the
// Tracer writes the trace. This package knows neither requests nor models, and sends nothing over
// the network: an Exporter does, see package otlp.
package trace

import (
	"sync"
	"sync/atomic"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
)

// Moment is a point in the life of a request. The order is that of Triton's files for a request
// over HTTP.
type Moment int

const (
	HTTPReceiveStart Moment = iota
	HTTPReceiveEnd
	RequestStart
	QueueStart
	ResponseComplete
	ComputeStart
	ComputeInputEnd
	ComputeOutputStart
	ComputeEnd
	RequestEnd
	HTTPSendStart
	HTTPSendEnd
	GRPCReadStart
	GRPCReadEnd
	GRPCSendStart
	GRPCSendEnd
	moments
)

// String returns Triton's name of the moment.
func (m Moment) String() string {
	return [moments]string{
		"HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE",
		"COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END",
		"HTTP_SEND_START", "HTTP_SEND_END", "GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END",
	}[m]
}

// Trace is the record of one request to one model. The trace of a request to an ensemble has one
// more for each step. A nil Trace records nothing, so that callers need not ask.
//
// One goroutine at a time may use a trace. The traces of steps may be made and used at the same time
// as that of their ensemble.
type Trace struct {
	ID        uint64
	ParentID  uint64 // of the ensemble's trace; 0: none
	Model     string // "": the request did not get as far as a model
	Version   int64
	RequestID string
	Sampled   time.Time             // when the request was chosen
	Ended     time.Time             // when it was over
	Caller    oteltrace.SpanContext // that the request brought; not valid without one

	setting *setting
	tracer  *Tracer
	parent  *Trace // nil: none
	times   [moments]time.Time
	noted   []Activity
	inputs  []byte // as JSON, in the form of Triton's files
	outputs []byte
	held    int64 // bytes that the trace has taken of its tracer's memory

	mu    sync.Mutex
	steps []*Trace
	ended atomic.Bool
}

// Set notes a moment.
func (t *Trace) Set(m Moment, at time.Time) {
	if t != nil && t.setting.config.Level&LevelTimestamps != 0 {
		t.times[m] = at
	}
}

// At returns the time of a moment. It is zero if the request has not got there, or if the level of
// the trace leaves times out.
func (t *Trace) At(m Moment) time.Time { return t.times[m] }

// Activity is a moment to which the model's backend has given a name.
type Activity struct {
	Name string
	At   time.Time
}

// Note adds activities of the backend, in their order.
func (t *Trace) Note(list ...Activity) {
	if t != nil && t.setting.config.Level&LevelTimestamps != 0 {
		t.noted = append(t.noted, list...)
	}
}

// Activities returns what the backend has noted.
func (t *Trace) Activities() []Activity { return t.noted }

// Begin notes that a model has accepted the request.
func (t *Trace) Begin(model string, version int64, requestID string, at time.Time) {
	if t == nil {
		return
	}
	t.Model, t.Version = model, version
	if t.take(int64(len(requestID))) {
		t.RequestID = requestID
	}
	t.Set(RequestStart, at)
}

// Queue notes that the request waits for an instance of its model.
func (t *Trace) Queue(at time.Time) { t.Set(QueueStart, at) }

// Compute notes when the model's inputs, execution and outputs have begun, and when all is done.
func (t *Trace) Compute(start, inputEnd, outputStart, end time.Time) {
	t.Set(ComputeStart, start)
	t.Set(ComputeInputEnd, inputEnd)
	t.Set(ComputeOutputStart, outputStart)
	t.Set(ComputeEnd, end)
}

// Finish notes that the model is done with the request.
func (t *Trace) Finish(at time.Time) { t.Set(RequestEnd, at) }

// Answer notes that the request has its answer. As in Triton, the steps of ensembles lack this moment.
func (t *Trace) Answer(at time.Time) {
	if t.parent == nil {
		t.Set(ResponseComplete, at)
	}
}

// Step returns the trace of a step of the ensemble.
func (t *Trace) Step() *Trace {
	if t == nil {
		return nil
	}
	step := &Trace{ID: t.tracer.newest.Add(1), ParentID: t.ID, Sampled: t.Sampled, setting: t.setting, tracer: t.tracer, parent: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, step)
	return step
}

// Steps returns the traces of an ensemble's steps, in the order in which they began.
func (t *Trace) Steps() []*Trace { return t.steps }

// Began reports whether a model has accepted the request.
func (t *Trace) Began() bool { return t != nil && t.Model != "" }

// End passes the trace on to be written. It may be called more than once. Nobody may use the trace
// afterwards. The trace of a step ends with that of its ensemble.
func (t *Trace) End() {
	if t == nil || t.parent != nil || t.ended.Swap(true) {
		return
	}
	t.Ended = time.Now()
	t.tracer.write(t)
}

// take reserves bytes of the tracer's memory. It reports whether there were enough.
func (t *Trace) take(n int64) bool {
	if !t.tracer.memory.take(n) {
		t.tracer.shorten()
		return false
	}
	t.held += n
	return true
}

// release gives back the memory of a trace and its steps.
func (t *Trace) release() {
	for _, step := range t.steps {
		step.release()
	}
	t.tracer.memory.give(t.held)
	t.held = 0
}

// memory bounds the bytes of the texts and tensors in all traces that are not written yet.
type memory struct{ used atomic.Int64 }

// largestMemory is the bound in bytes. Traces of 16 requests with 1 MiB of tensors take as much.
const largestMemory = 64 << 20

func (m *memory) take(n int64) bool {
	if m.used.Add(n) <= largestMemory {
		return true
	}
	m.used.Add(-n)
	return false
}

func (m *memory) give(n int64) { m.used.Add(-n) }
