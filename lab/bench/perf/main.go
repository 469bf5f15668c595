// Perf measures `tuner perf` beside the real perf_analyzer. Its parts:
//
//   - closed, open: do both report the truth?
//   - speed: how fast are they, and what do they cost?
//   - pacing: how well does tuner keep a schedule?
//   - replay: does it show of a trace in bursts what an independent client sees?
//   - scale: what do many connections and requests do to tuner?
//
// The server is package testserver, in its own process. Its service times follow a known law, and
// its record of every request is the truth. Both programs get the same command line and are
// measured in turn. The ratios stand beside the CPU time that others took from the machine. The
// program judges nothing: the goals stand beside the figures. The real perf_analyzer comes from
// lab/scripts/peers.sh.
//
//	go -C lab run ./bench/perf -what speed -rounds 10 -window 600ms
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"tuner/internal/testserver"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/peers"
	"tuner/lab/program"
)

// options are the flags.
type options struct {
	what                  string
	rounds                int
	window                time.Duration
	tunerPath, recordPath string
}

// parts returns the values of -what.
func parts() sidebyside.Parts[*bench] {
	return sidebyside.Parts[*bench]{
		{Name: "closed", Run: (*bench).closed}, {Name: "open", Run: (*bench).open}, {Name: "speed", Run: (*bench).speed},
		{Name: "pacing", Run: (*bench).pacing}, {Name: "replay", Run: (*bench).replay}, {Name: "scale", Run: (*bench).scale},
	}
}

// bench holds the common inputs of all parts.
type bench struct {
	options
	tuner, analyzer sidebyside.Analyzer
	work            string // its own folder
	out             io.Writer
	record          io.Writer // of every single figure
	messages        io.Writer
}

// asServer is the first argument that makes this program the server.
const asServer = "testserver"

func main() {
	program.Main("perf", program.Or(asServer, testserver.Run, program.With(define, run)))
}

func define(f *program.Flags, o *options) {
	parts().Define(f, &o.what)
	f.IntVar(&o.rounds, "rounds", 10, "rounds of speed and pacing")
	f.DurationVar(&o.window, "window", 0, "length of a window, of which each measurement has three; 0: what suits the part")
	f.Tuner(&o.tunerPath)
	f.StringVar(&o.recordPath, "record", "", "file for every single figure, in the format that benchstat reads")
	f.Check(func() error {
		if o.rounds < 1 || o.window < 0 {
			return fmt.Errorf("-rounds %d -window %v: at least 1 round, and no window below zero", o.rounds, o.window)
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, messages io.Writer) error {
	return program.InFolder("", "bench-perf", func(work string) error {
		s := sidebyside.Setting{What: o.what, Record: o.recordPath, Out: out, Messages: messages}
		return parts().RunBeside(ctx, s, func(installed *peers.Peers, record io.Writer) *bench {
			return &bench{
				options: o, work: work, out: out, record: record, messages: messages,
				tuner:    sidebyside.Analyzer{Name: "tuner perf", Command: []string{o.tunerPath, "perf"}, Work: work},
				analyzer: sidebyside.Analyzer{Name: "perf_analyzer", Command: []string{installed.PerfAnalyzer}, Work: work},
			}
		})
	})
}

// orWindow returns the requested window, else a part's own.
func (o options) orWindow(own time.Duration) time.Duration { return cmp.Or(o.window, own) }
