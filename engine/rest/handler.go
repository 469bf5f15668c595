// Package rest is the engine's HTTP/REST front end: the KServe v2 protocol with Triton's
// extensions, its status codes and its error texts.
//
// It decodes requests for engine.Server and encodes the answers. It decides nothing about models.
// JSON is read and written by package document.
package rest

import (
	"bufio"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/budget"
	"tuner/engine/fault"
	"tuner/engine/logging"
	"tuner/engine/rest/document"
	"tuner/engine/rest/hangup"
	"tuner/engine/sharedmemory"
	"tuner/model/modelconfig"
)

// DefaultMaxInput is the default of Options.MaxInput.
const DefaultMaxInput = 64 << 20

// Limits on the memory and time of a connection.
const (
	headerBytes = 16 << 10
	answerBytes = 16 << 10    // smaller answers are sent with their headers in one piece
	headerTime  = time.Minute // for the headers and the beginning of the body
	writeTime   = 10 * time.Minute
	idleTime    = 10 * time.Minute
)

// Options of the front end. The zero value of a number is its default.
type Options struct {
	// bytes of JSON in a request, or of a request that is one raw tensor
	MaxInput int
	// for bodies and answers, shared with other front ends; nil: a separate one
	Memory     *budget.Budget
	Restricted api.Restrictions // headers that restricted calls need
	Regions    *sharedmemory.Regions
	Dialect    Dialect       // of a cloud; nil: Triton's own paths
	Metrics    func() []byte // their page, for a Dialect
	Log        *slog.Logger
	Settings   *logging.Log      // of the log; nil: one that writes nothing
	Requests   *logging.Requests // for a line per request; nil: none
}

// Frontend serves HTTP.
type Frontend struct {
	server     *engine.Server
	options    Options
	http       *fasthttp.Server
	inferences sync.Pool // of *inference
	inflaters  sync.Pool // of *inflater
	gzips      sync.Pool // of compressor, as the next one
	zlibs      sync.Pool
	stall      time.Duration
	hangups    hangup.List
	// address of the listener; set before the first request, like the next two
	address  string
	isLocal  bool        // only this machine can reach it
	machine  string      // this machine's name; "": unknown
	isEnding atomic.Bool // answers ask clients to connect elsewhere
}

// New returns a front end of a server.
func New(s *engine.Server, o Options) *Frontend {
	if o.MaxInput == 0 {
		o.MaxInput = DefaultMaxInput
	}
	if o.Memory == nil {
		o.Memory = budget.New(0)
	}
	if o.Settings == nil {
		o.Settings = new(logging.Log)
	}
	f := &Frontend{server: s, options: o, stall: stalled}
	f.inferences.New = func() any { return &inference{request: inferRequest{regions: o.Regions}} }
	f.inflaters.New = func() any { return &inflater{in: bufio.NewReader(nil)} }
	f.gzips.New = func() any { return compressor(gzip.NewWriter(nil)) }
	f.zlibs.New = func() any { return compressor(zlib.NewWriter(nil)) }
	f.http = &fasthttp.Server{
		Handler:                      f.handle,
		ErrorHandler:                 f.badRequest,
		ExpectHandler:                f.expect,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		ReadBufferSize:               headerBytes,
		WriteBufferSize:              answerBytes,
		ReadTimeout:                  headerTime,
		WriteTimeout:                 writeTime,
		IdleTimeout:                  idleTime,
		StreamRequestBody:            true,
		MaxRequestBodySize:           math.MaxInt,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       quiet{o.Log},
	}
	return f
}

// quiet logs fasthttp's messages, which concern single connections, as debug messages.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http", "message", strings.TrimSpace(format), "values", args)
}

// Serve accepts connections until Shutdown. It may be called once.
func (f *Frontend) Serve(l net.Listener) error {
	f.address, f.isLocal = l.Addr().String(), isLoopback(l.Addr())
	f.machine, _ = os.Hostname() // on error this machine has one name less
	return f.http.Serve(listener{l, f.options.Memory})
}

