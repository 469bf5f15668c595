package cli

import (
	"context"
	"errors"

	"tuner/precision"
	"tuner/provider"
	"tuner/provider/probe"
)

// converter makes the variants that the flags ask for.
type converter struct {
	options convertOptions
	maker   *precision.Maker
	prober  probe.Prober
	builds  libraries
}

// convert makes the variants, writes them and tells of them. What was made and measured before a failure is not lost.
func (c converter) convert(ctx context.Context, con console, path string, settings precision.Options) error {
	repeats, err := c.maker.Determinism(ctx, provider.CPU)
	if err != nil {
		return convertError(ctx, err)
	}
	variants, failure := c.all(ctx)
	if failure != nil {
		failure = convertError(ctx, failure)
	}
	if len(variants) == 0 {
		return failure
	}
	made := conversion{path, settings.Data, settings.Calibration, settings.Limit, repeats, variants}
	failure = errors.Join(failure, made.write(c.options))
	if err := made.print(con.out, c.options); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	return made.verdict(c.options.providers)
}

// all makes every precision that is asked for. One that cannot be made does not keep the others from it. Any other error ends
// the work; what there was until then comes with it.
func (c converter) all(ctx context.Context) ([]result, error) {
	var results []result
	for _, name := range c.options.precisions {
		r := result{Precision: name}
		if r.variant, r.err = c.maker.Make(ctx, name, c.options.providers); r.err == nil {
			r.err = c.assign(ctx, &r)
		}
		failed := r.err != nil && !errors.Is(r.err, precision.ErrUnmakeable)
		if !failed || len(r.variant.Accuracy) > 0 {
			results = append(results, r)
		}
		if failed {
			return results, r.err
		}
	}
	return results, nil
}

// assign asks which part of a variant each provider takes: ONNX Runtime runs the rest on cpu and does not say so. One that takes
// nothing would be cpu by another name: it is out.
func (c converter) assign(ctx context.Context, r *result) error {
	r.Assigned = map[string]string{}
	for _, of := range c.options.providers {
		out, took, err := c.prober.TryAll(ctx, c.builds.build(of), []string{of}, r.variant.Path)
		if err != nil {
			return err
		}
		if reason := out[of]; reason != "" {
			r.variant.Rejected[of] = reason
		} else if took[of] != "" {
			r.Assigned[of] = took[of]
		}
	}
	return nil
}

// convertError gives exit code 2 to what the user can mend.
func convertError(ctx context.Context, err error) error {
	return interruptedOr(ctx, inputError(sourceError(err)))
}
