package pipeline

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/model/precision/places"
	"tuner/ort/ortlib"
	"tuner/pipeline/steps"
)

// batchOpener returns input x as output y, and input n as output m. alter changes the outputs of
// the model with a symbolic batch dimension.
type batchOpener struct {
	alter  func(out map[string]inputs.Tensor) // nil: no change
	refuse string                             // error when that model runs; "": it runs
}

func (o batchOpener) Open(_ context.Context, m *onnx.Model, _ string) (precision.Session, error) {
	if m.Inputs()[0].Shape[0].IsFixed() {
		o.alter = nil
	} else if o.refuse != "" {
		return nil, &precision.RefusedError{Reason: o.refuse}
	}
	return o, nil
}

func (o batchOpener) Infer(_ context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	out := map[string]inputs.Tensor{"y": in["x"], "m": in["n"]}
	if o.alter != nil {
		o.alter(out)
	}
	return out, nil
}

func (batchOpener) Close(context.Context) {}

// A model gets its symbolic batch dimension even if none of its outputs has a cosine. It is judged by
// inferences of two requests. If the dimension stays fixed, the text gives the right reason.
func TestFreeBatch(t *testing.T) {
	one := onnx.Fixed(1)
	g := build.NewGraph("scores")
	g.OutputAs("y", g.Node("Relu", []string{g.Input("x", onnx.Float, one, one)}), onnx.Float, one, one)
	g.OutputAs("m", g.Node("Neg", []string{g.Input("n", onnx.Int64, one, one)}), onnx.Int64, one, one)
	set := func(name string, data []byte) func(map[string]inputs.Tensor) {
		return func(out map[string]inputs.Tensor) {
			out[name] = inputs.Tensor{Type: out[name].Type, Shape: out[name].Shape, Data: bytes.Repeat(data, int(out[name].Shape[0]))}
		}
	}
	reverse := func(out map[string]inputs.Tensor) {
		y := out["y"]
		if y.Data = bytes.Clone(y.Data); y.Shape[0] == 2 { // each of two requests gets the other's row
			copy(y.Data, out["y"].Data[4:])
			copy(y.Data[4:], out["y"].Data[:4])
		}
		out["y"] = y
	}
	for name, c := range map[string]struct {
		opener batchOpener
		state  steps.State
		want   string // the end of the text
	}{
		"the same":            {batchOpener{}, "", "with a symbolic batch dimension, and has the same outputs"},
		"other numbers":       {batchOpener{alter: set("y", onnx.AppendFloat(nil, onnx.Float, 1<<20))}, steps.Skipped, `its outputs differ ("y" by up to 1.05e+06, relative `},
		"rows that mix":       {batchOpener{alter: reverse}, steps.Skipped, `its outputs differ ("y" by up to `},
		"not a number":        {batchOpener{alter: set("y", []byte{0, 0, 0xc0, 0x7f})}, steps.Skipped, `its outputs differ (64 elements of "y" are NaN or infinite where the original's are not)`},
		"other whole numbers": {batchOpener{alter: set("m", onnx.AppendInteger(nil, onnx.Int64, 1<<40))}, steps.Skipped, `its outputs differ ("m" is equal in 0 % of the rows)`},
		"a refusal":           {batchOpener{refuse: "out of memory"}, steps.Skipped, "with a symbolic batch dimension it is refused (out of memory)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TUNER_CACHE", t.TempDir())
			dir := t.TempDir()
			path := filepath.Join(dir, "scores.onnx")
			writeModel(t, path, g.Model())
			source, err := onnx.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			first := modelConversion{Request: Request{Model: path, Messages: io.Discard}, dir: dir, target: filepath.Join(dir, "scores.fp32.onnx"), source: source}
			builds := places.Builds(func(string) ortlib.Build { return ortlib.Build{Flavour: "cpu", Version: "1.2.3"} })
			outcome, err := first.freeBatch(t.Context(), c.opener, builds)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.State != c.state || !strings.Contains(outcome.Text, c.want) {
				t.Errorf("%q: %s; want %q: … %s", outcome.State, outcome.Text, c.state, c.want)
			}
			if _, err := onnx.Read(first.target); (err == nil) != (c.state == "") {
				t.Errorf("the converted file: %v", err)
			}
		})
	}
}
