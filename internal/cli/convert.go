package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tuner/dataset"
	"tuner/hostinfo"
	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/ortlib"
	"tuner/precision"
	"tuner/precision/accuracy"
	"tuner/precision/calibrate"
	"tuner/provider"
	"tuner/provider/probe"
)

// syntheticSeed makes the same random data in every run, so that the cache serves.
const syntheticSeed = 1

// convertOptions are the flags of `tuner convert`.
type convertOptions struct {
	precisions  []string
	dir         string
	data        string
	calibration string
	method      string
	rows        int
	shapes      []string
	limit       limitOptions
	maxKept     string
	keepIO      bool
	force       bool
	providers   []string
	ortLibrary  string
	output      string
	pytorch     pytorchOptions
	has         func(flag string) bool // whether a flag was given
}

// limitOptions are the flags of the accuracy limit.
type limitOptions struct {
	metric, command string
	min, max        float64
}

func newConvert(con console) *cobra.Command {
	var o convertOptions
	cmd := verb(&cobra.Command{
		Use:   "convert MODEL --precision NAME[,NAME…]",
		Short: "Make variants of a model in other precisions, each with an accuracy report",
		Long: `Makes variants of a model: fp16, int8 (8-bit weights, activations quantized in each run) or
int8_static (activations quantized by ranges that calibration finds); fp32 makes only a fixed batch
dimension symbolic. Each is run and compared with the original, on your data or on random inputs.
With a limit (--metric and --min or --max), the nodes that hurt most stay in fp32 until it holds; a
variant that still misses it is rejected and not written.

A PyTorch file (.pt, .pth) is exported first, with your own Python, to FOLDER/NAME.onnx, and
compared with PyTorch. Variants are written to FOLDER/NAME.PRECISION.onnx. What was made is cached;
the original is never changed.`,
		Example: `  tuner convert model.onnx --precision int8
  tuner convert model.onnx --precision int8,fp16 --data rows.npz --metric cosine --min 0.99 -o out
  tuner convert resnet.onnx --precision int8_static --calibration images.npz --ep cpu,openvino
  tuner convert bert.pt --precision int8 \
      --in-names ids,mask --in-shapes '[[-1,256],[-1,256]]' --in-types int64,int64`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageErrorf("tuner convert takes one model (%d given)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runConvert(cmd.Context(), con, o, args[0]) },
	})
	o.addFlags(cmd)
	return cmd
}

func (o *convertOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.precisions, "precision", nil, "`names` of the precisions to make: "+strings.Join(precision.Names(), ", "))
	f.StringVarP(&o.dir, "output-folder", "o", ".", "`folder` to write to; made when it does not exist")
	f.StringVar(&o.data, "data", "", "`file` of inputs to compare on: .npz, .npy, a folder of .npy files, or perf_analyzer's JSON (default: random ones)")
	f.StringVar(&o.calibration, "calibration", "", "`file` of inputs that int8_static is calibrated on, in the same forms (default: those of --data, or other random ones)")
	f.IntVar(&o.rows, "rows", 0, "use the first `n` rows of --data and --calibration (default all), or so many random ones (default 64)")
	f.StringVar(&o.method, "calibration-method", "", "`name` of the method: "+strings.Join(calibrate.Methods(), ", ")+" (default "+calibrate.Methods()[0]+")")
	f.StringArrayVar(&o.shapes, "shape", nil, "`NAME:1,2`: sizes of a random input, without the batch dimension; once for each input")
	f.StringVar(&o.limit.metric, "metric", "", "`name` of the accuracy limit's metric: "+strings.Join(accuracy.Metrics(), ", ")+" (default cosine)")
	f.StringVar(&o.limit.command, "metric-command", "", "shell `command` of your own metric; it gets two .npz files (outputs of original and variant) and prints a number last")
	f.Float64Var(&o.limit.min, "min", 0, "least `value` of the metric")
	f.Float64Var(&o.limit.max, "max", 0, "greatest `value` of the metric")
	f.StringVar(&o.maxKept, "max-kept", "25%", "`share` of the nodes that may stay in fp32 to keep the limit")
	f.BoolVar(&o.keepIO, "keep-io", false, "fp16 keeps the types of inputs and outputs")
	f.BoolVar(&o.force, "force", false, "replace files that are there")
	f.StringSliceVar(&o.providers, "ep", []string{provider.CPU}, "`names` of the execution providers to compare on: "+strings.Join(provider.Names(), ", "))
	f.StringVar(&o.ortLibrary, "ort-library", "", "`library` of ONNX Runtime, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, then the installed builds)")
	f.StringVar(&o.output, "output", "text", "`format`: text or json")
	o.pytorch.addFlags(f)
	o.has = f.Changed
}

