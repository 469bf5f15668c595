package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tuner/analyze"
	"tuner/export"
	"tuner/internal/terminal"
	"tuner/meter"
	"tuner/ortlib"
	"tuner/profile"
	"tuner/report/html"
	"tuner/report/json"
	"tuner/report/text"
	"tuner/runner/target"
	"tuner/spec"
	"tuner/steps"
)

// runOptions are the flags of `tuner run`.
type runOptions struct {
	file       string
	dir        string
	wish       spec.Wish
	shapes     []string
	given      map[string][]int64 // the shapes, by input
	output     string
	ortLibrary string
	pytorch    pytorchOptions
	has        func(flag string) bool // whether a flag was given
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

// shapingFlags are the flags that say what profile.yaml says otherwise.
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

// check finds contradictions among arguments and flags, and values that no profile may have.
func (o runOptions) check(args []string) error {
	switch {
	case o.file == "" && len(args) == 0:
		return usageErrorf("nothing to run: name a model (an ONNX file, a Triton model folder or a PyTorch file), or a profile with -f")
	case o.file != "" && len(args) > 0:
		return usageErrorf("-f and the model %q contradict each other: the profile names its own", args[0])
	case len(args) > 1:
		return usageErrorf("tuner run takes one model (%d given)", len(args))
	}
	if err := checkOutputFormat(o.output); err != nil {
		return err
	}
	if o.file == "" {
		return errors.Join(checkPyTorchFlags(args[0], o.has), o.checkWish())
	}
	for _, flag := range shapingFlags {
		if o.has(flag) {
			return usageErrorf("--%s contradicts -f: the profile says it; edit %s", flag, o.file)
		}
	}
	return nil
}

// checkWish has package spec judge the values of flags as what they become in the profile.
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

// untilLine is the line of a profile that --until stands for.
const untilLine = "search: {until: %s}"

// readFlag has package spec judge a flag's value in a line of a profile, and returns the profile of that line.
func readFlag(flag, value, line string) (spec.Profile, error) {
	if strings.TrimSpace(value) == "" || strings.ContainsAny(value, "\n\r[]{}#:\"'&*!|>@`") || flag != "precision" && strings.Contains(value, ",") {
		return spec.Profile{}, usageErrorf("--%s %q: it is no single value", flag, value)
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
	return p, usageErrorf("--%s %q: %s", flag, value, text)
}

// checkGoal finds an objective that the machine does not tell.
func checkGoal(w spec.Wish) error {
	if w.Objective == "" {
		return nil
	}
	p, err := spec.ParseProfile("--objective", []byte("model: model.onnx\nobjective: "+w.Objective))
	if err != nil {
		return withExit(exitUsage, err)
	}
	return target.CheckMetrics("--objective", p.Goal, meter.ReadSources(), "on this machine")
}

// runAll is `tuner run`.
func runAll(ctx context.Context, con console, o runOptions, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	var j job
	var err error
	if o.given, err = parseShapes(o.shapes); err != nil {
		return withExit(exitUsage, err)
	}
	if o.file != "" {
		j, err = openJob(ctx, con, o)
	} else {
		j, err = newJob(ctx, con, o, args[0])
	}
	if err == nil {
		err = errors.Join(j.run(ctx), j.servers.Restore(ctx))
	}
	return inputError(err)
}

// job is a run of all steps after the first, on a profile.
type job struct {
	prepared
	con      console
	output   string // text or json
	analysis spec.Analyze
	campaign profileOptions
	log      *steps.Log
}

// newJob converts a model where need be, and writes the files that say what will be done with it.
func newJob(ctx context.Context, con console, o runOptions, model string) (job, error) {
	c, err := newConversion(ctx, con, o, model)
	if err == nil {
		err = checkGoal(o.wish)
	}
	if err == nil {
		_, err = ortlib.Resolve(o.ortLibrary)
		err = withExit(exitUsage, err)
	}
	if err == nil {
		err = profile.CheckOutput(spec.Profile{Path: "tuner run", Output: c.dir})
	}
	if err != nil { // before anything is written
		return job{}, err
	}
	log, err := steps.Open(c.dir, stepLines{con.err}, time.Now)
	if err != nil {
		return job{}, withExit(exitUsage, err)
	}
	if err := c.checkFiles(log); err != nil {
		return job{}, err
	}
	path, err := c.convert(ctx, log)
	if err != nil {
		return job{}, leading(err, c.reportFailure(log))
	}
	if o.file, err = writeRunFiles(ctx, con, o, c.name, path, c.dir); err != nil {
		return job{}, err
	}
	p, err := readProfile(o.file)
	if err != nil {
		return job{}, err
	}
	return prepareJob(ctx, con, o, p, log)
}

// openJob goes on with a profile. What an earlier run converted stands, as long as it is as it was.
func openJob(ctx context.Context, con console, o runOptions) (job, error) {
	p, err := readProfile(o.file)
	if err != nil {
		return job{}, err
	}
	log, err := steps.Open(p.Output, stepLines{con.err}, time.Now)
	if err != nil {
		return job{}, withExit(exitUsage, err)
	}
	j, err := prepareJob(ctx, con, o, p, log) // before anything is written
	if err != nil {
		return job{}, err
	}
	made, known := log.List().Get(steps.Convert)
	if made.State == steps.Failed || made.State == steps.Interrupted {
		made.Key = "" // it is still to be made, by whoever asks for it
	}
	err = log.Do(ctx, steps.Convert, made.Key, func() (steps.Outcome, error) {
		outcome := steps.Skip("%s names the file that is served", o.file)
		outcome.Before = known && made.State == steps.Skipped
		return outcome, nil
	})
	if err != nil {
		err = errors.Join(err, j.servers.Restore(ctx))
	}
	return j, err
}

// prepareJob finds what would stop the steps after the first.
func prepareJob(ctx context.Context, con console, o runOptions, p spec.Profile, log *steps.Log) (job, error) {
	a, err := analysisOf(con, p)
	if err != nil {
		return job{}, err
	}
	campaign := profileOptions{file: o.file, output: "text", ortLibrary: o.ortLibrary}
	c, err := prepare(ctx, con, campaign, p)
	return job{c, con, o.output, a, campaign, log}, err
}

// run makes the steps from the second on, writes the reports, also where a step failed, and prints the answer.
func (j job) run(ctx context.Context) error {
	result, outcome, err := j.make(ctx)
	if err != nil {
		return leading(err, reportFailure(j.analysis, j.setup.Subject.Name, j.log))
	}
	result.Steps = j.log.List()
	if err := writeReports(j.analysis, result, j.log); err != nil {
		return err
	}
	return j.answer(ctx, result, outcome)
}

// make makes the steps from the second on.
func (j job) make(ctx context.Context) (analyze.Result, profile.Outcome, error) {
	setup, err := j.variants(ctx)
	if err != nil {
		return analyze.Result{}, profile.Outcome{}, err
	}
	outcome, err := j.search(ctx, setup)
	if err != nil {
		return analyze.Result{}, outcome, err
	}
	result, err := rankCampaign(j.analysis)
	for _, step := range []func(context.Context, analyze.Result) error{j.optimize, j.repository, j.chart} {
		if err == nil {
			err = step(ctx, result)
		}
	}
	return result, outcome, err
}

// answer prints what was found and what comes next, and makes the exit code.
func (j job) answer(ctx context.Context, r analyze.Result, outcome profile.Outcome) error {
	write := j.writeAnswer
	if j.output == "json" {
		write = json.Write
	}
	if err := write(j.con.out, r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return withExit(exitInterrupted, fmt.Errorf("interrupted after %s; the same command goes on", countText(outcome.Status.Trials, "trial", "trials")))
	}
	if !r.IsMeasured() {
		return withExit(exitFailure, errors.New("nothing was measured, so that there is no result"))
	}
	return infeasible(r)
}

// writeAnswer says what was found, where it lies, and what comes next.
func (j job) writeAnswer(out io.Writer, r analyze.Result) error {
	if err := text.WriteAnswer(out, r); err != nil {
		return err
	}
	output, formats := j.analysis.Output, j.analysis.Formats
	lines := []string{"", "report: " + filepath.Join(output, "report.md")}
	if slices.Contains(formats, html.Name) {
		lines = append(lines, "page for a browser: "+filepath.Join(output, "report.html"))
	}
	var next []string
	if r.IsMeasured() { // else there is nothing to explain
		next = []string{"next:", "  tuner analyze --input " + shellWord(j.analysis.Input) + " --explain"}
	}
	if _, ok := r.Winner(); ok && slices.Contains(formats, spec.FormatRepository) {
		repository := filepath.Join(output, "repository")
		lines = append(lines, "repository: "+filepath.Join(repository, r.Header.Model))
		next = append(next, "  tuner serve --model-repository "+shellWord(repository),
			fmt.Sprintf("  tuner export %s --input %s -o %s", export.Triton, shellWord(output), shellWord(freeName(filepath.Join(output, "deploy")))))
	}
	if s, _ := r.Steps.Get(steps.Chart); s.State == steps.OK {
		lines = append(lines, "Helm chart: "+filepath.Join(output, chartDir)+" (README.md there says how to install it)")
	}
	_, err := fmt.Fprintln(out, strings.Join(append(lines, next...), "\n"))
	return err
}

// shellWord is a text as a word of a command line: between quotes where a shell would read it otherwise.
func shellWord(text string) string {
	plain := func(c rune) bool {
		return c < utf8.RuneSelf && (c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == ',' || c == ':' || c == '@' ||
			'0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	}
	if text != "" && strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// freeName is the first of NAME, NAME-2, NAME-3 … that does not exist.
func freeName(path string) string {
	name := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", path, n)
	}
}

// stepLines tells of the steps on stderr as they are made.
type stepLines struct{ out io.Writer }

// Begun implements steps.Observer.
func (l stepLines) Begun(name steps.Name) {
	fmt.Fprintf(l.out, "%d/%d %s\n", name.Number(), len(steps.Names()), name)
}

// Ended implements steps.Observer. The error of a step that failed is the program's last word.
func (l stepLines) Ended(s steps.Step, before bool) {
	text := "  " + string(s.State)
	switch {
	case before && s.State == steps.OK:
		text += ", done before"
	case s.Elapsed >= time.Second:
		text += " after " + clockText(s.Elapsed)
	}
	if s.Text != "" && s.State != steps.Failed {
		text += ": " + strings.Join(strings.Fields(s.Text), " ")
	}
	fmt.Fprint(l.out, terminal.Fold(text+"\n", terminal.Width))
}
