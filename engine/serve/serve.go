// Package serve runs the engine as a program. By the options of package flags, it opens the log,
// the certificates, ONNX Runtime and the ports. It loads the models, and drains when it is asked to
// end.
//
// It stands above packages engine, engine/frontends and ort, and below the command line. It is the
// only package of the engine that handles signals (SIGHUP), and the end of a parent process.
package serve

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

	"golang.org/x/sync/errgroup"

	"tuner/engine"
	"tuner/engine/api"
	"tuner/engine/flags"
	"tuner/engine/frontends"
	"tuner/engine/identity"
	"tuner/engine/mirror"
	"tuner/engine/onnxruntime"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/ort"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/ort/provider"
)

// errExitTimeout ends a server that could not end in time.
//
//lint:ignore ST1005 tritonserver's wording
var errExitTimeout = errors.New("Exit timeout expired. Exiting immediately.")

// Run serves until ctx ends or an error occurs. messages is for people.
func Run(ctx context.Context, messages io.Writer, o *flags.Options) error {
	return RunWith(ctx, messages, o, func(b engine.Backend) engine.Backend { return b })
}

// RunWith is Run with another backend. wrap makes it from the backend that runs ONNX Runtime.
func RunWith(ctx context.Context, messages io.Writer, o *flags.Options, wrap func(engine.Backend) engine.Backend) error {
	if o.ParentFD > 0 {
		go endWithParent(os.NewFile(uintptr(o.ParentFD), "parent"))
	}
	if err := o.Validate(); err != nil {
		return err
	}
	usable := hostinfo.UsableMemory()
	relaxCollector(usable)
	logs, err := o.Log(messages)
	if err != nil {
		return err
	}
	log := logs.Logger()
	o.Warn(log)
	listeners, err := o.Frontends(log, clientMemory(usable))
	if err != nil {
		return err
	}
	requests, err := o.Requests(logs, &listeners)
	if err != nil {
		return err
	}
	defer write(requests)()
	encrypted, err := openCertificates(o, &listeners)
	if err != nil {
		return err
	}
	defer encrypted.watch(ctx, log)()
	tracer, err := newTracer(ctx, o, log)
	if err != nil {
		return err
	}
	defer endTracing(tracer, log)
	defer onHangup(func() {
		logs.Reopen()
		requests.Reopen()
		log.Info("SIGHUP: the log files are open, and certificates are read again, if there are any")
		encrypted.reload(log)
	})()
	models, err := o.Engine(log, listeners.Figures)
	if err != nil {
		return err
	}
	stores, err := openMirror(ctx, &models, log)
	if err != nil {
		return err
	}
	defer func() { _ = stores.Close() }() // the next server removes what stays
	libraries, err := o.Libraries()
	if err != nil {
		return err
	}
	build, err := ortlib.Resolve(o.ORTLibrary)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	runtime, err := openRuntime(build.Library, o)
	if err != nil {
		return err
	}
	if err := plugIn(runtime, libraries.Provider, log); err != nil {
		return exit.Leading(err, runtime.Close())
	}
	models.Backend, models.GPUs = identity.Beside(wrap(onnxruntime.New(runtime, libraries.Operators...))), usableGPUs(runtime)
	models.Hold, models.HoldBacklog = held(log, holdVariable), held(log, holdBacklogVariable)
	models.Tracer = tracer
	server, err := engine.New(models)
	if err != nil {
		if errors.As(err, new(*engine.MissingRepositoryError)) {
			err = exit.Usagef("%w; name an existing folder with --model-repository", err)
		}
		return exit.Leading(err, runtime.Close())
	}
	if err := listen(ctx, messages, o, server, stores, listeners, runtime); err != nil {
		return err // at once, since a running request may not end in time
	}
	if server.IsLoading() {
		return nil // a load that was given up still uses ONNX Runtime; both end with the process
	}
	return runtime.Close()
}

