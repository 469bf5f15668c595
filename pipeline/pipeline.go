// Package pipeline makes the seven steps of `tuner run`, and the reports about them: 1 convert, 2
// precision, 3 accuracy check, 4 configuration search, 5 optimized model, 6 repository, 7 chart.
//
// It decides what is converted and what each step depends on (its key). It also decides which files
// in the output folder belong to a run, and which results of an earlier run are outdated. Package
// steps records the steps. The packages below do the work of each step. This package does not know
// flags.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"tuner/analyze"
	"tuner/export"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/framework"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/pipeline/steps"
	"tuner/profile"
	"tuner/profile/preparation"
	"tuner/report/html"
	"tuner/report/json"
	"tuner/runner/meter"
	"tuner/runner/target"
	"tuner/spec"
	"tuner/spec/draft"
)

// Request describes a run and its outputs. Either Model or Profile is set.
type Request struct {
	Model  string             // the user's file or folder
	Dir    string             // the output folder; "": out/NAME
	Wish   draft.Wish         // content of the model's profile; nil precisions: those that are worth a try (recipe.Choose)
	Shapes map[string][]int64 // of a request, by input, without the batch dimension
	// Foreign describes a framework's model by what is not in its file: permissions, operator set,
	// for some also inputs and outputs. It is not called for other models.
	Foreign func(framework.Framework) (framework.Source, error)
	Python  string // Python with the framework; "" is python3 of the PATH

	Profile string // path of the profile, instead of a model
	// Check refuses a run by what its files say, before anything that they name is opened. nil: every
	// run is allowed
	Check func(spec.Profile, spec.Analyze) error

	// Library: path of ONNX Runtime, or a build's name; "" for that of the environment or the
	// installation
	Library string
	// Libraries that servers of the model open beside ONNX Runtime; a profile names its own
	Libraries addon.Libraries
	Chart     export.Options // options of the seventh step, without its inputs
	Version   string         // program version
	JSON      bool           // print the result as JSON instead of the answer
	Out       io.Writer      // receives the answer
	Messages  io.Writer      // receives progress and warnings
	Quiet     bool           // show no progress
	// Page shows the page report.html, which its argument writes, to those who watch the run
	Page func(func(io.Writer) error)
}

// Run makes the steps of a request. It skips steps that an earlier run completed, unless their
// inputs changed. After an interruption (ctx) it still writes the results of the finished
// measurements.
func Run(ctx context.Context, r Request) error {
	open := newJob
	if r.Profile != "" {
		open = openJob
	}
	j, err := open(ctx, r)
	if err == nil {
		err = errors.Join(j.run(ctx), j.campaign.Restore(ctx))
	}
	return exit.OfFiles(err)
}

// job is a run of all steps after the first, with a profile.
type job struct {
	Request
	analysis spec.Analyze
	campaign preparation.Campaign
	log      *steps.Log
}

func (j job) profile() spec.Profile { return j.campaign.Setup.Profile }

// newJob converts a model if needed, and writes the files that describe the run.
func newJob(ctx context.Context, r Request) (job, error) {
	c, err := newConversion(ctx, r)
	if err == nil {
		err = checkGoal(r.Wish)
	}
	if err == nil {
		_, err = ortlib.Resolve(r.Library)
		err = exit.With(exit.Usage, err)
	}
	if err == nil {
		err = profile.CheckOutput(spec.Profile{Path: "run", Output: c.dir})
	}
	if err != nil { // before anything is written
		return job{}, err
	}
	log, err := steps.Open(c.dir, r.stepLines(), time.Now)
	if err != nil {
		return job{}, exit.With(exit.Usage, err)
	}
	if err := c.checkFiles(log); err != nil {
		return job{}, err
	}
	path, err := c.convert(ctx, log)
	if err != nil {
		return job{}, exit.Leading(err, c.reportFailure(log))
	}
	model, err := c.served(ctx, path)
	if err != nil {
		return job{}, err
	}
	var written []string
	if r.Profile, written, err = writeFiles(r, c.name, model, c.dir); err != nil {
		return job{}, err
	}
	p, err := spec.ReadProfile(r.Profile)
	if err != nil {
		return job{}, err
	}
	j, err := prepareJob(ctx, r, p, log)
	if exit.CodeOf(err) == exit.Usage { // with other flags the run writes other files
		for _, path := range written {
			_ = os.Remove(path) // the error of the run matters
		}
	}
	return j, err
}

