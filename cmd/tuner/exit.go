package main

import (
	"errors"
	"fmt"
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
