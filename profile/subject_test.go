package profile_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
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
		_, err = profile.OpenSubject(p, profile.Place{})
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
		s, err := profile.OpenSubject(p, profile.Place{})
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

// ONNX Runtime's own shapes of outputs count, in both directions: it knows less than package shapes
// infers, or more than the file says. The configuration must have exactly its sizes.
func TestOutputsOfONNXRuntime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := build.NewGraph("outputs")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(4)}
	x := g.Input("x", onnx.Float, shape...)
	g.OutputAs("open", x, onnx.Float, onnx.Symbol("batch"), onnx.Symbol("width"))
	g.OutputAs("fixed", x, onnx.Float, onnx.Symbol("batch"), onnx.Fixed(4))
	if err := g.Model().Write(filepath.Join(dir, "m.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, there profile.Place, want ...int64) {
		t.Helper()
		s, err := profile.OpenSubject(p, there)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Config.GetOutput()[0].GetDims(); !slices.Equal(got, want) || s.Config.GetOutput()[1].GetDims()[0] != 4 {
			t.Errorf("%s: %v, want %v", name, s.Config.GetOutput(), want)
		}
		if s.Config.GetMaxBatchSize() == 0 {
			t.Errorf("%s: the model does not batch", name)
		}
	}
	says := func(shapes map[string][]int64) profile.Place {
		return profile.Place{Outputs: func(model string) map[string][]int64 {
			if model != filepath.Join(dir, "m.onnx") {
				t.Errorf("asked about %q", model)
			}
			return shapes
		}}
	}
	check("nobody is asked", profile.Place{}, 4) // inferred: Identity keeps the shape
	check("it does not answer", says(nil), 4)
	check("it knows less", says(map[string][]int64{"open": {-1, -1}, "fixed": {-1, 4}}), -1)
	check("it knows more", says(map[string][]int64{"open": {-1, 3}, "fixed": {-1, 4}}), 3)
	check("it knows another rank", says(map[string][]int64{"open": {-1, 2, 2}}), 2, 2)
}

// The second dimension of a request's tensor without one is 1, as in the configuration, since Triton
// refuses a request without it. A length of a sequence is that of the others.
func TestRequestsOfAVector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := build.NewGraph("lengths")
	ids := g.Input("ids", onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("seq"))
	lengths := g.Input("lengths", onnx.Int64, onnx.Symbol("batch"))
	g.OutputAs("y", ids, onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("seq"))
	g.OutputAs("z", lengths, onnx.Int64, onnx.Symbol("batch"))
	if err := g.Model().Write(filepath.Join(dir, "m.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "whole.pbtxt"), []byte(`
		input [{name: "ids" data_type: TYPE_INT64 dims: [-1, -1]}, {name: "lengths" data_type: TYPE_INT64 dims: [-1]}]
		output [{name: "y" data_type: TYPE_INT64 dims: [-1, -1]}, {name: "z" data_type: TYPE_INT64 dims: [-1]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(extra string, want ...[]int64) {
		t.Helper()
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\nload: {client_batch_size: 2, inputs: {shape: {ids: [7]}}}\n"+extra))
		if err != nil {
			t.Fatal(err)
		}
		s, err := profile.OpenSubject(p, profile.Place{})
		if err != nil {
			t.Fatal(err)
		}
		requests, err := profile.Requests(p, s)
		if err != nil {
			t.Fatal(err)
		}
		got := requests[0].Inputs
		if !slices.Equal(got[0].Shape, want[0]) || !slices.Equal(got[1].Shape, want[1]) {
			t.Errorf("%q: shapes %v and %v, want %v", extra, got[0].Shape, got[1].Shape, want)
		}
		if length := binary.LittleEndian.Uint64(got[1].Data); length != 7 {
			t.Errorf("%q: the length is %d", extra, length)
		}
	}
	check("", []int64{2, 7}, []int64{2, 1})
	check("config: whole.pbtxt", []int64{2, 7}, []int64{2})
}

// A model is rehearsed with the requests of its campaign, and with two rows if it batches.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, m := range map[string]*onnx.Model{"batches": build.Identity(onnx.Float), "fixed": build.CNN(4)} {
		if err := m.Write(filepath.Join(dir, name+".onnx"), 0); err != nil {
			t.Fatal(err)
		}
	}
	check := func(text string, want ...int) {
		t.Helper()
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := profile.OpenSubject(p, profile.Place{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := profile.Rehearsal(p, s)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, r := range list {
			got = append(got, r.Rows)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: rows %v, want %v", text, got, want)
		}
	}
	check("model: batches.onnx\nload: {inputs: {shape: {INPUT0: [3]}}}", 1, 2)
	check("model: batches.onnx\nload: {client_batch_size: 3, inputs: {shape: {INPUT0: [3]}}}", 3)
	check("model: fixed.onnx", 1)
}
