package runner

import (
	"context"
	"errors"
	"fmt"

	"tuner/engine/api"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// Dial makes a client that controls a launched engine. It connects when it is first used.
type Dial func(api.Announcement) (api.Client, error)

// GRPC makes a client that uses gRPC.
func GRPC(a api.Announcement) (api.Client, error) {
	if a.GRPC == "" {
		return nil, errors.New("cannot talk to the engine over gRPC: it does not serve it")
	}
	return api.NewGRPC(a.GRPC)
}

// HTTP makes a client that uses HTTP/REST.
func HTTP(a api.Announcement) (api.Client, error) {
	if a.HTTP == "" {
		return nil, errors.New("cannot talk to the engine over HTTP: it does not serve it")
	}
	return api.NewHTTP(a.HTTP), nil
}

// Requests are different requests with the same client batch, which the clients send in turn. They
// are encoded once for consecutive jobs that have the same slice.
type Requests []api.InferRequest

// Wire prepares requests for loads on a launched engine. answerSize is as in Job. An error means
// that they cannot be sent.
type Wire func(a api.Announcement, r Requests, answerSize int64) (Connections, error)

// Connections opens connections that send prepared requests in turn.
type Connections interface {
	// Dial opens a connection for a closed loop with concurrency requests in flight, or for an open
	// loop (0).
	Dial(ctx context.Context, concurrency int) (load.Conn, error)
	// IsLarge reports whether sending a request may block.
	IsLarge() bool
}

// Over sends loads over package wire. Its clients take little of the CPU time that a small model
// needs. tuner perf uses the same clients, so it reproduces the measurements of a campaign.
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

// OverGRPC returns the wire's options for an engine that serves gRPC.
func OverGRPC(a api.Announcement) wire.Options {
	return wire.Options{Address: a.GRPC, Protocol: wire.GRPC}
}

// OverHTTP returns the wire's options for an engine that serves HTTP.
func OverHTTP(a api.Announcement) wire.Options {
	return wire.Options{Address: a.HTTP, Protocol: wire.HTTP}
}

// overWire implements Connections with package wire.
type overWire struct{ wire.Target }

func (w overWire) Dial(ctx context.Context, concurrency int) (load.Conn, error) {
	return w.Target.Dial(ctx, concurrency)
}

// prepared holds requests that are prepared for an engine.
type prepared struct {
	of          Requests
	engine      Engine
	connections Connections
}

// isOf reports whether p was made from the same slice of requests, for the same engine.
func (p prepared) isOf(r Requests, e Engine) bool {
	return len(p.of) == len(r) && len(r) > 0 && &p.of[0] == &r[0] && p.engine == e
}
