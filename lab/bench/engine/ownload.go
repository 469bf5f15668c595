package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tuner/engine/api"
	"tuner/lab/bench/sidebyside"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// closedLoop returns tuner's own client in a closed loop over gRPC.
func closedLoop(request api.InferRequest, concurrency int, window time.Duration) client {
	return ownLoad(sidebyside.GRPC, request, measure.Load{Concurrency: concurrency, BatchSize: 1}, window)
}

// arrivalsSeed is the seed of all open loops, so that both servers get the same arrivals.
const arrivalsSeed = 1

// ownLoad returns tuner's own client: its load generator, with connections as in a campaign. It warms up
// until the load is steady, and measures a window. Requests of an open loop arrive as a Poisson process.
func ownLoad(protocol string, request api.InferRequest, offer measure.Load, window time.Duration) client {
	return func(ctx context.Context, s *side) (seen, error) {
		to, err := target(protocol, s.address(protocol), request)
		if err != nil {
			return seen{}, err
		}
		part := load.Part{
			Load:     offer,
			Dial:     func(ctx context.Context, _ int) (load.Conn, error) { return to.Dial(ctx, offer.Concurrency) },
			WarmUp:   2 * time.Second,
			Patience: 20 * time.Second,
		}
		if offer.RequestRate > 0 {
			part.Arrivals, err = arrivals.Poisson(offer.RequestRate, arrivalsSeed)
		} else {
			// Each batch size may be slow at its first use, since ONNX Runtime then plans its
			// memory again.
			part.Ramp = []int{1, 2, 4, 8, 16, 32}
		}
		if err != nil {
			return seen{}, err
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
	longest := m.Latencies().Quantile(0.999)
	return seen{Throughput: throughput.Value, P50: p50.Value, P99: p99.Value, P999: longest.Seconds()}, nil
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
func target(protocol, address string, request api.InferRequest) (wire.Target, error) {
	t := wire.Target{Options: wire.Options{Address: address, Protocol: wire.GRPC}}
	if protocol == sidebyside.HTTP {
		t.Options.Protocol = wire.HTTP
	}
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
