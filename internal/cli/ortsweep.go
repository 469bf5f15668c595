package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tuner/hostinfo"
	"tuner/ortsweep"
	"tuner/ortsweep/olive"
	"tuner/profile"
	"tuner/spec"
)

// sweepOptions are the flags of `tuner ortsweep`.
type sweepOptions struct {
	file, model, folder string
	measure             string
	batch, sessions     int
	budget              time.Duration
	shapes, knobs       []string
	data                string
	oliveFile           string
	tensors             olive.Tensors
	quiet               bool
	output, ortLibrary  string

	given func(flag string) bool // on the command line, or by its variable
}

func newOrtsweep(con console) *cobra.Command {
	var o sweepOptions
	cmd := verb(&cobra.Command{
		Use:   "ortsweep -m model.onnx | -f ortsweep.yaml",
		Short: "Find the session settings that serve one model best",
		Long: `Races settings of an ONNX Runtime session against each other and against the defaults: execution provider, build, precision,
threads, execution mode, graph optimization, memory, spinning, session entries, provider options. Windows are interleaved, the
hopeless are dropped early, the best are confirmed on fresh processes; the default is the answer when nothing beats it beyond doubt,
and where the budget ends before that is known it says so. Lower precisions are compared with the original first, and one that
differs too much is never ranked.

Written to the output folder: result.json, ortsweep.png, winner.pbtxt (for Triton), winner.py, winner.cc, winner.go, and the
ortsweep.yaml that was run. Interrupted (Ctrl-C) it writes what it knows.

OLive's forms are taken as they are: its configuration (--olive), its texts (--in-names, --in-shapes with -1 for the batch,
--in-types, --out-names), and without a model its variables (model_filename, model_location, model_name, in_names …).
Each flag can be given as a variable too: TUNER_MODEL, TUNER_IN_NAMES …`,
		Example: `  tuner ortsweep -m model.onnx --shape input_ids:32
  tuner ortsweep -m model.onnx --measure throughput --sessions 2 --batch 8 --budget 3m
  tuner ortsweep -m model.onnx --knob intra_op_threads=1,2 --knob precision=fp32,int8
  tuner ortsweep -f ortsweep.yaml`,
		Args:    usageArgs(cobra.NoArgs),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return runOrtsweep(cmd.Context(), con, o) },
	})
	o.flags(cmd)
	return cmd
}

func (o *sweepOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.given = f.Changed
	f.StringVarP(&o.file, "file", "f", "", "what to sweep (docs/reference/ortsweep.md)")
	f.StringVarP(&o.model, "model", "m", "", "ONNX file, in place of a file")
	f.StringVarP(&o.folder, "output-folder", "o", "", "folder of the results (default out/NAME-ortsweep)")
	f.StringVar(&o.measure, "measure", "", "latency (of one execution, one session) or throughput (of all sessions) (default latency)")
	f.IntVar(&o.batch, "batch", 0, "rows in one execution (default 1)")
	f.IntVar(&o.sessions, "sessions", 0, "sessions side by side, for throughput (default 1)")
	f.DurationVar(&o.budget, "budget", 0, "time for the race, conversions not included (default 3m)")
	f.StringArrayVar(&o.shapes, "shape", nil, "NAME:SIZES of an input without the batch dimension, such as image:3,224,224; may be repeated")
	f.StringArrayVar(&o.knobs, "knob", nil, "KNOB=VALUE,VALUE to search in place of the usual space; may be repeated")
	f.StringVar(&o.data, "data", "", "inputs to compare lower precisions on: npz, npy, folder, perf_analyzer's JSON (default: made-up ones)")
	f.StringVar(&o.oliveFile, "olive", "", "OLive's optimization config (JSON), in place of a model")
	f.StringVar(&o.tensors.InNames, "in-names", "", "OLive: names of the inputs, such as input_ids,attention_mask")
	f.StringVar(&o.tensors.InShapes, "in-shapes", "", "OLive: their shapes, -1 for the batch, such as [[-1,256],[-1,256]]")
	f.StringVar(&o.tensors.InTypes, "in-types", "", "OLive: their types, such as int64,int64")
	f.StringVar(&o.tensors.OutNames, "out-names", "", "OLive: names of the outputs")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.StringVar(&o.output, "output", "text", "on stdout: text (the table) or json (the result)")
	f.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, else all installed flavours; with --knob the cpu one)")
}

func runOrtsweep(ctx context.Context, con console, o sweepOptions) error {
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	sweep, err := readSweep(con, o)
	if err != nil {
		return err
	}
	if err := ortsweep.CheckOutput(sweep.Output); err != nil {
		return inputError(err)
	}
	setup, engines, err := openSweep(ctx, con, o, sweep)
	if err != nil {
		if ctx.Err() != nil {
			return withExit(exitInterrupted, errors.New("interrupted before anything was measured"))
		}
		return inputError(err)
	}
	defer engines.Close(context.WithoutCancel(ctx))
	contest, outs := setup.Race()
	outcome, err := ortsweep.Run(ctx, contest, engines, time.Now, observeSweep(con, o, setup))
	if err != nil {
		return inputError(err)
	}
	engines.Close(context.WithoutCancel(ctx))
	models, err := engines.ModelFiles()
	if err != nil {
		return err
	}
	return reportSweep(con, o, ortsweep.NewResult(setup, contest, outs, outcome, models))
}

// openSweep opens model and builds, makes the precisions, and prepares the engines.
func openSweep(ctx context.Context, con console, o sweepOptions, sweep spec.Sweep) (ortsweep.Setup, *ortsweep.Engines, error) {
	fail := func(err error) (ortsweep.Setup, *ortsweep.Engines, error) { return ortsweep.Setup{}, nil, err }
	host := hostinfo.Read(ctx)
	sweep = sweep.WithRuntimes(installedFlavours(o, len(host.GPUs)))
	p := sweep.Profile
	p.Load.BatchSize = sweep.Batch
	asked := profileOptions{file: sweep.Path, quiet: o.quiet, ortLibrary: o.ortLibrary}
	subject, err := profile.OpenSubject(p, gpusOf(ctx, host, defaultBuild(asked, p)))
	if err != nil {
		return fail(err)
	}
	facts := profile.FactsOf(subject, host)
	if err := ortsweep.Check(sweep, subject, facts.Batching); err != nil { // before any conversion
		return fail(err)
	}
	requests, err := profile.Requests(p, subject)
	if err != nil {
		return fail(shapeError(o, p, err))
	}
	builds, err := campaignBuilds(asked, p)
	if err != nil {
		return fail(withExit(exitUsage, err))
	}
	builds, facts, err = probeBuilds(ctx, builds, p, subject, facts)
	if err != nil {
		return fail(err)
	}
	variants, err := makeVariants(ctx, con, asked, p, subject, facts, builds)
	if err != nil {
		return fail(err)
	}
	all, err := newSetup(p, subject, facts, builds, host)
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

// shapeError says where the shapes of inputs are given.
func shapeError(o sweepOptions, p spec.Profile, err error) error {
	field, hint := "load.inputs", "load: {inputs: {shape: {NAME: [SIZES]}}}, without the batch dimension"
	if o.file == "" {
		field, hint = "--shape", "--shape NAME:SIZES without the batch dimension, or --in-names with --in-shapes"
	}
	return fmt.Errorf("%s: %s: %w\n    hint: %s", p.Path, field, err, hint)
}