func runConvert(ctx context.Context, con console, o convertOptions, path string) error {
	settings, err := o.settings(path)
	if err != nil {
		return err
	}
	if err := o.checkTargets(path); err != nil {
		return err
	}
	var model *onnx.Model
	if !isPyTorch(path) { // what the file tells comes before what the machine lacks
		if model, err = o.source(path, &settings); err != nil {
			return withExit(exitUsage, err)
		}
	}
	builds, err := openLibraries(ctx, o.ortLibrary, o.providers)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	opener, err := newOpener(con, builds.build)
	if err != nil {
		return err
	}
	if isPyTorch(path) {
		if path, err = o.export(ctx, con, path, opener); err != nil {
			return err
		}
		if len(o.precisions) == 0 {
			_, err := fmt.Fprintln(con.out, path)
			return err
		}
		if model, err = o.source(path, &settings); err != nil {
			return withExit(exitUsage, err)
		}
	}
	if settings.Cache, err = precision.UserCache(); err != nil {
		return err
	}
	if settings.Tool, err = variantTool(hostinfo.Read(ctx), o.providers, builds.build); err != nil {
		return err
	}
	settings.Progress = func(text string) { fmt.Fprintln(con.err, text) }
	maker, err := precision.NewMaker(model, opener, settings)
	if err != nil {
		return convertError(ctx, err)
	}
	prober, err := probe.New()
	if err != nil {
		return err
	}
	return converter{o, maker, prober, builds}.convert(ctx, con, path, settings)
}

// export makes the ONNX file of a PyTorch file and returns its path.
func (o convertOptions) export(ctx context.Context, con console, path string, opener precision.Opener) (string, error) {
	source, err := o.pytorch.source(path)
	if err != nil {
		return "", err
	}
	out, err := exportTarget(path, o.dir, o.force)
	if err != nil {
		return "", err
	}
	return out, exportPyTorch(ctx, con, source, o.pytorch.python, out, opener)
}

// source reads the model and, into settings, the data. Every error is the user's to mend.
func (o convertOptions) source(path string, settings *precision.Options) (*onnx.Model, error) {
	model, err := onnx.Read(path)
	if err != nil {
		return nil, err
	}
	if err := precision.CheckSource(model); err != nil {
		return nil, err
	}
	settings.Data, settings.Calibration, err = o.datasets(model)
	return model, err
}

// settings reads the flags that say how variants are made and judged.
func (o convertOptions) settings(path string) (precision.Options, error) {
	s := precision.Options{CalibrationMethod: o.method, KeepIO: o.keepIO, FreeBatch: true}
	if err := checkOutputFormat(o.output); err != nil {
		return s, err
	}
	if o.method != "" && !slices.Contains(calibrate.Methods(), o.method) {
		return s, usageErrorf("--calibration-method %q: allowed are %s", o.method, strings.Join(calibrate.Methods(), ", "))
	}
	if o.has("rows") && o.rows < 1 {
		return s, usageErrorf("--rows %d: at least one row is needed", o.rows)
	}
	if err := checkPyTorchFlags(path, o.has); err != nil {
		return s, err
	}
	if len(o.precisions) == 0 && !isPyTorch(path) {
		return s, usageErrorf("say what to make with --precision: %s", strings.Join(precision.Names(), ", "))
	}
	if len(o.providers) == 0 {
		return s, usageErrorf("--ep names no execution provider: allowed are %s", strings.Join(provider.Names(), ", "))
	}
	err := cmp.Or(checkNames("--precision", o.precisions, precision.Names()), checkNames("--ep", o.providers, provider.Names()))
	if err != nil {
		return s, err
	}
	if s.Limit, err = o.limit.limit(o.has); err != nil {
		return s, err
	}
	s.MaxKept, err = share("--max-kept", o.maxKept)
	return s, err
}

// checkNames checks the values of a flag that takes a list.
func checkNames(flag string, names, allowed []string) error {
	for i, name := range names {
		if !slices.Contains(allowed, name) {
			return usageErrorf("%s %q: allowed are %s", flag, name, strings.Join(allowed, ", "))
		}
		if slices.Contains(names[:i], name) {
			return usageErrorf("%s names %q twice", flag, name)
		}
	}
	return nil
}

// limit returns the limit that the flags ask for; nil when they ask for none.
func (l limitOptions) limit(has func(flag string) bool) (*accuracy.Limit, error) {
	limit := accuracy.Limit{Metric: l.metric, Command: l.command}
	if has("min") {
		limit.Min = &l.min
	}
	if has("max") {
		limit.Max = &l.max
	}
	switch {
	case limit == accuracy.Limit{}:
		return nil, nil
	case l.metric == "" && l.command != "":
		limit.Metric = "command"
	case l.metric == "":
		limit.Metric = "cosine"
	}
	if err := limit.Validate(); err != nil {
		return nil, usageErrorf("--metric, --min, --max: %v", err)
	}
	return &limit, nil
}

