package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tuner/measure/stats"
)

// light is a client with the least possible cost, so that the server is the bottleneck. It sends a
// prepared request over and over, on a connection for each request in flight.
type light struct {
	concurrency int
	window      time.Duration
	dial        func(ctx context.Context, address string) (sender, error)
}

// overtime is the longest time of answers beyond the window.
const overtime = 10 * time.Second

// client returns the light client over a protocol.
func (l light) client(protocol string) client {
	return func(ctx context.Context, s *side) (seen, error) { return l.run(ctx, s.address(protocol)) }
}

func (l light) run(ctx context.Context, address string) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, l.window+overtime)
	defer cancel()
	var senders []sender
	defer func() {
		for _, s := range senders {
			_ = s.Close() // the figures are complete
		}
	}()
	for range l.concurrency {
		s, err := l.dial(ctx, address)
		if err != nil {
			return seen{}, err
		}
		senders = append(senders, s)
	}
	latencies, failures := make([][]float64, len(senders)), make([]error, len(senders))
	var busy sync.WaitGroup
	begin := time.Now()
	for i, s := range senders {
		busy.Go(func() { latencies[i], failures[i] = l.loop(ctx, s, begin.Add(l.window)) })
	}
	busy.Wait()
	elapsed := time.Since(begin)
	if err := errors.Join(failures...); err != nil {
		return seen{}, err
	}
	ascending := slices.Concat(latencies...)
	slices.Sort(ascending)
	return seen{
		Throughput: float64(len(ascending)) / elapsed.Seconds(),
		P50:        stats.Quantile(ascending, 0.5), P99: stats.Quantile(ascending, 0.99),
	}, nil
}

// loop sends until the window ends, at least once, and returns the latencies in seconds. Each loop
// has its own context, since calls with a shared context share its lock.
func (l light) loop(parent context.Context, s sender, end time.Time) ([]float64, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	defer cancel()
	defer context.AfterFunc(parent, cancel)()
	latencies := make([]float64, 0, 1<<16)
	for from := time.Now(); ; {
		if err := s.Send(ctx); err != nil {
			return nil, err
		}
		now := time.Now()
		latencies = append(latencies, now.Sub(from).Seconds())
		if from = now; !now.Before(end) {
			return latencies, nil
		}
	}
}