// Drain ends each connection after its next answer, so that clients come back over another one,
// which may lead elsewhere. New connections are accepted until Shutdown.
func (f *Frontend) Drain() { f.isEnding.Store(true) }

// Shutdown stops accepting, and waits until all connections are idle or ctx ends.
func (f *Frontend) Shutdown(ctx context.Context) error {
	defer f.hangups.Close()
	return f.http.ShutdownWithContext(ctx)
}

// badRequest answers bytes that are not HTTP, or did not arrive in time. The answer does not repeat
// them.
func (f *Frontend) badRequest(ctx *fasthttp.RequestCtx, err error) {
	if f.options.Requests.Wanted() {
		b := reader{ctx: ctx, entry: begin(ctx)}
		b.entry.Call = "" // it is not known
		defer f.note(&b)
	}
	var large *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &large):
		failWith(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, "the headers of the request are too large")
	case errors.As(err, &network) && network.Timeout():
		failWith(ctx, fasthttp.StatusRequestTimeout, "the request did not arrive in time")
	case errors.Is(err, io.ErrUnexpectedEOF):
		fail(ctx, badBody(err))
	default:
		failWith(ctx, fasthttp.StatusBadRequest, "cannot read the request: it is not HTTP/1.1")
	}
}

// handle serves a request.
func (f *Frontend) handle(ctx *fasthttp.RequestCtx) {
	at := f.find(&ctx.Request.Header)
	b := reader{frontend: f, ctx: ctx}
	b.conn, _ = ctx.Conn().(*conn)
	defer b.end()
	if f.options.Requests.Wanted() {
		b.entry = begin(ctx)
		defer f.note(&b)
	}
	if f.isEnding.Load() {
		ctx.SetConnectionClose()
	}
	if r := f.refuse(&ctx.Request.Header, &at); r != nil {
		if r.isLast {
			ctx.SetConnectionClose()
			b.done = true
		}
		failWith(ctx, r.status, r.text)
		return
	}
	switch {
	case at.verb == metricsPage:
		ctx.SetBody(f.options.Metrics())
	case at.verb == ownCall:
		serveOwn(&b, at.own)
	case at.verb == modelInfer:
		f.infer(&b, &at)
		if at.failed != nil && ctx.Response.StatusCode() >= fasthttp.StatusBadRequest {
			ctx.SetStatusCode(at.failed.Status(ctx.Response.Body()))
		}
	case at.verb == modelGenerate || at.verb == modelGenerateStream:
		f.generate(&b, &at)
	case at.verb == traceSetting:
		f.traceSetting(&b, &at)
	case at.verb == logSettings:
		f.logging(&b)
	case at.verb >= memoryStatus && at.verb <= memoryRegister:
		f.sharedMemory(&b, &at)
	case at.verb >= repositoryIndex:
		f.repository(&b, &at)
	default:
		f.describe(ctx, &at)
	}
}

// expect decides whether a client that asks first may send its body. It may not if the request is
// refused anyway, or if the body is too large.
func (f *Frontend) expect(ctx *fasthttp.RequestCtx) int {
	head := &ctx.Request.Header
	at := f.find(head)
	r := f.refuse(head, &at)
	if err := f.announced(head, at.verb); r == nil && err != nil {
		r = &refusal{status: fasthttp.StatusRequestEntityTooLarge, text: err.Error()}
	}
	if r == nil {
		return fasthttp.StatusContinue
	}
	failWith(ctx, r.status, r.text)
	return r.status
}

// refuse returns the refusal of a request by its headers alone, nil if it is served.
func (f *Frontend) refuse(head *fasthttp.RequestHeader, at *route) *refusal {
	if r := framed(head); r != nil {
		return r
	}
	if r := f.misnamed(head); r != nil {
		return r
	}
	switch {
	case at.verb == noVerb && at.status != 0:
		return &refusal{status: at.status}
	case at.verb == noVerb:
		return &refusal{status: fasthttp.StatusNotFound, text: "Not Found"}
	}
	return f.admit(head, at)
}

