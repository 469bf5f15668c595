// Package cli is the command line of tuner. Each verb has a file of its own name: flags, validation, and the call of the
// packages that do the work. It decides nothing about models, measurements or results.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tuner/internal/exit"
	"tuner/ort"
)

// Main runs a command line, without the program's name, and returns the exit code. A second signal ends the process at once.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ort.DisableTelemetry()
	ctx, stop := withSignals(context.Background(), endings(args, signal.Ignored(syscall.SIGHUP)))
	defer stop()
	return run(ctx, console{in, out, errs}, args)
}

// console is what a verb reads from and writes to: out carries data, err carries messages for people.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// echo is how long after the first signal another one of the same kind is its echo: a wrapper such as timeout(1) sends a
// signal to its child, and then again to the child's whole group.
const echo = 200 * time.Millisecond

// endings are the signals that end the verb of a command line. A closed terminal (SIGHUP) ends it as Ctrl-C does, unless that
// signal is ignored, as under nohup. A server goes on, and reads its certificates again.
func endings(args []string, isIgnored bool) []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if len(args) > 0 && args[0] == "serve" || isIgnored {
		return all
	}
	return append(all, syscall.SIGHUP)
}

// withSignals returns a context that ends on the first signal, so that the verb can finish cleanly. The second signal ends the
// process at once: child engines notice the closed pipe and end too.
func withSignals(parent context.Context, endings []os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endings...)
	go obey(signals, cancel, func() { os.Exit(exit.Interrupted) })
	return ctx, func() { signal.Stop(signals); cancel() }
}

// obey calls finish on the first signal, and end on the second one that is no echo of it.
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
