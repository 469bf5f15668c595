package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/dataset"
	"tuner/model/framework"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/conversion"
	"tuner/model/precision/places"
	"tuner/model/precision/recipe"
	"tuner/ort/provider"
	"tuner/pipeline/steps"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/starter"
	"tuner/spec"
	"tuner/spec/draft"
)

// modelConversion is the first step. It makes a servable model file if the user's file is not ONNX
// or cannot be batched. It never changes the user's file.
type modelConversion struct {
	Request
	name    string        // name under which it will be served
	dir     string        // output folder
	skipped string        // reason why no conversion is needed; "" if one is
	opened  starter.Model // the user's model; zero for a framework's model

	target  string // the file that is made
	key     string // digest of everything that target depends on
	foreign framework.Source
	source  *onnx.Model        // model with a fixed batch dimension; nil for a framework's model
	sizes   map[string][]int64 // of the requests of the comparison
}

// newConversion inspects the user's model. The user can fix every error. It writes nothing.
func newConversion(ctx context.Context, r Request) (modelConversion, error) {
	info, err := os.Stat(r.Model)
	if err != nil {
		return modelConversion{}, exit.Usagef("cannot read the model %q: %v", r.Model, durable.Cause(err))
	}
	c := modelConversion{Request: r}
	if of, ok := framework.Of(r.Model); ok {
		return c.ofFramework(of)
	}
	c.opened, err = starter.Open(ctx, "run", r.Model, r.Libraries)
	// otherwise the batch dimension may become symbolic, and users do not give its size
	if err == nil && inputs.Batches(c.opened.Model) {
		_, err = starter.GivenSizes(c.opened.Model, r.Shapes)
	}
	if err == nil && r.Wish.Data != "" {
		if _, err = dataset.Read(r.Wish.Data, c.opened.Model); err != nil {
			err = exit.Usagef("--data: %w", err)
		}
	}
	if err == nil {
		err = c.opened.CheckMix(r.Wish.Mix, r.Shapes)
	}
	if err != nil {
		return modelConversion{}, err
	}
	c.setOutput(c.opened.Name)
	if info.IsDir() {
		c.skipped = r.Model + " is a Triton model folder, which is served as it is"
		return c, nil
	}
	return c.ofONNX(c.opened.Subject)
}

// setOutput sets name and output folder.
func (c *modelConversion) setOutput(name string) {
	c.name, c.dir = name, c.Dir
	if c.dir == "" {
		c.dir = filepath.Join("out", name)
	}
}

// ofFramework prepares the export of a framework's model.
func (c modelConversion) ofFramework(of framework.Framework) (modelConversion, error) {
	var err error
	if c.foreign, err = c.Foreign(of); err != nil {
		return c, err
	}
	c.setOutput(draft.NewStarter(conversion.ExportPath(c.Model, "")).Name)
	c.target = conversion.ExportPath(c.Model, c.dir)
	sum, err := framework.Digest(c.Model)
	if err != nil {
		return c, exit.Usagef("cannot read the model %q: %v", c.Model, durable.Cause(err))
	}
	c.key, err = digestOf(sum, c.foreign.Inputs, c.foreign.Outputs, c.foreign.Opset)
	return c, err
}

// ofONNX prepares the change of a fixed batch dimension, if the graph allows it.
func (c modelConversion) ofONNX(subject profile.Subject) (modelConversion, error) {
	if inputs.Batches(subject.Model) {
		c.skipped = c.Model + " is an ONNX file whose batch dimension is symbolic"
		return c, nil
	}
	if _, err := batch.Symbolic(subject.Model); err != nil {
		c.skipped = fmt.Sprintf("%s is an ONNX file, and is served as it is: %v", c.Model, err)
		return c, nil
	}
	c.source, c.target, c.sizes = subject.Model, conversion.Target(c.dir, c.Model, recipe.Original), map[string][]int64{}
	shapes, err := starter.ExampleShapes(subject, nil)
	for _, s := range shapes {
		c.sizes[s.Input] = s.Dims
	}
	if err != nil {
		return c, err
	}
	c.key, err = digestOf(subject.Files[0].Source.Digest, c.sizes)
	return c, err
}

// checkFiles runs before any work. It refuses an output folder with files that this run would have
// to replace but must not. It also refuses a folder in which the run could not continue.
func (c modelConversion) checkFiles(log *steps.Log) error {
	if _, err := os.Lstat(c.target); c.skipped == "" && !log.Owns(steps.Convert, c.target) && !errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("cannot convert %q to %q, which exists: use it with 'tuner run %s', or choose another folder with -o", c.Model, c.target, words.ShellWord(c.target))
	}
	if err := c.checkProfile(); err != nil {
		return err
	}
	made, known := log.List().Get(steps.Convert)
	if known && made.Key != c.key && campaign.Exists(c.dir) {
		return exit.Usagef("%q or its shapes changed after the campaign in %q began: choose another folder with -o, or remove that one to start over", c.Model, c.dir)
	}
	return nil
}

