// Package cli is the command line of tuner. Each verb has a file with its name: flags, validation,
// and the call of the packages that do the work. It decides nothing about models, measurements or
// results.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tuner/internal/exit"
	"tuner/internal/live/stage"
	"tuner/internal/telemetry"
)

// Main runs a command line, without the program's name, and returns the exit code. A second signal
// ends the process at once.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	telemetry.Disable()
	con := console{in: in, out: out, err: errs, stage: &stage.Stage{}}
	ctx, stop := withSignals(context.Background(), endings(args, signal.Ignored(syscall.SIGHUP)), con.stage.Leave)
	defer stop()
	defer con.stage.Close()
	return run(ctx, con, args)
}

// console has a verb's input and outputs. out carries data, err carries messages for people.
type console struct {
	in       io.Reader
	out, err io.Writer
	stage    *stage.Stage // nil in tests
}

// echo is the time after the first signal in which another one of the same kind is ignored. A
// wrapper such as timeout(1) sends a signal to its child, and again to the child's group.
const echo = 200 * time.Millisecond

// endings returns the signals that end the verb of a command line. A closed terminal (SIGHUP) ends
// it like Ctrl-C, unless that signal is ignored, as under nohup. A server keeps running, and reads
// its certificates again.
func endings(args []string, isIgnored bool) []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(args) > 0 && args[0] == "serve" || isIgnored {
		return all
	}
	return append(all, syscall.SIGHUP)
}

// withSignals returns a context that ends on the first signal, so that the verb can finish cleanly.
// The second signal calls last and ends the process at once. Child engines notice the closed pipe
// and end too.
func withSignals(parent context.Context, endings []os.Signal, last func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endings...)
	go obey(signals, cancel, func() { last(); os.Exit(exit.Interrupted) })
	return ctx, func() { signal.Stop(signals); cancel() }
}

// obey calls finish on the first signal. It calls end on the second one, except for an echo of the
// first.
func obey(signals <-chan os.Signal, finish, end func()) {
	first, at := <-signals, time.Now()
	finish()
	for second := range signals {
		if second != first || time.Since(at) >= echo {
			end()
			return
		}
	}
}
