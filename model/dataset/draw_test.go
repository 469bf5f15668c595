package dataset_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// A drawn request has whole rows: what one input has of a row, the others have too. Over many draws
// each row is about as frequent as the others.
func TestDraw(t *testing.T) {
	t.Parallel()
	const rows, width, batch = 7, 3, 4
	ids, mask := inputs.Tensor{Type: onnx.Int64, Shape: []int64{rows, width}}, inputs.Tensor{Type: onnx.Float, Shape: []int64{rows, width}}
	for i := range rows * width {
		ids.Data = onnx.AppendInteger(ids.Data, onnx.Int64, int64(i))
		mask.Data = onnx.AppendFloat(mask.Data, onnx.Float, float64(100+i))
	}
	d := dataset.Dataset{Rows: rows, Batched: true, Inputs: arrays{"ids": ids, "mask": mask}}
	if diff := cmp.Diff(map[string][]int64{"ids": {width}, "mask": {width}}, d.Shapes()); diff != "" {
		t.Errorf("shapes (-want +got):\n%s", diff)
	}
	if got, want := d.Bytes(), rows*width*(8+4); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	r, again := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	seen := make([]int, rows)
	for range 2000 {
		request := d.Draw(batch, r)
		if diff := cmp.Diff(request, d.Draw(batch, again)); diff != "" {
			t.Fatalf("the same seed (-first +second):\n%s", diff)
		}
		for name, t2 := range request {
			if !slices.Equal(t2.Shape, []int64{batch, width}) {
				t.Fatalf("%s has the shape %v", name, t2.Shape)
			}
		}
		for i := range batch {
			row := slices.IndexFunc(slices.Collect(slices.Chunk(ids.Data, 8*width)), func(own []byte) bool {
				return bytes.Equal(own, request["ids"].Data[8*width*i:8*width*(i+1)])
			})
			if row < 0 || !bytes.Equal(mask.Data[4*width*row:4*width*(row+1)], request["mask"].Data[4*width*i:4*width*(i+1)]) {
				t.Fatalf("row %d of the request is none of the data, or mixes two: %v", i, request)
			}
			seen[row]++
		}
	}
	for row, n := range seen {
		if mean := 2000 * batch / rows; n < mean*8/10 || n > mean*12/10 {
			t.Errorf("row %d was drawn %d times, where %d are expected", row, n, mean)
		}
	}
}

// Without a batch dimension a request is one row, in the model's shape. Text is drawn too. The data
// stay as they are.
func TestDrawWithoutBatch(t *testing.T) {
	t.Parallel()
	words := inputs.Tensor{Type: onnx.String, Shape: []int64{2, 1}, Strings: [][]byte{[]byte("a"), []byte("bc")}}
	d := dataset.Dataset{Rows: 2, Inputs: arrays{"words": words}}
	if got := d.Bytes(); got != 3 {
		t.Errorf("%d bytes, want 3", got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		got := d.Draw(5, r)["words"]
		if !slices.Equal(got.Shape, []int64{1}) || len(got.Strings) != 1 {
			t.Fatalf("got %v", got)
		}
		got.Strings[0] = []byte("changed")
	}
	if string(words.Strings[0]) != "a" || string(words.Strings[1]) != "bc" {
		t.Errorf("the data became %q", words.Strings)
	}
}
