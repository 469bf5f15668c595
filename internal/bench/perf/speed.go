package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// busyLoop is how many requests are in flight where the highest rate is asked for.
const busyLoop = 16

// cost is what a program reached, and what it took.
type cost struct {
	told
	CPU    float64 // s of the program per request, its start and end included
	Others float64 // share of the machine's CPU time that others took, 0..1
}

func (c cost) foreign() float64 { return c.Others }

// speed compares the highest rate, the cost of a request, and the latency that is reported of the fastest answers.
func (b *bench) speed(ctx context.Context) error {
	var lines []comparison
	var failed error
	for _, way := range []struct{ name, protocol, rate string }{{"HTTP", protocolHTTP, "≥ 3"}, {"gRPC", protocolGRPC, "≥ 2.5"}} {
		busy, single, err := b.contest(ctx, way.protocol)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", way.name, err))
			continue
		}
		of := func(pairs []pair, figure func(cost) float64) (tuner, analyzer []float64) {
			for _, p := range pairs {
				tuner, analyzer = append(tuner, figure(p.tuner)), append(analyzer, figure(p.analyzer))
			}
			return tuner, analyzer
		}
		add := func(name, unit string, scale float64, goal string, pairs []pair, figure func(cost) float64) {
			tuner, analyzer := of(pairs, func(c cost) float64 { return scale * figure(c) })
			foreign, others := of(pairs, cost.foreign)
			lines = append(lines, comparison{way.name + ": " + name, unit, tuner, analyzer, append(foreign, others...), goal})
		}
		add("rate, 16 in flight", "requests/s", 1, way.rate, busy, func(c cost) float64 { return c.Rate })
		add("client CPU per request, 16 in flight", "µs", 1e6, "≤ 0.33", busy, func(c cost) float64 { return c.CPU })
		add("median latency, 1 in flight", "µs", 1e6, "≤ 0.8", single, func(c cost) float64 { return c.P50 })
		add("client CPU per request, 1 in flight", "µs", 1e6, "", single, func(c cost) float64 { return c.CPU })
	}
	return errors.Join(failed, b.report("### Speed: a server that answers at once", lines))
}

// pair is both programs, one right after the other.
type pair struct{ tuner, analyzer cost }

// contest measures both programs in turn on one server: tuner perf_analyzer, perf_analyzer tuner, … so that a drift of the
// machine's speed falls on both alike. A first round does not count.
func (b *bench) contest(ctx context.Context, protocol string) (busy, single []pair, err error) {
	s, err := startServer(ctx, "-records", "1")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for i := range b.rounds + 1 {
		for _, part := range []struct {
			concurrency int
			into        *[]pair
		}{{busyLoop, &busy}, {1, &single}} {
			var p pair
			turns := []struct {
				side side
				into *cost
			}{{b.tuner, &p.tuner}, {b.analyzer, &p.analyzer}}
			if i%2 == 1 {
				slices.Reverse(turns)
			}
			for _, t := range turns {
				d := demand{protocol, s.address(protocol), b.orWindow(600 * time.Millisecond), false, []string{"--concurrency-range", strconv.Itoa(part.concurrency)}}
				*t.into, err = quietest(ctx, b, t.side.name, func() (cost, error) { return b.weigh(ctx, s, t.side, d) })
				if err != nil {
					return nil, nil, fmt.Errorf("round %d, %s: %w", i, t.side.name, err)
				}
			}
			if i > 0 {
				*part.into = append(*part.into, p)
			}
		}
		fmt.Fprintf(b.messages, "speed: %s, round %d of %d done\n", protocol, i, b.rounds)
	}
	return busy, single, nil
}

// weigh measures a program and what it takes.
func (b *bench) weigh(ctx context.Context, s *server, program side, d demand) (cost, error) {
	before, err := readMeter(ctx, s)
	if err != nil {
		return cost{}, err
	}
	t, err := b.measure(ctx, program, d)
	if err != nil {
		return cost{}, err
	}
	after, err := readMeter(ctx, s)
	if err != nil {
		return cost{}, err
	}
	return cost{t, after.perRequest(before), after.foreign(before)}, nil
}
