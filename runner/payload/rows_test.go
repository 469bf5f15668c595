package payload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/runner/payload"
)

// archive writes an .npz file and returns its path.
func archive(t *testing.T, arrays map[string]inputs.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.npz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(npy.WriteArchive(file, arrays), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// threeRows are rows for the test's model: x [3, 2], which converts to FP32, and ids [3, 2].
func threeRows() map[string]inputs.Tensor {
	return map[string]inputs.Tensor{
		"x":   {Type: onnx.Float, Shape: []int64{3, 2}, Data: floats(0, 1, 10, 11, 20, 21)},
		"ids": {Type: onnx.Int64, Shape: []int64{3, 2}, Data: make64(100, 101, 110, 111, 120, 121)},
	}
}

func floats(values ...float32) []byte {
	var out []byte
	for _, v := range values {
		out = onnx.AppendFloat(out, onnx.Float, float64(v))
	}
	return out
}

// Rows of an archive are sent in order. A batch has consecutive rows, and starts again with the
// first after the last. An optional input may be left out.
func TestRows(t *testing.T) {
	t.Parallel()
	path := archive(t, threeRows())
	set, err := payload.Make(model(true), payload.Source{Data: []string{path}, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Requests) != 2 || set.Steps != 3 || set.Streams != 1 {
		t.Fatalf("%d requests of %d steps in %d streams, want 2 of 3 in 1", len(set.Requests), set.Steps, set.Streams)
	}
	last := set.Requests[1] // rows 2 and 0
	if len(last.Infer.Inputs) != 2 || last.Origin != path+", row 2 to "+path+", row 0" {
		t.Errorf("%d inputs from %s", len(last.Infer.Inputs), last.Origin)
	}
	for _, in := range last.Infer.Inputs {
		want := map[string][]byte{"x": floats(20, 21, 0, 1), "ids": make64(120, 121, 100, 101)}[in.Name]
		if diff := cmp.Diff(want, in.Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in.Name, diff)
		}
		if diff := cmp.Diff([]int64{2, 2}, in.Shape); diff != "" {
			t.Errorf("shape of %s (-want +got):\n%s", in.Name, diff)
		}
	}
}

// Rows of a folder are sent in the order of its archives, the long ones of the first archive too.
func TestRowsOfSeveralShapes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, ids := range [][]int64{{100, 101, 102, 103}, {110, 111}, {120, 121}} {
		from := archive(t, map[string]inputs.Tensor{
			"x":   {Type: onnx.Float, Shape: []int64{1, 2}, Data: floats(0, 1)},
			"ids": {Type: onnx.Int64, Shape: []int64{1, int64(len(ids))}, Data: make64(ids...)},
		})
		if err := os.Rename(from, filepath.Join(dir, string(rune('a'+i))+".npz")); err != nil {
			t.Fatal(err)
		}
	}
	set, err := payload.Make(model(true), payload.Source{Data: []string{dir}, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	for _, r := range set.Requests {
		for _, in := range r.Infer.Inputs {
			if in.Name == "ids" {
				got = append(got, in.Data)
			}
		}
	}
	if diff := cmp.Diff([][]byte{make64(100, 101, 102, 103), make64(110, 111), make64(120, 121)}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if origin := set.Requests[0].Origin; origin != dir+", row 0" {
		t.Errorf("the first request is from %q", origin)
	}
}

// Without a batch dimension each row is a request of the model's shape.
func TestRowsWithoutBatch(t *testing.T) {
	t.Parallel()
	set, err := payload.Make(model(false), payload.Source{Data: []string{archive(t, threeRows())}, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{2}, set.Requests[2].Infer.Inputs[0].Shape); len(set.Requests) != 3 || diff != "" {
		t.Errorf("%d requests, shape (-want +got):\n%s", len(set.Requests), diff)
	}
}

// Arrays that do not fit are told with file, array and reason.
func TestRowsThatDoNotFit(t *testing.T) {
	t.Parallel()
	check := func(name, want string, change func(map[string]inputs.Tensor), more ...string) {
		t.Helper()
		arrays := threeRows()
		change(arrays)
		path := archive(t, arrays)
		_, err := payload.Make(model(true), payload.Source{Data: append([]string{path}, more...), Batch: 1})
		if input := (*payload.InputError)(nil); !errors.As(err, &input) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want an InputError with %q and %q", name, err, path, want)
		}
	}
	check("a missing array", `the array "ids" is missing`, func(a map[string]inputs.Tensor) { delete(a, "ids") })
	check("an unknown array", `the array "z" is not one of the model's inputs`, func(a map[string]inputs.Tensor) { a["z"] = a["x"] })
	check("another size", `its shape [2 3] does not fit`, func(a map[string]inputs.Tensor) {
		a["x"] = inputs.Tensor{Type: onnx.Float, Shape: []int64{2, 3}, Data: a["x"].Data}
	})
	check("another number of rows", "has 1 rows", func(a map[string]inputs.Tensor) {
		a["ids"] = inputs.Tensor{Type: onnx.Int64, Shape: []int64{1, 6}, Data: a["ids"].Data}
	})
	check("two files", "cannot be combined", func(map[string]inputs.Tensor) {}, "zero")
}
