package rest

import (
	"slices"

	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/fault"
	"tuner/engine/request"
	"tuner/engine/rest/hangup"
)

// inference is the memory of one inference on its way through the front end. It is reused for later
// ones.
type inference struct {
	request inferRequest
	body    []byte
	answer  []byte
	packed  []byte // a compressed answer
	watch   hangup.Watch
}

// release keeps x for a later inference, without the parts that are too large.
func (f *Frontend) release(x *inference, b *reader) {
	if n := x.request.data.Size(); n > keptBuffer {
		b.discard(n)
	}
	x.request.reset()
	if n := cap(x.body); n > keptBuffer {
		b.discard(n)
		x.body = nil
	}
	if x.request.document.Size() > keptNodes {
		x.request = inferRequest{regions: x.request.regions}
	}
	f.inferences.Put(x)
}

// keptNodes bounds the lists that are kept for the next request.
const keptNodes = 4096

// infer serves an inference. The request's tensors stay in the body, which lives until the answer
// is made.
func (f *Frontend) infer(b *reader, at *route) {
	ctx := b.ctx
	x := f.inferences.Get().(*inference)
	defer f.release(x, b)
	r := &x.request
	r.Memory = b.account()
	request.SetText(&r.Model, at.model)
	var err error
	r.Version, err = at.number()
	b.entry.Of(r.Model, r.Version, "")
	if err != nil {
		fail(ctx, err)
		return
	}
	if f.server.Tracer().IsOn() {
		r.Trace = f.sample(ctx, r.Model, r.Version)
		defer b.sendTrace(r.Trace)
	}
	if err := f.decode(x, b); err != nil {
		// Triton finds the model before it reads the request.
		if _, unknown := f.server.ModelMetadata(r.Model, r.Version); unknown != nil {
			err = unknown
		}
		if err == error(errCoding) {
			ctx.Response.Header.Set(fasthttp.HeaderAcceptEncoding, string(codingGzip+", "+codingDeflate))
		}
		fail(ctx, err)
		return
	}
	b.entry.Of(r.Model, r.Version, r.ID)
	x.watch.Begin(&f.hangups, ctx.Conn())
	response, err := f.server.Infer(&x.watch, &r.Request)
	x.watch.End()
	if err != nil {
		fail(ctx, err)
		return
	}
	defer response.Release()
	b.entry.Of(r.Model, response.Version, r.ID)
	if err := b.respond(response, x); err != nil {
		fail(ctx, err)
	}
}

// decode reads the request.
func (f *Frontend) decode(x *inference, b *reader) error {
	head := &b.ctx.Request.Header
	if err := f.announcedInference(head); err != nil {
		return err
	}
	c, err := f.codingOf(head)
	switch {
	case err != nil:
		return err
	case c == codingNone:
		x.body, err = b.read(x.body)
	default:
		x.body, err = b.inflate(x.body)
	}
	received(x.request.Trace)
	if err != nil {
		return err
	}
	json, err := f.jsonLength(head, len(x.body))
	if err != nil {
		return err
	}
	if err := f.checkSize(json, len(x.body)); err != nil {
		return err
	}
	if json == 0 {
		if err := b.reserve(len(x.body)); err != nil { // a string is copied behind its length
			return err
		}
		return f.decodeRaw(x)
	}
	// Decoded JSON takes at most four times as much: 8 bytes for an element of two characters.
	if err := b.reserve(4 * json); err != nil {
		return err
	}
	return x.request.decode(x.body, json)
}

// announcedInference refuses an inference that is too large by its headers, before its body is
// read.
func (f *Frontend) announcedInference(head *fasthttp.RequestHeader) error {
	announced := head.ContentLength()
	if c, err := f.codingOf(head); err != nil || c != codingNone || announced < 0 {
		return err // the other headers say what is in the body once it is decompressed
	}
	json, err := f.jsonLength(head, announced)
	if err != nil {
		return err
	}
	return f.checkSize(json, announced)
}

