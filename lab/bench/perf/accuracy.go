package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tuner/internal/testserver"
	"tuner/lab/bench/sidebyside"
)

// scenario is a server and a load on it.
type scenario struct {
	name   string
	server []string // testserver's arguments
	args   []string // the programs' arguments
}

// closedScenarios returns the scenarios of the closed loop.
func closedScenarios() []scenario {
	eight := []string{"--concurrency-range", "8"}
	return []scenario{
		{"deterministic 5 ms", []string{"-law", "deterministic:5ms"}, eight},
		{"exponential, mean 20 ms, one server", []string{"-law", "exponential:20ms", "-servers", "1"}, eight},
		{"bimodal, 2 % of 40 ms among 2 ms", []string{"-law", "bimodal:2ms:0.02:20"}, eight},
		{"deterministic 5 ms, stall of 500 ms every 5 s", []string{"-law", "deterministic:5ms", "-stall-every", "5s", "-stall-for", "500ms"}, eight},
	}
}

// openScenarios returns the scenarios of the open loop. All have one server, for which Lindley's
// recursion holds.
func openScenarios() []scenario {
	poisson := func(rate string) []string {
		return []string{"--request-rate-range", rate, "--request-distribution", "poisson"}
	}
	exponential := []string{"-law", "exponential:20ms", "-servers", "1"}
	return []scenario{
		{"exponential, mean 20 ms; Poisson, 20/s", exponential, poisson("20")},
		{"exponential, mean 20 ms; Poisson, 35/s", exponential, poisson("35")},
		{"deterministic 5 ms, stall of 500 ms every 5 s; Poisson, 100/s",
			[]string{"-law", "deterministic:5ms", "-servers", "1", "-stall-every", "5s", "-stall-for", "500ms"}, poisson("100")},
	}
}

// way is a program with its own arguments.
type way struct {
	name string
	side sidebyside.Analyzer
	args []string
}

// closed compares the reports on closed loops with the server's record.
func (b *bench) closed(ctx context.Context) error {
	title := "### Closed loop of 8: what the programs report, and by how much the server's record differs\n\n" +
		"| service times | program | requests/s | p50, ms | p95, ms | p99, ms | foreign CPU |\n|---|---|---|---|---|---|---|\n"
	ways := []way{{b.tuner.Name, b.tuner, nil}, {b.analyzer.Name, b.analyzer, nil}}
	return b.accuracy(ctx, title, closedScenarios(), ways, 7*time.Second, func(t told, entries []testserver.Entry) []figure {
		r := recorded(entries, t.From, t.To)
		return []figure{exact(t.Rate, r.rate, false), percentile(t.P50, r, 0.5), percentile(t.P95, r, 0.95), percentile(t.P99, r, 0.99)}
	})
}

// open compares the reports on open loops with Lindley's recursion.
func (b *bench) open(ctx context.Context) error {
	title := "### Open loop: what the programs report, and by how much Lindley's recursion on the recorded arrivals differs\n\n" +
		"| service times; arrivals | program | requests/s | mean wait, ms | p50, ms | p95, ms | p99, ms | foreign CPU |\n|---|---|---|---|---|---|---|---|\n"
	ways := []way{{b.tuner.Name, b.tuner, nil}, {b.analyzer.Name, b.analyzer, nil}, {b.analyzer.Name + " --async", b.analyzer, []string{"--async"}}}
	return b.accuracy(ctx, title, openScenarios(), ways, 8*time.Second, func(t told, entries []testserver.Entry) []figure {
		r := recursed(entries, t.From, t.To)
		return []figure{
			exact(t.Rate, r.rate, false), exact(t.Mean-r.service, r.mean-r.service, true),
			percentile(t.P50, r, 0.5), percentile(t.P95, r, 0.95), percentile(t.P99, r, 0.99),
		}
	})
}

// accuracy has each program measure each scenario on a newly started server. It prints their
// figures beside the truth.
func (b *bench) accuracy(ctx context.Context, title string, list []scenario, ways []way, window time.Duration,
	judge func(told, []testserver.Entry) []figure) error {
	var text strings.Builder
	text.WriteString("\n" + title)
	var failed error
	for _, s := range list {
		for _, w := range ways {
			o, err := quietest(ctx, b, w.name, func() (observation, error) { return b.observe(ctx, s, w, b.orWindow(window)) })
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s, %s: %w", s.name, w.name, err))
				continue
			}
			fmt.Fprintf(&text, "| %s | %s |", s.name, w.name)
			for _, f := range judge(o.told, o.entries) {
				text.WriteString(" " + f.String() + " |")
			}
			fmt.Fprintf(&text, " %.0f %% |\n", 100*o.others)
			fmt.Fprintf(b.messages, "%s, %s done\n", s.name, w.name)
		}
	}
	text.WriteString("\nReported (by how much more than the truth); **bold**: by more than 1 %, and by more than 0.1 ms where it is a time.\n")
	return errors.Join(failed, sidebyside.Print(b.out, text.String()))
}

// observation holds the report of a program and the server's record.
type observation struct {
	told
	entries []testserver.Entry
	others  float64 // share of the machine's CPU time that others took, 0..1
}

func (o observation) foreign() float64 { return o.others }

// observe runs a program on its own server.
func (b *bench) observe(ctx context.Context, s scenario, w way, window time.Duration) (o observation, err error) {
	server, err := startServer(ctx, s.server...)
	if err != nil {
		return observation{}, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	before, err := readMeter(ctx, server)
	if err != nil {
		return observation{}, err
	}
	if o.told, err = b.measureEdges(ctx, w.side, server.demand(sidebyside.HTTP, window, slices.Concat(w.args, s.args)...)); err != nil {
		return observation{}, err
	}
	after, err := readMeter(ctx, server)
	if err != nil {
		return observation{}, err
	}
	o.others = after.foreign(before)
	o.entries, err = testserver.Fetch(ctx, server.HTTP, 0, math.MaxInt64)
	return o, err
}

// String prints a cell of the table: the reported figure, and its deviation.
func (f figure) String() string {
	value, deviation := sidebyside.Digits(f.reported), fmt.Sprintf("%+.2f %%", 100*f.deviation()/f.mid)
	if f.isTime {
		value = fmt.Sprintf("%.3f", 1e3*f.reported)
		deviation += fmt.Sprintf(", %+.3f ms", 1e3*f.deviation())
	}
	cell := value + " (" + deviation + ")"
	if !f.isClose() {
		cell = "**" + cell + "**"
	}
	return cell
}
