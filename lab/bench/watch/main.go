// Watch measures what the live view costs the windows beside it. One engine is under one load. For a
// turn of half a second the view is drawn, and for the next one it is held still. Neighbouring turns make
// a pair, so that launches and slow drifts of the machine cancel out. Who draws is in the process of the
// load generator, as in a campaign.
//
// It needs a terminal of its own: scripts/cost.py has one.
//
//	make -C lab cost COSTS=windows
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tuner/internal/hostinfo"
	"tuner/internal/live"
	"tuner/lab/bench/sidebyside"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/runner"
	"tuner/runner/load"
	"tuner/runner/target"
)

// options are the flags.
type options struct {
	model       string
	tuner       string
	library     string
	concurrency int
	time        time.Duration // of all turns
	turn        time.Duration
}

func main() { program.Main("watch", program.With(define, run)) }

func define(f *program.Flags, o *options) {
	f.Path(&o.model, "model", "models/mlp.onnx", "model")
	f.Tuner(&o.tuner)
	f.Library(&o.library)
	f.IntVar(&o.concurrency, "concurrency", 8, "requests in flight")
	f.DurationVar(&o.time, "time", 270*time.Second, "time of all turns")
	f.DurationVar(&o.turn, "turn", 450*time.Millisecond, "length of a turn")
	f.Check(func() error {
		switch {
		case o.concurrency < 1 || o.turn <= 0:
			return errors.New("-concurrency and -turn must be above 0")
		case o.time < 4*o.turn:
			return errors.New("-time must have four turns at least")
		}
		return nil
	})
}

func run(ctx context.Context, o options, out, _ io.Writer) error {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot draw without a terminal: %w", err)
	}
	defer terminal.Close()
	return program.InFolder("", "bench-watch", func(dir string) error {
		job, err := sidebyside.Job(ctx, dir, o.model, o.library, fmt.Sprintf("load: {concurrency: %d}\n", o.concurrency))
		if err != nil {
			return err
		}
		screen := live.NewScreen(terminal, terminal, live.Look{HasColors: true})
		if err := screen.Show(frame(time.Now())); err != nil {
			return err
		}
		turns, err := measureTurns(ctx, o, job, &view{shown: screen})
		screen.Close()
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, report(o, turns))
		return err
	})
}

// warmTime is the longest warm-up.
const warmTime = 3 * time.Second

// measureTurns serves the job, and measures turns of one load.
func measureTurns(ctx context.Context, o options, job runner.Job, v *view) ([]turn, error) {
	defer v.draw() // so that the screen can be left
	engine, err := target.Bundled{Binary: o.tuner}.Launch(ctx, runner.Server{Repository: job.Repository, Library: job.Library})
	if err != nil {
		return nil, err
	}
	defer engine.Stop(context.WithoutCancel(ctx))
	client, err := runner.GRPC(engine.Address())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.LoadModel(ctx, job.Model, job.Config); err != nil {
		return nil, fmt.Errorf("cannot load the model: %w", err)
	}
	connections, err := runner.Over(runner.OverGRPC)(engine.Address(), job.Requests, job.AnswerSize)
	if err != nil {
		return nil, err
	}
	part := load.Part{
		Load: measure.Load{Concurrency: o.concurrency, BatchSize: 1}, WarmUp: warmTime, Patience: 20 * time.Second,
		Dial: func(ctx context.Context, _ int) (load.Conn, error) { return connections.Dial(ctx, o.concurrency) },
	}
	wanted := 2 * int(o.time/o.turn/2)
	var used []time.Duration // CPU time of this process at each edge
	result, err := load.Run(ctx, load.Options{Part: part, Windows: load.Windows{
		Length: func([]time.Duration) time.Duration { return o.turn },
		More:   func(windows [][]measure.Window) bool { return len(windows[0]) < wanted },
		Edge: func(_ context.Context, edge int) error {
			cpu, err := hostinfo.OwnCPU()
			used = append(used, cpu)
			if isDrawn(edge) {
				v.draw()
				v.measured(edge)
			} else {
				v.hold()
			}
			return err
		},
	}})
	if err != nil {
		return nil, err
	}
	var turns []turn
	for i, w := range result.Windows {
		turns = append(turns, turn{w, used[i+1] - used[i], isDrawn(i)})
	}
	return turns, nil
}

// isDrawn reports whether the view is drawn in a turn. Each pair has one turn of both kinds, and pairs
// alternate in their order.
func isDrawn(turn int) bool { return turn%4 == 1 || turn%4 == 2 }
