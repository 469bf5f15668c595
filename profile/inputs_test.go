package profile_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// openRows makes a profile whose requests are rows of a file, for a model of an input x of any
// length.
func openRows(t *testing.T, dir string, values ...int64) (spec.Profile, profile.Subject, error) {
	t.Helper()
	g := build.NewGraph("lengths")
	x := g.Input("x", onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("length"))
	g.OutputAs("y", g.Node("Identity", []string{x}), onnx.Int64, onnx.Symbol("batch"), onnx.Symbol("length"))
	rows := inputs.Tensor{Type: onnx.Int64, Shape: []int64{int64(len(values)) / 2, 2}}
	for _, v := range values {
		rows.Data = onnx.AppendInteger(rows.Data, onnx.Int64, v)
	}
	file, err := os.Create(filepath.Join(dir, "rows.npz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Model().Write(filepath.Join(dir, "m.onnx"), 0), npy.WriteArchive(file, map[string]inputs.Tensor{"x": rows}), file.Close()); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\noutput: out\nload: {client_batch_size: 3, inputs: {data: rows.npz}}"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	return p, s, err
}

// openConfigured makes a profile of a model that repeats its inputs of real numbers, with a configuration.
func openConfigured(t *testing.T, config, load string, dims map[string][]onnx.Dim) (spec.Profile, profile.Subject) {
	t.Helper()
	dir := t.TempDir()
	g := build.NewGraph("configured")
	for _, in := range slices.Sorted(maps.Keys(dims)) {
		g.OutputAs(in+" out", g.Node("Identity", []string{g.Input(in, onnx.Float, dims[in]...)}), onnx.Float, dims[in]...)
	}
	if err := errors.Join(g.Model().Write(filepath.Join(dir, "m.onnx"), 0), os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(config), 0o644)); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\nconfig: config.pbtxt\noutput: out\nload: "+load))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

// Requests have the shapes that the configuration states to clients, where the model's file has others.
func TestRequestsOfReshapedInputs(t *testing.T) {
	t.Parallel()
	batch := onnx.Symbol("batch")
	p, s := openConfigured(t, `max_batch_size: 8
		input { name: "fixed" data_type: TYPE_FP32 dims: [ 6 ] reshape { shape: [ 2, 3 ] } }
		input { name: "open" data_type: TYPE_FP32 dims: [ -1, 2 ] reshape { shape: [ 1, -1, 2 ] } }
		input { name: "scalar" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }
		input { name: "plain" data_type: TYPE_FP32 dims: [ 4 ] }`,
		"{client_batch_size: 3, inputs: {shape: {open: [1, 5, 2]}}}", map[string][]onnx.Dim{
			"fixed": {batch, onnx.Fixed(2), onnx.Fixed(3)}, "open": {batch, onnx.Fixed(1), onnx.Symbol("length"), onnx.Fixed(2)}, "scalar": {batch}, "plain": {batch, onnx.Fixed(4)},
		})
	requests, err := profile.Requests(p, s)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]int64{}
	for _, in := range requests[0].Inputs {
		got[in.Name] = in.Shape
	}
	if d := cmp.Diff(map[string][]int64{"fixed": {3, 6}, "open": {3, 5, 2}, "scalar": {3, 1}, "plain": {3, 4}}, got); d != "" {
		t.Errorf("shapes (-want +got):\n%s", d)
	}
}

// A model with inputs that the server makes of a batch gets no requests.
func TestRequestsWithBatchInput(t *testing.T) {
	t.Parallel()
	p, s := openConfigured(t, `max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
		batch_input { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "x" }`,
		"{}", map[string][]onnx.Dim{"x": {onnx.Symbol("batch"), onnx.Fixed(4)}, "n": {onnx.Symbol("batch")}})
	_, err := profile.Requests(p, s)
	if !errors.As(err, new(*profile.InputError)) || !strings.Contains(err.Error(), `model "m" uses batch_input`) {
		t.Errorf("got %v", err)
	}
}

// Requests are rows of the user's file, which also set open dimensions. There are as many requests
// as rows, at least as many as random ones. The same seed draws the same.
func TestRequestsOfRows(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, 3, 200} {
		var values []int64
		for i := range rows {
			values = append(values, int64(i), int64(1000+i))
		}
		p, s, err := openRows(t, t.TempDir(), values...)
		if err != nil {
			t.Fatal(err)
		}
		requests, err := profile.Requests(p, s)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(32, rows); len(requests) != want {
			t.Errorf("%d rows: %d requests, want %d", rows, len(requests), want)
		}
		for _, r := range requests {
			x := r.Inputs[0]
			if len(r.Inputs) != 1 || x.Name != "x" || !slices.Equal(x.Shape, []int64{3, 2}) {
				t.Fatalf("%d rows: a request has %v", rows, r.Inputs)
			}
			for i := range 3 {
				first := int64(x.Data[16*i]) | int64(x.Data[16*i+1])<<8
				second := int64(x.Data[16*i+8]) | int64(x.Data[16*i+9])<<8
				if first < 0 || first >= int64(rows) || second != 1000+first {
					t.Fatalf("%d rows: a request has the row %d, %d", rows, first, second)
				}
			}
		}
		again, err := profile.Requests(p, s)
		if diff := cmp.Diff(requests, again); err != nil || diff != "" {
			t.Errorf("%d rows, again: %v\n%s", rows, err, diff)
		}
	}
}