// openRuntime opens ONNX Runtime, with the thread pools that all models share, if there are any.
func openRuntime(library string, o *flags.Options) (*ort.Runtime, error) {
	threads, err := o.GlobalThreads()
	if err != nil {
		return nil, err
	}
	if !threads.Enabled {
		return ort.Open(library)
	}
	return ort.OpenWith(library, &ort.GlobalThreads{IntraOp: threads.IntraOp, InterOp: threads.InterOp})
}

// plugIn opens the operator's library with an execution provider, if there is one. A library without a
// device for this machine is no error, since the same options may serve other machines.
func plugIn(runtime *ort.Runtime, library string, log *slog.Logger) error {
	if library == "" {
		return nil
	}
	if err := runtime.PlugIn(library); err != nil {
		return exit.Usagef("--%s: %q: %w", addon.ProviderFlag, library, err)
	}
	if missing := runtime.MissingPlugIn(); missing != "" {
		log.Warn("models that name the accelerator plugin are refused", "cause", missing)
		return nil
	}
	log.Info("models may name the accelerator plugin", "provider", runtime.PlugInText())
	return nil
}

// onHangup calls act at each SIGHUP, until stop is called. The signal has no other effect, so that
// a server outlives the terminal from which it was started.
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
		signal.Stop(signals) // no signal is sent any more
		close(signals)
		<-ended
	}
}

// usableGPUs returns the number of GPUs that this build of ONNX Runtime can use.
func usableGPUs(runtime *ort.Runtime) int {
	if !slices.Contains(runtime.Providers(), provider.CUDA) {
		return 0
	}
	gpus, _ := hostinfo.ReadGPUs()
	return len(gpus)
}

// listen opens the ports, loads the models, and serves until ctx ends or an error occurs. Then it
// drains, within the drain delay and the exit timeout. While models load, it answers probes: the
// server is live, but not ready.
func listen(ctx context.Context, messages io.Writer, o *flags.Options, server *engine.Server, stores *mirror.Repositories, listeners frontends.Options, runtime *ort.Runtime) error {
	table, err := o.Adaptive()
	if err != nil {
		server.Close()
		return err
	}
	f, err := frontends.Open(server, listeners)
	if err != nil {
		server.Close()
		return exit.With(exit.Usage, err) // a port in use, or an invalid address
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return f.Serve(running, o.ExitTime()) })
	group.Go(func() error {
		poller, err := follow(running, o, server, stores, listeners.Log)
		if err != nil {
			return err
		}
		if err := server.LoadAll(running); err != nil {
			return err
		}
		if err := printModels(messages, server); err != nil {
			return err
		}
		if err := f.Loaded(); err != nil {
			return exit.With(exit.Usage, err)
		}
		f.Started()
		wheel, err := newWheel(running, server, table, listeners.Log)
		if err != nil {
			return err
		}
		if wheel != nil {
			group.Go(func() error {
				wheel.Run(running)
				return nil
			})
		}
		if poller != nil {
			group.Go(func() error {
				poller.Run(running, o.PollInterval())
				return nil
			})
		}
		at := f.Addresses()
		return announce(o.AnnounceFD, api.Announcement{
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
	case <-after(running, o.DrainDelay+max(o.ExitTime(), time.Second)):
		return errExitTimeout
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errExitTimeout
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to end while models were loading
	}
	return err
}

// after returns a channel that is closed d after ctx has ended.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	out := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(out) }) })
	return out
}

// announce writes the server's addresses to a file descriptor, and closes it. 0: none.
func announce(fd int, a api.Announcement) error {
	if fd == 0 {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("cannot announce the server: %w", err)
	}
	out := os.NewFile(uintptr(fd), "announce")
	if out == nil {
		return exit.Usagef("--announce-fd=%d is not a file descriptor", fd)
	}
	_, err = out.Write(append(text, '\n'))
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("cannot announce the server: %w", err)
	}
	return nil
}

// endWithParent ends the process when the parent's end of the pipe is closed, which happens even if
// the parent was killed. It waits in a read that only this ends, so no goroutine waits for it.
func endWithParent(pipe *os.File) {
	_, _ = io.Copy(io.Discard, pipe) // an error means the same as the end
	os.Exit(exit.Failure)
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
