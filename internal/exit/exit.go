// Package exit has the program's exit codes, and errors that carry one.
//
// Any package can report in such an error that the user can fix something (Usagef). It can also
// report that nothing satisfies the constraints, or that a signal ended the work. The command line
// gets the program's exit code from CodeOf. The package ends no process and prints nothing.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The exit codes of every verb. Codes and Help explain them.
const (
	OK           = 0
	Failure      = 1
	Usage        = 2 // wrong usage, or an invalid file
	GateFailed   = 3
	Inconclusive = 4  // a gate or a replay without a verdict, or a fleet without all results
	Infeasible   = 5  // nothing satisfies the constraints
	Rejected     = 42 // a fleet's pod cannot run its campaign
	Interrupted  = 130
)

// Code is an exit code with its meaning.
type Code struct {
	Number  int
	Meaning string
}

// Codes lists the exit codes.
func Codes() []Code {
	return []Code{
		{OK, "Done."},
		{Failure, "Something failed: a measurement, a server, a check, or requests of `tuner perf`."},
		{Usage, "The command line or a file is wrong, or a file cannot be written. The message says what to change."},
		{GateFailed, "A gate failed: the candidate is worse than the margin or a limit allows."},
		{Inconclusive, "There is no verdict yet. The budget of a gate ended before it was clear, or the machines differ. Or a plan's replay has none. Or campaigns of a fleet have no result yet."},
		{Infeasible, "Nothing satisfies the constraints, and the results name the nearest configuration. Or no plan, no level of `tuner perf` or no type of machine of a fleet keeps the limit."},
		{Rejected, "Only in the pods of a fleet: the campaign cannot work on this machine, so the pod is not tried again."},
		{Interrupted, "Interrupted. What was measured is kept, and the same command resumes."},
	}
}

// Help explains the exit codes in few words.
const Help = `Exit codes:
  0 ok · 1 failure · 2 usage or invalid file · 3 gate failed
  4 no verdict yet (gate, replay, fleet) · 5 nothing satisfies the constraints
  42 a fleet's pod cannot run its campaign
  130 interrupted (with a usable partial result)`

// Error is an error that sets the exit code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitCode implements Coded.
func (e *Error) ExitCode() int { return e.Code }

// Coded is an error of a package's own type that sets the exit code.
type Coded interface {
	error
	ExitCode() int
}

// With gives err an exit code. nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{code, err}
}

// Usagef makes an error that the user can fix.
func Usagef(format string, args ...any) error {
	return &Error{Usage, fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code of an error.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	var e Coded
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return Failure
}

// IsUnmet reports whether an error is nil, or says only that a model's limits are not met.
func IsUnmet(err error) bool { return err == nil || CodeOf(err) == Infeasible }

// Several collects the errors of several models, one after the other. The others still run if the
// limits of one are not met. Any other error ends them.
type Several struct{ unmet error }

// Add adds a model's error. It returns an error if the others must not run: that of this model,
// which gives the exit code, followed by the unmet limits of those before.
func (s *Several) Add(err error) error {
	if !IsUnmet(err) {
		return Leading(err, s.unmet)
	}
	s.unmet = errors.Join(s.unmet, err)
	return nil
}

// Unmet returns the limits that were not met, and nil if all were.
func (s *Several) Unmet() error { return s.unmet }

// Leading joins errors, and keeps the exit code of the first. errors.Join alone would have the code
// of any error that carries one.
func Leading(err, others error) error {
	return With(CodeOf(err), errors.Join(err, others))
}

// OrInterrupted gives an error the exit code of an interruption if ctx has ended.
func OrInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return With(Interrupted, fmt.Errorf("interrupted: %w", err))
	}
	return err
}

// OfFiles gives the exit code of wrong usage to errors of files and folders that cannot be written.
// The user can name others or make space.
func OfFiles(err error) error {
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOTDIR} {
		if errors.Is(err, cause) {
			return With(Usage, err)
		}
	}
	return err
}