// admit refuses a request that lacks the header of a restricted category, has the wrong method for
// its route, or comes from a foreign page.
func (f *Frontend) admit(head *fasthttp.RequestHeader, at *route) *refusal {
	d := at.verb.demand()
	if at.own != nil {
		d = demand{"", at.own.Category()}
	}
	if r, ok := f.options.Restricted[d.category]; ok && !bringsHeader(head, r) {
		return &refusal{status: fasthttp.StatusForbidden, text: "This API is restricted, expecting header '" + r.Header + "'"}
	}
	if method := cmp.Or(at.method, string(head.Method())); method != d.method && (d.method != "" || method != http.MethodGet && method != http.MethodPost) {
		return &refusal{status: fasthttp.StatusMethodNotAllowed, text: "Method Not Allowed"}
	}
	return foreign(head)
}

func bringsHeader(head *fasthttp.RequestHeader, r api.Restriction) bool {
	return subtle.ConstantTimeCompare(head.Peek(r.Header), []byte(r.Value)) == 1
}

// describe answers requests without effects.
func (f *Frontend) describe(ctx *fasthttp.RequestCtx, at *route) {
	name := string(at.model)
	version, err := at.number()
	var value any
	switch {
	case at.verb == serverLive || at.verb == serverReady:
		f.health(ctx, at.verb)
		return
	case at.verb == modelReady:
		f.ready(ctx, name, version, err)
		return
	case err != nil:
	case at.verb == serverMetadata:
		value = f.server.Metadata()
	case at.verb == modelMetadata:
		value, err = f.server.ModelMetadata(name, version)
	case at.verb == modelStatistics:
		value, err = f.server.Statistics(name, version)
	case at.verb == modelConfig:
		value, err = f.config(name, version)
	}
	reply(ctx, value, err)
}

func (f *Frontend) health(ctx *fasthttp.RequestCtx, v verb) {
	switch {
	case f.server.Closing():
		failWith(ctx, fasthttp.StatusServiceUnavailable, "Server is stopping")
	case v == serverLive && !f.server.Live(), v == serverReady && !f.server.Ready():
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
	}
}

// ready answers whether a model is ready. Triton has one text for all models that are not.
func (f *Frontend) ready(ctx *fasthttp.RequestCtx, name string, version int64, err error) {
	if err != nil && fault.CodeOf(err) != fault.NotFound { // not a version number
		fail(ctx, err)
		return
	}
	if err != nil || f.server.ModelReady(name, version) != nil {
		failWith(ctx, fasthttp.StatusBadRequest, "Model version not ready")
	}
}

func (f *Frontend) config(name string, version int64) (json.RawMessage, error) {
	c, err := f.server.ModelConfig(name, version)
	if err != nil {
		return nil, err
	}
	return modelconfig.FormatJSON(c)
}

// reply answers with a value, or with the error instead.
func reply(ctx *fasthttp.RequestCtx, value any, err error) {
	var text []byte
	if raw, ok := value.(json.RawMessage); ok {
		text = raw
	} else if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		fail(ctx, err)
		return
	}
	ctx.SetContentType(api.ContentTypeJSON)
	ctx.SetBody(text)
}

func fail(ctx *fasthttp.RequestCtx, err error) {
	failWith(ctx, status(fault.CodeOf(err)), fault.TextOf(err))
}

// failWith answers with an error. "": the status alone.
func failWith(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	if text == "" {
		return
	}
	ctx.SetContentType(api.ContentTypeJSON)
	body := append([]byte(`{"error":`), document.AppendQuoted(nil, []byte(text))...)
	ctx.SetBody(append(body, '}'))
}

// status maps a class of errors to a status as Triton does.
func status(c fault.Code) int {
	switch c {
	case fault.Internal:
		return fasthttp.StatusInternalServerError
	case fault.NotFound:
		return fasthttp.StatusNotFound
	case fault.Unavailable, fault.Exhausted:
		return fasthttp.StatusServiceUnavailable
	case fault.Unsupported:
		return fasthttp.StatusNotImplemented
	default:
		return fasthttp.StatusBadRequest
	}
}
