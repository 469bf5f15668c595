package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tuner/dataset"
	"tuner/hostinfo"
	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/onnx/rewrite"
	"tuner/precision"
	"tuner/precision/accuracy"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/starter"
	"tuner/provider"
	"tuner/pytorch"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/steps"
)

// modelConversion is the first step of `tuner run`: the model file that is served, made of the user's where that is no ONNX file
// or cannot be batched. The user's own is never changed.
type modelConversion struct {
	con     console
	options runOptions
	model   string // the user's file or folder
	name    string // under which it will be served
	dir     string // the output folder
	skipped string // why there is nothing to convert; "" where there is

	target string // what is made
	key    string // digest of all that target depends on
	torch  pytorch.Source
	source *onnx.Model // with a fixed batch dimension; nil for a PyTorch file
	shapes map[string][]int64
}

// newConversion looks at the user's model. Every error is the user's to mend; nothing is written.
func newConversion(ctx context.Context, con console, o runOptions, model string) (modelConversion, error) {
	info, err := os.Stat(model)
	if err != nil {
		return modelConversion{}, usageErrorf("cannot read the model %q: %v", model, durable.Cause(err))
	}
	c := modelConversion{con: con, options: o, model: model}
	if isPyTorch(model) && !info.IsDir() {
		return c.ofPyTorch()
	}
	named, subject, err := starter.Open("run", model, ".", nil, machineOf(ctx))
	if err == nil && inputs.Batches(subject.Model) { // else the batch dimension may become symbolic, and is not given then
		_, err = starter.GivenSizes(subject.Model, o.given)
	}
	if err != nil {
		return modelConversion{}, err
	}
	c.place(named.Name)
	if info.IsDir() {
		c.skipped = model + " is a Triton model folder, which is served as it is"
		return c, nil
	}
	return c.ofONNX(subject)
}

// place settles name and output folder.
func (c *modelConversion) place(name string) {
	c.name, c.dir = name, c.options.dir
	if c.dir == "" {
		c.dir = filepath.Join("out", name)
	}
}

// ofPyTorch prepares the export of a PyTorch file.
func (c modelConversion) ofPyTorch() (modelConversion, error) {
	var err error
	if c.torch, err = c.options.pytorch.source(c.model); err != nil {
		return c, err
	}
	c.place(spec.NewStarter(exportPath(c.model, "")).Name)
	c.target = exportPath(c.model, c.dir)
	sum, err := checksum.File(c.model)
	if err != nil {
		return c, usageErrorf("cannot read the model %q: %v", c.model, durable.Cause(err))
	}
	c.key, err = digestOf(sum, c.torch.Inputs, c.torch.Outputs, c.torch.Opset)
	return c, err
}

// ofONNX prepares the change of a fixed batch dimension, where the graph allows it.
func (c modelConversion) ofONNX(subject profile.Subject) (modelConversion, error) {
	if inputs.Batches(subject.Model) {
		c.skipped = c.model + " is an ONNX file whose batch dimension is symbolic"
		return c, nil
	}
	if _, err := rewrite.SymbolicBatch(subject.Model); err != nil {
		c.skipped = fmt.Sprintf("%s is an ONNX file, and is served as it is: %v", c.model, err)
		return c, nil
	}
	c.source, c.target, c.shapes = subject.Model, targetPath(c.dir, c.model, spec.PrecisionOriginal), map[string][]int64{}
	shapes, err := starter.ExampleShapes(subject, nil)
	for _, s := range shapes {
		c.shapes[s.Input] = s.Dims
	}
	if err != nil {
		return c, err
	}
	c.key, err = digestOf(subject.Files[0].Source.Digest, c.shapes)
	return c, err
}

