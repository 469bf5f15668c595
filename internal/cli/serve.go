//go:build !noengine

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/frontends"
	"tuner/engine/hostpolicy"
	"tuner/engine/metrics"
	"tuner/engine/onnxruntime"
	"tuner/engine/rest"
	"tuner/hostinfo"
	"tuner/ort"
	"tuner/ortlib"
	"tuner/provider"
)

// protocolVersion is the Triton release whose protocol the server speaks.
const protocolVersion = "2.51.0"

// errExitTimeout ends a server that could not end in time.
//
//lint:ignore ST1005 tritonserver's wording
var errExitTimeout = errors.New("Exit timeout expired. Exiting immediately.")

const serveLong = `Serve the models of a Triton model repository over HTTP, gRPC and metrics, with ONNX Runtime.

The options are tritonserver's, with its names and defaults, but for the addresses: this server listens on loopback unless
told otherwise. Options that only concern threads, pools and parts that do not exist here are accepted with a warning; those
that would change what is served are refused.
Port 0 is any free port. The first SIGINT or SIGTERM ends the server when its requests are answered, the second at once.
From the first on it is not ready; with --drain-delay it goes on for that long before it closes its ports. SIGHUP opens the
log file anew and reads the certificates of gRPC again.
An option that is wrong ends it with exit code 2, where tritonserver's is 1.`

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
			return serve(cmd.Context(), con, o)
		},
	})
	o.flags(cmd.Flags())
	return cmd
}

func serve(ctx context.Context, con console, o *serveOptions) error {
	if o.parentFD > 0 {
		go endWithParent(os.NewFile(uintptr(o.parentFD), "parent"))
	}
	if err := o.validate(); err != nil {
		return err
	}
	usable := hostinfo.UsableMemory()
	relaxCollector(usable)
	logs, err := newLogFile(o.logFile, con.err)
	if err != nil {
		return err
	}
	log := o.logger(logs)
	o.warnOfIgnored(log)
	listeners, err := o.frontends(log, usable)
	if err != nil {
		return err
	}
	certificates, err := o.rpc.certificates()
	if err != nil {
		return err
	}
	listeners.GRPC.TLS = certificates.config()
	defer onHangup(func() {
		logs.openAgain(log)
		log.Info("SIGHUP: the log file is open, and certificates are read again, if there are any")
		certificates.readAgain(log)
	})()
	models, err := o.engine(log, listeners.Figures.Summaries)
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
	models.Backend, models.GPUs = o.slowdown.of(onnxruntime.New(runtime)), usableGPUs(runtime)
	server, err := engine.New(models)
	if err != nil {
		return errors.Join(err, runtime.Close())
	}
	if err := listen(ctx, con, o, server, listeners, runtime); err != nil {
		return err // at once: what is still running may not end in time
	}
	if server.IsLoading() {
		return nil // ONNX Runtime is in use for a load that was given up: both end with the process
	}
	return runtime.Close()
}

// onHangup calls act at each SIGHUP, until stop is called. The signal does nothing else: a server outlives the terminal that it was
// started from.
func onHangup(act func()) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range signals {
			act()
		}
	}()
	return func() {
		signal.Stop(signals) // nothing is sent any more
		close(signals)
		<-ended
	}
}

// engine gathers the engine's options, without its backend.
func (o *serveOptions) engine(log *slog.Logger, summaries *metrics.Summaries) (engine.Options, error) {
	batch, err := o.defaultMaxBatch(log)
	if err != nil {
		return engine.Options{}, err
	}
	policies, err := hostpolicy.Parse(o.hostPolicies)
	if err != nil {
		return engine.Options{}, withExit(exitUsage, err)
	}
	return engine.Options{
		ID: o.id, Version: protocolVersion, Repositories: o.repositories,
		Explicit: o.explicit(), LoadModels: o.loadModels,
		StrictReadiness: o.strictReadiness, ExitOnError: o.exitOnError, LoadThreads: o.loadThreads,
		DisableAutoComplete: o.disableAutoComplete || o.strictModelConfig, DefaultMaxBatchSize: batch,
		HostPolicies: policies, Observe: observer(summaries), Log: log,
	}, nil
}

// frontends gathers the options of the front ends.
func (o *serveOptions) frontends(log *slog.Logger, usable int64) (frontends.Options, error) {
	figures, err := o.figures(log)
	if err != nil {
		return frontends.Options{}, err
	}
	rpc, err := o.rpc.options()
	if err != nil {
		return frontends.Options{}, err
	}
	restricted, err := parseRestrictions("http-restricted-api", o.httpRestricted, "")
	if err != nil {
		return frontends.Options{}, err
	}
	return frontends.Options{
		HTTP: o.http, GRPC: o.grpc, Metrics: o.metrics, Figures: figures, RPC: rpc, DrainDelay: o.drainDelay, Log: log,
		MaxMemory: clientMemory(usable),
		REST:      rest.Options{MaxInput: int(o.httpMaxInput), Restricted: restricted, Log: log},
	}, nil
}

// usableGPUs counts the GPUs that this build of ONNX Runtime can use.
func usableGPUs(runtime *ort.Runtime) int {
	if !slices.Contains(runtime.Providers(), provider.CUDA) {
		return 0
	}
	gpus, _ := hostinfo.ReadGPUs()
	return len(gpus)
}

// listen opens the ports, loads the models, and serves until ctx ends or something fails; then it drains, within the drain
// delay and the exit timeout. Probes are answered while models load: the server is live then, but not ready.
func listen(ctx context.Context, con console, o *serveOptions, server *engine.Server, listeners frontends.Options, runtime *ort.Runtime) error {
	f, err := frontends.Open(server, listeners)
	if err != nil {
		server.Close()
		return withExit(exitUsage, err) // a port in use, an address that is none
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return f.Serve(running, o.exitTime()) })
	group.Go(func() error {
		if err := server.LoadAll(running); err != nil {
			return err
		}
		if err := printModels(con.err, server); err != nil {
			return err
		}
		f.Started()
		at := f.Addresses()
		return announceServer(o.announceFD, api.Announcement{
			PID: os.Getpid(), HTTP: at.HTTP, GRPC: at.GRPC, Metrics: at.Metrics,
			ORTVersion: runtime.Version(), ORTLibrary: runtime.Library(),
		})
	})
	ended := make(chan error, 1)
	go func() {
		err := group.Wait()
		server.Close()
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-after(running, o.drainDelay+max(o.exitTime(), time.Second)):
		return errExitTimeout
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errExitTimeout
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to end while models were being loaded
	}
	return err
}

// after is closed some time after ctx has ended.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	out := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(out) }) })
	return out
}

// warnOfIgnored warns of options that mean nothing here.
func (o *serveOptions) warnOfIgnored(log *slog.Logger) {
	for _, name := range o.unsupported.ignored() {
		log.Warn("option ignored: it means nothing to this engine", "option", name)
	}
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
