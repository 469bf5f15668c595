package precision

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"tuner/internal/hostinfo"
	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
	"tuner/model/precision/calibrate"
	"tuner/model/precision/recipe"
)

// rewriter makes one precision's model of a source.
type rewriter struct {
	// convert converts the model, except the nodes named by keep.
	convert func(keep []string) (*onnx.Model, rewrite.Summary, error)
	// probe makes a model that measures the error of each node's conversion. outputs has by node
	// the additional output with its error. nil: there is no such measurement, and no node can be
	// kept.
	probe func() (m *onnx.Model, outputs map[string]string, err error)
}

// settings has the parts of a recipe that affect its result, for the key of the cache. Those that
// do not affect the precision are zero.
type settings struct {
	Bits      int    `json:"bits,omitempty"`
	KeepIO    bool   `json:"keep_io,omitempty"`
	FreeBatch bool   `json:"free_batch,omitempty"`
	Method    string `json:"method,omitempty"`
	Data      string `json:"data,omitempty"` // digest of the calibration data
}

// settingsOf returns the settings of a precision.
func (k *Maker) settingsOf(ctx context.Context, precision string) settings {
	s, r := settings{FreeBatch: k.options.FreeBatch}, rowOf(precision)
	if r.KeepsIO {
		s.KeepIO = k.options.KeepIO
	}
	if r.HasBits {
		s.Bits = k.weightBits(ctx)
	}
	if r.Calibrated {
		s.Method, s.Data = k.options.CalibrationMethod, k.calibration().Digest()
	}
	return s
}

// rowOf returns the row of a precision. It is the zero row for a name without one.
func rowOf(precision string) recipe.Recipe {
	r, _ := recipe.Find(precision)
	return r
}

// newRewriter returns a precision's rewriter. If the precision needs ranges, it runs the calibration.
func (k *Maker) newRewriter(ctx context.Context, precision string) (rewriter, error) {
	r, known := recipe.Find(precision)
	if !known {
		return rewriter{}, fmt.Errorf("cannot make the precision %q: allowed are %v", precision, recipe.Names())
	}
	var s recipe.Settings
	if r.KeepsIO {
		s.KeepIO = k.options.KeepIO
	}
	if r.HasBits {
		s.Bits = k.weightBits(ctx)
	}
	if r.Calibrated {
		var err error
		if s.Ranges, err = k.ranges(ctx, precision); err != nil {
			return rewriter{}, err
		}
	}
	made := rewriter{convert: func(keep []string) (*onnx.Model, rewrite.Summary, error) {
		with := s
		with.Keep = keep
		return r.Convert(k.base, with)
	}}
	if r.Probe != nil {
		made.probe = func() (*onnx.Model, map[string]string, error) { return r.Probe(k.base, s) }
	}
	return made, nil
}

// ranges runs the source on the calibration data and returns the ranges of its activations.
func (k *Maker) ranges(ctx context.Context, precision string) (map[string]quantization.Range, error) {
	values, err := quantization.Activations(k.base)
	if err != nil {
		return nil, &Unmakeable{precision, err}
	}
	exposed, err := rewrite.Expose(k.base, values)
	if err != nil {
		return nil, &Unmakeable{precision, err}
	}
	collector, err := calibrate.New(k.options.CalibrationMethod)
	if err != nil {
		return nil, err
	}
	if _, err := k.original(ctx); err != nil { // checks first that the source runs at all
		return nil, err
	}
	err = k.calibrate(ctx, precision, exposed, func(in, out map[string]inputs.Tensor) error {
		return collector.Add(pick(values, out, in))
	})
	if err != nil {
		return nil, err
	}
	return collector.Ranges(), nil
}

// calibrate runs the source with its activations as outputs. If a provider refuses that, only this
// precision fails.
func (k *Maker) calibrate(ctx context.Context, precision string, exposed *onnx.Model, add visitor) error {
	data := k.calibration()
	k.progress("%s: calibrating on %d rows", precision, data.Rows)
	session, err := k.open.Open(ctx, exposed, cpu)
	if err == nil {
		defer session.Close(context.WithoutCancel(ctx))
		// This runs row by row, since all activations of a batch can exceed the size limit of one
		// answer (2 GiB).
		err = inBatches(ctx, session, exposed, data, 1, func(in, out map[string]inputs.Tensor) error {
			if err := add(in, out); err != nil {
				return &Unmakeable{precision, err}
			}
			return nil
		})
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return &Unmakeable{precision, fmt.Errorf("cannot calibrate the model on the data %q: ONNX Runtime does not run it on %s with its activations as outputs: %s",
			data.Name, cpu, refused.Reason)}
	}
	return err
}

// calibration returns the data for the calibration.
func (k *Maker) calibration() dataset.Dataset {
	if k.options.Calibration.Rows > 0 {
		return k.options.Calibration
	}
	return k.options.Data
}

// weightBits returns the number of bits of weights. It is 8 if products of 8-bit numbers are summed
// in 32 bits, which needs VNNI or AMX on x86 and holds on every Arm. Otherwise it is 7: sums of two
// products would saturate at 16 bits, and the outputs would be wrong.
func (k *Maker) weightBits(ctx context.Context) int {
	if k.options.WeightBits == 0 {
		k.options.WeightBits = 8
		if runtime.GOARCH == "amd64" && !multipliesBytes(hostinfo.Read(ctx).CPU) {
			k.options.WeightBits = 7
		}
	}
	return k.options.WeightBits
}

// multipliesBytes reports whether an x86 processor sums products of 8-bit numbers without
// saturation.
func multipliesBytes(c hostinfo.CPU) bool {
	return c.Has("AVX512VNNI") || c.Has("AVXVNNI") || c.Has("AMXINT8")
}

// pick returns the named values: outputs of an inference, or its inputs, which are activations too.
func pick(names []string, outputs, in map[string]inputs.Tensor) map[string]inputs.Tensor {
	picked := make(map[string]inputs.Tensor, len(names))
	for _, name := range names {
		if t, ok := outputs[name]; ok {
			picked[name] = t
		} else if t, ok := in[name]; ok {
			picked[name] = t
		}
	}
	return picked
}
