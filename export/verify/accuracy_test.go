package verify

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/export"
	"tuner/model/dataset/elements"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/spec"
)

// echo is an opener whose sessions return the input x as the output y.
type echo struct {
	off     float64        // what the variant adds to each element
	lengths map[int64]bool // of the rows that the variant got
}

func (e echo) Open(_ context.Context, m *onnx.Model, _ string) (precision.Session, error) {
	if m.Proto().GetProducerName() == "variant" {
		return e, nil
	}
	return echo{lengths: map[int64]bool{}}, nil
}

func (e echo) Infer(_ context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	x := in["x"]
	e.lengths[x.Shape[1]] = true
	y := inputs.Tensor{Type: x.Type, Shape: x.Shape}
	for _, v := range elements.Floats(x) {
		y.Data = onnx.AppendFloat(y.Data, x.Type, v+e.off)
	}
	return map[string]inputs.Tensor{"y": y}, nil
}

func (echo) Close(context.Context) {}

// exported makes a campaign of a model of x[batch, length] and y of the same shape, and a file of its
// variant, which is the model with another producer. change changes the campaign's header.
func exported(t *testing.T, text string, length onnx.Dim, change func(*journal.Header)) (m export.ManifestModel, file string) {
	t.Helper()
	dir := t.TempDir()
	g := build.NewGraph("m")
	shape := []onnx.Dim{onnx.Symbol("batch"), length}
	g.OutputAs("y", g.Node("Relu", []string{g.Input("x", onnx.Float, shape...)}), onnx.Float, shape...)
	variant := proto.Clone(g.Model().Proto()).(*onnxpb.ModelProto)
	variant.ProducerName = proto.String("variant")
	original, file := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "variant.onnx")
	for path, model := range map[string]*onnx.Model{original: g.Model(), file: onnx.New(variant)} {
		if err := model.Write(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\nspace: {precision: [fp32, int8]}\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := profile.Data(p, s)
	if err != nil {
		t.Fatal(err)
	}
	config, err := modelconfig.Format(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	h := journal.Header{Spec: journal.NewSpecFile(p.Path, p.Text), Model: "m", BaseConfig: string(config), Data: data.Digest(), Mix: journal.NewMix(s.Mix),
		Models: []journal.ModelFile{{Precision: "fp32", Path: original, SHA256: s.Files[0].Source.Digest}}}
	change(&h)
	j, err := journal.Create(filepath.Join(dir, "out"), h)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := onnx.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := read.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return export.ManifestModel{Name: "m", Input: filepath.Join(dir, "out"), Precision: "int8", Provider: "cpu", SHA256: digest}, file
}

// check judges an exported file with the sessions of an echo.
func check(t *testing.T, e echo, m export.ManifestModel, file string) (Status, string) {
	t.Helper()
	j := Judge{Open: func(export.ManifestModel) (precision.Opener, string, error) { return e, "cpu@1.2.3", nil }}
	status, text, err := j.Check(t.Context(), m, file)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

// unchanged leaves a header as it is.
func unchanged(*journal.Header) {}

// The campaign of a mix compared rows of every shape, and so does the check.
func TestAccuracyOfAMix(t *testing.T) {
	t.Parallel()
	m, file := exported(t, "load: {inputs: {mix: {dimension: length, values: {4: 1, 8: 3}}}}", onnx.Symbol("length"), unchanged)
	one := 1.0
	m.Cosine = &one
	e := echo{lengths: map[int64]bool{}}
	status, text := check(t, e, m, file)
	if got := slices.Sorted(maps.Keys(e.lengths)); status != Passed || !slices.Equal(got, []int64{4, 8}) {
		t.Errorf("%s: %s; rows of lengths %v, want 4 and 8", status, text, got)
	}
}

// Other data than the campaign's judge nothing.
func TestAccuracyOnOtherData(t *testing.T) {
	t.Parallel()
	rows := filepath.Join(t.TempDir(), "rows.json")
	if err := os.WriteFile(rows, []byte(`{"data": [{"x": [1, 2, 3]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m, file := exported(t, "accuracy: {data: "+rows+"}", onnx.Fixed(3), unchanged)
	one := 1.0
	m.Cosine = &one
	if status, text := check(t, echo{lengths: map[int64]bool{}}, m, file); status != Passed {
		t.Errorf("the same rows: %s: %s", status, text)
	}
	if err := os.WriteFile(rows, []byte(`{"data": [{"x": [1, 2, 4]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := check(t, echo{lengths: map[int64]bool{}}, m, file); status != Skipped || text != "the data of the campaign's comparison (rows.json) have changed" {
		t.Errorf("other rows: %s: %s", status, text)
	}
	if err := os.Remove(rows); err != nil {
		t.Fatal(err)
	}
	if status, text := check(t, echo{lengths: map[int64]bool{}}, m, file); status != Skipped || !strings.HasPrefix(text, "the data of the campaign's comparison are gone: ") {
		t.Errorf("no rows: %s: %s", status, text)
	}
}

// Rows of one number have no cosine. The limit of the campaign holds for them, too.
func TestAccuracyWithoutACosine(t *testing.T) {
	t.Parallel()
	const limit = "constraints: {accuracy: {metric: max_abs_error, max: 0.1}}"
	m, file := exported(t, limit, onnx.Fixed(1), unchanged)
	for off, want := range map[float64]struct {
		status Status
		text   string
	}{
		0.0625: {Passed, "the outputs keep the campaign's limit of accuracy on 64 rows"},
		0.125:  {Failed, "max_abs_error is 0.125, more than 0.1"},
	} {
		if status, text := check(t, echo{off: off, lengths: map[int64]bool{}}, m, file); status != want.status || !strings.HasPrefix(text, want.text) {
			t.Errorf("an error of %g: %s: %s; want %s: %s", off, status, text, want.status, want.text)
		}
	}
	m, file = exported(t, limit, onnx.Fixed(1), func(h *journal.Header) { h.Data = "" })
	const want = "the campaign did not compare the outputs with the original's"
	if status, text := check(t, echo{}, m, file); status != Skipped || text != want {
		t.Errorf("without a comparison: %s: %s", status, text)
	}
}

// The output with the lowest cosine counts. Outputs without a cosine do not. Other builds may
// differ by a thousandth.
func TestSameAccuracy(t *testing.T) {
	t.Parallel()
	v := precision.Variant{Accuracy: map[string]accuracy.Report{"cpu": {Rows: 64, Outputs: map[string]accuracy.Figures{
		"a": {CosineMean: 0.999}, "b": {CosineMean: 0.9951}, "c": {CosineMean: math.NaN()}}}}}
	for _, tt := range []struct {
		provider string
		reported float64
		status   Status
		text     string
	}{
		{"cpu", 0.9951, Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9951"},
		{"cpu", 0.9942, Passed, "cosine 0.9951 with the original on 64 rows; reported 0.9942"},
		{"cpu", 0.9970, Failed, "cosine 0.9951 with the original on 64 rows; reported 0.997"},
		{"cpu", 0.9930, Failed, "cosine 0.9951 with the original on 64 rows; reported 0.993"},
		{"openvino", 0.9951, Skipped, "this model on this provider is the one that all others are compared with"},
	} {
		status, text, err := sameAccuracy(v, tt.provider, &tt.reported)
		if status != tt.status || text != tt.text || err != nil {
			t.Errorf("%s, reported %g: %s, %q, %v; want %s, %q", tt.provider, tt.reported, status, text, err, tt.status, tt.text)
		}
	}
}
