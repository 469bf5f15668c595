package payload_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"tuner/engine/api"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/runner/payload"
)

// tensor describes an input or output. It has a batch dimension if the model batches.
func tensor(name, datatype string, shape ...int64) api.TensorMetadata {
	return api.TensorMetadata{Name: name, Datatype: datatype, Shape: shape}
}

// model returns a model of maximum batch size 8, or 0. Its inputs are x FP32 [2], ids INT64 [-1]
// and optional INT8 [1]; its output is y INT32 [2].
func model(batches bool) payload.Model {
	m := payload.Model{
		Name: "m", Version: "3", Config: &modelconfig.Config{Input: []*configpb.ModelInput{{Name: "optional", Optional: true}}},
		Metadata: api.ModelMetadata{
			Inputs:  []api.TensorMetadata{tensor("x", "FP32", 2), tensor("ids", "INT64", -1), tensor("optional", "INT8", 1)},
			Outputs: []api.TensorMetadata{tensor("y", "INT32", 2)},
		},
	}
	if batches {
		m.Config.MaxBatchSize = 8
		for _, list := range [][]api.TensorMetadata{m.Metadata.Inputs, m.Metadata.Outputs} {
			for i := range list {
				list[i].Shape = append([]int64{-1}, list[i].Shape...)
			}
		}
	}
	return m
}

// only returns a model that does not batch, with the given inputs.
func only(in ...api.TensorMetadata) payload.Model {
	m := model(false)
	m.Metadata.Inputs, m.Config.Input = in, nil
	return m
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func make32(values ...int32) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}

func make64(values ...int64) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

