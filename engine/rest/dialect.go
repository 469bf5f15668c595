package rest

import (
	"bytes"
	"context"
	"strconv"

	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/fault"
)

// Dialect is another set of paths for Triton's calls, under which a cloud calls a container. All rules
// of this front end hold for it too. Requests and answers are not compressed, as in Triton.
type Dialect interface {
	// Find returns what a request means. header returns a header's first value. It must not block.
	Find(method, path string, header func(name string) []byte) Call
	// MediaTypes are the beginnings of the Content-Type of requests and answers with binary tensors. The
	// number of bytes of their JSON follows. An answer without one has Triton's own headers.
	MediaTypes() (request, answer string)
}

// Call is the meaning of a request.
type Call struct {
	Target string // one of Triton's own paths; "": none
	Method string // in place of the request's; "": its own
	Status int    // without Target: of the answer, which has no body
	// the answer is the page of the metrics
	Metrics bool
	Own     Own      // without Target: it answers; nil: not
	Failed  Statuses // of failures of Target; nil: Triton's
}

// Own is a call that a cloud has, and Triton has not.
type Own interface {
	// Category is that of the restrictions which hold for it.
	Category() api.Category
	// Serve answers a request with that body. It may block.
	Serve(ctx context.Context, s *engine.Server, body []byte) Answer
}

// Answer is the answer of an Own.
type Answer struct {
	Status int
	Body   []byte // JSON; nil: none
	Err    error  // its text is the body; nil: none
}

// Statuses are the statuses of failures.
type Statuses interface {
	// Status returns the status of a failure by the body of its answer.
	Status(body []byte) int
}

// find returns the meaning of a request's target.
func (f *Frontend) find(head *fasthttp.RequestHeader) route {
	d := f.options.Dialect
	if d == nil {
		return routeOf(head.RequestURI())
	}
	call := d.Find(string(head.Method()), string(pathOf(head.RequestURI())), head.Peek)
	r := route{status: call.Status}
	switch {
	case call.Own != nil:
		r = route{verb: ownCall, own: call.Own, method: call.Method}
	case call.Metrics:
		r = route{verb: metricsPage}
	case call.Target != "":
		r = routeOf([]byte(call.Target))
		r.method, r.failed = call.Method, call.Failed
		if r.verb == noVerb { // a text from outside that is no name of a model
			r.status = fasthttp.StatusBadRequest
		}
	}
	return r
}

// serveOwn serves a call of the cloud's own.
func serveOwn(b *reader, call Own) {
	body, err := b.read(nil)
	if err != nil {
		fail(b.ctx, err)
		return
	}
	a := call.Serve(context.WithoutCancel(b.ctx), b.frontend.server, body) // what has begun goes to its end
	if a.Err != nil {
		failWith(b.ctx, a.Status, fault.TextOf(a.Err))
		return
	}
	b.ctx.SetStatusCode(a.Status)
	if len(a.Body) > 0 {
		b.ctx.SetContentType("text/plain") // Triton's
		b.ctx.SetBody(a.Body)
	}
}

// jsonLength returns the length of the JSON part of a body, by its headers.
func (f *Frontend) jsonLength(head *fasthttp.RequestHeader, body int) (int, error) {
	d := f.options.Dialect
	if d == nil {
		return headerLength(head.Peek(api.HeaderLength), body)
	}
	media := head.ContentType()
	request, _ := d.MediaTypes()
	prefix := []byte(request)
	switch at := bytes.Index(media, prefix); {
	case at < 0:
		return body, nil
	case at > 0:
		return 0, fault.Errorf(fault.InvalidArgument, "expect MIME type for binary data starts with '%s', got: %s", prefix, media)
	}
	value := media[len(prefix):]
	n, err := strconv.ParseInt(string(value), 10, 32)
	switch {
	case err != nil:
		return 0, fault.Errorf(fault.InvalidArgument, "Unable to parse inference header size, got: %s", value)
	case n < 0 || n > int64(body):
		return 0, fault.Errorf(fault.InvalidArgument, "inference header size should be in range (0, %d), got: %s", body, value)
	}
	return int(n), nil
}

// codingOf returns the coding of a request's body.
func (f *Frontend) codingOf(head *fasthttp.RequestHeader) (coding, error) {
	if f.options.Dialect != nil {
		return codingNone, nil
	}
	return codingOf(head)
}

// acceptedCoding returns the coding for an answer.
func (f *Frontend) acceptedCoding(head *fasthttp.RequestHeader) coding {
	if f.options.Dialect != nil {
		return codingNone
	}
	return acceptedCoding(head.Peek(fasthttp.HeaderAcceptEncoding))
}

// setBinary tells the client that an answer has binary tensors behind its JSON.
func (f *Frontend) setBinary(head *fasthttp.ResponseHeader, json int) {
	if d := f.options.Dialect; d != nil {
		if _, media := d.MediaTypes(); media != "" {
			head.SetContentType(media + strconv.Itoa(json))
			return
		}
	}
	var digits [20]byte
	head.SetContentType(api.ContentTypeBytes)
	head.SetBytesV(api.HeaderLength, strconv.AppendInt(digits[:0], int64(json), 10))
}
