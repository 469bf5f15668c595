package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/engine/api"
	"tuner/measure"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// closedLoop returns tuner's own client: its load generator over gRPC, with a connection for each
// request in flight. It warms up until the load is steady, and measures a window.
func closedLoop(request api.InferRequest, concurrency int, window time.Duration) client {
	return func(ctx context.Context, s *side) (seen, error) {
		to, err := target(s.server.GRPC, request)
		if err != nil {
			return seen{}, err
		}
		part := load.Part{
			Load: measure.Load{Concurrency: concurrency, BatchSize: 1},
			Dial: func(ctx context.Context, _ int) (load.Conn, error) { return to.Dial(ctx, concurrency) },
			// Each batch size may be slow at its first use, since ONNX Runtime then plans its
			// memory again.
			Ramp:     []int{1, 2, 4, 8, 16, 32},
			WarmUp:   2 * time.Second,
			Patience: 20 * time.Second,
		}
		result, err := load.Run(ctx, load.Options{Part: part, Windows: load.Windows{
			Length: func([]time.Duration) time.Duration { return window },
			More:   func([][]measure.Window) bool { return false },
			Edge:   func(context.Context, int) error { return nil },
		}})
		if err != nil {
			return seen{}, err
		}
		return tell(result.Windows)
	}
}

// tell reads the figures from windows.
func tell(windows []measure.Window) (seen, error) {
	m := measure.Measurement{Windows: windows}
	throughput, ok := m.Estimate(measure.Throughput)
	p50, ok50 := m.Estimate(measure.LatencyP50)
	p99, ok99 := m.Estimate(measure.LatencyP99)
	switch {
	case m.Errors() > 0:
		return seen{}, fmt.Errorf("%d requests failed, the first with: %s", m.Errors(), windows[0].FirstError)
	case !ok || !ok50 || !ok99:
		return seen{}, errors.New("no request was completed")
	}
	return seen{Throughput: throughput.Value, P50: p50.Value, P99: p99.Value}, nil
}

// sender sends one request after the other over its own connection. Send returns when the answer is
// complete.
type sender interface {
	Send(ctx context.Context) error
	Close() error
}

// grpcSender sends one request over and over.
type grpcSender struct {
	client  api.Client
	request *api.Encoded
}

func dial(address string, request api.InferRequest) (*grpcSender, error) {
	client, err := api.NewGRPC(address)
	if err != nil {
		return nil, err
	}
	encoded, err := client.Encode(request)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &grpcSender{client, encoded}, nil
}

// target returns the target of tuner's requests in a campaign.
func target(address string, request api.InferRequest) (wire.Target, error) {
	t := wire.Target{Options: wire.Options{Address: address, Protocol: wire.GRPC}}
	prepared, err := wire.Prepare(t.Options, request, wire.Format{}, nil)
	t.Requests = []*wire.Prepared{prepared}
	return t, err
}

// Send implements sender.
func (s *grpcSender) Send(ctx context.Context) error {
	_, err := s.client.Infer(ctx, s.request)
	return err
}

// Close implements sender.
func (s *grpcSender) Close() error { return s.client.Close() }
