package precision

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/hostinfo"
	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/recipe"
)

func TestMultipliesBytes(t *testing.T) {
	t.Parallel()
	for feature, want := range map[string]bool{"AVX512VNNI": true, "AVXVNNI": true, "AMXINT8": true, "AVX2": false, "AVX512F": false} {
		if got := multipliesBytes(hostinfo.CPU{Features: []string{"FMA3", feature}}); got != want {
			t.Errorf("%s: %t", feature, got)
		}
	}
}

// The key of a recipe has exactly what affects its result.
func TestSettings(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	k := l.maker(0, func(o *Options) { o.KeepIO, o.CalibrationMethod, o.Calibration = true, "entropy", rows(3) })
	for precision, want := range map[string]settings{
		recipe.Original: {},
		"fp16":          {KeepIO: true},
		recipe.Int8:     {Bits: 8},
		"int8_static":   {Bits: 8, Method: "entropy", Data: rows(3).Digest()},
	} {
		if diff := cmp.Diff(want, k.settingsOf(t.Context(), precision)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", precision, diff)
		}
	}
	if d := l.maker(0, nil).settingsOf(t.Context(), "int8_static").Data; d != rows(20).Digest() {
		t.Errorf("without data to calibrate on it is not that of the comparison: %s", d)
	}
}

// Inputs are activations too. A value that is both comes from the outputs.
func TestPick(t *testing.T) {
	t.Parallel()
	in := map[string]inputs.Tensor{"x": floats([]float32{1}, 1), "ids": floats([]float32{2}, 1), "y": floats([]float32{3}, 1)}
	out := map[string]inputs.Tensor{"y": floats([]float32{4}, 1), "z": floats([]float32{5}, 1)}
	want := map[string]inputs.Tensor{"x": in["x"], "y": out["y"]}
	if diff := cmp.Diff(want, pick([]string{"x", "y", "missing"}, out, in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Nodes that one conversion keeps are still measured by the next probe.
func TestRecipeRemembersNothing(t *testing.T) {
	t.Parallel()
	k, err := NewMaker(build.MLP(), nil, Options{Data: rows(1), Cache: "cache", WeightBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.newRewriter(t.Context(), recipe.Int8)
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := r.convert(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.convert(all.Converted[:1]); err != nil {
		t.Fatal(err)
	}
	_, outputs, err := r.probe()
	if err != nil || len(outputs) != len(all.Converted) {
		t.Errorf("the probe measures %v, %v; want all of %v", outputs, err, all.Converted)
	}
}

// narrow opens only models with few outputs, and answers for the perceptron of package build.
type narrow struct{ outputs int }

func (n narrow) Open(_ context.Context, m *onnx.Model, _ string) (Session, error) {
	if len(m.Outputs()) > n.outputs {
		return nil, &RefusedError{"too many outputs"}
	}
	return n, nil
}

func (narrow) Infer(context.Context, map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	return map[string]inputs.Tensor{"OUTPUT": floats(make([]float32, 8), 1, 8)}, nil
}

func (narrow) Close(context.Context) {}

// A source that does not run with its activations as outputs has no int8_static, but may have other
// variants. One that does not run at all has none.
func TestCalibrationIsRefused(t *testing.T) {
	t.Parallel()
	for outputs, want := range map[int]string{1: "with its activations as outputs: too many outputs", 0: "nothing to compare variants with: too many outputs"} {
		m := build.MLP()
		data, err := dataset.Synthetic(m, inputs.Options{}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		k, err := NewMaker(m, narrow{outputs}, Options{Data: data, Cache: "cache", WeightBits: 8})
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.newRewriter(t.Context(), "int8_static")
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrUnmakeable) != (outputs == 1) || errors.As(err, new(*SourceError)) != (outputs == 0) {
			t.Errorf("%d outputs: %v", outputs, err)
		}
	}
}

// Ranges of random inputs are noted, those of the user's rows are not. Other precisions have none.
func TestRangesOfRandomInputsAreNoted(t *testing.T) {
	t.Parallel()
	random := rows(3)
	random.Synthetic = true
	for _, c := range []struct {
		precision         string
		data, calibration dataset.Dataset
		want              []string
	}{
		{"int8_static", random, dataset.Dataset{}, []string{"its ranges come from 3 rows of random inputs, and real inputs may exceed them: calibrate on your own data", "a note"}},
		{"int8_static", rows(3), random, []string{"its ranges come from 3 rows of random inputs, and real inputs may exceed them: calibrate on your own data", "a note"}},
		{"int8_static", random, rows(2), []string{"a note"}},
		{"int8_static", rows(3), dataset.Dataset{}, []string{"a note"}},
		{recipe.Int8, random, dataset.Dataset{}, []string{"a note"}},
	} {
		k := &Maker{options: Options{Data: c.data, Calibration: c.calibration}}
		if diff := cmp.Diff(c.want, k.notes(c.precision, rewrite.Summary{Notes: []string{"a note"}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.precision, diff)
		}
	}
}