// digestOf is the digest of values that encode as JSON.
func digestOf(values ...any) (string, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("cannot compute a digest: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// checkFiles refuses, before any work, files in the output folder that this run would have to replace and may not, and a folder in which it
// could not go on.
func (c modelConversion) checkFiles(log *steps.Log) error {
	if _, err := os.Lstat(c.target); c.skipped == "" && !log.Owns(steps.Convert, c.target) && !errors.Is(err, fs.ErrNotExist) {
		return usageErrorf("cannot convert %q to %q, which exists: 'tuner run %s' goes on from it, and -o names another folder", c.model, c.target, c.target)
	}
	if err := c.checkProfile(); err != nil {
		return err
	}
	made, known := log.List().Get(steps.Convert)
	if known && made.Key != c.key && campaign.Exists(c.dir) {
		return usageErrorf("%q, or how it is to be converted, changed since the campaign in %q began: name another folder with -o, or remove that one to start over", c.model, c.dir)
	}
	return nil
}

// checkProfile refuses a folder whose profile is of another model, before the record of its steps tells of this one.
func (c modelConversion) checkProfile() error {
	path := filepath.Join(c.dir, spec.ProfileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p, err := readProfile(path)
	if err != nil {
		return err
	}
	isServed := isSamePath(p.Model.Path, c.model) || c.target != "" && isSamePath(p.Model.Path, c.target)
	if !isServed {
		return usageErrorf("%s is there, and is of another model than %q (%q): 'tuner run -f %s' goes on with it, and -o names another folder",
			path, c.model, p.Model.Path, path)
	}
	return nil
}

// convert makes the first step, and returns the model file or folder that is served.
func (c modelConversion) convert(ctx context.Context, log *steps.Log) (path string, err error) {
	if c.skipped != "" {
		return c.model, log.Do(ctx, steps.Convert, "", func() (steps.Outcome, error) { return steps.Skip("%s", c.skipped), nil })
	}
	err = log.Do(ctx, steps.Convert, c.key, func() (steps.Outcome, error) {
		if err := log.Claim(steps.Convert, c.key, c.target); err != nil {
			return steps.Outcome{}, err
		}
		libraries, err := openLibraries(ctx, c.options.ortLibrary, []string{provider.CPU})
		if err != nil {
			return steps.Outcome{}, interruptedOr(ctx, err)
		}
		opener, err := newOpener(c.con, libraries.build)
		if err != nil {
			return steps.Outcome{}, err
		}
		if c.source == nil {
			return c.export(ctx, opener)
		}
		return c.freeBatch(ctx, opener, libraries)
	})
	if s, _ := log.List().Get(steps.Convert); s.State == steps.OK {
		return c.target, err
	}
	return c.model, err
}

// reportFailure writes the reports on a run that failed in the first step: it has no profile yet, unless an earlier one went on.
func (c modelConversion) reportFailure(log *steps.Log) error {
	a, err := analysisOf(c.con, spec.Profile{Path: filepath.Join(c.dir, spec.ProfileName), Output: c.dir})
	if err != nil {
		return err
	}
	return reportFailure(a, c.name, log)
}

// export makes an ONNX file of a PyTorch file.
func (c modelConversion) export(ctx context.Context, opener precision.Opener) (steps.Outcome, error) {
	if err := exportPyTorch(ctx, c.con, c.torch, c.options.pytorch.python, c.target, opener); err != nil {
		return steps.Outcome{}, err
	}
	return steps.Outcome{Text: fmt.Sprintf("%s was exported from %s, and yields what PyTorch does", c.target, c.model), Files: []string{c.target}}, nil
}

// freeBatch makes the fixed batch dimension of an ONNX file symbolic.
func (c modelConversion) freeBatch(ctx context.Context, opener precision.Opener, libraries libraries) (steps.Outcome, error) {
	data, err := dataset.Synthetic(c.source, inputs.Options{Shape: c.shapes}, precision.DefaultRows, syntheticSeed)
	if err != nil {
		return steps.Outcome{}, withExit(exitUsage, err)
	}
	settings := precision.Options{Data: data, FreeBatch: true,
		Progress: func(text string) { fmt.Fprintln(c.con.err, text) }}
	if settings.Cache, err = precision.UserCache(); err != nil {
		return steps.Outcome{}, err
	}
	if settings.Tool, err = variantTool(hostinfo.Read(ctx), []string{provider.CPU}, libraries.build); err != nil {
		return steps.Outcome{}, err
	}
	maker, err := precision.NewMaker(c.source, opener, settings)
	if err != nil {
		return steps.Outcome{}, convertError(ctx, err)
	}
	v, err := maker.Make(ctx, precision.FP32, []string{provider.CPU})
	if err != nil {
		return steps.Outcome{}, convertError(ctx, err)
	}
	if reason := v.Rejected[provider.CPU]; reason != "" {
		return steps.Skip("%s is served as it is: with a symbolic batch dimension it is refused (%s)", c.model, reason), nil
	}
	if difference := differenceText(v.Accuracy[provider.CPU]); difference != "" {
		return steps.Skip("%s is served as it is: with a symbolic batch dimension its outputs differ (%s)", c.model, difference), nil
	}
	if err := v.Export(c.target, true); err != nil {
		return steps.Outcome{}, inputError(err)
	}
	outcome := steps.Outcome{Text: fmt.Sprintf("%s is %s with a symbolic batch dimension, and yields the same", c.target, c.model), Files: []string{c.target}}
	if _, err := os.Lstat(c.target + ".data"); err == nil {
		outcome.Files = append(outcome.Files, c.target+".data")
	}
	return outcome, nil
}

// differenceText says in what the outputs of a model with a symbolic batch dimension are not the original's; "" for in nothing but
// rounding. Each output is looked at by what it has: numbers by their differences, others by whether they are equal.
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

// writeRunFiles writes the profile.yaml and analyze.yaml that say what the flags ask for of a model, unless they are there, and
// returns the profile's path.
func writeRunFiles(ctx context.Context, con console, o runOptions, name, model, dir string) (string, error) {
	first, subject, err := starter.Open("run", model, dir, o.given, machineOf(ctx))
	if err != nil {
		return "", err
	}
	if len(first.Shapes) > 0 && len(o.given) == 0 {
		fmt.Fprintf(con.err, "sizes of symbolic dimensions are examples, on which the figures depend: %s; --shape says what your requests have\n", shapesText(first.Shapes))
	}
	first.Name, first.Config, first.Output, first.Wish = name, "", ".", &o.wish
	files, err := starter.Files(dir, first, subject, formats.All().Words())
	if err != nil {
		return "", err
	}
	path := files[0].Path
	missing, err := missingFiles(files)
	if err != nil || len(missing) == 0 {
		return path, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usageErrorf("cannot make folder %q: %v; -o names another", dir, durable.Cause(err))
	}
	return path, inputError(starter.Replace(dir, missing))
}

// shapesText lists shapes: "ids [32], mask [32]".
func shapesText(shapes []spec.StarterShape) string {
	parts := make([]string, len(shapes))
	for i, s := range shapes {
		parts[i] = fmt.Sprintf("%s %v", s.Input, s.Dims)
	}
	return strings.Join(parts, ", ")
}

// missingFiles leaves out the files that are there: the user may have edited them. A profile that asks for something else is
// an error, unless only budget or until differ: then it is written again.
func missingFiles(files []starter.File) ([]starter.File, error) {
	var missing []starter.File
	for _, f := range files {
		there, err := os.ReadFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
			continue
		case err != nil:
			return nil, usageErrorf("cannot read %q: %v", f.Path, durable.Cause(err))
		case filepath.Base(f.Path) != spec.ProfileName:
			continue
		}
		isSame, isOtherEnd, err := compareProfiles(f.Path, there, f.Text)
		switch {
		case err != nil:
			return nil, withExit(exitUsage, err)
		case isOtherEnd:
			missing = append(missing, f)
		case !isSame:
			return nil, usageErrorf("%s is there, and asks for something else than this command: 'tuner run -f %s' goes on with it, and -o names another folder", f.Path, f.Path)
		}
	}
	return missing, nil
}

// compareProfiles reports whether two texts of a profile ask for the same search of the same model into the same folder, or differ in
// when it ends and in nothing else that a file can say.
func compareProfiles(path string, there, asked []byte) (isSame, isOtherEnd bool, err error) {
	a, err := spec.ParseProfile(path, there)
	if err != nil {
		return false, false, err
	}
	b, err := spec.ParseProfile(path, asked)
	if err != nil {
		return false, false, err
	}
	if a.Search.Budget == b.Search.Budget && a.Search.Until == b.Search.Until {
		return campaign.AskSame(a, b) && a.Model.Path == b.Model.Path && isSamePath(a.Output, b.Output), false, nil
	}
	a.Search.Budget, a.Search.Until, a.Text, b.Text = b.Search.Budget, b.Search.Until, nil, nil
	return false, reflect.DeepEqual(a, b), nil
}

// analysisOf reads the analyze.yaml beside a profile, or stands in for one where there is none, or that of another campaign.
func analysisOf(con console, p spec.Profile) (spec.Analyze, error) {
	path := filepath.Join(filepath.Dir(p.Path), spec.AnalyzeName)
	if _, err := os.Lstat(path); err == nil {
		a, err := readAnalyze(path)
		if err != nil || isSamePath(a.Input, p.Output) {
			return a, err
		}
		fmt.Fprintf(con.err, "%s is of another campaign (%s): the results are written as without one\n", path, a.Input)
	}
	return analysisOfInput(p.Output)
}

// isSamePath reports whether two names, of which one may be absolute, are of the same place.
func isSamePath(a, b string) bool {
	first, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	second, err := filepath.Abs(b)
	return err == nil && first == second
}
