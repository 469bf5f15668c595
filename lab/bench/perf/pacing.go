package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tuner/engine/api"
	"tuner/lab/bench/sidebyside"
	"tuner/measure"
	"tuner/measure/arrivals"
	"tuner/measure/stats"
	"tuner/runner/load"
	"tuner/runner/wire"
)

// pacingRate is the mean rate of the schedule, in requests per second.
const pacingRate = 2000

// pace holds the accuracy of a schedule in one round.
type pace struct {
	P50, P99 float64 // s, from the scheduled time to the sending
	Cores    float64 // CPU time per time
	Others   float64 // share of the machine's CPU time that others took, 0..1
}

func (p pace) foreign() float64 { return p.Others }

// pacing measures the delays of sending in an open loop. A pacer that only sleeps, and sends
// nothing, is measured beside it.
func (b *bench) pacing(ctx context.Context) (err error) {
	s, err := startServer(ctx, "-records", "1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	window := b.orWindow(5 * time.Second)
	var sent, slept []pace
	for i := range b.rounds {
		open, err := quietest(ctx, b, "pacing", func() (pace, error) { return openLoop(ctx, s, uint64(i), window) })
		if err != nil {
			return err
		}
		alone, err := quietest(ctx, b, "pacing", func() (pace, error) { return sleepLoop(ctx, s, uint64(i), window) })
		if err != nil {
			return err
		}
		sent, slept = append(sent, open), append(slept, alone)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n### Pacing: Poisson, %d requests/s, %d × %v; medians of the rounds (least–most)\n\n", pacingRate, b.rounds, window)
	text.WriteString("| | p50 of the send delay, µs | p99, µs | CPU, cores | foreign CPU |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name  string
		paces []pace
	}{{"package load over HTTP, sending and receiving", sent}, {"time.Sleep alone", slept}} {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", row.name,
			spread(row.paces, 1e6, func(p pace) float64 { return p.P50 }), spread(row.paces, 1e6, func(p pace) float64 { return p.P99 }),
			spread(row.paces, 1, func(p pace) float64 { return p.Cores }), spread(row.paces, 1, pace.foreign))
	}
	text.WriteString("| goal, on an idle host | ≤ 25 | ≤ 200 | ≤ 0.2 | |\n")
	return sidebyside.Print(b.out, text.String())
}

// spread prints a figure's median with its least and greatest value.
func spread(paces []pace, scale float64, figure func(pace) float64) string {
	var values []float64
	for _, p := range paces {
		values = append(values, scale*figure(p))
	}
	return fmt.Sprintf("**%s** (%s–%s)", sidebyside.Digits(stats.Median(values)), sidebyside.Digits(slices.Min(values)), sidebyside.Digits(slices.Max(values)))
}

// conn sends one request over and over.
type conn struct {
	*wire.Conn
	request *wire.Prepared
}

// Send implements load.Conn.
func (c conn) Send(slot, _ int) { c.Conn.Send(slot, c.request) }

// openLoop measures a window of tuner's open loop, after half a second of warm-up.
func openLoop(ctx context.Context, s *server, seed uint64, window time.Duration) (pace, error) {
	arrivals, err := arrivals.Poisson(pacingRate, seed)
	if err != nil {
		return pace{}, err
	}
	o := wire.Options{Address: s.HTTP, Protocol: wire.HTTP}
	input := api.Tensor{Name: "x", Datatype: "FP32", Shape: []int64{16}, Data: make([]byte, 16*binary.Size(float32(0)))}
	request, err := wire.Prepare(o, api.InferRequest{Model: "law", Inputs: []api.Tensor{input}}, wire.Format{}, nil)
	if err != nil {
		return pace{}, err
	}
	var edges [2]meter
	part := load.Part{
		Load:     measure.Load{RequestRate: pacingRate, BatchSize: 1},
		Arrivals: arrivals,
		Dial: func(ctx context.Context, _ int) (load.Conn, error) {
			c, err := wire.Dial(ctx, o)
			return conn{c, request}, err
		},
		Patience:       10 * time.Second,
		WarmUpRequests: pacingRate / 2,
	}
	result, err := load.Run(ctx, load.Options{Part: part, Windows: load.Windows{
		Length: func([]time.Duration) time.Duration { return window },
		Edge: func(ctx context.Context, edge int) (err error) {
			edges[edge], err = readMeter(ctx, s)
			return err
		},
		More: func([][]measure.Window) bool { return false },
	}})
	if err != nil {
		return pace{}, err
	}
	w := result.Windows[0]
	if w.Errors+w.Dropped > 0 {
		return pace{}, fmt.Errorf("%d requests failed, %d were not sent, the first with: %s", w.Errors, w.Dropped, w.FirstError)
	}
	return pace{
		w.SendDelay.Quantile(0.5).Seconds(), w.SendDelay.Quantile(0.99).Seconds(),
		edges[1].cores(edges[0]), edges[1].foreign(edges[0]),
	}, nil
}

// sleepLoop keeps the same schedule with time.Sleep, and sends nothing.
func sleepLoop(ctx context.Context, s *server, seed uint64, window time.Duration) (pace, error) {
	arrivals, err := arrivals.Poisson(pacingRate, seed)
	if err != nil {
		return pace{}, err
	}
	before, err := readMeter(ctx, s)
	if err != nil {
		return pace{}, err
	}
	var late []float64
	begin := time.Now()
	for at := arrivals.Next(); at < window; at = arrivals.Next() {
		time.Sleep(at - time.Since(begin))
		late = append(late, (time.Since(begin) - at).Seconds())
	}
	after, err := readMeter(ctx, s)
	if err != nil {
		return pace{}, err
	}
	if len(late) == 0 {
		return pace{}, fmt.Errorf("a window of %v is too short for %d requests/s", window, pacingRate)
	}
	slices.Sort(late)
	return pace{stats.Quantile(late, 0.5), stats.Quantile(late, 0.99), after.cores(before), after.foreign(before)}, nil
}
