package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tuner/internal/hostinfo"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/measure/stats"
)

// figures are one measurement of an answer.
type figures struct {
	throughput float64 // infer/s
	p99        float64 // s
	foreign    float64 // share of the machine's CPU time that neither the server nor the client used, 0..1
}

// start launches a server on a repository.
type start func(ctx context.Context, repository string) (*peers.Server, error)

func (b *bench) onTuner(ctx context.Context, repository string) (*peers.Server, error) {
	return b.peers.StartTuner(ctx, b.tuner, repository)
}

func (b *bench) onTriton(ctx context.Context, repository string) (*peers.Server, error) {
	return b.peers.StartTriton(ctx, repository)
}

// pairs measures two answers in turn, each on its own server: A B, B A, A B and so on. So a drift
// of the machine affects both equally.
func (b *bench) pairs(ctx context.Context, serve start, one, other answer) (ones, others []figures, err error) {
	for i := range b.options.pairs {
		order := []*answer{&one, &other}
		if i%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		for _, a := range order {
			f, err := b.measure(ctx, serve, *a)
			if err != nil {
				return nil, nil, fmt.Errorf("pair %d, %s: %w", i+1, a.by, err)
			}
			if a == &one {
				ones = append(ones, f)
			} else {
				others = append(others, f)
			}
		}
		fmt.Fprintf(b.messages, "pair %d of %d: %.0f and %.0f infer/s\n", i+1, b.options.pairs, ones[i].throughput, others[i].throughput)
	}
	return ones, others, nil
}

// measure measures an answer on a fresh server.
func (b *bench) measure(ctx context.Context, serve start, a answer) (f figures, err error) {
	server, err := serve(ctx, a.repository)
	if err != nil {
		return figures{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client := sidebyside.Analyzer{Name: "tuner perf", Command: []string{b.tuner, "perf"}, Work: b.output}
	d := sidebyside.Demand{
		Model: a.model.Name, Protocol: sidebyside.GRPC, Address: server.GRPC, Window: b.window,
		Args: []string{"--concurrency-range", strconv.Itoa(a.concurrency)},
	}
	for _, shape := range a.model.Shapes {
		d.Args = append(d.Args, "--shape", shape)
	}
	return sidebyside.Retry(ctx, b.messages, a.by, func() (figures, error) {
		before, err := readClocks(server.PID)
		if err != nil {
			return figures{}, err
		}
		f, err := sidebyside.Measure(ctx, client, d, readReport)
		if err != nil {
			return figures{}, err
		}
		after, err := readClocks(server.PID)
		f.foreign = sidebyside.Foreign(after.machine.Since(before.machine), after.ours-before.ours, after.at.Sub(before.at))
		return f, err
	})
}

// clocks are the CPU times of a measurement: the machine's, and those of the server, the client and
// this process.
type clocks struct {
	machine hostinfo.CPUSnapshot
	ours    time.Duration
	at      time.Time
}

func readClocks(server int) (clocks, error) {
	machine, errMachine := hostinfo.CPUTimes()
	served, errServed := hostinfo.Process(server)
	own, errOwn := hostinfo.OwnCPU()
	clients, errClients := hostinfo.ChildrenCPU()
	return clocks{machine, served.CPU + own + clients, time.Now()}, errors.Join(errMachine, errServed, errOwn, errClients)
}

func readReport(in io.Reader) (figures, error) {
	const throughput, p99 = "Inferences/Second", "p99 latency"
	report, err := sidebyside.Columns(in, throughput, p99)
	return figures{throughput: report[throughput], p99: report[p99] / 1e6}, err
}

// times prints the durations of a row: of the programs, and the campaign's own part of them.
func (a answer) times() string {
	switch wall, campaign := a.wall.Round(time.Second), a.campaign.Round(time.Second); {
	case wall == 0:
		return fmt.Sprintf("campaign %v", campaign)
	case campaign == 0:
		return fmt.Sprintf("%v", wall)
	default:
		return fmt.Sprintf("%v (campaign %v)", wall, campaign)
	}
}

// row returns a line of the table: an answer, and its comparison in pairs with the other.
func row(a answer, own, other []figures, goal string) string {
	ratio := stats.PairedRatio(throughputs(own), throughputs(other))
	return fmt.Sprintf("| %s | %s at concurrency %d | %s, %d | %.0f, %.1f ms | %.0f, %.1f ms | **%.2f** (%.2f–%.2f) | %s |\n", a.by, a.text, a.concurrency,
		a.times(), a.measured, a.throughput, 1e3*a.p99, stats.Median(throughputs(own)),
		1e3*stats.Median(p99s(own)), ratio.Value, ratio.Lo, ratio.Hi, goal)
}

func throughputs(list []figures) []float64 {
	return column(list, func(f figures) float64 { return f.throughput })
}
func p99s(list []figures) []float64 { return column(list, func(f figures) float64 { return f.p99 }) }
func foreigns(list []figures) []float64 {
	return column(list, func(f figures) float64 { return f.foreign })
}

func column(list []figures, of func(figures) float64) []float64 {
	values := make([]float64, len(list))
	for i, f := range list {
		values[i] = of(f)
	}
	return values
}

// table prints rows below a title.
func table(out io.Writer, title, other string, rows []string) error {
	return sidebyside.Print(out, fmt.Sprintf("\n### %s\n\n| by | answer | time as a program, measured | infer/s and p99, its own report | in pairs, medians | throughput of %s's | goal |\n|---|---|---|---|---|---|---|\n%s",
		title, other, strings.Join(rows, "")))
}
