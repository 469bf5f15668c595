package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// dialTime bounds the time to connect.
const dialTime = 10 * time.Second

// errClosed is the error of a closed client.
var errClosed = errors.New("the client is closed")

// lanes are the connections for inferences: as many as there were calls at the same time. The one
// used last is used next.
type lanes struct {
	access Access // of every connection
	mu     sync.Mutex
	idle   []*lane
	all    []*lane
	closed bool
}

// lane is one kept-alive connection, used by one call at a time. fasthttp has no contexts, so a
// call is interrupted through its connection.
type lane struct {
	client *fasthttp.HostClient
	access Access
	mu     sync.Mutex
	conn   net.Conn
	broken bool
}

// take returns an idle lane, or a new one to address.
func (l *lanes) take(address string) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if n := len(l.idle); n > 0 {
		last := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return last, nil
	}
	next := newLane(address, l.access)
	l.all = append(l.all, next)
	return next, nil
}

func (l *lanes) put(one *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, one)
}

// drop forgets a lane whose connection was interrupted.
func (l *lanes) drop(one *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(x *lane) bool { return x == one })
	one.client.CloseIdleConnections()
}

func (l *lanes) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, one := range l.all {
		one.interrupt()
		one.client.CloseIdleConnections()
	}
	return nil
}

func newLane(address string, a Access) *lane {
	l := &lane{access: a}
	l.client = &fasthttp.HostClient{
		Addr:                          address,
		IsTLS:                         a.TLS != nil,
		TLSConfig:                     a.TLS,
		MaxConns:                      1,
		MaxIdleConnDuration:           time.Hour, // the server decides
		MaxResponseBodySize:           1<<31 - 1,
		DisablePathNormalizing:        true,
		NoDefaultUserAgentHeader:      true,
		DisableHeaderNamesNormalizing: false,
		Dial: func(address string) (net.Conn, error) {
			conn, err := net.DialTimeout("tcp", address, dialTime)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conn = conn
			if err == nil && l.broken {
				err = errors.Join(context.Canceled, conn.Close())
			}
			return conn, err
		},
	}
	return l
}

// interrupt makes the call in progress fail. The lane cannot be used afterwards.
func (l *lane) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	if l.conn != nil {
		_ = l.conn.Close() // the call reports the error
	}
}

// Infer sends an encoded request and returns the answer undecoded.
func (c *HTTPClient) Infer(ctx context.Context, r *Encoded) (*InferResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	l, err := c.lanes.take(c.address)
	if err != nil {
		return nil, err
	}
	if ctx.Done() == nil {
		defer c.lanes.put(l)
		return l.send(c.address, r)
	}
	stop := context.AfterFunc(ctx, l.interrupt)
	response, err := l.send(c.address, r)
	if stop() {
		c.lanes.put(l)
		return response, err
	}
	c.lanes.drop(l)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return response, nil
}

func (l *lane) send(address string, r *Encoded) (*InferResponse, error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.SetRequestURI(r.path)
	request.Header.SetHost(address)
	request.Header.SetContentType(ContentTypeBytes)
	request.Header.Set(HeaderLength, strconv.Itoa(r.header))
	request.SetBodyRaw(r.body)
	if l.access.TLS != nil {
		request.URI().SetScheme("https")
	}
	for name, values := range l.access.Headers {
		for _, value := range values {
			request.Header.Add(name, value)
		}
	}
	if err := l.client.Do(request, response); err != nil {
		return nil, fmt.Errorf("cannot ask the server: %w", err)
	}
	body := append([]byte(nil), response.Body()...)
	if status := response.StatusCode(); status != fasthttp.StatusOK {
		return nil, statusError(status, body)
	}
	header := len(body)
	if text := response.Header.Peek(HeaderLength); len(text) > 0 {
		n, err := strconv.Atoi(string(text))
		if err != nil || n < 0 || n > len(body) {
			return nil, fmt.Errorf("cannot read an inference's answer: its header %s is %q", HeaderLength, text)
		}
		header = n
	}
	return &InferResponse{body: body, header: header, decode: decodeHTTP}, nil
}
