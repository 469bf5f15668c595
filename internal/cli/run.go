package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tuner/export"
	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/live/stage"
	"tuner/internal/terminal"
	"tuner/mcp/roots"
	"tuner/model/framework"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/pipeline"
	"tuner/spec"
	"tuner/spec/document"
	"tuner/spec/draft"
	"tuner/spec/mixture"
)

// runOptions are the flags of `tuner run`.
type runOptions struct {
	file       string
	dir        string
	wish       draft.Wish
	shapes     []string
	mix        string
	output     string
	ui         stage.Choice
	ortLibrary string
	libraries  addon.Libraries
	framework  frameworkOptions
	within     []string               // folders; see package roots
	has        func(flag string) bool // whether a flag is set
}

func newRun(con console) *cobra.Command {
	var o runOptions
	cmd := verb(&cobra.Command{
		Use:   "run MODEL | -f profile.yaml",
		Short: "Tune a model and write a repository that is ready to deploy",
		Long: `Takes a model through seven steps to its deployment: 1 conversion, 2 precision, 3 accuracy check, 4 configuration search, 5 optimized
model, 6 repository, 7 Helm chart. Conversion is for models of PyTorch, TensorFlow, scikit-learn,
XGBoost and LightGBM, and for fixed batch dimensions. The reports describe each step.

No file is needed. The run writes profile.yaml and analyze.yaml, which describe it, into the output folder. Run the same command again
to resume: finished steps are skipped unless their inputs changed. To search longer, raise 'budget' in profile.yaml and run
'tuner run -f' on it. To ask another question, change limits, loads or knobs there, and set a new 'output'.

Ctrl-C keeps what was measured, and writes its results.

Each flag can also be given as an environment variable: TUNER_P99, TUNER_BUDGET, TUNER_IN_NAMES …`,
		Example: `  tuner run model.onnx --p99 30ms --budget 5m
  tuner run model.onnx --mode online
  tuner run model.onnx --precision fp32 --objective latency_p95
  tuner run bert.pt --in-names ids,mask --in-shapes '[[-1,256],[-1,256]]' --in-types int64,int64
  tuner run saved_model_folder --p99 30ms
  tuner run forest.pkl --allow-pickle
  tuner run -f out/model/profile.yaml`,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return arguments.FromEnvironment(cmd) },
		RunE:    func(cmd *cobra.Command, args []string) error { return runAll(cmd.Context(), con, o, args) },
	})
	o.addFlags(cmd)
	return cmd
}

// shapingFlags are the flags whose values are in profile.yaml otherwise.
var shapingFlags = append([]string{"output-folder", "p99", "budget", "until", "mode", "objective", "precision", "accuracy", "shape", "data", "mix", addon.FileFlag, addon.ProviderFlag}, frameworkFlags...)

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "`profile.yaml` to run, in place of a model (docs/reference/profile.md)")
	f.StringVarP(&o.dir, "output-folder", "o", "", "`folder` to write to (default out/NAME)")
	f.StringVar(&o.wish.P99, "p99", "", "`limit` of the p99 latency, such as 30ms (default none)")
	f.StringVar(&o.wish.Budget, "budget", "", "`time` for the search, such as 5m (default 10m)")
	f.StringVar(&o.wish.Until, "until", "", "end before the budget when nothing else is likely to be better by this `share`, such as 2% (default none)")
	f.StringVar(&o.wish.Mode, "mode", "", "`purpose` in place of an objective: online (latency at the lowest load) or offline (throughput at the highest)")
	f.StringVar(&o.wish.Objective, "objective", "", "`metric` that the search improves (default throughput; with --mode online the latency)")
	f.StringSliceVar(&o.wish.Precisions, "precision", nil, "`names` of the precisions to try; fp32 is the model as it is (default those of "+
		strings.Join(recipe.Usual(false), ",")+" that suit the model; on a GPU "+strings.Join(recipe.Usual(true), ",")+")")
	f.StringVar(&o.wish.Accuracy, "accuracy", "", "least mean `cosine` between a variant's outputs and the original's (default 0.99)")
	f.StringArrayVar(&o.shapes, "shape", nil, "`NAME:SIZES` of an input with symbolic dimensions, without the batch dimension, such as ids:128; may be repeated")
	f.StringVar(&o.wish.Data, "data", "", "`rows` from which requests are drawn, and on which int8_static is calibrated: .npz, .npy, a folder of NAME.npy, or perf_analyzer's JSON (default random values)")
	f.StringVar(&o.mix, "mix", "", "`sizes` of a dimension with weights: sequence=16:6,64:3,256:1, sequence=lengths.csv, or sequence=p50:40,p99:300,max:512 (default one shape)")
	terminal.AddFormat(f, &o.output, "`format` on stdout: text (the answer) or json (the result)")
	f.StringVar(&o.ortLibrary, "ort-library", "", "ONNX Runtime `library`, or flavour[@version] of an installed build (default $TUNER_ORT_LIBRARY, then the installed cpu build)")
	addon.AddFlags(f, &o.libraries)
	o.ui.AddFlags(f)
	o.framework.addFlags(f)
	f.StringArrayVar(&o.within, "within", nil, "`folder` of all files, for 'tuner mcp': programs, other servers and other files are refused")
	_ = f.MarkHidden("within") // the flag exists
	o.has = f.Changed
}