// share reads a share: "25%" or "0.25".
func share(flag, text string) (float64, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, usageErrorf("%s %q: a share is given as 25%% or 0.25, from 0 to 1", flag, text)
	}
	return v, nil
}

// datasets returns the data to compare on and that to calibrate on: empty where it is the same, other random rows where all are
// random, since what was calibrated looks too good on the very rows.
func (o convertOptions) datasets(m *onnx.Model) (data, calibration dataset.Dataset, err error) {
	shapes, err := parseShapes(o.shapes)
	if err != nil {
		return data, calibration, err
	}
	synthetic := func(seed uint64) (dataset.Dataset, error) {
		return dataset.Synthetic(m, inputs.Options{Shape: shapes}, cmp.Or(o.rows, precision.DefaultRows), seed)
	}
	if o.data != "" {
		data, err = o.read(o.data, m)
	} else if data, err = synthetic(syntheticSeed); err != nil {
		err = fmt.Errorf("%w\nhere sizes are given as --shape NAME:1,2; --data takes rows of your own", err)
	}
	switch {
	case err != nil:
	case o.calibration != "":
		calibration, err = o.read(o.calibration, m)
	case data.Synthetic:
		calibration, err = synthetic(syntheticSeed + 1)
	}
	return data, calibration, err
}

// read reads a data file, of which --rows may use a part.
func (o convertOptions) read(path string, m *onnx.Model) (dataset.Dataset, error) {
	data, err := dataset.Read(path, m)
	if err != nil || o.rows == 0 {
		return data, err
	}
	return data.Head(o.rows), nil
}

// parseShapes reads shapes such as "ids:1,32".
func parseShapes(flags []string) (map[string][]int64, error) {
	shapes := map[string][]int64{}
	for _, text := range flags {
		i := strings.LastIndex(text, ":") // names may have colons
		if i < 1 {
			return nil, fmt.Errorf("--shape %q: write NAME:SIZES, without the batch dimension, such as input_ids:32 or image:3,224,224", text)
		}
		var dims []int64
		for field := range strings.SplitSeq(text[i+1:], ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("--shape %q: %q is no size: write whole numbers from 1", text, field)
			}
			dims = append(dims, n)
		}
		shapes[text[:i]] = dims
	}
	return shapes, nil
}

// libraries are the ONNX Runtime builds that a verb runs models with.
type libraries struct {
	byProvider map[string]ortlib.Build
}

// build returns the build that serves a provider.
func (l libraries) build(of string) ortlib.Build {
	if build, ok := l.byProvider[of]; ok {
		return build
	}
	return l.byProvider[provider.CPU]
}

// openLibraries finds and tries a build for each provider and for cpu, which makes the reference: the one that flag or
// environment names, else the installed build of the provider's flavour, else the default.
func openLibraries(ctx context.Context, named string, providers []string) (libraries, error) {
	base, err := ortlib.Resolve(named)
	if err != nil {
		return libraries{}, withExit(exitUsage, err)
	}
	if base, err = openBuild(ctx, base); err != nil {
		return libraries{}, err
	}
	l := libraries{byProvider: map[string]ortlib.Build{provider.CPU: base}}
	for _, name := range providers {
		if name != provider.CPU {
			l.byProvider[name] = buildFor(name, named, base)
		}
	}
	return l, nil
}

// buildFor returns the build that serves a provider: base where flag or environment names it, else the installed one of the provider's
// flavour, if there is one.
func buildFor(of, named string, base ortlib.Build) ortlib.Build {
	flavour := provider.Of(of).Flavour
	if flavour == "" || named != "" || os.Getenv("TUNER_ORT_LIBRARY") != "" {
		return base
	}
	store, err := ortlib.UserStore()
	if err != nil {
		return base
	}
	build, err := store.Find(flavour)
	if err != nil {
		return base
	}
	return build
}

// checkTargets refuses, before minutes of work, to write where files are that may not be replaced.
func (o convertOptions) checkTargets(model string) error {
	if o.force {
		return nil
	}
	var errs []error
	for _, name := range o.precisions {
		path := targetPath(o.dir, model, name)
		for _, file := range []string{path, path + ".data"} {
			if _, err := os.Lstat(file); err == nil {
				errs = append(errs, usageErrorf("cannot write %q: it is there already; --force replaces it, -o names another folder", file))
			}
		}
	}
	return errors.Join(errs...)
}

// targetPath is where a variant of a model is written.
func targetPath(dir, model, precision string) string {
	name := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	return filepath.Join(dir, name+"."+precision+".onnx")
}
