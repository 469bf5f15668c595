// Package rest is the engine's HTTP/REST front end: the KServe v2 protocol with Triton's extensions, its status codes and
// its error texts.
//
// It decodes requests for engine.Server and encodes what comes back; it decides nothing about models. The infer path has a
// JSON reader and writer of its own, because it is the hot one and because the protocol allows NaN and Infinity.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
)

// DefaultMaxInput is the default of Options.MaxInput.
const DefaultMaxInput = 64 << 20

// Limits on what a connection may hold.
const (
	headerBytes = 64 << 10
	bodyTime    = 10 * time.Minute
	idleTime    = 10 * time.Minute
)

// Options of the front end.
type Options struct {
	MaxInput int // bytes of JSON in a request, and of one tensor in it; 0: DefaultMaxInput
	Log      *slog.Logger
}

// Frontend serves HTTP.
type Frontend struct {
	server  *engine.Server
	options Options
	http    *fasthttp.Server
	scratch sync.Pool // of *[]byte, for the JSON of answers
}

// New returns a front end of a server.
func New(s *engine.Server, o Options) *Frontend {
	if o.MaxInput == 0 {
		o.MaxInput = DefaultMaxInput
	}
	f := &Frontend{server: s, options: o}
	f.scratch.New = func() any { return new([]byte) }
	f.http = &fasthttp.Server{
		Handler:                      f.handle,
		ErrorHandler:                 f.badRequest,
		Name:                         "tuner",
		NoDefaultDate:                true,
		ReadBufferSize:               headerBytes,
		ReadTimeout:                  bodyTime,
		WriteTimeout:                 bodyTime,
		IdleTimeout:                  idleTime,
		MaxRequestBodySize:           math.MaxInt32,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		Logger:                       quiet{o.Log},
	}
	return f
}

// quiet passes fasthttp's messages, which concern single connections, on as debug messages.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(format string, args ...any) {
	q.log.Debug("http", "message", strings.TrimSpace(format), "values", args)
}

// Serve accepts connections until Shutdown.
func (f *Frontend) Serve(l net.Listener) error { return f.http.Serve(l) }

// Shutdown stops accepting, and waits until all connections are idle or ctx ends.
func (f *Frontend) Shutdown(ctx context.Context) error { return f.http.ShutdownWithContext(ctx) }

// badRequest answers what is not HTTP, or too large.
func (f *Frontend) badRequest(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		fail(ctx, engine.Errorf(engine.InvalidArgument, "Unable to parse Content-Length, value is out of range"))
		return
	}
	fail(ctx, engine.Errorf(engine.InvalidArgument, "cannot read the request: %v", err))
}

// handle routes a request. The path has been decoded and cleaned by fasthttp, so that there is one spelling of each route.
func (f *Frontend) handle(ctx *fasthttp.RequestCtx) {
	parts := strings.Split(strings.Trim(string(ctx.Path()), "/"), "/")
	if parts[0] != "v2" {
		notFound(ctx)
		return
	}
	switch parts = parts[1:]; {
	case len(parts) == 0:
		f.get(ctx, func() { reply(ctx, f.server.Metadata()) })
	case parts[0] == "health" && len(parts) == 2:
		f.health(ctx, parts[1])
	case parts[0] == "models" && len(parts) == 2 && parts[1] == "stats":
		f.get(ctx, func() { f.statistics(ctx, "", 0) })
	case parts[0] == "models" && len(parts) > 1:
		f.model(ctx, parts[1], parts[2:])
	case parts[0] == "repository":
		f.repository(ctx, parts[1:])
	default:
		notFound(ctx)
	}
}

func (f *Frontend) get(ctx *fasthttp.RequestCtx, serve func()) {
	f.method(ctx, fasthttp.MethodGet, serve)
}

func (f *Frontend) post(ctx *fasthttp.RequestCtx, serve func()) {
	f.method(ctx, fasthttp.MethodPost, serve)
}

func (f *Frontend) method(ctx *fasthttp.RequestCtx, method string, serve func()) {
	if string(ctx.Method()) != method {
		failWith(ctx, fasthttp.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	serve()
}

func (f *Frontend) health(ctx *fasthttp.RequestCtx, what string) {
	if what != "live" && what != "ready" {
		notFound(ctx)
		return
	}
	f.get(ctx, func() {
		switch {
		case f.server.Closing():
			failWith(ctx, fasthttp.StatusServiceUnavailable, "Server is stopping")
		case what == "ready" && !f.server.Ready():
			ctx.SetStatusCode(fasthttp.StatusBadRequest)
		}
	})
}

// model serves /v2/models/NAME[/versions/N][/VERB].
func (f *Frontend) model(ctx *fasthttp.RequestCtx, name string, parts []string) {
	var version int64
	if len(parts) >= 2 && parts[0] == "versions" {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || n < 0 {
			notFound(ctx)
			return
		}
		version, parts = n, parts[2:]
	}
	verb := strings.Join(parts, "/")
	switch verb {
	case "":
		f.get(ctx, func() { answer(ctx)(f.server.ModelMetadata(name, version)) })
	case "ready":
		f.get(ctx, func() {
			if err := f.server.ModelReady(name, version); err != nil {
				fail(ctx, err)
			}
		})
	case "config":
		f.get(ctx, func() { f.config(ctx, name, version) })
	case "stats":
		f.get(ctx, func() { f.statistics(ctx, name, version) })
	case "infer":
		f.post(ctx, func() { f.infer(ctx, name, version) })
	default:
		notFound(ctx)
	}
}

func (f *Frontend) statistics(ctx *fasthttp.RequestCtx, name string, version int64) {
	answer(ctx)(f.server.Statistics(name, version))
}

func notFound(ctx *fasthttp.RequestCtx) { failWith(ctx, fasthttp.StatusNotFound, "Not Found") }

// answer replies with a value, or with the error that came in its place.
func answer(ctx *fasthttp.RequestCtx) func(value any, err error) {
	return func(value any, err error) {
		if err != nil {
			fail(ctx, err)
			return
		}
		reply(ctx, value)
	}
}

func reply(ctx *fasthttp.RequestCtx, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		fail(ctx, err)
		return
	}
	replyJSON(ctx, text)
}

func replyJSON(ctx *fasthttp.RequestCtx, text []byte) {
	ctx.SetContentType(api.ContentTypeJSON)
	ctx.SetBody(text)
}

func fail(ctx *fasthttp.RequestCtx, err error) {
	failWith(ctx, status(engine.CodeOf(err)), err.Error())
}

func failWith(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.Response.Reset()
	ctx.SetStatusCode(status)
	ctx.SetContentType(api.ContentTypeJSON)
	body := append([]byte(`{"error":`), appendQuoted(nil, []byte(text))...)
	ctx.SetBody(append(body, '}'))
}

// status maps a class of errors as Triton does.
func status(c engine.Code) int {
	switch c {
	case engine.Internal:
		return fasthttp.StatusInternalServerError
	case engine.NotFound:
		return fasthttp.StatusNotFound
	case engine.Unavailable:
		return fasthttp.StatusServiceUnavailable
	case engine.Unsupported:
		return fasthttp.StatusNotImplemented
	default:
		return fasthttp.StatusBadRequest
	}
}