// The journal has the rows' digest and shape. A campaign resumes with the same rows under another
// name, and not with others. Whoever reads the journal sees the shape.
func TestResumeComparesRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(values ...int64) error {
		p, s, err := openRows(t, dir, values...)
		if err != nil {
			return err
		}
		log, err := profile.OpenLog(profile.Setup{Profile: p, Subject: s, Facts: search.Facts{Batching: true},
			Runtime: journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1"}}, time.Unix(0, 0))
		if err != nil {
			return err
		}
		return log.Close()
	}
	for range 2 {
		if err := open(1, 2, 3, 4); err != nil {
			t.Fatal(err)
		}
	}
	err := open(1, 2, 3, 5)
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "data of the requests: rows.npz, 2 rows, ") {
		t.Errorf("other rows: %v", err)
	}
	c, err := campaign.Read(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]int64{"x": {2}}, c.Profile.Inputs.Shape); diff != "" {
		t.Errorf("shapes (-want +got):\n%s", diff)
	}
}

// Other rows are other requests: a campaign with them teaches this one nothing.
func TestEarlierWithOtherRows(t *testing.T) {
	t.Parallel()
	setup := func(last int64) profile.Setup {
		p, s, err := openRows(t, t.TempDir(), 1, 2, 3, last)
		if err != nil {
			t.Fatal(err)
		}
		return profile.Setup{Profile: p, Subject: s, Facts: search.Facts{Batching: true}, Runtime: journal.RuntimeInfo{Flavour: "cpu", Version: "1.31.1", Library: "lib.so"}}
	}
	now := setup(4)
	now.Profile.Search.Earlier = []string{record(t, setup(4), 1)}
	if _, err := profile.Reuse(now); err != nil {
		t.Errorf("the same rows: %v", err)
	}
	now.Profile.Search.Earlier = []string{record(t, setup(5), 1)}
	if _, err := profile.Reuse(now); err == nil || !strings.Contains(err.Error(), "data of the requests: ") {
		t.Errorf("other rows: %v", err)
	}
}

// Rows that do not fit the model are a mistake of the profile, which names the field and the array.
func TestRowsThatDoNotFit(t *testing.T) {
	t.Parallel()
	p, s, err := openRows(t, t.TempDir(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	p.Inputs.Data = filepath.Join(t.TempDir(), "y.npz")
	file, err := os.Create(p.Inputs.Data)
	if err != nil {
		t.Fatal(err)
	}
	floats := inputs.Tensor{Type: onnx.Float, Shape: []int64{1, 2}, Data: make([]byte, 8)}
	if err := errors.Join(npy.WriteArchive(file, map[string]inputs.Tensor{"y": floats}), file.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = profile.OpenSubject(p, profile.Place{})
	want := fmt.Sprintf(`%s: load.inputs.data: cannot read the dataset %q: the array "x" is missing`, p.Path, p.Inputs.Data)
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if s.Rows.Rows != 1 {
		t.Errorf("%d rows", s.Rows.Rows)
	}
}

// Variants are compared on the rows of the requests if the profile names no others.
func TestVariantsAreComparedOnRows(t *testing.T) {
	t.Parallel()
	p, s, err := openRows(t, t.TempDir(), 1, 2, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	data, calibration, err := profile.Data(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if data.Synthetic || data.Digest() != s.Rows.Digest() || calibration.Digest() != data.Digest() {
		t.Errorf("compared on %s (%d rows), calibrated on %s", data.Name, data.Rows, calibration.Name)
	}
}
