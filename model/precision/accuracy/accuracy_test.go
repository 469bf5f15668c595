package accuracy_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

var nan = math.NaN()

func tensor(t onnx.DataType, shape []int64, values ...float64) inputs.Tensor {
	out := inputs.Tensor{Type: t, Shape: shape}
	for _, v := range values {
		if t.IsFloat() {
			out.Data = onnx.AppendFloat(out.Data, t, v)
		} else {
			out.Data = onnx.AppendInteger(out.Data, t, int64(v))
		}
	}
	return out
}

// one makes the outputs of a single batch with the output y.
func one(t inputs.Tensor) accuracy.Outputs { return accuracy.Outputs{{"y": t}} }

// figures compares two tensors as the output y.
func figures(t *testing.T, a, b inputs.Tensor) accuracy.Figures {
	t.Helper()
	r, err := accuracy.Compare(one(a), one(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs["y"]
}

// checkFigures compares figures within the rounding of double precision.
func checkFigures(t *testing.T, name string, want, got accuracy.Figures) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", name, diff)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	// (3,4)·(4,3) = 24, both of length 5: 0.96. (1,0)·(0,1) = 0. The first percentile of {0, 0.96}
	// is 0.01·0.96. Every element differs by 1. The relative differences are to 3, 4, 1, and for
	// the 0 to a hundredth of the row's largest element, 0.01.
	a, b := tensor(onnx.Float, []int64{2, 2}, 3, 4, 1, 0), tensor(onnx.Float, []int64{2, 2}, 4, 3, 0, 1)
	checkFigures(t, "two rows", accuracy.Figures{CosineMean: 0.48, CosineP1: 0.0096, CosineMin: 0, MaxAbs: 1, MeanAbs: 1, MaxRel: 100,
		MeanRel: (1.0/3 + 1.0/4 + 1 + 100) / 4, Top1: 0, Top5: nan, Neighbour: nan}, figures(t, a, b))
	exact := accuracy.Figures{CosineMean: 1, CosineP1: 1, CosineMin: 1, Top1: 1, Top5: nan, Neighbour: nan}
	checkFigures(t, "the same", exact, figures(t, a, a))
	// The sides may have different precision: 3, 4, 1, 0 are exact in each.
	checkFigures(t, "half precision", exact, figures(t, a, tensor(onnx.Float16, []int64{2, 2}, 3, 4, 1, 0)))
	// Rows of zeros are compared with zeros and with others. Two of the four elements differ by 2,
	// relative to nothing: 1.
	checkFigures(t, "zeros", accuracy.Figures{CosineMean: 0.5, CosineP1: 0.01, CosineMin: 0, MaxAbs: 2, MeanAbs: 1, MaxRel: 1, MeanRel: 0.5,
		Top1: 1, Top5: nan, Neighbour: nan},
		figures(t, tensor(onnx.Double, []int64{2, 2}, 0, 0, 0, 0), tensor(onnx.Double, []int64{2, 2}, 0, 0, 2, 2)))
	// For whole numbers and text, the share of equal rows.
	exactOnly := accuracy.Figures{CosineMean: nan, CosineP1: nan, CosineMin: nan, MaxAbs: nan, MeanAbs: nan, MaxRel: nan, MeanRel: nan, Top5: nan, Neighbour: nan}
	exactOnly.Top1 = 0.5
	checkFigures(t, "whole numbers", exactOnly, figures(t, tensor(onnx.Int64, []int64{2, 2}, 1, 2, 3, 4), tensor(onnx.Int64, []int64{2, 2}, 1, 2, 3, 5)))
	text := func(values ...string) inputs.Tensor {
		out := inputs.Tensor{Type: onnx.String, Shape: []int64{int64(len(values))}}
		for _, v := range values {
			out.Strings = append(out.Strings, []byte(v))
		}
		return out
	}
	checkFigures(t, "text", exactOnly, figures(t, text("a", "b"), text("a", "c")))
	// One element per row has no direction and no classes. 2 for 4 differs by 2, relative to 4 by a
	// half.
	checkFigures(t, "single elements", accuracy.Figures{CosineMean: nan, CosineP1: nan, CosineMin: nan, MaxAbs: 2, MeanAbs: 1, MaxRel: 0.5,
		MeanRel: 0.25, Top1: nan, Top5: nan, Neighbour: nan}, figures(t, tensor(onnx.Float, []int64{2}, 1, 4), tensor(onnx.Float, []int64{2}, 1, 2)))
}

func TestTopClasses(t *testing.T) {
	t.Parallel()
	// The original's five largest are all except the last, the variant's all except the fifth: 4 of
	// 5. In the second row the variant has another largest element, but the same five.
	a := tensor(onnx.Float, []int64{2, 6, 1, 1}, 6, 5, 4, 3, 2, 1, 6, 5, 4, 3, 2, 1)
	b := tensor(onnx.Float, []int64{2, 6, 1, 1}, 6, 5, 4, 3, 1, 2, 5, 6, 4, 3, 2, 1)
	if f := figures(t, a, b); f.Top1 != 0.5 || math.Abs(f.Top5-0.9) > 1e-15 {
		t.Errorf("top 1 %v, want 0.5; top 5 %v, want (0.8 + 1)/2", f.Top1, f.Top5)
	}
	// The first of equal elements counts. NaN is never the largest.
	tie := tensor(onnx.Float, []int64{1, 3}, 1, 7, 7)
	if f := figures(t, tie, tensor(onnx.Float, []int64{1, 3}, nan, 8, 8)); f.Top1 != 1 {
		t.Errorf("tie: %v", f.Top1)
	}
	if f := figures(t, tie, tensor(onnx.Float, []int64{1, 3}, 1, 7, 7.5)); f.Top1 != 0 {
		t.Errorf("the tie undone: %v", f.Top1)
	}
	if f := figures(t, tensor(onnx.Float, []int64{2, 1}, 1, 2), tensor(onnx.Float, []int64{2, 1}, 1, 2)); !math.IsNaN(f.Top1) {
		t.Errorf("one class: %v", f.Top1)
	}
	if f := figures(t, tensor(onnx.Float, []int64{1, 2, 2}, 1, 2, 3, 4), tensor(onnx.Float, []int64{1, 2, 2}, 1, 2, 3, 4)); !math.IsNaN(f.Top1) {
		t.Errorf("rows of matrices: %v", f.Top1)
	}
}

// circle makes rows at angles in degrees, with different lengths.
func circle(angles []float64) inputs.Tensor {
	var values []float64
	for i, a := range angles {
		length := float64(1 + i%3)
		values = append(values, length*math.Cos(a*math.Pi/180), length*math.Sin(a*math.Pi/180))
	}
	return tensor(onnx.Double, []int64{int64(len(angles)), 2}, values...)
}

func TestNeighbour(t *testing.T) {
	t.Parallel()
	// Eight pairs, 1° apart, with 40° between pairs.
	var angles []float64
	for k := range 8 {
		angles = append(angles, float64(40*k), float64(40*k+1))
	}
	a := circle(angles)
	if f := figures(t, a, a); f.Neighbour != 1 {
		t.Errorf("the same: %v", f.Neighbour)
	}
	// Row 0 moves from 0° to 40.2°, between rows 2 and 3. It gets another neighbour, both of these
	// get row 0 as theirs, and row 1 gets another one. 12 of 16 stay.
	angles[0] = 40.2
	if f := figures(t, a, circle(angles)); f.Neighbour != 0.75 {
		t.Errorf("one moved: %v, want 0.75", f.Neighbour)
	}
	few := circle(angles[:15])
	if f := figures(t, few, few); !math.IsNaN(f.Neighbour) {
		t.Errorf("15 rows: %v", f.Neighbour)
	}
	// Batches of 8 give the same result.
	b := circle(angles)
	split := func(t inputs.Tensor) accuracy.Outputs {
		half := len(t.Data) / 2
		return accuracy.Outputs{
			{"y": {Type: t.Type, Shape: []int64{8, 2}, Data: t.Data[:half]}},
			{"y": {Type: t.Type, Shape: []int64{8, 2}, Data: t.Data[half:]}},
		}
	}
	r, err := accuracy.Compare(split(a), split(b), nil)
	if err != nil || r.Rows != 16 {
		t.Fatalf("%d rows, %v", r.Rows, err)
	}
	checkFigures(t, "in batches", figures(t, a, b), r.Outputs["y"])
}

// Rows of an output [batch, sequence] are as wide as their inputs. There is no cosine between rows of
// two widths, so they have no nearest row. All other figures remain.
func TestRowsOfSeveralWidths(t *testing.T) {
	t.Parallel()
	batch := func(columns int64) map[string]inputs.Tensor {
		return map[string]inputs.Tensor{"y": tensor(onnx.Float, []int64{8, columns}, slices.Repeat([]float64{1, 2, 3, 4, 5, 6, 7, 8}, int(columns))...)}
	}
	for name, outputs := range map[string]accuracy.Outputs{"wider": {batch(2), batch(7)}, "narrower": {batch(7), batch(2)}} {
		r, err := accuracy.Compare(outputs, outputs, nil)
		if err != nil || r.Rows != 16 {
			t.Fatalf("%s: %d rows, %v", name, r.Rows, err)
		}
		checkFigures(t, name, accuracy.Figures{CosineMean: 1, CosineP1: 1, CosineMin: 1, Top1: 1, Top5: 1, Neighbour: nan}, r.Outputs["y"])
	}
}

func TestNonFinite(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	// Only the third and fourth element are the variant's fault. Among the others only the first is
	// compared. A row with NaN has no largest class.
	a := tensor(onnx.Float, []int64{1, 5}, 2, inf, 1, 1, nan)
	b := tensor(onnx.Float, []int64{1, 5}, 3, inf, nan, inf, 1)
	f := figures(t, a, b)
	checkFigures(t, "non-finite", accuracy.Figures{CosineMean: 1, CosineP1: 1, CosineMin: 1, MaxAbs: 1, MeanAbs: 1, MaxRel: 0.5, MeanRel: 0.5,
		Top1: nan, Top5: nan, Neighbour: nan, NonFinite: 2, NonFiniteOriginal: 2}, f)
	low := 0.0
	_, miss := accuracy.Limit{Metric: "cosine", Min: &low}.Check(accuracy.Report{Outputs: map[string]accuracy.Figures{"y": f}})
	if want := `output "y" has 2 elements that are NaN or infinite where the original's are not`; miss != want {
		t.Errorf("%q, want %q", miss, want)
	}
}

// Rows whose largest element is NaN or infinite in the original have no class. -Inf is less than
// all others.
func TestClassesOfFiniteRows(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	a := tensor(onnx.Float, []int64{5, 2}, nan, 1, inf, 1, -inf, -inf, -inf, 1, 2, 1)
	b := tensor(onnx.Float, []int64{5, 2}, 1, 2, 1, 2, 1, 2, -inf, 1, 1, 2)
	if f := figures(t, a, b); f.Top1 != 0.5 || f.NonFiniteOriginal != 5 || f.NonFinite != 0 { // of the last two rows
		t.Errorf("%+v", f)
	}
}

// LeastCosine skips outputs without a cosine.
func TestLeastCosine(t *testing.T) {
	t.Parallel()
	check := func(want float64, wantOK bool, outputs map[string]accuracy.Figures) {
		t.Helper()
		if got, ok := (accuracy.Report{Outputs: outputs}).LeastCosine(); got != want || ok != wantOK {
			t.Errorf("%v: %v, %t, want %v, %t", outputs, got, ok, want, wantOK)
		}
	}
	check(0, false, nil)
	check(0, false, map[string]accuracy.Figures{"classes": {CosineMean: nan}})
	check(-0.5, true, map[string]accuracy.Figures{"classes": {CosineMean: nan}, "a": {CosineMean: 0.9}, "b": {CosineMean: -0.5}, "c": {CosineMean: 1}})
}

func TestCheckFinite(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	good, bad := tensor(onnx.Float, []int64{2}, 1, inf), tensor(onnx.Float16, []int64{2}, nan, -inf)
	for name, c := range map[string]struct {
		outputs accuracy.Outputs
		want    string // "": no error
	}{
		"numbers":            {one(good), ""},
		"some in one batch":  {append(one(bad), append(one(good), one(bad)...)...), ""},
		"no elements":        {one(tensor(onnx.Float, []int64{0, 2})), ""},
		"whole numbers":      {one(tensor(onnx.Int8, []int64{1}, 1)), ""},
		"none":               {append(one(bad), one(bad)...), `all 4 elements of output "y" are NaN or infinite`},
		"none in one of two": {accuracy.Outputs{{"a": good, "z": bad}}, `all 2 elements of output "z" are NaN or infinite`},
	} {
		err := accuracy.CheckFinite(c.outputs)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	x := tensor(onnx.Float, []int64{1, 2}, 1, 2)
	refuse := func(a, b accuracy.Outputs, labels []int64, want string) {
		_, err := accuracy.Compare(a, b, labels)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refuse(nil, nil, nil, "there are 0 batches of the original and 0 of the variant")
	refuse(one(x), append(one(x), one(x)...), nil, "there are 1 batches of the original and 2 of the variant")
	refuse(one(x), accuracy.Outputs{{"z": x}}, nil, `batch 0 lacks the output "y" (original: true, variant: false)`)
	refuse(one(x), one(tensor(onnx.Float, []int64{2, 1}, 1, 2)), nil, `output "y", batch 0: its shape is [2 1], the original's [1 2]`)
	refuse(one(x), one(tensor(onnx.Int32, []int64{1, 2}, 1, 2)), nil, "its type is INT32, the original's FLOAT")
	refuse(one(x), one(x), []int64{1, 1}, "the labels fit no output")
	refuse(one(x), one(x), []int64{2}, "the labels fit no output")
	refuse(one(x), one(x), []int64{-1}, "the labels fit no output")
}

func TestScalarOutputs(t *testing.T) {
	t.Parallel()
	batches := func(values ...float64) (out accuracy.Outputs) {
		for _, v := range values {
			out = append(out, one(tensor(onnx.Float, nil, v))...)
		}
		return out
	}
	r, err := accuracy.Compare(batches(1, 2, 3), batches(1, 2, 5), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Outputs["y"]; r.Rows != 3 || f.MaxAbs != 2 || math.Abs(f.MeanAbs-2.0/3) > 1e-15 {
		t.Errorf("%d rows, %+v", r.Rows, f)
	}
}

// Rows of length 1 with negative numbers have no classes, unless there are labels.
func TestEmbedding(t *testing.T) {
	t.Parallel()
	shape := []int64{2, 2}
	for name, c := range map[string]struct {
		t    inputs.Tensor
		want bool
	}{
		"unit rows":      {tensor(onnx.Float, shape, .6, -.8, 1, 0), true}, // .36 + .64 = 1
		"half precision": {tensor(onnx.Float16, shape, .6, -.8, 1, 0), true},
		"scores":         {tensor(onnx.Float, shape, .6, -.8, 2, 0), false},
		"one-hot":        {tensor(onnx.Float, shape, 0, 1, 1, 0), false}, // of length 1, but without negative numbers
		"probabilities":  {tensor(onnx.Float, shape, .5, .5, .25, .75), false},
	} {
		if f := figures(t, c.t, c.t); math.IsNaN(f.Top1) != c.want {
			t.Errorf("%s: top 1 is %v", name, f.Top1)
		}
		if r, err := accuracy.Compare(one(c.t), one(c.t), []int64{0, 1}); err != nil || r.Outputs["y"].Top1 != 1 {
			t.Errorf("%s, with labels: %+v, %v", name, r.Outputs["y"], err)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	scores := func(rows ...[]float64) (values []float64) {
		for _, r := range rows {
			values = append(values, r...)
		}
		return values
	}
	shape := []int64{4, 3}
	zero, first, second := []float64{1, 0, 0}, []float64{0, 1, 0}, []float64{0, 0, 1}
	// The original is correct in three rows of four, the variant in two. The other output is
	// correct in one, so the labels do not belong to it.
	a := accuracy.Outputs{{"y": tensor(onnx.Float, shape, scores(zero, first, second, zero)...), "other": tensor(onnx.Float, shape, scores(first, zero, zero, first)...)}}
	b := accuracy.Outputs{{"y": tensor(onnx.Float, shape, scores(zero, first, zero, zero)...), "other": a[0]["other"]}}
	r, err := accuracy.Compare(a, b, []int64{0, 1, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&accuracy.LabelFigures{Output: "y", Rows: 4, Reference: 0.75, Variant: 0.5}, r.Labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// An output may be the class itself.
	r, err = accuracy.Compare(one(tensor(onnx.Int64, []int64{2}, 7, 8)), one(tensor(onnx.Int64, []int64{2}, 7, 9)), []int64{7, 8})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&accuracy.LabelFigures{Output: "y", Rows: 2, Reference: 1, Variant: 0.5}, r.Labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A label is a class of its own row: rows of an output [batch, sequence] have as many classes as
// positions.
func TestLabelsOfRowsOfSeveralWidths(t *testing.T) {
	t.Parallel()
	long := map[string]inputs.Tensor{"y": tensor(onnx.Float, []int64{1, 3}, 0, 0, 1)} // predicts 2
	short := map[string]inputs.Tensor{"y": tensor(onnx.Float, []int64{1, 2}, 1, 0)}   // predicts 0
	for _, c := range []struct {
		name    string
		outputs accuracy.Outputs
		labels  []int64
		want    float64 // share of rows that are predicted correctly; below 0: the labels do not fit
	}{
		{"the last is narrower", accuracy.Outputs{long, short}, []int64{2, 1}, 0.5},
		{"the last is wider", accuracy.Outputs{short, long}, []int64{0, 2}, 1},
		{"no class of the last", accuracy.Outputs{long, short}, []int64{2, 2}, -1},
		{"no class of the first", accuracy.Outputs{short, long}, []int64{2, 2}, -1},
	} {
		r, err := accuracy.Compare(c.outputs, c.outputs, c.labels)
		if c.want < 0 {
			if err == nil || !strings.Contains(err.Error(), "the labels fit no output") {
				t.Errorf("%s: %+v, %v", c.name, r.Labels, err)
			}
			continue
		}
		if err != nil || r.Labels.Reference != c.want {
			t.Errorf("%s: %+v, %v, want a share of %v", c.name, r.Labels, err, c.want)
		}
	}
}

func TestFiguresAsJSON(t *testing.T) {
	t.Parallel()
	want := accuracy.Report{Rows: 2, Synthetic: true, Outputs: map[string]accuracy.Figures{"y": {CosineMean: 0.5, CosineP1: 0.25, CosineMin: 0.125,
		MaxAbs: 3, MeanAbs: 2, MaxRel: 5, MeanRel: 4, Top1: 0.75, Top5: nan, Neighbour: nan, NonFinite: 1, NonFiniteOriginal: 7}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	golden := `{"rows":2,"synthetic":true,"outputs":{"y":{"cosine_mean":0.5,"cosine_p1":0.25,"cosine_min":0.125,"max_abs_error":3,` +
		`"mean_abs_error":2,"max_rel_error":5,"mean_rel_error":4,"top1_agreement":0.75,"top5_agreement":null,"neighbour_agreement":null,"non_finite":1,"non_finite_original":7}}}`
	if diff := cmp.Diff(golden, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var got accuracy.Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