// openJob continues with a profile. The model that an earlier run converted stays in use while it
// is unchanged.
func openJob(ctx context.Context, r Request) (job, error) {
	p, err := spec.ReadProfile(r.Profile)
	if err != nil {
		return job{}, err
	}
	log, err := steps.Open(p.Output, r.stepLines(), time.Now)
	if err != nil {
		return job{}, exit.With(exit.Usage, err)
	}
	j, err := prepareJob(ctx, r, p, log) // before anything is written
	if err != nil {
		return job{}, err
	}
	made, known := log.List().Get(steps.Convert)
	if made.State == steps.Failed || made.State == steps.Interrupted {
		made.Key = "" // a later run must make it
	}
	err = log.Do(ctx, steps.Convert, made.Key, func() (steps.Outcome, error) {
		outcome := steps.Skip("%s names the file that is served", r.Profile)
		outcome.Before = known && made.State == steps.Skipped
		return outcome, nil
	})
	if err != nil {
		err = errors.Join(err, j.campaign.Restore(ctx))
	}
	return j, err
}

// prepareJob detects problems that would stop the steps after the first.
func prepareJob(ctx context.Context, r Request, p spec.Profile, log *steps.Log) (job, error) {
	if p.IsSeveral() {
		field := "models"
		if p.IsPipeline() {
			field = "pipeline"
		}
		return job{}, exit.Usagef("%s: %s: `tuner run` makes one model ready to deploy\n"+
			"    hint: use `tuner profile %[1]s`, then `tuner analyze %[3]s` for the repository, and `tuner export helm %[3]s -o deploy` for the chart",
			r.Profile, field, p.Output)
	}
	a, err := analysisOf(r.Messages, p)
	if err == nil && r.Check != nil {
		err = r.Check(p, a)
	}
	if err != nil {
		return job{}, err
	}
	options := preparation.Options{File: r.Profile, Library: r.Library, Version: r.Version, Messages: r.Messages, Quiet: r.Quiet}
	c, err := options.Open(ctx, p)
	return job{r, a, c, log}, err
}

// run makes the steps from the second on and prints the answer. It writes the reports even if a
// step failed.
func (j job) run(ctx context.Context) error {
	result, outcome, err := j.make(ctx)
	if err != nil {
		return exit.Leading(err, reportFailure(j.analysis, j.campaign.Setup.Subject.Name, j.Version, j.log))
	}
	result.Steps = j.log.List()
	if err := writeReports(j.analysis, result, j.Version, j.log); err != nil {
		return err
	}
	if j.Page != nil {
		j.Page(func(w io.Writer) error {
			return html.Write(w, result, slices.Contains(j.analysis.Formats, spec.FormatRepository))
		})
	}
	return j.answer(ctx, result, outcome)
}

// make makes the steps from the second on.
func (j job) make(ctx context.Context) (analyze.Result, profile.Outcome, error) {
	v, err := j.variants(ctx)
	if err != nil {
		return analyze.Result{}, profile.Outcome{}, err
	}
	outcome, err := j.search(ctx, v)
	if err != nil {
		return analyze.Result{}, outcome, err
	}
	result, err := analyze.RankFile(j.analysis)
	for _, step := range []func(context.Context, analyze.Result) error{j.optimize, j.repository, j.chart} {
		if err == nil {
			err = step(ctx, result)
		}
	}
	return result, outcome, err
}

// answer prints the best configuration and the next commands. Its error sets the exit code.
func (j job) answer(ctx context.Context, r analyze.Result, outcome profile.Outcome) error {
	write := j.writeAnswer
	if j.JSON {
		write = json.Write
	}
	if err := write(j.Out, r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exit.With(exit.Interrupted, fmt.Errorf("interrupted after %s; the same command resumes", words.Count(outcome.Status.Trials, "trial")))
	}
	if !r.IsMeasured() {
		return exit.With(exit.Failure, errors.New(unmeasuredText(r, j.profile().Output)))
	}
	return r.Unmet()
}

// checkGoal refuses an objective that this machine cannot measure.
func checkGoal(w draft.Wish) error {
	if w.Objective == "" {
		return nil
	}
	p, err := spec.ParseProfile("--objective", []byte("model: model.onnx\nobjective: "+w.Objective))
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	return target.CheckMetrics("--objective", p.Goal, meter.ReadSources(), "on this machine")
}
