//go:build !noengine

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/frontends"
	"tuner/engine/onnxruntime"
	"tuner/engine/rest"
	"tuner/ort"
	"tuner/ortlib"
)

// protocolVersion is the Triton release whose protocol the server speaks.
const protocolVersion = "2.51.0"

// errExitTimeout ends a server that could not end in time.
//
//lint:ignore ST1005 tritonserver's wording
var errExitTimeout = errors.New("Exit timeout expired. Exiting immediately.")

const serveLong = `Serve the models of a Triton model repository over HTTP, gRPC and metrics, with ONNX Runtime.

The options are tritonserver's, with its names and defaults; those that mean nothing here are accepted with a warning.
Port 0 is any free port. The first SIGINT or SIGTERM ends the server when its requests are answered, the second at once.`

// newServe is the verb that serves models.
func newServe(con console) *cobra.Command {
	o := &serveOptions{}
	cmd := verb(&cobra.Command{
		Use:     "serve --model-repository DIR",
		Short:   "Serve a model repository with the bundled engine (tritonserver's options)",
		Long:    serveLong,
		Example: "  tuner serve --model-repository out/minilm/repository --http-port 8000",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf("Unexpected argument: %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("metrics-address") {
				o.metrics.Address = o.http.Address
			}
			return serve(cmd.Context(), con, o, cmd.Flags())
		},
	})
	o.flags(cmd.Flags())
	for _, name := range refusedFlags() {
		cmd.Flags().String(name, "", "not supported")
		_ = cmd.Flags().MarkHidden(name) // fails only for a name that is not defined
	}
	return cmd
}

func serve(ctx context.Context, con console, o *serveOptions, flags *pflag.FlagSet) error {
	if o.parentFD > 0 {
		go endWithParent(os.NewFile(uintptr(o.parentFD), "parent"))
	}
	if err := o.validate(); err != nil {
		return err
	}
	log := o.logger(con)
	if err := reviewFlags(flags, log); err != nil {
		return err
	}
	batch, err := o.defaultMaxBatch(log)
	if err != nil {
		return err
	}
	build, err := ortlib.Resolve(o.ortLibrary)
	if err != nil {
		return withExit(exitUsage, err)
	}
	runtime, err := ort.Open(build.Library)
	if err != nil {
		return err
	}
	server, err := engine.Open(ctx, engine.Options{
		ID: o.id, Version: protocolVersion, Repositories: o.repositories,
		Explicit: o.controlMode == "explicit", LoadModels: o.loadModels,
		StrictReadiness: o.strictReadiness, ExitOnError: o.exitOnError, LoadThreads: o.loadThreads,
		DisableAutoComplete: o.disableAutoComplete || o.strictModelConfig, DefaultMaxBatchSize: batch,
		Backend: onnxruntime.New(runtime), Log: log,
	})
	if err != nil {
		return errors.Join(err, runtime.Close())
	}
	if err := listen(ctx, con, o, server, runtime, log); err != nil {
		return err // at once: what is still running may not end in time
	}
	return runtime.Close()
}

// listen serves until ctx ends, and drains within the exit timeout.
func listen(ctx context.Context, con console, o *serveOptions, server *engine.Server, runtime *ort.Runtime, log *slog.Logger) error {
	f, err := frontends.Open(server, frontends.Options{
		HTTP: o.http, GRPC: o.grpc, Metrics: o.metrics, REST: rest.Options{MaxInput: int(o.httpMaxInput), Log: log}, Log: log,
	})
	if err != nil {
		server.Close()
		return withExit(exitUsage, err) // a port in use, an address that is none
	}
	if err := printModels(con.err, server); err != nil {
		return err
	}
	at := f.Addresses()
	if err := announceServer(o.announceFD, api.Announcement{
		PID: os.Getpid(), HTTP: at.HTTP, GRPC: at.GRPC, Metrics: at.Metrics,
		ORTVersion: runtime.Version(), ORTLibrary: runtime.Library(),
	}); err != nil {
		return err
	}
	failed := f.Serve(ctx, o.exitTime())
	if errors.Is(failed, context.DeadlineExceeded) {
		return errExitTimeout
	}
	closed := make(chan struct{})
	go func() { defer close(closed); server.Close() }()
	select {
	case <-closed:
		return failed
	case <-time.After(max(o.exitTime(), time.Second)):
		return errExitTimeout
	}
}

// reviewFlags warns of options that mean nothing here, and refuses those that promise protection.
func reviewFlags(flags *pflag.FlagSet, log *slog.Logger) error {
	for _, name := range ignoredFlags() {
		if flags.Changed(name) {
			log.Warn("option ignored: it means nothing to this engine", "option", "--"+name)
		}
	}
	for _, name := range refusedFlags() {
		if flags.Changed(name) {
			return usageErrorf("--%s is not supported by this engine: put a proxy in front of it, or serve with a real Triton", name)
		}
	}
	return nil
}

// announceServer writes where the server is reached to a file descriptor, and closes it; 0: nobody listens.
func announceServer(fd int, a api.Announcement) error {
	if fd == 0 {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("cannot announce the server: %w", err)
	}
	out := os.NewFile(uintptr(fd), "announce")
	if out == nil {
		return usageErrorf("--announce-fd=%d is not a file descriptor", fd)
	}
	_, err = out.Write(append(text, '\n'))
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("cannot announce the server: %w", err)
	}
	return nil
}

// endWithParent ends the process when the parent's end of the pipe is closed: that happens even if the parent was killed.
// It waits in a read that nothing else can end, so it has no owner.
func endWithParent(pipe *os.File) {
	_, _ = io.Copy(io.Discard, pipe) // an error means the same as the end
	os.Exit(exitFailure)
}

// printModels prints the table of models and their states.
func printModels(out io.Writer, server *engine.Server) error {
	entries, err := server.Index(false)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, " Model\t Version\t Status")
	for _, e := range entries {
		status := e.State
		if e.Reason != "" {
			status += ": " + e.Reason
		}
		fmt.Fprintf(w, " %s\t %s\t %s\n", e.Name, e.Version, status)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print the table of models: %w", err)
	}
	return nil
}
