// Package program is the main function of the laboratory's programs. tuner has its own.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main runs a program with its arguments. If run returns an error, Main prints it on stderr behind the program's name,
// and ends the process with exit code 1.
//
// run gets stdout, and stderr for messages. Its context ends on SIGINT and SIGTERM, so that it can clean up. It works in
// the root of the repository if the program was started anywhere in it: paths are relative to the root.
func Main(name string, run func(ctx context.Context, args []string, out, messages io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if root, err := Root(); err == nil {
		_ = os.Chdir(root) // run fails by itself where it does not find its files
	}
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) { // the flag package has printed the help
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse reads the arguments of a program that takes flags alone. It prints help and mistakes to messages.
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

// Root returns the root of the repository: the folder at or above the working folder that has lab/go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "lab", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find the repository: no lab/go.mod at or above the working folder")
		}
		dir = parent
	}
}
