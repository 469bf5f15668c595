package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/internal/durable"
	"tuner/load"
	"tuner/meter"
	"tuner/payload"
	"tuner/perf"
	"tuner/perf/output"
	"tuner/wire"
)

// perfPlan is what the flags of perf ask for.
type perfPlan struct {
	settings    perf.Settings
	wire        wire.Options
	format      wire.Format
	source      payload.Source
	intervals   []time.Duration
	composing   []meter.Model // as the user names them
	with        []withLoad
	gauge       meter.Options
	warmUp      time.Duration
	maxInFlight int
	cpus        []int // of the load generator; empty: all
}

func newPerf(con console) *cobra.Command {
	var o perfOptions
	cmd := verb(&cobra.Command{
		Use:   "perf -m MODEL",
		Short: "Measure throughput and latency of a model that is being served",
		Long: `Puts a load on a model of any server of the KServe v2 protocol (tuner serve, Triton) and measures throughput and latency, level after
level: requests in flight (closed loop) or requests per second (open loop, in which latencies count from the scheduled instant).

A level is measured until throughput and latency are known with the asked precision, or until the budget is used up; the intervals
are printed beside the figures. perf_analyzer's flags and files are taken as they are, with its own stop rule under --stop stability.

Requests that fail are counted and shown, and make the exit code 1; the figures of a run that ends early are printed all the same.`,
		Example: `  tuner perf -m model --percentile=95 --concurrency-range 1:8
  tuner perf -m model -i grpc --request-rate-range 100:1000:100 --request-distribution poisson
  tuner perf -m model --concurrency-range 1:64 --binary-search -l 20 --percentile 99
  tuner perf -m bert --model-file bert.onnx --shape input_ids:128 -f levels.csv --plot perf.png`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPerf(cmd.Context(), con, o) },
	})
	o.flags(cmd.Flags())
	return cmd
}

func runPerf(ctx context.Context, con console, o perfOptions) error {
	plan, warnings, err := o.check()
	for _, w := range warnings {
		fmt.Fprintf(con.err, "tuner: %s\n", w)
	}
	if err != nil {
		return err
	}
	if len(plan.cpus) > 0 {
		if err := load.Pin(plan.cpus); err != nil {
			return withExit(exitUsage, fmt.Errorf("--client-cpus: %w", err))
		}
	}
	if o.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.deadline, fmt.Errorf("the deadline of %v has passed", o.deadline))
		defer cancel()
	}
	r, err := openPerf(ctx, con, o, plan)
	if err != nil {
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return withExit(exitInterrupted, errors.New("interrupted before anything was measured"))
		}
		return err
	}
	defer r.close()
	report, err := r.measure(ctx)
	if written := r.write(report); written != nil {
		return errors.Join(err, inputError(written))
	}
	return perfVerdict(report, err)
}

// perfVerdict is the error that a report deserves. The run's own comes first, then failed requests, then the limit.
func perfVerdict(r perf.Report, err error) error {
	switch {
	case r.Interrupted:
		return withExit(exitInterrupted, fmt.Errorf("interrupted; levels measured until then: %d", len(r.Levels)))
	case err != nil:
		return err
	}
	failed, unstable := 0, 0
	for _, l := range r.Levels {
		failed += l.Measurement.Errors()
		if l.Verdict == perf.VerdictUnstable {
			unstable++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d requests failed", failed)
	case unstable > 0:
		return fmt.Errorf("levels that were not stable: %d of %d", unstable, len(r.Levels))
	case r.Settings.LatencyLimit > 0 && r.Best < 0:
		return withExit(exitInfeasible, fmt.Errorf("no level is within the latency limit of %v", r.Settings.LatencyLimit))
	}
	return nil
}

// perfRun is a run of perf that is ready to begin.
type perfRun struct {
	flags   perfOptions
	console console
	options perf.Options
	set     payload.Set
	view    *perfView
	closers []func()
}

// close ends the connections for questions and the readings.
func (r *perfRun) close() {
	for _, c := range r.closers {
		c()
	}
}

// openPerf asks the server about its models, and prepares the requests.
func openPerf(ctx context.Context, con console, o perfOptions, plan perfPlan) (*perfRun, error) {
	r := &perfRun{flags: o, console: con}
	ready := false
	defer func() {
		if !ready {
			r.close()
		}
	}()
	graph, err := readGraph(o.modelFile)
	if err != nil {
		return nil, err
	}
	s, err := openServer(ctx, plan, o.timeout)
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() { _ = s.Close() }) // nothing is to come any more
	model, err := s.describe(ctx, o.model, o.version)
	if err != nil {
		return nil, err
	}
	model.Graph = graph
	if err := checkServing(model, o.streaming); err != nil {
		return nil, err
	}
	var target perf.Target
	if r.set, target, err = s.prepare(model, plan.source); err != nil {
		return nil, err
	}
	if plan.gauge.Together, err = s.together(ctx, model, plan.composing); err != nil {
		return nil, err
	}
	if target.Gauge, err = r.gauge(ctx, s, model, plan.gauge); err != nil {
		return nil, withExit(exitUsage, err)
	}
	r.options = perf.Options{
		Settings: plan.settings, Target: target, Intervals: plan.intervals, WarmUp: plan.warmUp, Timeout: o.timeout, MaxInFlight: plan.maxInFlight,
	}
	if r.options.Beside, err = r.beside(ctx, s, plan); err != nil {
		return nil, err
	}
	r.settle(ctx, s, model)
	ready = true
	return r, nil
}

