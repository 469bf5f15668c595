package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tuner/internal/cli/arguments"
	"tuner/internal/exit"
	"tuner/internal/terminal"
	"tuner/model/framework"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/calibrate"
	"tuner/model/precision/conversion"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/provider"
)

// limitOptions are the flags of the accuracy limit.
type limitOptions struct {
	metric, command string
	min, max        float64
}

func (o *convertOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.precisions, "precision", nil, "`names` of the precisions to make: "+strings.Join(recipe.Names(), ", "))
	f.StringVarP(&o.dir, "output-folder", "o", ".", "`folder` to write to; made when it does not exist")
	f.StringVar(&o.data, "data", "", "`file` of inputs to compare on: .npz, .npy, a folder of .npy files, or perf_analyzer's JSON (default: random ones)")
	f.StringVar(&o.calibration, "calibration", "", "`file` of inputs that int8_static is calibrated on, in the same forms (default: those of --data, or other random ones)")
	f.IntVar(&o.rows, "rows", 0, "use the first `n` rows of --data and --calibration (default all), or n random ones (default up to 64)")
	f.StringVar(&o.method, "calibration-method", "", "`name` of the method: "+strings.Join(calibrate.Methods(), ", ")+" (default "+calibrate.Methods()[0]+")")
	f.StringArrayVar(&o.shapes, "shape", nil, "`NAME:1,2`: sizes of a random input, without the batch dimension; once for each input")
	f.StringVar(&o.limit.metric, "metric", "", "`name` of the accuracy limit's metric: "+strings.Join(accuracy.Metrics(), ", ")+" (default cosine)")
	f.StringVar(&o.limit.command, "metric-command", "", "shell `command` of your own metric; it gets two .npz files (outputs of original and variant) and prints a number last")
	f.Float64Var(&o.limit.min, "min", 0, "least `value` of the metric")
	f.Float64Var(&o.limit.max, "max", 0, "greatest `value` of the metric")
	f.StringVar(&o.maxKept, "max-kept", "25%", "`share` of the nodes that may stay in fp32 to keep the limit")
	f.BoolVar(&o.keepIO, "keep-io", false, "fp16 keeps the types of inputs and outputs")
	f.BoolVar(&o.force, "force", false, "replace existing files")
	f.StringSliceVar(&o.providers, "ep", []string{provider.CPU}, "`names` of the execution providers to compare on: "+strings.Join(provider.Names(), ", "))
	f.StringVar(&o.ortLibrary, "ort-library", "", "`library` of ONNX Runtime, or flavour[@version] of an installed one (default $TUNER_ORT_LIBRARY, then the installed builds)")
	addon.AddFlags(f, &o.libraries)
	terminal.AddFormat(f, &o.output, "`format`: text or json")
	o.framework.addFlags(f)
	o.has = f.Changed
}

// job reads the flags for a model. The user can fix every error.
func (o convertOptions) job(con console, path string) (conversion.Job, error) {
	settings, err := o.settings(path)
	if err != nil {
		return conversion.Job{}, err
	}
	shapes, err := inputs.ParseShapes(o.shapes)
	if err != nil {
		return conversion.Job{}, exit.With(exit.Usage, err)
	}
	job := conversion.Job{
		Request: conversion.Request{Model: path, Precisions: o.precisions, Providers: o.providers, Dir: o.dir, Force: o.force, Settings: settings},
		Data:    conversion.Data{Path: o.data, Calibration: o.calibration, Rows: o.rows, Shapes: shapes},
		Library: o.ortLibrary, Version: toolVersion(), Python: o.framework.python, Messages: con.err,
	}
	if of, ok := framework.Of(path); ok {
		job.Source, err = o.framework.source(of, path)
	}
	return job, err
}

// settings reads the flags that say how variants are made and judged.
func (o convertOptions) settings(path string) (precision.Options, error) {
	s := precision.Options{CalibrationMethod: o.method, KeepIO: o.keepIO, FreeBatch: true}
	if err := arguments.CheckFormat(o.output); err != nil {
		return s, err
	}
	if o.method != "" && !slices.Contains(calibrate.Methods(), o.method) {
		return s, exit.Usagef("--calibration-method %q: allowed are %s", o.method, strings.Join(calibrate.Methods(), ", "))
	}
	if o.has("rows") && o.rows < 1 {
		return s, exit.Usagef("--rows %d: at least one row is needed", o.rows)
	}
	if err := checkFrameworkFlags(path, o.has); err != nil {
		return s, err
	}
	if len(o.precisions) == 0 && !arguments.IsForeign(path) {
		return s, exit.Usagef("cannot convert: no precision is given; name one or more with --precision: %s", strings.Join(recipe.Names(), ", "))
	}
	if len(o.providers) == 0 {
		return s, exit.Usagef("--ep names no execution provider: allowed are %s", strings.Join(provider.Names(), ", "))
	}
	var err error
	if s.Libraries, err = o.libraries.Resolve(addon.InFlags()); err != nil {
		return s, exit.With(exit.Usage, err)
	}
	err = cmp.Or(checkNames("--precision", o.precisions, recipe.Names()), checkNames("--ep", o.providers, provider.Names()))
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
			return exit.Usagef("%s %q: allowed are %s", flag, name, strings.Join(allowed, ", "))
		}
		if slices.Contains(names[:i], name) {
			return exit.Usagef("%s names %q twice", flag, name)
		}
	}
	return nil
}

// limit returns the limit in the flags; nil without one.
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
		return nil, exit.Usagef("--metric, --min, --max: %v", err)
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
		return 0, exit.Usagef("%s %q: write a share such as 25%% or 0.25, from 0 to 1", flag, text)
	}
	return v, nil
}