// checkProfile refuses a folder whose profile is about another model, before the record of its
// steps describes this model.
func (c modelConversion) checkProfile() error {
	path := filepath.Join(c.dir, draft.ProfileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p, err := spec.ReadProfile(path)
	if err != nil {
		return err
	}
	isServed := spec.IsSamePath(p.Model.Path, c.Model) || c.target != "" && spec.IsSamePath(p.Model.Path, c.target)
	if !isServed {
		return exit.Usagef("%s describes another model than %q (%q): resume that run with 'tuner run -f %s', or choose another folder with -o",
			path, c.Model, p.Model.Path, words.ShellWord(path))
	}
	return nil
}

// convert makes the first step. It returns the model file or folder to serve.
func (c modelConversion) convert(ctx context.Context, log *steps.Log) (path string, err error) {
	if c.skipped != "" {
		return c.Model, log.Do(ctx, steps.Convert, "", func() (steps.Outcome, error) { return steps.Skip("%s", c.skipped), nil })
	}
	err = log.Do(ctx, steps.Convert, c.key, func() (steps.Outcome, error) {
		if err := log.Claim(steps.Convert, c.key, c.target); err != nil {
			return steps.Outcome{}, err
		}
		builds, err := places.Find(ctx, c.Library, nil)
		if err != nil {
			return steps.Outcome{}, exit.OrInterrupted(ctx, err)
		}
		opener, err := builds.Opener(c.opened.Libraries, c.Messages)
		if err != nil {
			return steps.Outcome{}, err
		}
		if c.source == nil {
			return c.export(ctx, opener)
		}
		return c.freeBatch(ctx, opener, builds)
	})
	if s, _ := log.List().Get(steps.Convert); s.State == steps.OK {
		return c.target, err
	}
	return c.Model, err
}

// served returns the model to serve, at the path that convert returns. It reads a file that the
// conversion made. The user's own was read before.
func (c modelConversion) served(ctx context.Context, path string) (starter.Model, error) {
	if path == c.Model && c.opened.Model != nil {
		return c.opened, nil
	}
	return starter.Open(ctx, "run", path, c.Libraries)
}

// reportFailure writes the reports of a run that failed in the first step. Such a run has no
// profile yet, unless an earlier run wrote one.
func (c modelConversion) reportFailure(log *steps.Log) error {
	a, err := analysisOf(c.Messages, spec.Profile{Path: filepath.Join(c.dir, draft.ProfileName), Output: c.dir})
	if err != nil {
		return err
	}
	return reportFailure(a, c.name, c.Version, log)
}

// export converts a framework's model to ONNX.
func (c modelConversion) export(ctx context.Context, opener precision.Opener) (steps.Outcome, error) {
	if err := conversion.Export(ctx, c.Messages, c.foreign, c.Python, c.target, opener); err != nil {
		return steps.Outcome{}, err
	}
	return steps.Outcome{Text: fmt.Sprintf("%s was exported from %s, and has the outputs of %s", c.target, c.Model, c.foreign.Framework.Name), Files: []string{c.target}}, nil
}

// freeBatch makes the fixed batch dimension of an ONNX file symbolic.
func (c modelConversion) freeBatch(ctx context.Context, opener precision.Opener, builds places.Builds) (steps.Outcome, error) {
	o := inputs.Options{Shape: c.sizes}
	data, err := dataset.Synthetic(c.source, o, precision.SyntheticRows(c.source, o), conversion.Seed)
	if err != nil {
		return steps.Outcome{}, exit.With(exit.Usage, err)
	}
	settings := precision.Options{Data: data, FreeBatch: true, Libraries: c.opened.Libraries, Progress: func(text string) { fmt.Fprintln(c.Messages, text) }}
	maker, err := builds.Maker(ctx, c.Version, c.source, opener, []string{provider.CPU}, settings)
	if err != nil {
		return steps.Outcome{}, conversion.Failed(ctx, err)
	}
	v, err := maker.Make(ctx, recipe.Original, []string{provider.CPU})
	if err != nil {
		return steps.Outcome{}, conversion.Failed(ctx, err)
	}
	if reason := v.Rejected[provider.CPU]; reason != "" {
		return steps.Skip("%s is served as it is: with a symbolic batch dimension it is refused (%s)", c.Model, reason), nil
	}
	if difference := differenceText(v.Accuracy[provider.CPU]); difference != "" {
		return steps.Skip("%s is served as it is: with a symbolic batch dimension its outputs differ (%s)", c.Model, difference), nil
	}
	if err := v.Export(c.target, true); err != nil {
		return steps.Outcome{}, exit.OfFiles(err)
	}
	outcome := steps.Outcome{Text: fmt.Sprintf("%s is %s with a symbolic batch dimension, and has the same outputs", c.target, c.Model), Files: []string{c.target}}
	if _, err := os.Lstat(c.target + ".data"); err == nil {
		outcome.Files = append(outcome.Files, c.target+".data")
	}
	return outcome, nil
}

// differenceText describes how the outputs of a model with a symbolic batch dimension differ from
// the original's. It returns "" if only rounding differs. Numbers are compared by their
// differences, other outputs by equality.
func differenceText(r accuracy.Report) string {
	for _, name := range slices.Sorted(maps.Keys(r.Outputs)) {
		f := r.Outputs[name]
		switch {
		case f.Agrees():
		case f.NonFinite > 0:
			return fmt.Sprintf("%d elements of %q are NaN or infinite where the original's are not", f.NonFinite, name)
		case math.IsNaN(f.MaxAbs):
			return fmt.Sprintf("%q is equal in %.3g %% of the rows", name, 100*f.Top1)
		default:
			return fmt.Sprintf("%q by up to %.3g, relative %.3g", name, f.MaxAbs, f.MaxRel)
		}
	}
	return ""
}
