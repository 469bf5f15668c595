package rest

import (
	"encoding/json"
	"time"

	"github.com/valyala/fasthttp"

	"tuner/engine/fault"
	"tuner/engine/rest/document"
	"tuner/engine/trace"
)

// traceSetting shows or changes the trace settings of a model, or those of the server.
func (f *Frontend) traceSetting(b *reader, at *route) {
	model, tracer := string(at.model), f.server.Tracer()
	if model != "" && f.server.ModelReady(model, 0) != nil {
		fail(b.ctx, fault.Errorf(fault.InvalidArgument, "Request for unknown model : %s", model))
		return
	}
	if b.ctx.IsPost() {
		if err := updateTracing(b, model, tracer); err != nil {
			fail(b.ctx, err)
			return
		}
	}
	settings := map[string]any{}
	for _, s := range tracer.Settings(model).Pairs() {
		if s.Name == trace.KeyLevel {
			settings[s.Name] = s.Values
		} else {
			settings[s.Name] = s.Values[0]
		}
	}
	text, err := json.Marshal(settings)
	reply(b.ctx, json.RawMessage(text), err)
}

// updateTracing reads and applies a change of the trace settings.
func updateTracing(b *reader, model string, tracer *trace.Tracer) error {
	d, err := requireDocument(b)
	if err != nil {
		return err
	}
	update, err := trace.Read(trace.Source{Find: func(name string) ([]string, bool, error) { return findSetting(d, name) }})
	if err != nil {
		return err
	}
	return tracer.Update(model, update)
}

// findSetting returns the values of a setting in a document: an array for the level, and a text for
// any other. null is no values.
func findSetting(d *document.JSON, name string) (values []string, found bool, err error) {
	if d.Kind(0) != '{' {
		return nil, false, nil
	}
	i := d.Find(0, name)
	switch {
	case i == document.None:
		return nil, false, nil
	case d.Kind(i) == 'n':
		return nil, true, nil
	case name != trace.KeyLevel:
		text, err := d.Text(i)
		return []string{string(text)}, true, err
	}
	list, err := d.MemberArray(0, name)
	if err != nil {
		return nil, true, err
	}
	values = []string{}
	for k := range d.Content(list) {
		text, err := d.Text(k)
		if err != nil {
			return nil, true, err
		}
		values = append(values, string(text))
	}
	return values, true, nil
}

// headers are the headers of a request, as OpenTelemetry reads them.
type headers struct{ head *fasthttp.RequestHeader }

// Get implements propagation.TextMapCarrier.
func (h headers) Get(key string) string { return string(h.head.Peek(key)) }

// Set does nothing: nothing is written to the headers of a request.
func (h headers) Set(string, string) {}

// Keys is not asked for by those who know what they look for.
func (h headers) Keys() []string { return nil }

// sample returns the trace of an inference. As in Triton, a request for an unknown model has none.
func (f *Frontend) sample(ctx *fasthttp.RequestCtx, model string, version int64) *trace.Trace {
	if f.server.ModelReady(model, version) != nil {
		return nil
	}
	t := f.server.Tracer().Sample(model, headers{&ctx.Request.Header})
	t.Set(trace.HTTPReceiveStart, ctx.Time())
	return t
}

// received notes that the body of a request has been read.
func received(t *trace.Trace) {
	if t != nil {
		t.Set(trace.HTTPReceiveEnd, time.Now())
	}
}

// sending is a trace whose answer is being written.
type sending struct {
	trace *trace.Trace
	left  int // bytes of the answer that are not written
}

// end passes the trace on. s may be nil.
func (s *sending) end(isWritten bool) {
	if s == nil {
		return
	}
	if isWritten && s.trace.Began() {
		s.trace.Set(trace.HTTPSendEnd, time.Now())
	}
	s.trace.End()
}

// sendTrace hands the trace of a request to the connection, which notes when the answer is written.
func (b *reader) sendTrace(t *trace.Trace) {
	if t == nil {
		return
	}
	if t.Began() {
		t.Set(trace.HTTPSendStart, time.Now())
	}
	s := &sending{t, len(b.ctx.Response.Body())}
	if b.conn == nil {
		s.end(true)
		return
	}
	b.conn.sending.Swap(s).end(true) // an earlier answer waits for this one, if the client sends ahead
}

// traced counts bytes of an answer that have been written, for its trace.
func (c *conn) traced(n int) {
	s := c.sending.Load()
	if s == nil {
		return
	}
	if s.left -= n; s.left <= 0 && c.sending.CompareAndSwap(s, nil) {
		s.end(true)
	}
}
