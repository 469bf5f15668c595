package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/framework"
	"tuner/model/onnx"
)

func TestParseInputs(t *testing.T) {
	t.Parallel()
	check := func(names, shapes, types string, want ...framework.Input) {
		got, err := framework.ParseInputs(names, shapes, types)
		if err != nil {
			t.Errorf("%s: %v", names, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", names, diff)
		}
	}
	// OLive's own example.
	check("input_names,input_mask", "[[-1,256],[-1,256]]", "int64,int64",
		framework.Input{Name: "input_names", Type: onnx.Int64, Shape: []int64{-1, 256}}, framework.Input{Name: "input_mask", Type: onnx.Int64, Shape: []int64{-1, 256}})
	check("x", "[-1, 3]", "", framework.Input{Name: "x", Type: onnx.Float, Shape: []int64{-1, 3}})
	check("a, b", "[[], [2]]", "torch.bool, DOUBLE", framework.Input{Name: "a", Type: onnx.Bool, Shape: []int64{}},
		framework.Input{Name: "b", Type: onnx.Double, Shape: []int64{2}})
	// PyTorch's float is ONNX's FLOAT.
	check("x", "[1]", "float", framework.Input{Name: "x", Type: onnx.Float, Shape: []int64{1}})
}

func TestParseInputsRefuses(t *testing.T) {
	t.Parallel()
	refuse := func(names, shapes, types, want string) {
		_, err := framework.ParseInputs(names, shapes, types)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q %q %q: %v, want %q", names, shapes, types, err, want)
		}
	}
	refuse("", "[[1]]", "", "their names are missing")
	refuse("x", "", "", "there are 1 names and 0 shapes")
	refuse("x,y", "[[1]]", "", "there are 2 names and 1 shapes")
	refuse("x", "[[1]]", "int64,int64", "there are 1 names and 2 types")
	refuse("x", "1,2", "", `the shapes "1,2" are not JSON lists`)
	refuse("x", "[[1.5]]", "", "not JSON lists")
	refuse("x", "[1]", "complex64", `the type "complex64" is unknown; allowed are bool, float16, float32, float64, int16`)
}

// The result has as many inputs as names, each with a type that PyTorch has.
func FuzzParseInputs(f *testing.F) {
	f.Add("input_names,input_mask", "[[-1,256],[-1,256]]", "int64,int64")
	f.Add("x", "[-1, 3]", "")
	f.Add("a, b", "[[], [2]]", "torch.bool, DOUBLE")
	f.Fuzz(func(t *testing.T, names, shapes, types string) {
		in, err := framework.ParseInputs(names, shapes, types)
		if err != nil {
			return
		}
		if len(in) != strings.Count(names, ",")+1 {
			t.Errorf("%d inputs of %q", len(in), names)
		}
		for _, one := range in {
			if !one.Type.IsServable() {
				t.Errorf("type %v", one.Type)
			}
		}
	})
}
