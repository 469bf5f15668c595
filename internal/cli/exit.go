package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"tuner/profile"
	"tuner/report"
)

// Exit codes: the same for every verb, and repeated in its help.
const (
	exitOK           = 0
	exitFailure      = 1
	exitUsage        = 2 // usage, or an invalid file
	exitGateFailed   = 3
	exitInconclusive = 4
	exitInfeasible   = 5 // nothing satisfies the constraints
	exitInterrupted  = 130
)

const exitCodesHelp = `Exit codes:
  0 ok · 1 failure · 2 usage or invalid file · 3 gate failed · 4 gate inconclusive
  5 nothing satisfies the constraints · 130 interrupted (with a usable partial result)`

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageErrorf makes an error that ends the program with exit code 2.
func usageErrorf(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// withExit gives err an exit code; nil stays nil.
func withExit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// exitCode maps what a verb returned to the program's exit code.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFailure
}

// leading is an error, whose exit code it has, with others that came with it: errors.Join by itself has the code of the first that decides
// one, which a plain failure does not.
func leading(err, others error) error {
	return withExit(exitCode(err), errors.Join(err, others))
}

// inputError gives exit code 2 to what the user can mend: bad input, and folders that cannot be written.
func inputError(err error) error {
	var subject *profile.InputError
	var output *report.InputError
	if errors.As(err, &subject) || errors.As(err, &output) {
		return withExit(exitUsage, err)
	}
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR} {
		if errors.Is(err, cause) {
			return withExit(exitUsage, err)
		}
	}
	return err
}

// usageArgs makes wrong arguments end the program with exit code 2.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageErrorf("%v\nSee '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// fileByFlag refuses arguments, and says how a verb's file is given.
func fileByFlag(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: the file is given as -f %s", args[0], args[0])
	}
	return nil
}
