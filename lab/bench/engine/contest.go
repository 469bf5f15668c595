package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tuner/engine/api"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
)

// side is one of the two servers.
type side struct {
	name    string
	server  *peers.Server
	control api.Client // for its statistics
}

// address returns the address of a protocol of perf_analyzer: http or grpc.
func (s *side) address(protocol string) string {
	if protocol == sidebyside.HTTP {
		return s.server.HTTP
	}
	return s.server.GRPC
}

func (s *side) stop() error { return errors.Join(s.control.Close(), s.server.Stop()) }

// startTuner and startTriton start one server on a repository.
func (b *bench) startTuner(ctx context.Context, repository string, args ...string) (*side, error) {
	server, err := b.peers.StartTuner(ctx, b.tuner, repository, args...)
	return newSide("tuner", server, err)
}

func (b *bench) startTriton(ctx context.Context, repository string, args ...string) (*side, error) {
	server, err := b.peers.StartTriton(ctx, repository, args...)
	return newSide("Triton", server, err)
}

func newSide(name string, server *peers.Server, err error) (*side, error) {
	if err != nil {
		return nil, err
	}
	control, err := api.NewGRPC(server.GRPC)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &side{name, server, control}, nil
}

// contest holds both servers, which run at the same time. One is under load while the other sleeps.
// The figures include the sleeping one's use of the machine.
type contest struct{ tuner, triton *side }

// start starts both servers, each on its repository.
func (b *bench) start(ctx context.Context, tunerRepository, tritonRepository string) (*contest, error) {
	tuner, err := b.startTuner(ctx, tunerRepository)
	if err != nil {
		return nil, err
	}
	return b.against(ctx, tuner, tritonRepository)
}

// serve starts both servers on one repository of a model with a setting's configuration.
func (b *bench) serve(ctx context.Context, file string, s setting) (*contest, error) {
	repository, err := b.repository(file, s.config())
	if err != nil {
		return nil, err
	}
	return b.start(ctx, repository, repository)
}

// against adds a real Triton to our side. It stops our side if that fails.
func (b *bench) against(ctx context.Context, tuner *side, tritonRepository string) (*contest, error) {
	triton, err := b.startTriton(ctx, tritonRepository)
	if err != nil {
		return nil, errors.Join(err, tuner.stop())
	}
	return &contest{tuner, triton}, nil
}

func (c *contest) stop() error { return errors.Join(c.tuner.stop(), c.triton.stop()) }

// client puts a load on a server, and returns its measurement.
type client func(ctx context.Context, s *side) (seen, error)

// seen holds a client's measurement.
type seen struct {
	Throughput float64 // inferences per second
	P50, P99   float64 // s, latency of a request
	P999       float64 // s; 0: perf_analyzer does not tell it
	// Further figures of perf_analyzer in s, means per request; 0: not requested.
	Mean   float64 // latency
	Infer  float64 // compute_infer of the server's statistics
	Around float64 // the rest of the server's statistics: queue, compute_input and compute_output
}

// figures are one side's figures of one round.
type figures struct {
	seen
	usage
}

// round holds both sides, measured one right after the other.
type round struct{ Tuner, Triton figures }

// turn is one side's part of a round.
type turn struct {
	side, idle *side
	into       *figures
}

// alternate measures both sides in turn: tuner Triton, Triton tuner and so on. So a drift of the
// machine's speed affects both equally. A first measurement of each side is a warm-up and does not
// count.
func (c *contest) alternate(ctx context.Context, rounds int, run client) ([]round, error) {
	var out []round
	for i := range rounds + 1 {
		var r round
		turns := []turn{{c.tuner, c.triton, &r.Tuner}, {c.triton, c.tuner, &r.Triton}}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, t := range turns {
			measured, err := measureSide(ctx, t.side, t.idle, run)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", i, t.side.name, err)
			}
			*t.into = measured
		}
		if i > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

// measureSide measures one side, and the machine during that time. idle is the other side, or nil
// if it does not run.
func measureSide(ctx context.Context, s, idle *side, run client) (figures, error) {
	before, err := readMeter(ctx, s, idle)
	if err != nil {
		return figures{}, err
	}
	told, err := run(ctx, s)
	if err != nil {
		return figures{}, err
	}
	after, err := readMeter(ctx, s, idle)
	if err != nil {
		return figures{}, err
	}
	return figures{told, after.since(before)}, nil
}
