// Package program is the main function of the project's own benchmarks and checks, and how they read their flags: tuner has its own,
// in internal/cli.
package program

import (
	"context"
	"errors"
	"flag"
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
	if err != nil && !errors.Is(err, flag.ErrHelp) { // help is what was asked for
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse reads the arguments of a program that takes flags alone. The help that -h asks for, and what is wrong with a flag, goes to
// messages, too.
func Parse(flags *flag.FlagSet, args []string, messages io.Writer) error {
	flags.SetOutput(messages)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return nil
}
