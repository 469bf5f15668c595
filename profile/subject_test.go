package profile_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/spec"
)

// The user's own files of other precisions must have the original's inputs and outputs, with the
// same types and ranks.
func TestOwnPrecisionsServeTheSameRequests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := build.NewGraph("cube")
	cube := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("length"), onnx.Fixed(1)}
	g.OutputAs("OUTPUT0", g.Input("INPUT0", onnx.Float, cube...), onnx.Float, cube...)
	half := build.NewGraph("half output")
	plane := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("width")} // symbols are only names
	half.OutputAs("OUTPUT0", half.Input("INPUT0", onnx.Float, plane...), onnx.Float16, plane...)
	for name, m := range map[string]*onnx.Model{"m": build.Identity(onnx.Float), "same": build.Identity(onnx.Float), "fp16": build.Identity(onnx.Float16),
		"whole": build.Identity(onnx.Int32), "cube": g.Model(), "half": half.Model(), "simple": build.Simple()} {
		if err := m.Write(filepath.Join(dir, name+".onnx"), 0); err != nil {
			t.Fatal(err)
		}
	}
	const must, keepIO = "every precision must serve the same requests; ", "make it with 'tuner convert --keep-io'"
	for file, want := range map[string][]string{
		"same":   nil,
		"fp16":   {"fp16.onnx: the input INPUT0 FLOAT16[batch,length] is INPUT0 FLOAT[batch,length] in ", "m.onnx: " + must + keepIO},
		"half":   {"half.onnx: the output OUTPUT0 FLOAT16[batch,width] is OUTPUT0 FLOAT[batch,length] in ", keepIO},
		"whole":  {"the input INPUT0 INT32[batch,length] is INPUT0 FLOAT[batch,length] in ", must + "name a file with the same inputs and outputs"},
		"cube":   {"the input INPUT0 FLOAT[batch,length,1] is INPUT0 FLOAT[batch,length] in ", must + "name a file with the same inputs and outputs"},
		"simple": {"simple.onnx: inputs are [INPUT0 INPUT1], but those of "},
	} {
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\nspace: {precision: {fp32: m.onnx, own: "+file+".onnx}}"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = profile.OpenSubject(p, 0)
		if want == nil && err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, text := range want {
			if !errors.As(err, new(*profile.InputError)) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v lacks %q", file, err, text)
			}
		}
	}
}

// An output without a shape in the file is configured like one with a shape.
func TestOutputsWithoutAShape(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(name string, m *onnx.Model) profile.Subject {
		t.Helper()
		if err := m.Write(filepath.Join(dir, name+".onnx"), 0); err != nil {
			t.Fatal(err)
		}
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("name: m\nmodel: "+name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := profile.OpenSubject(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	silent := build.Identity(onnx.Float)
	silent.Graph().GetOutput()[0].GetType().GetTensorType().Shape = nil
	told, untold := open("told", build.Identity(onnx.Float)), open("untold", silent)
	if untold.Model.Outputs()[0].Ranked || told.Config.GetMaxBatchSize() == 0 {
		t.Fatal("the test shows nothing")
	}
	if !modelconfig.Equal(told.Config, untold.Config) {
		t.Errorf("without a shape the configuration is %v, with one %v", untold.Config, told.Config)
	}
}
