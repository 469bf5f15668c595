package dataset_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// rowsOfLengths writes archives of rows of a length, each full of that length.
func rowsOfLengths(t *testing.T, dir string, lengths ...int64) {
	t.Helper()
	for i, length := range lengths {
		ids, mask := inputs.Tensor{Type: onnx.Int64, Shape: []int64{2, length}}, inputs.Tensor{Type: onnx.Float, Shape: []int64{2, length}}
		for range 2 * length {
			ids.Data = onnx.AppendInteger(ids.Data, onnx.Int64, length)
			mask.Data = onnx.AppendFloat(mask.Data, onnx.Float, 1)
		}
		file, err := os.Create(filepath.Join(dir, string(rune('a'+i))+".npz"))
		if err != nil {
			t.Fatal(err)
		}
		if err := npy.WriteArchive(file, arrays{"ids": ids, "mask": mask}); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Archives of a folder are rows of several shapes. Those of equal shapes are one part, and the
// shortest rows come first: 4 rows of length 1, then 2 of length 3.
func TestReadsRowsOfSeveralShapes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rowsOfLengths(t, dir, 3, 1, 1)
	d, err := dataset.Read(dir, twoInputs())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Parts) != 2 || d.Rows != 6 || d.Parts[0].Rows != 4 || d.Parts[1].Rows != 2 || d.Bytes() != (4+2*3)*(8+4) {
		t.Errorf("got %d parts, %d rows, %d bytes", len(d.Parts), d.Rows, d.Bytes())
	}
	if diff := cmp.Diff(map[string][]int64{"ids": {1}, "mask": {1}}, d.Shapes()); diff != "" {
		t.Errorf("the usual shape (-want +got):\n%s", diff)
	}
	// Batches of 3 rows at most: rows 0 to 2, 3, then 4 and 5 of the other shape.
	var ends []int
	for from := 0; from < d.Rows; from = d.End(from, 3) {
		ends = append(ends, d.End(from, 3))
		request := d.Slice(from, d.End(from, 3))
		if n, _ := onnx.Elements(request["ids"].Shape); int(n)*8 != len(request["ids"].Data) {
			t.Errorf("the batch from %d has the shape %v and %d bytes", from, request["ids"].Shape, len(request["ids"].Data))
		}
	}
	if diff := cmp.Diff([]int{3, 4, 6}, ends); diff != "" || d.Batches(3) != 3 {
		t.Errorf("ends of %d batches (-want +got):\n%s", d.Batches(3), diff)
	}
	// A third of the rows, and at least one of each shape: 1 of 4 (rounded down), and 1 of 2.
	if head := d.Head(2); head.Rows != 2 || len(head.Parts) != 2 || head.Digest() == d.Digest() {
		t.Errorf("the head has %d rows in %d parts", head.Rows, len(head.Parts))
	}
	// In the folder the long rows are the first ones.
	if diff := cmp.Diff([]int{4, 5, 0, 1, 2, 3}, d.Order()); diff != "" {
		t.Errorf("the order of the folder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 0}, d.Head(2).Order()); diff != "" {
		t.Errorf("the order of the head (-want +got):\n%s", diff)
	}
	counts, random := map[int64]int{}, rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		counts[d.Draw(2, random)["ids"].Shape[1]]++
	}
	if long := counts[3]; long < 900 || long > 1100 || counts[1] != 3000-long { // a third of the rows; deviation 26
		t.Errorf("drawn: %v", counts)
	}
}

// Steps of perf_analyzer's JSON may differ in their shapes, but not in their inputs.
func TestReadsStepsOfSeveralShapes(t *testing.T) {
	t.Parallel()
	read := func(text string) (dataset.Dataset, error) {
		return dataset.Read(writeFile(t, filepath.Join(t.TempDir(), "data.json"), text), twoInputs())
	}
	step := func(ids, mask, n string) string {
		return `{"ids": {"content": [` + ids + `], "shape": [` + n + `]}, "mask": {"content": [` + mask + `], "shape": [` + n + `]}}`
	}
	d, err := read(`{"data": [` + step("1,2", "1,1", "2") + "," + step("3", "1", "1") + "," + step("4,5", "1,1", "2") + `]}`)
	if err != nil || len(d.Parts) != 2 || d.Parts[0].Rows != 1 || d.Parts[1].Rows != 2 {
		t.Fatalf("got %+v, %v", d, err)
	}
	if diff := cmp.Diff([]int{1, 0, 2}, d.Order()); diff != "" {
		t.Errorf("the order of the steps (-want +got):\n%s", diff)
	}
	if _, err := read(`{"data": [` + step("1,2", "1", "2") + `]}`); err == nil {
		t.Error("a step whose symbol has two sizes is read")
	}
	_, err = read(`{"data": [` + step("1", "1", "1") + `, {"ids": {"content": [1], "shape": [1]}}]}`)
	if err == nil || !strings.Contains(err.Error(), "step 1 lacks") {
		t.Errorf("a step without an input: %v", err)
	}
}

// A mistake names the row of the folder.
func TestNamesTheRowOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rowsOfLengths(t, dir, 3, 1)
	last := arrays{
		"ids":  {Type: onnx.Int64, Shape: []int64{2, 1}, Data: make([]byte, 16)},
		"mask": {Type: onnx.Float, Shape: []int64{2, 1}, Data: onnx.AppendFloat(make([]byte, 4), onnx.Float, math.NaN())},
	}
	file, err := os.Create(filepath.Join(dir, "c.npz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(npy.WriteArchive(file, last), file.Close()); err != nil {
		t.Fatal(err)
	}
	const want = "NaN (row 5, counted from 0)" // behind two archives of two rows, the second row
	if _, err := dataset.Read(dir, twoInputs()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v lacks %q", err, want)
	}
}

// A folder has arrays of one shape, or archives.
func TestRefusesArraysBesideArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rowsOfLengths(t, dir, 2)
	writeFile(t, filepath.Join(dir, "ids.npy"), "x")
	if _, err := dataset.Read(dir, twoInputs()); err == nil || !strings.Contains(err.Error(), ".npy and .npz files") {
		t.Errorf("got the error %v", err)
	}
}

// Data of a model that does not batch may serve one that does. The rows of a batch have one shape there, too.
func TestAsBatches(t *testing.T) {
	t.Parallel()
	part := func(shape ...int64) dataset.Dataset {
		n, _ := onnx.Elements(shape)
		return dataset.Dataset{Rows: int(shape[0]), Inputs: arrays{"x": {Type: onnx.Int8, Shape: shape, Data: make([]byte, n)}}}
	}
	d := dataset.Join([]dataset.Dataset{part(3, 1, 2), part(1, 1, 4)})
	both := d.AsBatches()
	if diff := cmp.Diff([]int64{2, 1, 2}, both.Slice(0, both.End(0, 2))["x"].Shape); diff != "" || both.End(2, 2) != 3 || both.End(3, 2) != 4 {
		t.Errorf("ends %d and %d; the first two rows (-want +got):\n%s", both.End(2, 2), both.End(3, 2), diff)
	}
	if diff := cmp.Diff([]int64{1, 2}, d.Slice(0, d.End(0, 2))["x"].Shape); diff != "" {
		t.Errorf("the data itself (-want +got):\n%s", diff)
	}
}
