package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/perf"
	"tuner/perf/output"
	"tuner/perf/paflags"
	"tuner/perf/session"
	"tuner/perf/view"
	"tuner/runner/load"
)

func newPerf(con console) *cobra.Command {
	var o paflags.Options
	cmd := verb(&cobra.Command{
		Use:   "perf -m MODEL",
		Short: "Measure throughput and latency of a model on a running server",
		Long: `Measures throughput and latency of a model on any server of the KServe v2 protocol (tuner serve, Triton). It sends requests at one load
level after the other. A level is a concurrency (closed loop) or a request rate (open loop). In an open loop a
latency counts from the scheduled instant of the request.

A level ends when throughput and latency are known precisely enough (--precision), or when its budget is used up. Figures are printed
with their intervals. perf_analyzer's flags and files are accepted; --stop stability is its stop rule.

Failed requests are counted and shown, and make the exit code 1. A run that ends early prints the figures that it has.`,
		Example: `  tuner perf -m model --percentile=95 --concurrency-range 1:8
  tuner perf -m model -i grpc --request-rate-range 100:1000:100 --request-distribution poisson
  tuner perf -m model --concurrency-range 1:64 --binary-search -l 20 --percentile 99
  tuner perf -m bert --model-file bert.onnx --shape input_ids:128 -f levels.csv --plot perf.png`,
		Args: arguments.Usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPerf(cmd.Context(), con, &o) },
	})
	o.Add(cmd.Flags())
	cmd.AddCommand(newPerfRecord(con))
	return cmd
}

func runPerf(ctx context.Context, con console, o *paflags.Options) error {
	plan, warnings, err := o.Check()
	for _, w := range warnings {
		fmt.Fprintf(con.err, "tuner: %s\n", w)
	}
	if err != nil {
		return err
	}
	plan.Settings.Program = "tuner " + toolVersion()
	if len(plan.CPUs) > 0 {
		if err := load.Pin(plan.CPUs); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--client-cpus: %w", err))
		}
	}
	if plan.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, plan.Deadline, fmt.Errorf("the deadline of %v has passed", plan.Deadline))
		defer cancel()
	}
	s, err := session.Open(ctx, plan)
	if err != nil {
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return exit.With(exit.Interrupted, errors.New("interrupted before anything was measured"))
		}
		return err
	}
	defer s.Close()
	for _, note := range s.Notes() {
		fmt.Fprintf(con.err, "input %s\n", note)
	}
	seen := view.New(con.out, con.err, s.Settings(), plan.Reports)
	seen.Begin()
	report, err := s.Run(ctx, seen)
	seen.End()
	for _, w := range report.Warnings {
		seen.Warn(w)
	}
	if problem := s.Problem(); problem != nil {
		seen.Warn(problem.Error())
	}
	if written := errors.Join(seen.Failed(), writePerf(con.out, plan.Reports, report)); written != nil {
		return errors.Join(err, exit.OfFiles(written))
	}
	return perfVerdict(report, err)
}

// writePerf writes the report to stdout and to the files in the flags. A run without measurements
// writes no files.
func writePerf(out io.Writer, r paflags.Reports, report perf.Report) error {
	var errs []error
	switch r.Output {
	case "json":
		errs = append(errs, output.JSON(out, report))
	case "benchstat":
		errs = append(errs, output.Benchstat(out, report))
	default:
		errs = append(errs, output.Summary(out, report))
	}
	if len(report.Levels) == 0 {
		return errors.Join(errs...)
	}
	save := func(path string, fill func(io.Writer) error) { errs = append(errs, durable.WriteNamed(path, fill)) }
	if r.CSV != "" {
		save(r.CSV, func(w io.Writer) error { return output.CSV(w, report, r.VerboseCSV) })
		for _, c := range report.Composing() {
			save(output.ComposingFile(r.CSV, c), func(w io.Writer) error { return output.ComposingCSV(w, report, c) })
		}
	}
	if r.Plot != "" {
		save(r.Plot, func(w io.Writer) error { return output.Plot(w, report) })
	}
	return errors.Join(errs...)
}

// perfVerdict returns the error of a run. An interruption comes first, then the run's own error,
// failed and dropped requests, unstable levels, and a latency limit that no level keeps. Drops at a
// level that misses the limit are no failure: they are where a search ends.
func perfVerdict(r perf.Report, err error) error {
	switch {
	case r.Interrupted:
		return exit.With(exit.Interrupted, fmt.Errorf("interrupted; levels measured until then: %d", len(r.Levels)))
	case err != nil:
		return err
	}
	failed, dropped, unstable := 0, 0, 0
	for _, l := range r.Levels {
		failed += l.Measurement.Errors()
		if l.Limit != perf.LimitMissed {
			dropped += l.Measurement.Dropped()
		}
		if l.Verdict == perf.VerdictUnstable {
			unstable++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d requests failed", failed)
	case dropped > 0:
		return fmt.Errorf("%d requests were not sent, since too many were in flight", dropped)
	case unstable > 0:
		return fmt.Errorf("levels that were not stable: %d of %d", unstable, len(r.Levels))
	case r.Settings.LatencyLimit > 0 && r.Best < 0:
		return exit.With(exit.Infeasible, fmt.Errorf("no level is within the latency limit of %v", r.Settings.LatencyLimit))
	}
	return nil
}
