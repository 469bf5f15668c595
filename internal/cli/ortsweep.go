package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/internal/live/stage"
	"tuner/ortsweep"
	"tuner/ortsweep/flags"
	"tuner/ortsweep/progress"
	"tuner/profile"
	"tuner/profile/preparation"
	"tuner/spec"
)

func newOrtsweep(con console) *cobra.Command {
	o := &flags.Options{}
	var ui stage.Choice
	cmd := verb(&cobra.Command{
		Use:   "ortsweep -m model.onnx | -f ortsweep.yaml",
		Short: "Find the session settings that serve one model best",
		Long: `Races settings of an ONNX Runtime session against each other and against the defaults. Settings are the execution provider, build,
precision, threads, execution mode, graph optimization, memory, spinning, session entries and provider options. The windows of all
settings take turns. Hopeless settings are dropped early, and the best are confirmed on fresh processes. The default is the answer
unless something is better beyond doubt. If the budget ends before that is known, the answer says so. Lower precisions are compared with
the original first. A precision that misses the limit is not ranked.

Written to the output folder: result.json, ortsweep.png, winner.pbtxt (for Triton), winner.py, winner.cc, winner.go, and the
ortsweep.yaml that was run. Ctrl-C keeps what was measured, and writes its results.

OLive's forms are accepted: its configuration (--olive) and its texts (--in-names, --in-shapes, --in-types, --out-names). In shapes, -1
is the batch. Without a model its variables are read: model_filename, model_location, model_name, in_names …

Each flag can also be given as an environment variable: TUNER_MODEL, TUNER_IN_NAMES …`,
		Example: `  tuner ortsweep model.onnx --shape input_ids:32
  tuner ortsweep model.onnx --measure throughput --sessions 2 --batch 8 --budget 3m
  tuner ortsweep model.onnx --knob intra_op_threads=1,2 --knob precision=fp32,int8
  tuner ortsweep ortsweep.yaml`,
		Args:    arguments.ModelOrFile(&o.Model, &o.File),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return arguments.FromEnvironment(cmd) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return runOrtsweep(cmd.Context(), con, o, ui) },
	})
	o.Add(cmd.Flags())
	ui.AddFlags(cmd.Flags())
	return cmd
}

func runOrtsweep(ctx context.Context, con console, o *flags.Options, ui stage.Choice) (err error) {
	if err := arguments.CheckFormat(o.Output); err != nil {
		return err
	}
	if con.err, o.Quiet, err = con.stage.Messages(ui, o.Quiet, con.in, con.out, con.err); err != nil {
		return err
	}
	sweep, err := o.Read(con.err)
	if err != nil {
		return err
	}
	if err := ortsweep.CheckOutput(sweep.Output); err != nil {
		return exit.OfFiles(err)
	}
	setup, engines, err := openSweep(ctx, con, o, sweep)
	if err != nil {
		if ctx.Err() != nil {
			return exit.With(exit.Interrupted, errors.New("interrupted before anything was measured"))
		}
		return exit.OfFiles(err)
	}
	defer engines.Close(context.WithoutCancel(ctx))
	contest, outs := setup.Race()
	messages := con.err
	if o.Quiet {
		messages = io.Discard
	}
	shown := progress.New(messages, setup, contest)
	defer shown.Close() // also after a panic, whose report belongs on the ordinary screen
	outcome, err := ortsweep.Run(ctx, contest, engines, time.Now, shown)
	shown.Close()
	if err != nil {
		return exit.OfFiles(err)
	}
	engines.Close(context.WithoutCancel(ctx))
	models, err := engines.ModelFiles()
	if err != nil {
		return err
	}
	return reportSweep(con, o, ortsweep.NewResult(setup, contest, outs, outcome, models))
}

// openSweep opens model and builds, makes the precisions, and prepares the engines.
func openSweep(ctx context.Context, con console, o *flags.Options, sweep spec.Sweep) (ortsweep.Setup, *ortsweep.Engines, error) {
	fail := func(err error) (ortsweep.Setup, *ortsweep.Engines, error) { return ortsweep.Setup{}, nil, err }
	host := hostinfo.Read(ctx)
	sweep = sweep.WithRuntimes(installedFlavours(o, len(host.GPUs)))
	p := sweep.Profile
	p.Load.BatchSize = sweep.Batch
	asked := preparation.Options{File: sweep.Path, Library: o.ORTLibrary, Version: toolVersion(), Quiet: o.Quiet, Messages: con.err}
	subject, err := profile.OpenSubject(p, asked.Place(ctx, host, p))
	if err != nil {
		return fail(err)
	}
	facts := profile.FactsOf(subject, host)
	if err := ortsweep.Check(sweep, subject, facts.Batching); err != nil { // before any conversion
		return fail(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		return fail(o.ShapeError(p.Path, err))
	}
	builds, err := asked.Builds(p)
	if err != nil {
		return fail(exit.With(exit.Usage, err))
	}
	builds, facts, err = preparation.Open(ctx, builds, p, subject, facts)
	if err != nil {
		return fail(err)
	}
	variants, err := asked.Variants(ctx, p, subject, facts, builds)
	if err != nil {
		return fail(err)
	}
	all, err := asked.Setup(p, subject, facts, builds, host)
	if err != nil {
		return fail(err)
	}
	setup, err := ortsweep.NewSetup(sweep, all.With(variants))
	if err != nil {
		return fail(err)
	}
	engines, err := sweepEngines(con, setup, requests, host)
	return setup, engines, err
}
