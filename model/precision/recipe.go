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
	"tuner/model/precision/calibrate"
)

// recipe makes one precision's model of a source.
type recipe struct {
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
	s := settings{FreeBatch: k.options.FreeBatch}
	switch precision {
	case FP16:
		s.KeepIO = k.options.KeepIO
	case Int8:
		s.Bits = k.weightBits(ctx)
	case Int8Static:
		s.Bits, s.Method, s.Data = k.weightBits(ctx), k.options.CalibrationMethod, k.calibration().Digest()
	}
	return s
}

// newRecipe returns a precision's recipe. For int8_static it runs the calibration.
func (k *Maker) newRecipe(ctx context.Context, precision string) (recipe, error) {
	switch m := k.base; precision {
	case FP32:
		return recipe{convert: func([]string) (*onnx.Model, rewrite.Summary, error) { return m, rewrite.Summary{}, nil }}, nil
	case FP16:
		return recipe{convert: func([]string) (*onnx.Model, rewrite.Summary, error) {
			return rewrite.Float16(m, rewrite.Float16Options{KeepIO: k.options.KeepIO})
		}}, nil
	case Int8:
		options := rewrite.Int8Options{Bits: k.weightBits(ctx)}
		return recipe{
			convert: func(keep []string) (*onnx.Model, rewrite.Summary, error) {
				with := options
				with.Keep = keep
				return rewrite.Int8Dynamic(m, with)
			},
			probe: func() (*onnx.Model, map[string]string, error) { return rewrite.Int8Sensitivity(m, options) },
		}, nil
	case Int8Static:
		return k.calibrated(ctx)
	default:
		return recipe{}, fmt.Errorf("cannot make the precision %q: there are %v", precision, Names())
	}
}

// calibrated runs the source on the calibration data and returns the recipe with the resulting
// ranges.
func (k *Maker) calibrated(ctx context.Context) (recipe, error) {
	values, err := rewrite.Activations(k.base)
	if err != nil {
		return recipe{}, &Unmakeable{Int8Static, err}
	}
	exposed, err := rewrite.Expose(k.base, values)
	if err != nil {
		return recipe{}, &Unmakeable{Int8Static, err}
	}
	collector, err := calibrate.New(k.options.CalibrationMethod)
	if err != nil {
		return recipe{}, err
	}
	if _, err := k.original(ctx); err != nil { // checks first that the source runs at all
		return recipe{}, err
	}
	err = k.calibrate(ctx, exposed, func(in, out map[string]inputs.Tensor) error { return collector.Add(pick(values, out, in)) })
	if err != nil {
		return recipe{}, err
	}
	options := rewrite.Int8StaticOptions{Ranges: collector.Ranges(), Bits: k.weightBits(ctx)}
	return recipe{
		convert: func(keep []string) (*onnx.Model, rewrite.Summary, error) {
			with := options
			with.Keep = keep
			return rewrite.Int8Static(k.base, with)
		},
		probe: func() (*onnx.Model, map[string]string, error) { return rewrite.Int8StaticSensitivity(k.base, options) },
	}, nil
}

// calibrate runs the source with its activations as outputs. If a provider refuses that, only this
// precision fails.
func (k *Maker) calibrate(ctx context.Context, exposed *onnx.Model, add visitor) error {
	data := k.calibration()
	k.progress("%s: calibrating on %d rows", Int8Static, data.Rows)
	session, err := k.open.Open(ctx, exposed, cpu)
	if err == nil {
		defer session.Close(context.WithoutCancel(ctx))
		// This runs row by row, since all activations of a batch can exceed the size limit of one
		// answer (2 GiB).
		err = inBatches(ctx, session, exposed, data, 1, func(in, out map[string]inputs.Tensor) error {
			if err := add(in, out); err != nil {
				return &Unmakeable{Int8Static, err}
			}
			return nil
		})
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return &Unmakeable{Int8Static, fmt.Errorf("cannot calibrate the model on the data %q: ONNX Runtime does not run it on %s with its activations as outputs: %s",
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
