// Package conversion makes the output of `tuner convert`. It makes variants of one model in several
// precisions, judges each on several execution providers, and writes the files of the accepted
// ones. It also converts a framework's model to ONNX. Package precision makes and judges a single
// variant. This package decides what to make and write, and reports it.
package conversion

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/exit"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision"
	"tuner/model/precision/places"
	"tuner/ort/provider"
	"tuner/ort/provider/probe"
)

// Request describes the conversions of a model.
type Request struct {
	Model      string            // path of the ONNX file
	Precisions []string          // to make
	Providers  []string          // to judge each variant on
	Dir        string            // folder of the written files
	Force      bool              // replace existing files
	Settings   precision.Options // how variants are made and judged, including the data
}

// checkTargets refuses existing files that must not be replaced, before minutes of work.
func (r Request) checkTargets() error {
	if r.Force {
		return nil
	}
	var errs []error
	for _, name := range r.Precisions {
		path := Target(r.Dir, r.Model, name)
		for _, file := range []string{path, path + ".data"} {
			if _, err := os.Lstat(file); err == nil {
				errs = append(errs, exit.Usagef("cannot write %q: it exists; replace it with --force, or choose another folder with -o", file))
			}
		}
	}
	return errors.Join(errs...)
}

// Target returns the file in a folder for a variant of a model.
func Target(dir, model, precision string) string {
	name := strings.TrimSuffix(filepath.Base(model), filepath.Ext(model))
	return filepath.Join(dir, name+"."+precision+".onnx")
}

// Make makes the variants and writes those that some provider accepts. After a failure, the result
// still has what was made before.
func (r Request) Make(ctx context.Context, maker *precision.Maker, builds places.Builds) (Result, error) {
	result := Result{Request: r}
	prober, err := probe.New()
	if err != nil {
		return result, err
	}
	prober.Libraries = r.Settings.Libraries
	if result.Repeats, err = maker.Determinism(ctx, provider.CPU); err != nil {
		return result, Failed(ctx, err)
	}
	failure := result.makeAll(ctx, maker, converter{prober, builds})
	if failure != nil {
		failure = Failed(ctx, failure)
	}
	return result, errors.Join(failure, result.export())
}

// Failed gives a failure the exit code of an interruption if that is its cause.
func Failed(ctx context.Context, err error) error { return exit.OrInterrupted(ctx, exit.OfFiles(err)) }

// makeAll makes every precision. If one cannot be made, the others are still made. Any other error
// ends the work.
func (r *Result) makeAll(ctx context.Context, maker *precision.Maker, c converter) error {
	for _, name := range r.Precisions {
		v := Variant{Precision: name}
		if v.made, v.err = maker.Make(ctx, name, r.Providers); v.err == nil {
			v.err = c.assign(ctx, &v, r.Providers)
		}
		isFailed := v.err != nil && !errors.Is(v.err, precision.ErrUnmakeable)
		if !isFailed || len(v.made.Accuracy) > 0 {
			r.Variants = append(r.Variants, v)
		}
		if isFailed {
			return v.err
		}
	}
	return nil
}

// converter asks the providers about variants.
type converter struct {
	prober probe.Prober
	builds places.Builds
}

// assign determines the part of a variant that each provider takes. ONNX Runtime silently runs the
// rest on cpu. A provider that takes nothing would be equal to cpu, and is rejected.
func (c converter) assign(ctx context.Context, v *Variant, providers []string) error {
	v.Assigned = map[string]string{}
	for _, name := range providers {
		out, took, err := c.prober.TryAll(ctx, c.builds(name), []string{name}, v.made.Path)
		if err != nil {
			return err
		}
		if reason := out[name]; reason != "" {
			v.made.Rejected[name] = reason
		} else if took[name] != "" {
			v.Assigned[name] = took[name]
		}
	}
	return nil
}

// isAccepted reports whether some provider accepts the variant.
func (v Variant) isAccepted(providers []string) bool {
	return v.err == nil && slices.ContainsFunc(providers, func(p string) bool { return v.made.Rejected[p] == "" })
}

// export writes the accepted variants, and fills in the report on all variants.
func (r *Result) export() error {
	var errs []error
	for i := range r.Variants {
		v := &r.Variants[i]
		m := v.made
		v.Digest, v.Bytes, v.Converted = m.Digest, m.Bytes, m.Converted
		v.Kept = slices.Concat([]precision.KeptNode{}, m.Kept)
		v.Left = slices.Concat([]rewrite.Kept{}, m.Left)
		v.Notes = slices.Concat([]string{}, m.Notes)
		v.Accuracy, v.Rejected, v.FromCache = m.Accuracy, m.Rejected, m.FromCache
		if v.err != nil {
			v.Error = v.err.Error()
		}
		if !v.isAccepted(r.Providers) || m.Path == r.Model { // fp32 that is the original itself
			continue
		}
		path := Target(r.Dir, r.Model, v.Precision)
		if err := m.Export(path, r.Force); err != nil {
			errs = append(errs, exportError(err))
			continue
		}
		v.Path = path
	}
	return errors.Join(errs...)
}

// exportError adds the remedy to the error about an existing file.
func exportError(err error) error {
	if errors.As(err, new(*precision.ExistsError)) {
		return exit.Usagef("%v; replace it with --force, or choose another folder with -o", err)
	}
	return exit.OfFiles(err)
}

// Verdict returns an error if a precision could not be made, or if no variant is accepted.
func (r Result) Verdict() error {
	var unmakeable []error
	isAnyAccepted := false
	for _, v := range r.Variants {
		if v.err != nil {
			unmakeable = append(unmakeable, fmt.Errorf("%s: %w", v.Precision, v.err))
		}
		isAnyAccepted = isAnyAccepted || v.isAccepted(r.Providers)
	}
	switch {
	case len(unmakeable) > 0:
		return exit.With(exit.Usage, errors.Join(unmakeable...))
	case !isAnyAccepted:
		return exit.With(exit.Infeasible, fmt.Errorf("no variant is accepted on %s; nothing was written", strings.Join(r.Providers, ", ")))
	}
	return nil
}
