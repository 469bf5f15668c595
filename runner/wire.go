package runner

import (
	"context"
	"errors"

	"tuner/engine/api"
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
// jobs that are given the same slice.
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

// sender sends encoded requests in turn over a connection of its own.
type sender struct {
	client   api.Client
	requests []*api.Encoded
	next     int
}

// Send sends the next request. The answer is not decoded: that is not the server's work.
func (s *sender) Send(ctx context.Context) error {
	request := s.requests[s.next%len(s.requests)]
	s.next++
	_, err := s.client.Infer(ctx, request)
	return err
}

// Close closes the connection.
func (s *sender) Close() error { return s.client.Close() }