// check detects contradictions among arguments and flags, and values that no profile may have.
func (o runOptions) check(args []string) error {
	switch {
	case o.file == "" && len(args) == 0:
		return exit.Usagef("nothing to run: name a model (an ONNX file, a Triton model folder or a file of PyTorch, TensorFlow, scikit-learn, XGBoost or LightGBM), or a profile with -f")
	case o.file != "" && len(args) > 0:
		return exit.Usagef("-f and the model %q contradict each other: the profile names its own", args[0])
	case len(args) > 1:
		return exit.Usagef("tuner run takes one model (%d given)", len(args))
	}
	if err := arguments.CheckFormat(o.output); err != nil {
		return err
	}
	if o.has("data") && o.has("shape") {
		return exit.Usagef("--shape contradicts --data, whose rows have their own shape; give one of the two")
	}
	if o.has("data") && o.has("mix") {
		return exit.Usagef("--mix contradicts --data, whose rows have their own shapes; give one of the two")
	}
	if o.file == "" {
		return errors.Join(checkFrameworkFlags(args[0], o.has), o.checkWish())
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
		{"p99", o.wish.P99, p99Line},
		{"budget", o.wish.Budget, budgetLine},
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

// The lines of a profile for flags.
const (
	p99Line    = "constraints: {latency_p99: {max: %s}}"
	budgetLine = "search: {budget: %s}"
	untilLine  = "search: {until: %s}"
)

// readFlag makes package spec check a flag's value in a line of a profile. It returns the profile
// with that line.
func readFlag(flag, value, line string) (spec.Profile, error) {
	if strings.TrimSpace(value) == "" || strings.ContainsAny(value, "\n\r[]{}#:\"'&*!|>@`") || flag != "precision" && strings.Contains(value, ",") {
		return spec.Profile{}, exit.Usagef("--%s %q: expected one value", flag, value)
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil && line == p99Line { // in a file it is milliseconds, as in Model Analyzer's
		return spec.Profile{}, exit.Usagef("--%s %q: is a duration without a unit; write %sms for milliseconds", flag, value, value)
	}
	p, err := spec.ParseProfile("--"+flag, []byte("model: model.onnx\n"+fmt.Sprintf(line, value)))
	var mistakes document.Errors
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

// readMix reads the flag --mix, and makes package spec check its values in the form of a profile.
func readMix(text string) (mixture.Mix, error) {
	m, err := mixture.Parse(text)
	if err != nil {
		return m, exit.Usagef("--mix: %w", err)
	}
	line, err := m.YAML()
	if err == nil {
		_, err = spec.ParseProfile("--mix", []byte("model: model.onnx\nload: {inputs: {mix: "+line+"}}\n"))
	}
	var mistakes document.Errors
	if errors.As(err, &mistakes) {
		return m, exit.Usagef("--mix %q: %s %s", text, mistakes[0].Path, mistakes[0].Problem)
	}
	return m, err
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
	if o.has("mix") {
		if o.wish.Mix, err = readMix(o.mix); err != nil {
			return err
		}
	}
	messages, quiet, err := con.stage.Messages(o.ui, false, con.in, con.out, con.err)
	if err != nil {
		return err
	}
	check, err := roots.Check(o.within)
	if err != nil {
		return err
	}
	r := pipeline.Request{
		Profile: o.file, Dir: o.dir, Wish: o.wish, Shapes: shapes, Python: o.framework.python, Library: o.ortLibrary, Libraries: o.libraries,
		Chart: export.DefaultOptions(), Version: toolVersion(), JSON: o.output == "json", Out: con.out, Messages: messages, Quiet: quiet,
		Page: con.stage.Report, Check: check,
	}
	if o.file == "" {
		r.Model = args[0]
		r.Foreign = func(of framework.Framework) (framework.Source, error) { return o.framework.source(of, args[0]) }
	}
	return pipeline.Run(ctx, r)
}
