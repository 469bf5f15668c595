package runner

import (
	"context"
	"errors"
	"fmt"

	"tuner/engine/api"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// Dial makes a client of a launched engine, which controls it and asks. It connects when it is used.
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

// Wire prepares requests for loads on a launched engine; answerSize is as in Job. An error says that they cannot be sent.
type Wire func(a api.Announcement, r Requests, answerSize int64) (Connections, error)

// Connections open connections that send prepared requests in turn.
type Connections interface {
	// Dial opens one for a closed loop of so many requests in flight, or for an open loop (0).
	Dial(ctx context.Context, concurrency int) (load.Conn, error)
	// IsLarge reports whether sending a request may block.
	IsLarge() bool
}

// Over sends loads over package wire, whose clients take little of the processor time that a small model would have: those of tuner perf, so
// that it measures later what a campaign has measured.
func Over(options func(api.Announcement) wire.Options) Wire {
	return func(a api.Announcement, r Requests, answerSize int64) (Connections, error) {
		t := wire.Target{Options: options(a), AnswerSize: answerSize}
		for _, request := range r {
			prepared, err := wire.Prepare(t.Options, request, wire.Format{}, nil)
			if err != nil {
				return nil, fmt.Errorf("cannot encode a request: %w", err)
			}
			t.Requests = append(t.Requests, prepared)
		}
		return overWire{t}, nil
	}
}

// OverGRPC are the wire's options for an engine that GRPC talks to.
func OverGRPC(a api.Announcement) wire.Options {
	return wire.Options{Address: a.GRPC, Protocol: wire.GRPC}
}

// OverHTTP are the wire's options for an engine that HTTP talks to.
func OverHTTP(a api.Announcement) wire.Options {
	return wire.Options{Address: a.HTTP, Protocol: wire.HTTP}
}

// overWire are the Connections of package wire.
type overWire struct{ wire.Target }

func (w overWire) Dial(ctx context.Context, concurrency int) (load.Conn, error) {
	return w.Target.Dial(ctx, concurrency)
}

// prepared are requests that an engine is sent.
type prepared struct {
	of          Requests
	engine      Engine
	connections Connections
}

// isOf reports whether p was made from the very same requests, for the same engine.
func (p prepared) isOf(r Requests, e Engine) bool {
	return len(p.of) == len(r) && len(r) > 0 && &p.of[0] == &r[0] && p.engine == e
}
