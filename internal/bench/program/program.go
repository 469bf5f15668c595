// Package program is the main function of the project's own benchmarks and checks: tuner has its own, in cmd/tuner.
package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a program with its arguments, and ends the process with exit code 1 if that returns an error, which then stands on
// stderr behind the name. out is stdout, messages is stderr; the context ends on SIGINT and SIGTERM, so that run can clean up.
func Main(name string, run func(ctx context.Context, args []string, out, messages io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