// checkSize bounds the JSON of a request, and data that is not split into tensors.
func (f *Frontend) checkSize(json, body int) error {
	limit := f.options.MaxInput
	switch {
	case json > limit:
		return fault.Errorf(fault.InvalidArgument, "request JSON size of %d bytes exceeds the maximum allowed input size of %d bytes. Use --http-max-input-size to increase the limit.", json, limit)
	case json == 0 && body > limit:
		return fault.Errorf(fault.InvalidArgument, "raw input of %d bytes exceeds the maximum allowed input size of %d bytes. Use --http-max-input-size to increase the limit.", body, limit)
	}
	return nil
}

// decodeRaw takes the whole body as the only input of the model. All outputs are binary.
func (f *Frontend) decodeRaw(x *inference) error {
	r := &x.request
	input, err := f.server.RawInput(r.Model, r.Version, x.body)
	if err != nil {
		return err
	}
	r.Inputs = append(r.Inputs, input)
	r.binaryAll = true
	return nil
}

// respond writes an answer. It copies the outputs once, from the model's memory into the answer's.
// That memory is charged until the connection has written it.
func (b *reader) respond(response *engine.Response, x *inference) error {
	if err := x.request.loan.Deliver(&x.request.Request, response.Outputs); err != nil {
		return err
	}
	bound := boundResponse(response, &x.request)
	if err := b.reserve(bound); err != nil {
		return err
	}
	json, binaryBytes, err := appendResponse(x.answer[:0], response, &x.request)
	if err != nil {
		x.answer = kept(json)
		return err
	}
	head := &b.ctx.Response.Header
	answer := json
	if binaryBytes == 0 {
		head.SetContentType(api.ContentTypeJSON)
	} else {
		b.frontend.setBinary(head, len(json))
		answer = slices.Grow(answer, binaryBytes)
		for i := range response.Outputs {
			if x.request.isBinary(response.Outputs[i].Name) {
				answer = append(answer, response.Outputs[i].Data...)
			}
		}
	}
	if c := b.frontend.acceptedCoding(&b.ctx.Request.Header); c != codingNone {
		return b.respondPacked(c, answer, bound, x)
	}
	b.hand(answer, bound)
	x.answer = b.send(answer)
	return nil
}

// respondPacked writes an answer in compressed form. bound bytes are reserved for the answer.
func (b *reader) respondPacked(c coding, answer []byte, bound int, x *inference) error {
	x.answer = kept(answer)
	out, charged, err := b.deflate(c, answer, x)
	b.release(bound)
	if cap(answer) > keptBuffer {
		b.discard(cap(answer))
	}
	if err != nil {
		return err
	}
	b.ctx.Response.Header.Set(fasthttp.HeaderContentEncoding, string(c))
	b.hand(out, charged)
	x.packed = b.send(out)
	return nil
}

// send passes an answer to fasthttp. It returns the memory of an earlier answer.
func (b *reader) send(answer []byte) []byte {
	if cap(answer) > keptBuffer {
		b.ctx.Response.SetBodyRaw(answer) // which is not kept
		return nil
	}
	return kept(b.ctx.Response.SwapBody(answer))
}

// hand passes an answer, for which bound bytes are reserved, to the connection.
func (b *reader) hand(answer []byte, bound int) {
	if b.isHanded = true; b.conn == nil || len(answer) <= answerBytes {
		return // it goes through the connection's own buffer, whether the client reads it or not
	}
	b.release(max(bound-cap(answer), 0))
	n := min(bound, cap(answer))
	b.reserved -= n // they belong to the connection now
	b.conn.owe(n, len(answer))
}

// kept returns the buffer if it is small enough for the next request.
func kept(buffer []byte) []byte {
	if cap(buffer) > keptBuffer {
		return nil
	}
	return buffer
}