func mustMake(t *testing.T, m payload.Model, s payload.Source) payload.Set {
	t.Helper()
	set, err := payload.Make(m, s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestFiles(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "data.json", `{"data": [
		{"x": [1, 2], "ids": [7, 8, 9]},
		{"x": [3, 4], "ids": [10, 11, 12]},
		{"x": [5, 6], "ids": [13, 14, 15]}],
		"validation_data": [{"y": [1, -1]}, {"y": [2, -2]}, {"y": [3, -3]}]}`)
	const one, two, three, four, five, six = "\x00\x00\x80\x3f", "\x00\x00\x00\x40", "\x00\x00\x40\x40", "\x00\x00\x80\x40", "\x00\x00\xa0\x40", "\x00\x00\xc0\x40"
	request := func(origin, x string, ids []int64, y ...int32) payload.Request {
		return payload.Request{
			Infer: api.InferRequest{Model: "m", Version: "3", Inputs: []api.Tensor{
				{Name: "x", Datatype: "FP32", Shape: []int64{2, 2}, Data: []byte(x)},
				{Name: "ids", Datatype: "INT64", Shape: []int64{2, 3}, Data: make64(ids...)},
			}},
			Expected: []api.Tensor{{Name: "y", Datatype: "INT32", Shape: []int64{2, 2}, Data: make32(y...)}},
			Origin:   origin,
		}
	}
	got := mustMake(t, model(true), payload.Source{Data: []string{path}, Batch: 2})
	want := payload.Set{Streams: 1, Steps: 3, Requests: []payload.Request{
		request(path+", step 0 to "+path+", step 1", one+two+three+four, []int64{7, 8, 9, 10, 11, 12}, 1, -1, 2, -2),
		request(path+", step 2 to "+path+", step 0", five+six+one+two, []int64{13, 14, 15, 7, 8, 9}, 3, -3, 1, -1),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Files and streams follow one another. A model without a batch dimension gets none. Optional
// inputs may be missing.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := write(t, dir, "a.json", `{"data": [[{"x": [1, 1], "ids": [1]}], [{"x": [1, 1], "ids": [2, 3]}, {"x": [0, 0], "ids": [4], "optional": [5]}]]}`)
	second := write(t, dir, "b.json", `{"data": [{"x": [1, 1], "ids": {"content": [6], "shape": [1]}}], "validation_data": [{}]}`)
	set := mustMake(t, model(false), payload.Source{Data: []string{first, second}, Batch: 1})
	var origins, names []string
	var shapes [][]int64
	for _, r := range set.Requests {
		origins = append(origins, r.Origin)
		shapes = append(shapes, r.Infer.Inputs[1].Shape)
		if r.Expected != nil {
			t.Errorf("%s expects %v", r.Origin, r.Expected)
		}
	}
	for _, in := range set.Requests[2].Infer.Inputs {
		names = append(names, in.Name)
	}
	wantOrigins := []string{first + ", stream 0, step 0", first + ", stream 1, step 0", first + ", stream 1, step 1", second + ", step 0"}
	if diff := cmp.Diff(wantOrigins, origins); diff != "" || set.Streams != 3 || set.Steps != 4 {
		t.Errorf("%d streams, %d steps\n%s", set.Streams, set.Steps, diff)
	}
	if diff := cmp.Diff([][]int64{{1}, {2}, {1}, {1}}, shapes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x", "ids", "optional"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a/x", "\x00\x00\x80\x3f\x00\x00\x00\x40")
	write(t, dir, "text", "one\n\ntwo words\n")
	write(t, dir, "y", string(make32(8, 9)))
	m := only(tensor("a/x", "FP32", 2), tensor("text", "BYTES", -1))
	got := mustMake(t, m, payload.Source{Data: []string{dir}, Shapes: map[string][]int64{"text": {3}}, Batch: 1})
	want := payload.Set{Requests: []payload.Request{{
		Infer: api.InferRequest{Model: "m", Version: "3", Inputs: []api.Tensor{
			{Name: "a/x", Datatype: "FP32", Shape: []int64{2}, Data: []byte("\x00\x00\x80\x3f\x00\x00\x00\x40")},
			{Name: "text", Datatype: "BYTES", Shape: []int64{3}, Data: []byte("\x03\x00\x00\x00one\x00\x00\x00\x00\x09\x00\x00\x00two words")},
		}},
		Expected: []api.Tensor{{Name: "y", Datatype: "INT32", Shape: []int64{2}, Data: make32(8, 9)}},
		Origin:   dir,
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	m.Metadata.Outputs[0].Shape = []int64{-1, 2} // the number of rows is unknown
	if e := mustMake(t, m, payload.Source{Data: []string{dir}, Shapes: map[string][]int64{"text": {3}}, Batch: 1}).Requests[0].Expected; len(e) != 1 || len(e[0].Data) != 8 {
		t.Errorf("expected outputs %v", e)
	}
}

// wholes reads INT64 elements.
func wholes(t api.Tensor) []int64 {
	var out []int64
	for d := t.Data; len(d) >= 8; d = d[8:] {
		out = append(out, int64(binary.LittleEndian.Uint64(d)))
	}
	return out
}

// checkRange checks that the values of the i-th input lie in a range, and that each value of the
// range occurs.
func checkRange(t *testing.T, set payload.Set, i int, r inputs.Range) {
	t.Helper()
	seen := map[int64]bool{}
	for _, request := range set.Requests {
		for _, v := range wholes(request.Infer.Inputs[i]) {
			if v < r.Lo || v >= r.Hi {
				t.Errorf("%s: %d is not in %v", request.Infer.Inputs[i].Name, v, r)
			}
			seen[v] = true
		}
	}
	if int64(len(seen)) != r.Hi-r.Lo {
		t.Errorf("%d of %d values occur", len(seen), r.Hi-r.Lo)
	}
}

func TestRandomFromMetadata(t *testing.T) {
	t.Parallel()
	source := payload.Source{Batch: 3, Shapes: map[string][]int64{"ids": {5}}, Seed: 4}
	set := mustMake(t, model(true), source)
	if len(set.Requests) != 32 || set.Requests[5].Origin != "random request 5" {
		t.Errorf("%d requests, request 5 is %q", len(set.Requests), set.Requests[5].Origin)
	}
	checkRange(t, set, 1, inputs.Range{Lo: 0, Hi: 2})
	var shapes [][]int64
	for _, in := range set.Requests[0].Infer.Inputs {
		shapes = append(shapes, in.Shape)
	}
	if diff := cmp.Diff([][]int64{{3, 2}, {3, 5}, {3, 1}}, shapes); diff != "" {
		t.Error(diff)
	}
	wantNotes := []string{
		"x FP32 [2]: random numbers of mean 0 and deviation 1",
		"ids INT64 [5]: from 10 to below 13, as given",
		"optional INT8 [1]: 0 or 1; give --model-file, or --input-range NAME:LO:HI for other values",
	}
	source.Ranges = map[string]inputs.Range{"ids": {Lo: 10, Hi: 13}}
	ranged := mustMake(t, model(true), source)
	checkRange(t, ranged, 1, inputs.Range{Lo: 10, Hi: 13})
	if diff := cmp.Diff(wantNotes, ranged.Notes); diff != "" {
		t.Error(diff)
	}
	if !reflect.DeepEqual(set, mustMake(t, model(true), payload.Source{Data: []string{"random"}, Batch: 3, Shapes: source.Shapes, Seed: 4})) {
		t.Error("the same seed gave other requests")
	}
	if reflect.DeepEqual(set, mustMake(t, model(true), payload.Source{Batch: 3, Shapes: source.Shapes, Seed: 400})) {
		t.Error("another seed gave the same")
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	first := func(s payload.Source) string {
		s.Batch = 1
		return string(mustMake(t, only(tensor("s", "BYTES", 1)), s).Requests[0].Infer.Inputs[0].Data)
	}
	if got := first(payload.Source{}); len(got) != 4+128 || strings.Trim(got[4:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .?!") != "" {
		t.Errorf("random text %q", got)
	}
	if got := first(payload.Source{StringLength: 5}); !strings.HasPrefix(got, "\x05\x00\x00\x00") || len(got) != 9 {
		t.Errorf("text of length 5 is %q", got)
	}
	if got := first(payload.Source{Data: []string{"zero"}, StringData: "hi", StringLength: 5}); got != "\x02\x00\x00\x00hi" {
		t.Errorf("given text is %q", got)
	}
}

func TestZero(t *testing.T) {
	t.Parallel()
	set := mustMake(t, only(tensor("x", "FP32", 2), tensor("n", "INT64", 3)), payload.Source{Data: []string{"zero"}, Batch: 1})
	if len(set.Requests) != 1 || !bytes.Equal(set.Requests[0].Infer.Inputs[0].Data, make([]byte, 8)) || !bytes.Equal(set.Requests[0].Infer.Inputs[1].Data, make([]byte, 24)) {
		t.Errorf("requests %v", set.Requests)
	}
	if diff := cmp.Diff([]string{"x FP32 [2]: zeros", "n INT64 [3]: zeros"}, set.Notes); diff != "" {
		t.Error(diff)
	}
}

// recommender returns a model with its file: 500 users, 2,000 items.
func recommender() payload.Model {
	return payload.Model{
		Name: "m", Config: &modelconfig.Config{MaxBatchSize: 8}, Graph: build.EmbeddingRecommender(),
		Metadata: api.ModelMetadata{
			Inputs:  []api.TensorMetadata{tensor("user", "INT64", -1, 1), tensor("items", "INT64", -1, 20)},
			Outputs: []api.TensorMetadata{tensor("scores", "FP32", -1, 20)},
		},
	}
}

func TestRandomFromFile(t *testing.T) {
	t.Parallel()
	set := mustMake(t, recommender(), payload.Source{Batch: 8})
	greatest := []int64{0, 0}
	for _, r := range set.Requests {
		for i, in := range r.Infer.Inputs {
			greatest[i] = max(greatest[i], slices.Max(wholes(in)))
		}
	}
	// 32 · 8 users of 500 and 32 · 8 · 20 items of 2,000: the largest lies almost surely in the
	// upper half, and never beyond the table.
	if greatest[0] < 250 || greatest[0] >= 500 || greatest[1] < 1000 || greatest[1] >= 2000 {
		t.Errorf("greatest indices %v", greatest)
	}
	if diff := cmp.Diff([]string{`user INT64 [1]: row of the table "users" (500 rows)`, `items INT64 [20]: row of the table "items.table" (2000 rows)`}, set.Notes); diff != "" {
		t.Error(diff)
	}
}

// A named dimension has the same size in all inputs, so the user gives it once.
func TestSymbols(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("g")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("sequence")}
	sum := g.Node("Add", []string{g.Input("ids", onnx.Int64, shape...), g.Input("mask", onnx.Int64, shape...)})
	g.OutputAs("sum", sum, onnx.Int64, shape...)
	m := payload.Model{Name: "m", Config: &modelconfig.Config{MaxBatchSize: 4}, Graph: g.Model(), Metadata: api.ModelMetadata{
		Inputs: []api.TensorMetadata{tensor("ids", "INT64", -1, -1), tensor("mask", "INT64", -1, -1)},
	}}
	set := mustMake(t, m, payload.Source{Batch: 2, Shapes: map[string][]int64{"mask": {7}}})
	if diff := cmp.Diff([]int64{2, 7}, set.Requests[0].Infer.Inputs[0].Shape); diff != "" {
		t.Error(diff)
	}
}

// An optional input of unknown size is left out.
func TestOptional(t *testing.T) {
	t.Parallel()
	m := only(tensor("x", "FP32", 2), tensor("optional", "INT8", -1))
	m.Config.Input = []*configpb.ModelInput{{Name: "optional", Optional: true}}
	if in := mustMake(t, m, payload.Source{Batch: 1}).Requests[0].Infer.Inputs; len(in) != 1 {
		t.Errorf("inputs %v", in)
	}
}

// If the file does not have the shape of an input, the server's shape counts alone.
func TestUnranked(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("g")
	g.OutputAs("y", g.Input("x", onnx.Float, onnx.Symbol("n")), onnx.Float, onnx.Symbol("n"))
	p := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	p.GetGraph().GetInput()[0].GetType().GetTensorType().Shape = nil
	m := payload.Model{Name: "m", Graph: onnx.New(p), Metadata: api.ModelMetadata{Inputs: []api.TensorMetadata{tensor("x", "FP32", -1)}}}
	refuse(t, m, payload.Source{Batch: 1}, "the shape of input x FP32 [-1] is open: give it with --shape x:SIZE")
	set := mustMake(t, m, payload.Source{Batch: 1, Shapes: map[string][]int64{"x": {3}}})
	if diff := cmp.Diff([]int64{3}, set.Requests[0].Infer.Inputs[0].Shape); diff != "" {
		t.Error(diff)
	}
}

// refuse checks the problems of a source. want has a part of each.
func refuse(t *testing.T, m payload.Model, s payload.Source, want ...string) {
	t.Helper()
	_, err := payload.Make(m, s)
	var input *payload.InputError
	if !errors.As(err, &input) || len(input.Problems) != len(want) {
		t.Errorf("error %v, want %d problems with %q", err, len(want), want)
		return
	}
	for i := range want {
		if !strings.Contains(input.Problems[i], want[i]) {
			t.Errorf("problem %q, want %q", input.Problems[i], want[i])
		}
	}
}

func TestRefusesShapesAndRanges(t *testing.T) {
	t.Parallel()
	ids := map[string][]int64{"ids": {4}}
	refuse(t, model(true), payload.Source{Batch: 1},
		"the shape of input ids INT64 [-1] is open: give it (without the batch dimension) with --shape ids:SIZE")
	refuse(t, model(false), payload.Source{Batch: 1, Shapes: map[string][]int64{"ids": {4, 4}, "none": {1}, "x": {3}, "optional": {0}}},
		"the shape [4,4] given for input \"ids\" does not fit the model's [-1]", "a shape is given for \"none\"",
		"the shape [0] given for input \"optional\" is not positive", "the shape [3] given for input \"x\" does not fit the model's [2]")
	refuse(t, model(false), payload.Source{Batch: 1, Shapes: ids, Ranges: map[string]inputs.Range{"a": {}, "ids": {Lo: 5, Hi: 5}, "optional": {Lo: 0, Hi: 129}, "x": {Lo: 0, Hi: 2}}},
		`a range is given for "a"`, "the range from 5 to below 5 given for input ids INT64 [4] is empty",
		"beyond the type's -128 … 127", "a range is given for input x FP32 [2]; ranges are for whole numbers")
	refuse(t, model(true), payload.Source{Batch: 9, Shapes: ids}, `the batch size 9 exceeds the max_batch_size 8 of model "m"`)
	refuse(t, model(true), payload.Source{Shapes: ids}, "the batch size 0 is not positive")
	refuse(t, model(false), payload.Source{Batch: 2, Shapes: ids}, `model "m" does not batch`)
	refuse(t, model(true), payload.Source{Batch: 8, Shapes: map[string][]int64{"ids": {1 << 27}}}, "would exceed 1073741824 bytes in a request of batch size 8")
	refuse(t, only(tensor("s", "BYTES", 1<<20)), payload.Source{Batch: 1, StringLength: 2000}, "would exceed")
}

func TestRefusesMetadata(t *testing.T) {
	t.Parallel()
	refuse(t, only(tensor("a", "FP8", 1), tensor("b", "INT8", -2)), payload.Source{Batch: 1}, `input "a" of the server has the unknown type "FP8"`, `input "b" of the server has the impossible shape [-2]`)
	m := model(true)
	m.Metadata.Outputs[0].Shape = nil
	refuse(t, m, payload.Source{Batch: 1}, `output "y" of the server has no batch dimension`)
	m = only(tensor("a", "INT32", 1))
	m.Config.Input = []*configpb.ModelInput{{Name: "a", IsShapeTensor: true}}
	refuse(t, m, payload.Source{Batch: 1}, `input "a" is a shape tensor`)

	m = recommender()
	m.Metadata.Inputs[0] = tensor("user", "INT32", -1, 1)
	refuse(t, m, payload.Source{Batch: 1}, `input "user" is INT64 in the model file, but INT32 at the server`)
	m.Metadata.Inputs[0] = tensor("user", "INT64", -1, 2)
	refuse(t, m, payload.Source{Batch: 1}, `input user INT64 [2] at the server is user INT64[batch,1] in the model file`)
	m.Metadata.Inputs[0] = tensor("person", "INT64", -1, 1)
	refuse(t, m, payload.Source{Batch: 1}, `the model file has the input user INT64[batch,1], but the server's model "m" has only ["person" "items"]`,
		`the server's model "m" has the input person INT64 [1], which the model file lacks`)
}

func TestRefusesData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) payload.Source {
		return payload.Source{Batch: 2, Data: []string{write(t, dir, name, text)}}
	}
	refuse(t, model(true), file("wrong.json", `{"data": [{"x": [1, 2], "ids": [1.5]}]}`), "wrong.json: cannot read the perf_analyzer data: data[0].ids: value 0: 1.5 is not a whole number of INT64")
	refuse(t, model(true), file("missing.json", `{"data": [{"x": [1, 2]}, {"ids": [1]}]}`),
		"missing.json, step 0 has no values for the input ids INT64 [-1]", "missing.json, step 1 has no values for the input x FP32 [2]")
	refuse(t, model(true), file("uneven.json", `{"data": [{"x": [1, 2], "ids": [1]}, {"x": [1, 2], "ids": [1, 2]}]}`), `"ids" is [1] in one, but [2] in the other`)
	refuse(t, model(true), file("half.json", `{"data": [{"x": [1, 2], "ids": [1]}, {"x": [1, 2], "ids": [1]}], "validation_data": [{"y": [1, 1]}, {}]}`), `"y" is [2] in one, but missing in the other`)
	// 21 problems: 19 lack ids, one lacks both
	refuse(t, model(true), file("many.json", `{"data": [`+strings.Repeat(`{"x": [1, 2]}, `, 19)+`{}]}`),
		append(slices.Repeat([]string{"has no values for the input ids"}, 10), "and 11 more")...)
	refuse(t, model(true), payload.Source{Batch: 1, Data: []string{filepath.Join(dir, "none"), "zero"}}, "cannot read the input data", `"zero" cannot be combined`)
	refuse(t, model(true), payload.Source{Batch: 1, Data: []string{dir, dir}}, "a folder, which cannot be combined", "a folder, which cannot be combined")
	ranged := file("wrong.json", "{}")
	ranged.Ranges = map[string]inputs.Range{"ids": {Lo: 0, Hi: 5}}
	refuse(t, model(true), ranged, `a range of values is given for ["ids"], but ranges are only for random data`)
	refuse(t, model(true), payload.Source{Batch: 1, Data: []string{"zero"}, Shapes: map[string][]int64{"ids": {1}}, Ranges: ranged.Ranges}, "ranges are only for random data")
}

func TestRefusesFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "ids", "12345678")
	write(t, dir, "other", "")
	write(t, dir, "x", "123")
	write(t, dir, "y", "1234")
	refuse(t, model(true), payload.Source{Batch: 1, Data: []string{dir}},
		"the shape of input ids INT64 [-1] is open", `has the name of no input or output of model "m"; the inputs are ["x" "ids" "optional"]`,
		"x has 3 bytes, x FP32 [2] needs 8", "y has 4 bytes, y INT32 [2] needs 8")
	dir = t.TempDir()
	write(t, dir, "s", "a\nb")
	refuse(t, only(tensor("s", "BYTES", 3), tensor("x", "INT8", 1)), payload.Source{Batch: 1, Data: []string{dir}},
		"s has 2 lines of text, s BYTES [3] needs 3", "has no values for the input x INT8 [1]")
}

func TestAnswerSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		batches bool
		outputs []api.TensorMetadata
		want    int64 // expected at batch 3
	}{
		{true, []api.TensorMetadata{tensor("a", "FP32", -1, 2), tensor("b", "INT64", -1, 5)}, 3 * (2*4 + 5*8)},
		{false, []api.TensorMetadata{tensor("a", "BOOL", 7)}, 3 * 7},
		{true, []api.TensorMetadata{tensor("a", "FP32", -1, -1)}, -1},
		{false, []api.TensorMetadata{tensor("a", "FP32", 2), tensor("b", "FP32", -1)}, -1},
		{false, []api.TensorMetadata{tensor("a", "BYTES", 2)}, -1},
		{false, []api.TensorMetadata{tensor("a", "INT8", 1<<62)}, -1},
		{false, nil, 0},
	} {
		m := model(c.batches)
		m.Metadata.Outputs = c.outputs
		if got := m.AnswerSize(3); got != c.want {
			t.Errorf("outputs %v: %d bytes, want %d", c.outputs, got, c.want)
		}
	}
}

// FuzzMake checks that each tensor has as many elements as its shape, for any data of a user and
// any inputs of a server.
func FuzzMake(f *testing.F) {
	f.Add(`{"data": [{"x": [1, 2]}, {"x": {"content": {"b64": "AQIDBA=="}, "shape": [4]}}]}`, "INT8", int64(-1), int64(-1), 1)
	f.Add(`{"data": [[{"x": ["a", "b"]}], [{"x": {"b64": "AQAAAGEAAAAA"}}]]}`, "BYTES", int64(-1), int64(2), 2)
	f.Add(`{"data": [{"x": [1, 0, 2, NaN]}], "validation_data": [{"x": [1, 0, 2, 1]}]}`, "FP32", int64(2), int64(2), 1)
	f.Add("random", "BF16", int64(3), int64(2), 3)
	f.Fuzz(func(t *testing.T, text, datatype string, first, second int64, batch int) {
		m := only(tensor("x", datatype, first, second))
		m.Metadata.Outputs = m.Metadata.Inputs
		if batch%2 == 0 {
			m.Config.MaxBatchSize = 4
		}
		source := payload.Source{Data: []string{text}, Batch: batch}
		if text != payload.Random && text != payload.Zero {
			source.Data[0] = write(t, t.TempDir(), "data.json", text)
		} else if first > 1<<6 || second > 1<<6 {
			return // valid, but too large to generate here
		}
		set, err := payload.Make(m, source)
		if err != nil {
			return
		}
		for _, r := range set.Requests {
			for _, tensor := range slices.Concat(r.Infer.Inputs, r.Expected) {
				checkElements(t, tensor)
			}
		}
	})
}

// checkElements checks that a tensor in wire form has as many elements as its shape.
func checkElements(t *testing.T, tensor api.Tensor) {
	t.Helper()
	size, err := modelconfig.DataTypeOf(tensor.Datatype)
	if err != nil {
		t.Fatal(err)
	}
	have := int64(0)
	for d := tensor.Data; len(d) > 0; have++ {
		n := modelconfig.ByteSize(size)
		if n == 0 {
			n = 4 + int(binary.LittleEndian.Uint32(d))
		}
		d = d[n:]
	}
	if want, ok := onnx.Elements(tensor.Shape); !ok || have != want {
		t.Errorf("%q has %d elements, its shape is %v", tensor.Name, have, tensor.Shape)
	}
}
