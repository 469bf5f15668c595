// Perf measures `tuner perf` beside the real perf_analyzer: whether both report what really happened (closed, open), what
// they cost and how fast they are (speed), how well tuner keeps a schedule (pacing), and what many connections and requests
// do to it (scale).
//
// The server is package lawserver, in a process of its own: its service times follow a known law, and its record of every
// request is the truth. Both programs get the same command line. What is compared is measured in turn; beside the ratios
// stands the CPU time that others took from the machine. It judges nothing: the goals stand beside the figures. The real
// perf_analyzer comes from scripts/peers.sh.
//
// Run it from the root of the repository:
//
//	go run ./internal/bench/perf -what speed -rounds 10 -window 600ms
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tuner/hostinfo"
	"tuner/internal/bench/program"
	"tuner/internal/lawserver"
	"tuner/internal/peers"
)

// options are the flags.
type options struct {
	what                  string
	rounds                int
	window                time.Duration
	tunerPath, recordPath string
}

// all stands for every part.
const all = "all"

// parts are the values of -what, in the order in which all runs them.
func parts() []string { return []string{"closed", "open", "speed", "pacing", "scale"} }

// bench is what every part needs.
type bench struct {
	options
	tuner, analyzer side
	work            string // a folder of its own
	out             io.Writer
	record          io.Writer // takes every single figure in the format of Go's benchmarks, for benchstat
	messages        io.Writer
}

// asServer is the first argument that makes this program the server.
const asServer = "lawserver"

func main() {
	program.Main("perf", func(ctx context.Context, args []string, out, messages io.Writer) error {
		if len(args) > 0 && args[0] == asServer {
			return lawserver.Run(ctx, args[1:], out, messages)
		}
		return run(ctx, args, out, messages)
	})
}

func run(ctx context.Context, args []string, out, messages io.Writer) (err error) {
	o, err := parse(args, messages)
	if err != nil {
		return err
	}
	installed, err := peers.Find()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench-perf-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	record := io.Discard
	if o.recordPath != "" {
		file, err := os.Create(o.recordPath)
		if err != nil {
			return fmt.Errorf("cannot create the record: %w", err)
		}
		defer file.Close() // every writing is checked
		record = file
	}
	b := &bench{
		options: o, work: work, out: out, record: record, messages: messages,
		tuner: side{"tuner perf", []string{o.tunerPath, "perf"}}, analyzer: side{"perf_analyzer", []string{installed.PerfAnalyzer}},
	}
	h := hostinfo.Read(ctx)
	fmt.Fprintf(out, "Machine: %s, %d of %d hardware threads, %.0f GiB, %s, kernel %s.\n",
		h.CPU.Model, h.UsableCores(), h.CPU.Logical, float64(h.Memory.Usable())/(1<<30), h.Platform, h.Kernel)
	var failed error
	for _, name := range parts() {
		if o.what != all && o.what != name || ctx.Err() != nil {
			continue
		}
		if err := b.run(ctx, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	return failed
}

func (b *bench) run(ctx context.Context, name string) error {
	begin := time.Now()
	var err error
	switch name {
	case "closed":
		err = b.closed(ctx)
	case "open":
		err = b.open(ctx)
	case "speed":
		err = b.speed(ctx)
	case "pacing":
		err = b.pacing(ctx)
	case "scale":
		err = b.scale(ctx)
	}
	fmt.Fprintf(b.messages, "%s took %v\n", name, time.Since(begin).Round(time.Second))
	return err
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	allowed := append(parts(), all)
	flags := flag.NewFlagSet("perf", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&o.what, "what", all, "which part: "+strings.Join(allowed, ", "))
	flags.IntVar(&o.rounds, "rounds", 10, "rounds of speed and pacing")
	flags.DurationVar(&o.window, "window", 0, "length of a window, of which each measurement has three; 0: what suits the part")
	flags.StringVar(&o.tunerPath, "tuner", "bin/tuner", "the tuner program")
	flags.StringVar(&o.recordPath, "record", "", "file for every single figure, in the format that benchstat reads")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case !slices.Contains(allowed, o.what):
		return options{}, fmt.Errorf("-what %q: allowed are %s", o.what, strings.Join(allowed, ", "))
	case o.rounds < 1 || o.window < 0:
		return options{}, fmt.Errorf("-rounds %d -window %v: at least 1 round, and no window below zero", o.rounds, o.window)
	}
	absolute, err := filepath.Abs(o.tunerPath)
	if err == nil {
		_, err = os.Stat(absolute)
	}
	if err != nil {
		return options{}, fmt.Errorf("cannot find %q: %w", o.tunerPath, err)
	}
	o.tunerPath = absolute
	return o, nil
}

// orWindow returns the window that was asked for, else a part's own.
func (o options) orWindow(own time.Duration) time.Duration {
	if o.window == 0 {
		return own
	}
	return o.window
}
