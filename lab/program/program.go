// Package program is the skeleton of the laboratory's programs: their main function, their flags,
// and their working folder. tuner has its own.
//
// A program defines its flags in one function and does its work in another:
//
//	func main() { program.Main("gate", program.With(define, run)) }
//
//	func define(f *program.Flags, o *options) { … }
//
//	func run(ctx context.Context, o options, out, messages io.Writer) error { … }
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

// Run is a program's work. It gets its arguments, stdout, and stderr for messages.
type Run func(ctx context.Context, args []string, out, messages io.Writer) error

// Main runs a program with its arguments. If run returns an error, Main prints it on stderr after
// the program's name, and ends the process with exit code 1.
//
// The context ends on SIGINT and SIGTERM, so that run can clean up. run works in the root of the
// repository if the program was started anywhere in it: paths are relative to the root.
func Main(name string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if root, err := Root(); err == nil {
		_ = os.Chdir(root) // run fails by itself if it does not find its files
	}
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) { // the flag package has printed the help
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// With returns a program that reads its options from its arguments and works with them.
func With[O any](define func(*Flags, *O), run func(ctx context.Context, o O, out, messages io.Writer) error) Run {
	return func(ctx context.Context, args []string, out, messages io.Writer) error {
		o, err := Parse(define, args, messages)
		if err != nil {
			return err
		}
		return run(ctx, o, out, messages)
	}
}

// Or returns a program with a second part: it does other if its first argument is role. It starts
// itself in that role.
func Or(role string, other, run Run) Run {
	return func(ctx context.Context, args []string, out, messages io.Writer) error {
		if len(args) > 0 && args[0] == role {
			return other(ctx, args[1:], out, messages)
		}
		return run(ctx, args, out, messages)
	}
}

// InFolder calls do with a new folder in parent, which is removed afterwards. Without a parent the
// folder is in the system's folder for temporary files.
func InFolder(parent, name string, do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(parent, name+"-*")
	if err != nil {
		return fmt.Errorf("cannot make a folder to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return do(dir)
}

// Root returns the root of the repository: the folder at or above the working folder that has
// lab/go.mod.
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
