package dataset_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset"
	"tuner/model/dataset/elements"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// twoInputs makes a model of ids INT64[batch, sequence] and mask FLOAT[batch, sequence].
func twoInputs() *onnx.Model {
	g := build.NewGraph("two inputs")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("sequence")}
	ids, mask := g.Input("ids", onnx.Int64, shape...), g.Input("mask", onnx.Float, shape...)
	number := g.Node("Cast", []string{ids}, build.IntAttribute("to", int64(onnx.Float)))
	g.OutputAs("y", g.Node("Mul", []string{number, mask}), onnx.Float, shape...)
	return g.Model()
}

// oneInput makes a model of an input x with the type and shape, which is also its output.
func oneInput(t onnx.DataType, shape ...onnx.Dim) *onnx.Model {
	g := build.NewGraph("one input")
	g.OutputAs("y", g.Node("Identity", []string{g.Input("x", t, shape...)}), t, shape...)
	return g.Model()
}

func floats(shape []int64, values ...float64) inputs.Tensor {
	t := inputs.Tensor{Type: onnx.Float, Shape: shape}
	for _, v := range values {
		t.Data = onnx.AppendFloat(t.Data, onnx.Float, v)
	}
	return t
}

func integers(typ onnx.DataType, shape []int64, values ...int64) inputs.Tensor {
	t := inputs.Tensor{Type: typ, Shape: shape}
	for _, v := range values {
		t.Data = onnx.AppendInteger(t.Data, typ, v)
	}
	return t
}

type arrays = map[string]inputs.Tensor

