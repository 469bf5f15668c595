package flags

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"tuner/engine/frontends"
	"tuner/engine/logging"
)

// logOptions are the options of the log.
type logOptions struct {
	verbose                int
	info, warning, failure bool
	format                 string
	file, access           string // "": standard error; none
}

func (o *logOptions) flags(flags *pflag.FlagSet) {
	flags.Var(verbosity{&o.verbose}, "log-verbose", "0: off; 1 and more: debug messages, and a line for each inference")
	boolFlag(flags, &o.info, "log-info", true, "print messages of level info")
	boolFlag(flags, &o.warning, "log-warning", true, "print warnings")
	boolFlag(flags, &o.failure, "log-error", true, "print errors")
	flags.StringVar(&o.format, "log-format", string(logging.Default), "default or ISO8601: Triton's lines; json: JSON lines")
	flags.StringVar(&o.file, "log-file", "", "write messages to this file, not to standard error; SIGHUP reopens it")
	flags.StringVar(&o.access, "access-log", "", "write a line of JSON for each request over HTTP and gRPC to this file; SIGHUP reopens it")
}

func (o *logOptions) problems() []string {
	if logging.Format(o.format).Known() {
		return nil
	}
	return []string{fmt.Sprintf("--log-format=%q is not a form of the log: use one of %q", o.format, logging.Formats())}
}

// Log opens the log. console is for people.
func (o *Options) Log(console io.Writer) (*logging.Log, error) {
	return logging.New(console, o.log.file, logging.Settings{
		Info: o.log.info, Warning: o.log.warning, Error: o.log.failure, Verbose: uint32(o.log.verbose), Format: logging.Format(o.log.format),
	})
}

// Requests opens the log of requests, and gives it and the log's settings to the front ends.
func (o *Options) Requests(l *logging.Log, f *frontends.Options) (*logging.Requests, error) {
	r, err := logging.NewRequests(l, o.log.access)
	f.REST.Settings, f.REST.Requests = l, r
	f.RPC.Settings, f.RPC.Requests = l, r
	return r, err
}
