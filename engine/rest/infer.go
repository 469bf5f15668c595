package rest

import (
	"bytes"
	"context"
	"strconv"

	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/modelconfig"
)

// infer serves an inference. The request's tensors stay where they are in the body, which lives until the answer is made.
func (f *Frontend) infer(ctx *fasthttp.RequestCtx, name string, version int64) {
	r, err := f.decode(ctx, name, version)
	if err != nil {
		fail(ctx, err)
		return
	}
	r.Model, r.Version = name, version
	response, err := f.server.Infer(untilAnswered(ctx), &r.Request)
	if err != nil {
		fail(ctx, err)
		return
	}
	defer response.Release()
	f.reply(ctx, response, r)
}

// reply writes an answer. The outputs are copied once, from the model's memory into the answer's.
func (f *Frontend) reply(ctx *fasthttp.RequestCtx, response *engine.Response, r *inferRequest) {
	scratch := f.scratch.Get().(*[]byte)
	defer f.scratch.Put(scratch)
	json, binaryBytes, err := appendResponse((*scratch)[:0], response, r)
	*scratch = json
	if err != nil {
		fail(ctx, err)
		return
	}
	ctx.SetContentType(api.ContentTypeJSON)
	ctx.Response.SetBody(json)
	if binaryBytes == 0 {
		return
	}
	ctx.SetContentType(api.ContentTypeBytes)
	ctx.Response.Header.Set(api.HeaderLength, strconv.Itoa(len(json)))
	for i := range response.Outputs {
		if r.isBinary(response.Outputs[i].Name) {
			ctx.Response.AppendBody(response.Outputs[i].Data)
		}
	}
}

// untilAnswered is ctx without its end: fasthttp ends it when the server begins to shut down, but what has been accepted
// is answered.
func untilAnswered(ctx *fasthttp.RequestCtx) context.Context { return context.WithoutCancel(ctx) }

func (f *Frontend) decode(ctx *fasthttp.RequestCtx, name string, version int64) (*inferRequest, error) {
	if e := ctx.Request.Header.ContentEncoding(); len(e) > 0 && !bytes.Equal(e, []byte("identity")) {
		return nil, engine.Errorf(engine.Unsupported, "Unsupported compression type")
	}
	body := ctx.Request.Body()
	header, err := headerLength(ctx.Request.Header.Peek(api.HeaderLength), len(body))
	if err != nil {
		return nil, engine.Errorf(engine.InvalidArgument, "%v", err)
	}
	if header == 0 {
		return f.decodeRaw(body, name, version)
	}
	return decodeInfer(name, body, header, f.options.MaxInput)
}

// decodeRaw takes the whole body as the only input of the model; all outputs are binary.
func (f *Frontend) decodeRaw(body []byte, name string, version int64) (*inferRequest, error) {
	input, err := f.server.RawInput(name, version, body)
	if err != nil {
		return nil, err
	}
	return &inferRequest{Request: engine.Request{Inputs: []engine.Tensor{input}}, binaryAll: true}, nil
}

func (f *Frontend) config(ctx *fasthttp.RequestCtx, name string, version int64) {
	c, err := f.server.ModelConfig(name, version)
	if err != nil {
		fail(ctx, err)
		return
	}
	text, err := modelconfig.FormatJSON(c)
	if err != nil {
		fail(ctx, err)
		return
	}
	replyJSON(ctx, text)
}
