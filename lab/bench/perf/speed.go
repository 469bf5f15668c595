package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tuner/lab/bench/sidebyside"
)

// busyLoop is the number of requests in flight at the highest rate.
const busyLoop = 16

// cost holds a program's result and its cost.
type cost struct {
	told
	CPU    float64 // s of the program per request, including its start and end
	Others float64 // share of the machine's CPU time that others took, 0..1
}

func (c cost) foreign() float64 { return c.Others }

// speed compares the highest rate, the cost of a request, and the reported latency of the fastest
// answers.
func (b *bench) speed(ctx context.Context) error {
	var lines []sidebyside.Line
	var failed error
	for _, way := range []struct{ name, protocol, rate string }{{"HTTP", sidebyside.HTTP, "≥ 3"}, {"gRPC", sidebyside.GRPC, "≥ 2.5"}} {
		busy, single, err := b.contest(ctx, way.protocol)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", way.name, err))
			continue
		}
		lines = append(lines,
			compare(way.name+": rate, 16 in flight", "requests/s", 1, way.rate, busy, func(c cost) float64 { return c.Rate }),
			compare(way.name+": client CPU per request, 16 in flight", "µs", 1e6, "≤ 0.33", busy, func(c cost) float64 { return c.CPU }),
			compare(way.name+": median latency, 1 in flight", "µs", 1e6, "≤ 0.8", single, func(c cost) float64 { return c.P50 }),
			compare(way.name+": client CPU per request, 1 in flight", "µs", 1e6, "", single, func(c cost) float64 { return c.CPU }))
	}
	return errors.Join(failed, b.table().Report("### Speed: a server that answers at once", lines))
}

// table returns the table that compares tuner with perf_analyzer.
func (b *bench) table() sidebyside.Table {
	return sidebyside.Table{
		Benchmark: "Perf", Ours: sidebyside.Side{Name: b.tuner.Name, Key: "tuner"}, Theirs: sidebyside.Side{Name: b.analyzer.Name, Key: b.analyzer.Name},
		Disturbances: []string{"foreign CPU, most"}, Out: b.out, Record: b.record,
	}
}

// measured has the figures of a program. foreign is the share of the machine that others took meanwhile.
type measured interface{ foreign() float64 }

// pair holds both programs, measured one right after the other.
type pair[T measured] struct{ ours, theirs T }

// side is one of the two programs.
type side[T measured] struct {
	name    string
	measure func() (T, error)
}

// inTurn measures both programs one right after the other. Which is first changes with each round, so
// that a drift of the machine's speed affects both equally.
func inTurn[T measured](ctx context.Context, b *bench, round int, ours, theirs side[T]) (p pair[T], err error) {
	turns := []struct {
		side[T]
		into *T
	}{{ours, &p.ours}, {theirs, &p.theirs}}
	if round%2 == 1 {
		slices.Reverse(turns)
	}
	for _, t := range turns {
		if *t.into, err = quietest(ctx, b, t.name, t.measure); err != nil {
			return p, fmt.Errorf("round %d, %s: %w", round, t.name, err)
		}
	}
	return p, nil
}

// compare returns one figure of all pairs, multiplied by scale to convert it to the unit. The
// largest share of the machine that others took meanwhile stands beside it.
func compare[T measured](name, unit string, scale float64, goal string, pairs []pair[T], figure func(T) float64) sidebyside.Line {
	l := sidebyside.Line{Name: name, Unit: unit, Goal: goal}
	foreign := 0.0
	for _, p := range pairs {
		l.Ours, l.Theirs = append(l.Ours, scale*figure(p.ours)), append(l.Theirs, scale*figure(p.theirs))
		foreign = max(foreign, p.ours.foreign(), p.theirs.foreign())
	}
	l.Disturbed = []string{fmt.Sprintf("%.0f %%", 100*foreign)}
	return l
}

// contest measures both programs in turn on one server: tuner perf_analyzer, perf_analyzer tuner
// and so on. A first round does not count.
func (b *bench) contest(ctx context.Context, protocol string) (busy, single []pair[cost], err error) {
	s, err := startServer(ctx, "-records", "1")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for i := range b.rounds + 1 {
		for _, part := range []struct {
			concurrency int
			into        *[]pair[cost]
		}{{busyLoop, &busy}, {1, &single}} {
			d := s.demand(protocol, b.orWindow(600*time.Millisecond), "--concurrency-range", strconv.Itoa(part.concurrency))
			of := func(program sidebyside.Analyzer) side[cost] {
				return side[cost]{program.Name, func() (cost, error) { return weigh(ctx, s, program, d) }}
			}
			p, err := inTurn(ctx, b, i, of(b.tuner), of(b.analyzer))
			if err != nil {
				return nil, nil, err
			}
			if i > 0 {
				*part.into = append(*part.into, p)
			}
		}
		fmt.Fprintf(b.messages, "speed: %s, round %d of %d done\n", protocol, i, b.rounds)
	}
	return busy, single, nil
}

// weigh measures a program and its cost.
func weigh(ctx context.Context, s *server, program sidebyside.Analyzer, d sidebyside.Demand) (cost, error) {
	before, err := readMeter(ctx, s)
	if err != nil {
		return cost{}, err
	}
	t, err := sidebyside.Measure(ctx, program, d, readReport)
	if err != nil {
		return cost{}, err
	}
	after, err := readMeter(ctx, s)
	if err != nil {
		return cost{}, err
	}
	return cost{t, after.perRequest(before), after.foreign(before)}, nil
}
