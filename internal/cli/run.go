package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tuner/export"
	"tuner/internal/exit"
	"tuner/model/onnx/inputs"
	"tuner/model/pytorch"
	"tuner/pipeline"
	"tuner/spec"
)

// runOptions are the flags of `tuner run`.
type runOptions struct {
	file       string
	dir        string
	wish       spec.Wish
	shapes     []string
	output     string
	ortLibrary string
	pytorch    pytorchOptions
	has        func(flag string) bool // whether a flag is set
}

func newRun(con console) *cobra.Command {
	var o runOptions
	cmd := verb(&cobra.Command{
		Use:   "run MODEL | -f profile.yaml",
		Short: "Do everything in one go: from a model to a repository that is ready to deploy",
		Long: `Makes the seven steps from a model to its deployment: 1 convert (a PyTorch file, or a fixed batch dimension), 2 precision,
3 accuracy check, 4 configuration search, 5 optimized model, 6 repository, 7 chart (for Helm, of the repository). The reports tell of them all.

No file is needed: profile.yaml and analyze.yaml, which say what was done, are written to the output folder, and 'tuner run -f' goes
on with them, after an edit of budget or until too; with another space, objective or load and another 'output:' it is the next campaign. What an earlier run has done is not done again, unless something that it depends on has
changed. Interrupted (Ctrl-C) it writes the results of what was measured, and the same command goes on.

Each flag can be given as a variable too: TUNER_P99, TUNER_BUDGET, TUNER_IN_NAMES …`,
		Example: `  tuner run model.onnx --p99 30ms --budget 5m
  tuner run model.onnx --mode online
  tuner run model.onnx --precision fp32 --objective latency_p95
  tuner run bert.pt --in-names ids,mask --in-shapes '[[-1,256],[-1,256]]' --in-types int64,int64
  tuner run -f out/model/profile.yaml`,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd) },
		RunE:    func(cmd *cobra.Command, args []string) error { return runAll(cmd.Context(), con, o, args) },
	})
	o.addFlags(cmd)
	return cmd
}

// shapingFlags are the flags whose values are in profile.yaml otherwise.
var shapingFlags = append([]string{"output-folder", "p99", "budget", "until", "mode", "objective", "precision", "accuracy", "shape"}, pytorchFlags...)

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the profile, instead of a model (docs/reference/profile.md)")
	f.StringVarP(&o.dir, "output-folder", "o", "", "`folder` of all that is written (default out/NAME)")
	f.StringVar(&o.wish.P99, "p99", "", "`limit` of the p99 latency, such as 30ms (default none)")
	f.StringVar(&o.wish.Budget, "budget", "", "`time` for the search, such as 5m (default 10m)")
	f.StringVar(&o.wish.Until, "until", "", "end before the budget, once nothing else is likely to be better by more than this `share`, such as 2% (default none)")
	f.StringVar(&o.wish.Mode, "mode", "", "what serving is for: online (the latency counts) or offline (the throughput at the highest load); in place of an objective")
	f.StringVar(&o.wish.Objective, "objective", "", "`metric` that the search improves (default throughput, or what the mode says)")
	f.StringSliceVar(&o.wish.Precisions, "precision", []string{spec.PrecisionOriginal, "int8"}, "`names` of the precisions to try; fp32 is the model as it is")
	f.StringVar(&o.wish.Accuracy, "accuracy", "", "least mean `cosine` of their outputs with the original's (default 0.99)")
	f.StringArrayVar(&o.shapes, "shape", nil, "`NAME:1,2`: sizes of an input in a request that the model leaves open, without the batch dimension; once for each input")
	f.StringVar(&o.output, "output", "text", "on stdout: text (the answer) or json (the result)")
	f.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime library, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, then the installed cpu build)")
	o.pytorch.addFlags(f)
	o.has = f.Changed
}

// check detects contradictions among arguments and flags, and values that no profile may have.
func (o runOptions) check(args []string) error {
	switch {
	case o.file == "" && len(args) == 0:
		return exit.Usagef("nothing to run: name a model (an ONNX file, a Triton model folder or a PyTorch file), or a profile with -f")
	case o.file != "" && len(args) > 0:
		return exit.Usagef("-f and the model %q contradict each other: the profile names its own", args[0])
	case len(args) > 1:
		return exit.Usagef("tuner run takes one model (%d given)", len(args))
	}
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	if o.file == "" {
		return errors.Join(checkPyTorchFlags(args[0], o.has), o.checkWish())
	}
	for _, flag := range shapingFlags {
		if o.has(flag) {
			return exit.Usagef("--%s contradicts -f: the profile says it; edit %s", flag, o.file)
		}
	}
	return nil
}

// checkWish makes package spec check the values of flags in the form of a profile.
func (o runOptions) checkWish() error {
	var errs []error
	for _, f := range []struct{ flag, value, line string }{
		{"p99", o.wish.P99, "constraints: {latency_p99: {max: %s}}"},
		{"budget", o.wish.Budget, "search: {budget: %s}"},
		{"until", o.wish.Until, untilLine},
		{"mode", o.wish.Mode, "mode: %s"},
		{"objective", o.wish.Objective, "objective: %s"},
		{"accuracy", o.wish.Accuracy, "constraints: {accuracy: {metric: cosine, min: %s}}"},
		{"precision", strings.Join(o.wish.Precisions, ", "), "space: {precision: [%s]}"},
	} {
		if o.has(f.flag) {
			_, err := readFlag(f.flag, f.value, f.line)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// untilLine is the line of a profile for --until.
const untilLine = "search: {until: %s}"

// readFlag makes package spec check a flag's value in a line of a profile. It returns the profile
// with that line.
func readFlag(flag, value, line string) (spec.Profile, error) {
	if strings.TrimSpace(value) == "" || strings.ContainsAny(value, "\n\r[]{}#:\"'&*!|>@`") || flag != "precision" && strings.Contains(value, ",") {
		return spec.Profile{}, exit.Usagef("--%s %q: it is no single value", flag, value)
	}
	p, err := spec.ParseProfile("--"+flag, []byte("model: model.onnx\n"+fmt.Sprintf(line, value)))
	var mistakes spec.Errors
	if !errors.As(err, &mistakes) {
		return p, err
	}
	text := mistakes[0].Problem
	if mistakes[0].Allowed != "" {
		text += "; allowed: " + mistakes[0].Allowed
	}
	if mistakes[0].Hint != "" {
		text += "\n    hint: " + mistakes[0].Hint
	}
	return p, exit.Usagef("--%s %q: %s", flag, value, text)
}

// runAll implements `tuner run`.
func runAll(ctx context.Context, con console, o runOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	shapes, err := inputs.ParseShapes(o.shapes)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	r := pipeline.Request{
		Profile: o.file, Dir: o.dir, Wish: o.wish, Shapes: shapes, Python: o.pytorch.python, Library: o.ortLibrary,
		Chart: export.DefaultOptions(), Version: toolVersion(), JSON: o.output == "json", Out: con.out, Messages: con.err,
	}
	if o.file == "" {
		r.Model = args[0]
		r.Torch = func() (pytorch.Source, error) { return o.pytorch.source(args[0]) }
	}
	return pipeline.Run(ctx, r)
}
