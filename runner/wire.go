package runner

import (
	"context"
	"errors"

	"tuner/engine/api"
	"tuner/load"
)

// Dial makes a client of a launched engine. It connects when it is used.
type Dial func(api.Announcement) (api.Client, error)

// GRPC talks to engines over gRPC.
func GRPC(a api.Announcement) (api.Client, error) {
	if a.GRPC == "" {
		return nil, errors.New("cannot talk to the engine over gRPC: it does not serve it")
	}
	return api.NewGRPC(a.GRPC)
}

// HTTP talks to engines over HTTP/REST.
func HTTP(a api.Announcement) (api.Client, error) {
	if a.HTTP == "" {
		return nil, errors.New("cannot talk to the engine over HTTP: it does not serve it")
	}
	return api.NewHTTP(a.HTTP), nil
}

// Requests are different requests of the same client batch, which the clients send in turn. They are encoded once for all
// jobs in a row that are given the same slice.
type Requests []api.InferRequest

// encoded are requests in the form that goes over the wire.
type encoded struct {
	of   Requests
	list []*api.Encoded
}

// is reports whether e was made from the very same requests.
func (e encoded) is(r Requests) bool {
	return len(e.of) == len(r) && len(r) > 0 && &e.of[0] == &r[0]
}

// encode prepares the requests for clients of the same protocol as client.
func encode(client api.Client, r Requests) (encoded, error) {
	e := encoded{of: r}
	for _, request := range r {
		one, err := client.Encode(request)
		if err != nil {
			return encoded{}, err
		}
		e.list = append(e.list, one)
	}
	return e, nil
}

// conn sends encoded requests in turn over a client of its own, whose Infer is sending and receiving in one.
type conn struct {
	client    api.Client
	requests  []*api.Encoded
	infer     func(*api.Encoded) error
	interrupt context.CancelFunc
	broken    func() bool
	request   *api.Encoded // the one that was sent
}

// NewConn makes a load.Conn that sends encoded requests over a client, and closes it.
func NewConn(client api.Client, requests []*api.Encoded) load.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{client: client, requests: requests, interrupt: cancel,
		infer: func(r *api.Encoded) error {
			_, err := client.Infer(ctx, r) // the answer is not decoded: that is not the server's work
			return err
		},
		broken: func() bool { return ctx.Err() != nil },
	}
}

// Slots is 1: each request in flight has a client.
func (c *conn) Slots() int { return 1 }

// Send notes the request, by its number modulo that of all.
func (c *conn) Send(_, request int) { c.request = c.requests[request%len(c.requests)] }

// Receive sends the request and waits for the answer.
func (c *conn) Receive() (slot int, final, null bool, err error) {
	return 0, true, false, c.infer(c.request)
}

// Broken is true after Interrupt alone: the client opens connections as it needs them.
func (c *conn) Broken() bool { return c.broken() }

// Interrupt ends the request in flight.
func (c *conn) Interrupt() { c.interrupt() }

// Close closes the client.
func (c *conn) Close() error {
	c.interrupt()
	return c.client.Close()
}