// settle completes the settings with what the server told.
func (r *perfRun) settle(ctx context.Context, s *server, m payload.Model) {
	settings := &r.options.Settings
	host := hostinfo.Read(ctx)
	settings.Machine = fmt.Sprintf("%s, %d threads", host.CPU.Model, host.UsableCores())
	settings.Statistics = s.statistics
	settings.Decoupled = m.Config.GetModelTransactionPolicy().GetDecoupled()
	settings.Cache = m.Config.GetResponseCache().GetEnable()
	settings.Streams, settings.Steps = r.set.Streams, r.set.Steps
	r.view = newPerfView(r.console, *settings, r.flags)
	r.options.Observer = r.view
	for _, note := range r.set.Notes {
		fmt.Fprintf(r.console.err, "input %s\n", note)
	}
}

// gauge opens the readings beside a load; they end with the run.
func (r *perfRun) gauge(ctx context.Context, s *server, m payload.Model, o meter.Options) (perf.Gauge, error) {
	o.Model, o.Version = m.Name, m.Version
	if s.statistics {
		o.Control = s
	}
	g, err := meter.Open(ctx, o)
	r.closers = append(r.closers, g.Close)
	return g, err
}

// beside prepares the loads on other models.
func (r *perfRun) beside(ctx context.Context, s *server, plan perfPlan) ([]perf.Beside, error) {
	var list []perf.Beside
	for _, w := range plan.with {
		model, err := s.describe(ctx, w.model, w.version)
		if err != nil {
			return nil, err
		}
		if err := checkServing(model, r.flags.streaming); err != nil {
			return nil, err
		}
		w.source.Seed = plan.source.Seed
		_, target, err := s.prepare(model, w.source)
		if err != nil {
			return nil, err
		}
		target.Gauge, err = r.gauge(ctx, s, model, meter.Options{Timeout: plan.gauge.Timeout, PID: plan.gauge.PID, Remote: plan.gauge.Remote})
		if err != nil {
			return nil, err
		}
		list = append(list, perf.Beside{Model: w.model, Target: target, Load: w.load})
	}
	return list, nil
}

// measure runs, and meanwhile writes the file of every request where one is wanted.
func (r *perfRun) measure(ctx context.Context) (report perf.Report, err error) {
	r.view.begin()
	if r.flags.export == "" {
		report, err = perf.Run(ctx, r.options)
		return report, err
	}
	failed := durable.WriteFile(r.flags.export, func(w io.Writer) error {
		export := output.NewExport(w, r.options.Settings, r.set.Requests)
		r.options.Sink = export
		report, err = perf.Run(ctx, r.options)
		if len(report.Levels) == 0 {
			return errNothing
		}
		return export.Close()
	})
	if errors.Is(failed, errNothing) {
		failed = nil
	}
	return report, errors.Join(err, failed)
}

// errNothing keeps an export from being made that holds nothing.
var errNothing = errors.New("nothing was measured")

// write writes the report on stdout, and the files.
func (r *perfRun) write(report perf.Report) error {
	for _, w := range report.Warnings {
		r.view.warn(w)
	}
	if m, ok := r.options.Target.Gauge.(*meter.Meter); ok && m.Problem() != nil {
		r.view.warn(m.Problem().Error())
	}
	errs := []error{r.view.failed, r.writeOut(report)}
	save := func(path string, fill func(io.Writer) error) { errs = append(errs, durable.WriteFile(path, fill)) }
	if len(report.Levels) == 0 {
		return errors.Join(errs...)
	}
	if path := r.flags.csv; path != "" {
		save(path, func(w io.Writer) error { return output.CSV(w, report, r.flags.verboseCSV) })
		for _, c := range report.Composing() {
			save(output.ComposingFile(path, c), func(w io.Writer) error { return output.ComposingCSV(w, report, c) })
		}
	}
	if r.flags.plot != "" {
		save(r.flags.plot, func(w io.Writer) error { return output.Plot(w, report) })
	}
	return errors.Join(errs...)
}

func (r *perfRun) writeOut(report perf.Report) error {
	switch r.flags.output {
	case "json":
		return output.JSON(r.console.out, report)
	case "benchstat":
		return output.Benchstat(r.console.out, report)
	}
	return output.Summary(r.console.out, report)
}