// write writes arrays to a file, or to a folder. The file's kind follows from its name.
func write(t *testing.T, name string, content arrays) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	put := func(path string, fill func(w *bytes.Buffer) error) {
		var buffer bytes.Buffer
		if err := fill(&buffer); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, buffer.String())
	}
	if filepath.Ext(name) == ".npz" {
		put(path, func(w *bytes.Buffer) error { return npy.WriteArchive(w, content) })
		return path
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tensor := range content {
		put(filepath.Join(path, name+".npy"), func(w *bytes.Buffer) error { return npy.Write(w, tensor) })
	}
	return path
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every kind of file gives the same rows.
func TestReadKinds(t *testing.T) {
	t.Parallel()
	content := arrays{"ids": integers(onnx.Int64, []int64{2, 3}, 1, 2, 3, 4, 5, 6), "mask": floats([]int64{2, 3}, 1, 1, 1, 1, 1, 0)}
	labelled := maps.Clone(content)
	labelled["labels"] = integers(onnx.Uint8, []int64{2, 1}, 7, 0)
	steps := `{"ids": [1, 2, 3], "mask": [1, 1, 1]}, {"ids": [4, 5, 6], "mask": {"content": [1, 1, 0], "shape": [3]}}`
	folder := write(t, "folder", labelled)
	writeFile(t, filepath.Join(folder, "readme.txt"), "not an array")
	check := func(path string, labels []int64) {
		got, err := dataset.Read(path, twoInputs())
		if err != nil {
			t.Error(err)
			return
		}
		want := dataset.Dataset{Name: filepath.Base(path), Rows: 2, Batched: true, Inputs: content, Labels: labels}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
	check(write(t, "plain.npz", content), nil)
	check(write(t, "labelled.npz", labelled), []int64{7, 0})
	check(folder, []int64{7, 0})
	check(writeFile(t, filepath.Join(t.TempDir(), "steps.json"), `{"data": [`+steps+`]}`), nil)
	check(writeFile(t, filepath.Join(t.TempDir(), "streams.JSON"), `{"data": [[`+strings.Replace(steps, "}, {", "}], [{", 1)+`]]}`), nil)
}

func TestReadOnlyInput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(write(t, "folder", arrays{"anything": floats([]int64{2, 1}, 5, 6)}), "anything.npy")
	got, err := dataset.Read(path, oneInput(onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(arrays{"x": floats([]int64{2, 1}, 5, 6)}, got.Inputs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = dataset.Read(path, twoInputs())
	if err == nil || !strings.Contains(err.Error(), `the model has the inputs ["ids" "mask"]; put all into one .npz`) {
		t.Error(err)
	}
}

// If a model does not batch, rows are requests in the model's own shape.
func TestReadFixedBatch(t *testing.T) {
	t.Parallel()
	check := func(name string, m *onnx.Model, given, want inputs.Tensor, rows int) {
		d, err := dataset.Read(write(t, "x.npz", arrays{"x": given}), m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if d.Rows != rows || d.Batched {
			t.Errorf("%s: %d rows, batched %t", name, d.Rows, d.Batched)
		}
		if diff := cmp.Diff(arrays{"x": want}, d.Slice(rows-1, rows)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	fixed := oneInput(onnx.Float, onnx.Fixed(1), onnx.Fixed(2))
	check("one repeated", fixed, floats([]int64{2, 2}, 1, 2, 3, 4), floats([]int64{1, 2}, 3, 4), 2)
	check("rows in front", fixed, floats([]int64{2, 1, 2}, 1, 2, 3, 4), floats([]int64{1, 2}, 3, 4), 2)
	check("two repeated", oneInput(onnx.Float, onnx.Fixed(2)), floats([]int64{4}, 1, 2, 3, 4), floats([]int64{2}, 3, 4), 2)
	check("no dimensions", oneInput(onnx.Float), floats([]int64{3}, 1, 2, 3), floats([]int64{}, 3), 3)
}

func TestReadConverts(t *testing.T) {
	t.Parallel()
	mask := inputs.Tensor{Type: onnx.Double, Shape: []int64{1, 1}, Data: onnx.AppendFloat(nil, onnx.Double, 0.5)}
	d, err := dataset.Read(write(t, "x.npz", arrays{"ids": integers(onnx.Int32, []int64{1, 1}, -9), "mask": mask}), twoInputs())
	if err != nil {
		t.Fatal(err)
	}
	want := arrays{"ids": integers(onnx.Int64, []int64{1, 1}, -9), "mask": floats([]int64{1, 1}, 0.5)}
	if diff := cmp.Diff(want, d.Inputs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ids: INT32 became INT64", "mask: DOUBLE became FLOAT"}, d.Notes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	ids, mask := integers(onnx.Int64, []int64{2, 2}, 1, 2, 3, 4), floats([]int64{2, 2}, 1, 1, 1, 0)
	refuse := func(name string, content arrays, want ...string) {
		path := write(t, "data.npz", content)
		_, err := dataset.Read(path, twoInputs())
		for _, part := range append(want, "cannot read the dataset", path) {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", name, err, part)
			}
		}
	}
	refuse("missing", arrays{"ids": ids}, `the array "mask" is missing, which the model's input mask FLOAT[batch,sequence] needs; the data has []`)
	refuse("misspelt", arrays{"ids": ids, "masks": mask}, `the array "mask" is missing`, `the data has ["masks"]`, `the array "masks" is not one of the model's inputs ["ids" "mask"]`)
	refuse("wrong type", arrays{"ids": floats([]int64{2, 2}, 1, 2, 3, 4), "mask": mask}, `array "ids": it is FLOAT instead of INT64; convert it where it is made: arr.astype(numpy.int64)`)
	refuse("wrong shape", arrays{"ids": integers(onnx.Int64, []int64{2}, 1, 2), "mask": mask}, `array "ids": its shape [2] has 1 dimensions, but the model's input is ids INT64[batch,sequence], and the first dimension has the rows`)
	refuse("other sequence", arrays{"ids": ids, "mask": floats([]int64{2, 1}, 1, 1)}, `"sequence" is 1 here and 2 in "ids"`)
	refuse("other rows", arrays{"ids": ids, "mask": floats([]int64{1, 2}, 1, 1)}, `the array "mask" has 1 rows, but "ids" has 2`)
	refuse("empty", arrays{"ids": integers(onnx.Int64, []int64{0, 2}), "mask": mask}, "its shape [0 2] is empty")
	refuse("labels", arrays{"ids": ids, "mask": mask, "label": integers(onnx.Int64, []int64{3}, 1, 2, 3)}, "there are 3 labels for 2 rows")
	refuse("fractions for labels", arrays{"ids": ids, "mask": mask, "label": floats([]int64{2}, 1, 2)}, `the array "label" is FLOAT[2], but labels are one class number for each row`)
	refuse("one-hot labels", arrays{"ids": ids, "mask": mask, "label": ids}, `y.argmax(1)`)
	refuse("everything at once", arrays{"ids": mask, "more": mask}, `array "ids"`, `"mask" is missing`, `"more" is not one`)
	classes := integers(onnx.Int64, []int64{2}, 0, 1)
	refuse("labels twice", arrays{"ids": ids, "mask": mask, "label": classes, "labels": classes}, "label and labels")
	nan := floats([]int64{2, 2}, 1, 1, 1, 0)
	copy(nan.Data[8:], []byte{0, 0, 0xc0, 0x7f}) // the first element of the second row
	refuse("NaN", arrays{"ids": ids, "mask": nan}, `array "mask": it has NaN (row 1, counted from 0)`)
}

func TestReadRefusesFiles(t *testing.T) {
	t.Parallel()
	refuse := func(path, want string) {
		_, err := dataset.Read(path, twoInputs())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	file := func(name, content string) string { return writeFile(t, filepath.Join(t.TempDir(), name), content) }
	refuse(filepath.Join(t.TempDir(), "none.npz"), "no such file")
	refuse(file("data.csv", "1,2"), "its name has no known ending")
	refuse(file("data.npz", "1,2"), "it is not an .npz archive")
	refuse(t.TempDir(), "the folder has no .npy files")
	refuse(filepath.Dir(file("ids.npy", "1,2")), "it is not a NumPy array file")
	refuse(file("steps.json", `{"data": [{"ids": [1.5], "mask": [1]}]}`), "data[0].ids: value 0: 1.5 is not a whole number")
	refuse(file("lacks.json", `{"data": [{"ids": [1], "mask": [1]}, {"ids": [1]}]}`), `step 1 lacks "mask"`)
	refuse(file("late.json", `{"data": [{"ids": [1]}, {"ids": [1], "mask": [1]}]}`), `step 0 lacks "mask", which step 1 has`)
	refuse(file("batch.json", `{"data": [{"ids": {"content": [1], "shape": [1, 1]}, "mask": [1]}]}`), "without the batch dimension")
}

func TestReadFixedSizes(t *testing.T) {
	t.Parallel()
	m := oneInput(onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3))
	_, err := dataset.Read(write(t, "x.npz", arrays{"x": floats([]int64{1, 2}, 1, 2)}), m)
	if err == nil || !strings.Contains(err.Error(), `its shape [1 2] does not fit x FLOAT[batch,3]: 2 instead of 3`) {
		t.Error(err)
	}
	_, err = dataset.Read(write(t, "x.npz", arrays{"x": floats([]int64{3}, 1, 2, 3)}), oneInput(onnx.Float, onnx.Fixed(2)))
	if err == nil || !strings.Contains(err.Error(), "its first dimension 3 is not a multiple of the model's 2") {
		t.Error(err)
	}
}

func TestSlice(t *testing.T) {
	t.Parallel()
	d := dataset.Dataset{Rows: 3, Batched: true, Inputs: arrays{
		"x":    integers(onnx.Int16, []int64{3, 2}, 1, 2, 3, 4, 5, 6),
		"text": {Type: onnx.String, Shape: []int64{3}, Strings: [][]byte{[]byte("a"), []byte("b"), []byte("c")}},
	}}
	want := arrays{
		"x":    integers(onnx.Int16, []int64{2, 2}, 3, 4, 5, 6),
		"text": {Type: onnx.String, Shape: []int64{2}, Strings: [][]byte{[]byte("b"), []byte("c")}},
	}
	if diff := cmp.Diff(want, d.Slice(1, 3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	text := func(values ...string) inputs.Tensor {
		out := inputs.Tensor{Type: onnx.String, Shape: []int64{int64(len(values))}}
		for _, v := range values {
			out.Strings = append(out.Strings, []byte(v))
		}
		return out
	}
	make3 := func() dataset.Dataset { // for a model of two: each row has two labels
		return dataset.Dataset{Name: "n", Rows: 3, Synthetic: true, Labels: []int64{1, 2, 3, 4, 5, 6},
			Inputs: arrays{"x": integers(onnx.Int16, []int64{3, 2}, 1, 2, 3, 4, 5, 6), "text": text("a", "b", "c")}}
	}
	want := dataset.Dataset{Name: "n", Rows: 2, Synthetic: true, Labels: []int64{1, 2, 3, 4},
		Inputs: arrays{"x": integers(onnx.Int16, []int64{2, 2}, 1, 2, 3, 4), "text": text("a", "b")}}
	d := make3()
	if diff := cmp.Diff(want, d.Head(2)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, n := range []int{3, 100} {
		if diff := cmp.Diff(make3(), d.Head(n)); diff != "" {
			t.Errorf("%d rows: -want +got:\n%s", n, diff)
		}
	}
	d.Labels = nil
	if got := d.Head(1).Labels; got != nil {
		t.Errorf("labels %v out of none", got)
	}
}

// Everything except the name changes the digest.
func TestDigest(t *testing.T) {
	t.Parallel()
	base := func() dataset.Dataset {
		return dataset.Dataset{Name: "a", Rows: 1, Batched: true, Labels: []int64{1}, Inputs: arrays{"x": integers(onnx.Int16, []int64{1, 2}, 1, 2)}}
	}
	same := base()
	same.Name = "b"
	if base().Digest() != same.Digest() {
		t.Error("the name changes the digest")
	}
	seen := map[string]string{base().Digest(): "the same"}
	check := func(what string, change func(d *dataset.Dataset)) {
		d := base()
		change(&d)
		if other, ok := seen[d.Digest()]; ok {
			t.Errorf("%s: the digest is that of %s", what, other)
		}
		seen[d.Digest()] = what
	}
	check("values", func(d *dataset.Dataset) { d.Inputs["x"] = integers(onnx.Int16, []int64{1, 2}, 1, 3) })
	check("shape", func(d *dataset.Dataset) { d.Inputs["x"] = integers(onnx.Int16, []int64{1, 1, 2}, 1, 2) })
	check("type", func(d *dataset.Dataset) { d.Inputs["x"] = integers(onnx.Uint16, []int64{1, 2}, 1, 2) })
	check("input's name", func(d *dataset.Dataset) { d.Inputs = arrays{"y": d.Inputs["x"]} })
	check("labels", func(d *dataset.Dataset) { d.Labels = nil })
	check("batching", func(d *dataset.Dataset) { d.Batched = false })
	check("text", func(d *dataset.Dataset) {
		d.Inputs["t"] = inputs.Tensor{Type: onnx.String, Shape: []int64{1, 2}, Strings: [][]byte{[]byte("ab"), []byte("c")}}
	})
	check("parted text", func(d *dataset.Dataset) {
		d.Inputs["t"] = inputs.Tensor{Type: onnx.String, Shape: []int64{1, 2}, Strings: [][]byte{[]byte("a"), []byte("bc")}}
	})
}

func TestSynthetic(t *testing.T) {
	t.Parallel()
	o := inputs.Options{Shape: map[string][]int64{"ids": {4}}}
	make64 := func(m *onnx.Model, seed uint64) dataset.Dataset {
		t.Helper()
		d, err := dataset.Synthetic(m, o, 64, seed)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := make64(twoInputs(), 1)
	if shape := d.Inputs["mask"].Shape; !cmp.Equal(shape, []int64{64, 4}) || !d.Synthetic || !d.Batched || d.Rows != 64 {
		t.Errorf("mask %v, %+v", shape, d)
	}
	if make64(twoInputs(), 1).Digest() != d.Digest() || make64(twoInputs(), 2).Digest() == d.Digest() {
		t.Error("the seed does not decide")
	}
	o = inputs.Options{}
	fixed := make64(oneInput(onnx.Float, onnx.Fixed(1), onnx.Fixed(2)), 1)
	if fixed.Batched || !cmp.Equal(fixed.Inputs["x"].Shape, []int64{64, 1, 2}) {
		t.Errorf("fixed: %v, batched %t", fixed.Inputs["x"].Shape, fixed.Batched)
	}
	if cmp.Equal(fixed.Slice(0, 1), fixed.Slice(1, 2)) {
		t.Error("two rows are equal")
	}
}

func TestSyntheticRefuses(t *testing.T) {
	t.Parallel()
	refuse := func(m *onnx.Model, rows int, want string) {
		if _, err := dataset.Synthetic(m, inputs.Options{}, rows, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuse(twoInputs(), 1, `the dimension "sequence" of the input`)
	wide := oneInput(onnx.Float, onnx.Symbol("batch"), onnx.Fixed(1<<20))
	refuse(wide, 0, "cannot make 0 rows")
	refuse(wide, 1<<20, "they exceed 4 GiB")
}

// The committed sentences are rows for MiniLM: three inputs of 240 × 32.
func TestSentences(t *testing.T) {
	t.Parallel()
	d, err := dataset.Read("../../testdata/accuracy/minilm_sentences.npz", minilmInputs())
	if err != nil {
		t.Fatal(err)
	}
	if d.Rows != 240 || !d.Batched || d.Synthetic || len(d.Notes) != 0 {
		t.Errorf("%d rows, batched %t, synthetic %t, notes %q", d.Rows, d.Batched, d.Synthetic, d.Notes)
	}
	ids, _ := elements.Integers(d.Inputs["input_ids"])
	mask, _ := elements.Integers(d.Inputs["attention_mask"])
	for row := range 240 {
		// [CLS] 101 begins a row, [SEP] 102 ends its tokens, and zeros fill the rest. The mask has
		// ones on the tokens.
		tokens := int64(0)
		for _, m := range mask[row*32 : (row+1)*32] {
			tokens += m
		}
		own := ids[row*32 : (row+1)*32]
		if tokens < 4 || own[0] != 101 || own[tokens-1] != 102 || tokens < 32 && own[tokens] != 0 || mask[row*32+int(tokens)-1] != 1 {
			t.Errorf("row %d of %d tokens: %v", row, tokens, own)
		}
	}
}

// minilmInputs makes a model with MiniLM's inputs.
func minilmInputs() *onnx.Model {
	g := build.NewGraph("minilm's inputs")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("sequence")}
	sum := g.Input("input_ids", onnx.Int64, shape...)
	for _, name := range []string{"attention_mask", "token_type_ids"} {
		sum = g.Node("Add", []string{sum, g.Input(name, onnx.Int64, shape...)})
	}
	g.OutputAs("y", sum, onnx.Int64, shape...)
	return g.Model()
}
