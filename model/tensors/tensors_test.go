package tensors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/tensors"
)

func parse(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("config.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A model of a configuration has its tensors, with a batch dimension where it batches.
func TestOf(t *testing.T) {
	t.Parallel()
	const tensor = ` input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "SCORE" data_type: TYPE_FP32 dims: [ -1, 4 ] }`
	check := func(text string, batches bool, in, out string) {
		t.Helper()
		m := tensors.Of(parse(t, text))
		if err := m.CheckServable(); err != nil {
			t.Error(err)
		}
		got := []string{m.Inputs()[0].String(), m.Outputs()[0].String()}
		if diff := cmp.Diff([]string{in, out}, got); diff != "" || inputs.Batches(m) != batches {
			t.Errorf("%s: batches %t, (-want +got):\n%s", text, inputs.Batches(m), diff)
		}
	}
	check(`name: "m" max_batch_size: 8`+tensor, true, "TEXT STRING[batch,1]", "SCORE FLOAT[batch,SCORE_0,4]")
	check(`name: "m"`+tensor, false, "TEXT STRING[1]", "SCORE FLOAT[SCORE_0,4]")
}

// Both forms of a type mean the same.
func TestDataType(t *testing.T) {
	t.Parallel()
	for _, known := range onnx.ServableTypes() {
		c := &modelconfig.Config{Name: "m"}
		c.Input = parse(t, `input { name: "x" dims: 1 }`).GetInput()
		c.Input[0].DataType = tensors.DataType(known)
		if got := tensors.Of(c).Inputs()[0].Type; got != known {
			t.Errorf("%v becomes %v", known, got)
		}
	}
}

// An ensemble's inputs have the values that the first stage takes which reads them. A stage of another backend says
// nothing.
func TestValues(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("encoder")
	ids := g.Input("ids", onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("tokens"))
	g.OutputAs("y", g.Node("Gather", []string{g.Floats("table", make([]float32, 7), 7, 1), ids}), onnx.Float, onnx.Symbol("batch"), onnx.Symbol("tokens"), onnx.Fixed(1))
	encoder := tensors.Called{Name: "encoder", Model: g.Model()}
	const steps = `name: "m" platform: "ensemble" ensemble_scheduling {
step { model_name: "other" model_version: -1 input_map { key: "a" value: "IDS" } output_map { key: "b" value: "more" } }
step { model_name: "encoder" model_version: -1 input_map { key: "ids" value: "IDS" } output_map { key: "y" value: "Y" } } }`
	values := tensors.Values(parse(t, steps), []tensors.Called{encoder})
	if got := values["IDS"]; len(values) != 1 || got.Distribution != inputs.Uniform || got.Range != (inputs.Range{Lo: 0, Hi: 7}) {
		t.Errorf("got %+v", values)
	}
	if values := tensors.Values(parse(t, steps), nil); len(values) != 0 {
		t.Errorf("without a model: %+v", values)
	}
}
