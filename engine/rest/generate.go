package rest

import (
	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/rest/generate"
)

// Around an answer in the form of server-sent events.
const (
	eventBegin = "data: "
	eventEnd   = "\n\n"
	eventType  = "text/event-stream; charset=utf-8"
)

// generate serves a request of the generate extension. An ONNX model gives one answer, so a stream is one
// event. A request that is refused is answered in JSON, and one that has failed in the form of its
// answer.
func (f *Frontend) generate(b *reader, at *route) {
	x := f.inferences.Get().(*inference)
	defer f.release(x, b)
	r := &x.request
	r.Memory = b.account()
	request.SetText(&r.Model, at.model)
	var err error
	if r.Version, err = at.number(); err == nil {
		if f.server.Tracer().IsOn() {
			r.Trace = f.sample(b.ctx, r.Model, r.Version)
			defer b.sendTrace(r.Trace)
		}
		err = f.decodeGenerate(x, b)
	}
	b.entry.Of(r.Model, r.Version, r.ID)
	if err != nil {
		fail(b.ctx, err)
		return
	}
	x.watch.Begin(&f.hangups, b.ctx.Conn())
	defer x.watch.End()
	pending, err := f.server.Start(&r.Request)
	if err != nil {
		fail(b.ctx, err)
		return
	}
	response, err := pending.Wait(&x.watch)
	if err == nil {
		defer response.Release()
		b.entry.Of(r.Model, response.Version, r.ID)
		err = b.respondGenerated(response, x, at.verb == modelGenerateStream)
	}
	if err != nil {
		fail(b.ctx, err)
		if at.verb == modelGenerateStream {
			b.ctx.SetContentType(eventType)
			b.ctx.SetBodyString(eventBegin + string(b.ctx.Response.Body()) + eventEnd)
		}
	}
}

// decodeGenerate reads a request. As in Triton, the model is found first, and no body is decompressed.
func (f *Frontend) decodeGenerate(x *inference, b *reader) error {
	r := &x.request
	model, err := f.server.ModelMetadata(r.Model, r.Version)
	if err != nil {
		return err
	}
	head := &b.ctx.Request.Header
	if c, err := codingOf(head); err != nil || c != codingNone {
		return fault.Errorf(fault.InvalidArgument, "Unsupported content-encoding, only 'identity' is supported.")
	}
	if n := head.ContentLength(); n > 0 {
		if err := f.checkSize(n, n); err != nil {
			return err
		}
	}
	if x.body, err = b.read(x.body); err != nil {
		return err
	}
	received(r.Trace)
	json := len(x.body)
	if err := f.checkSize(json, json); err != nil {
		return err
	}
	if err := b.reserve(4 * json); err != nil { // as for other inferences, see decode
		return err
	}
	if err := r.document.ParseFlat(x.body); err != nil {
		return err
	}
	return generate.Decode(&r.document, model.Inputs, &r.Request, &r.data)
}

// respondGenerated writes an answer, as respond does.
func (b *reader) respondGenerated(response *engine.Response, x *inference, isStream bool) error {
	bound := boundResponse(response, &x.request)
	if err := b.reserve(bound); err != nil {
		return err
	}
	answer := x.answer[:0]
	if isStream {
		answer = append(answer, eventBegin...)
	}
	answer, err := generate.Append(answer, &generate.Answer{
		ID: response.ID, Model: response.Model, Version: response.Version, IsComposed: response.IsComposed, Outputs: response.Outputs,
	})
	if err != nil {
		x.answer = kept(answer)
		return err
	}
	b.ctx.SetContentType(api.ContentTypeJSON)
	if isStream {
		answer = append(answer, eventEnd...)
		b.ctx.SetContentType(eventType)
	}
	b.hand(answer, bound)
	x.answer = b.send(answer)
	return nil
}
