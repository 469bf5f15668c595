package profile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// fakeMaker "makes" every precision as a copy of the MLP sample. The mean cosine in each place
// comes from cosines. Below 0.99 it rejects.
type fakeMaker struct {
	file    string
	cosines map[string]float64 // by "precision place"; 1 for others
	unmade  map[string]bool
	cached  map[string]bool        // precisions in its cache
	source  *precision.SourceError // answer for every precision; nil: none
	asked   []string
}

func (f *fakeMaker) Make(_ context.Context, name string, places []string) (precision.Variant, error) {
	f.asked = append(f.asked, "make "+name+" for "+strings.Join(places, " "))
	if f.source != nil {
		return precision.Variant{}, f.source
	}
	if f.unmade[name] {
		return precision.Variant{}, &precision.Unmakeable{Precision: name, Err: errors.New("nothing to convert")}
	}
	return f.variant(name, places), nil
}

func (f *fakeMaker) Check(_ context.Context, name string, m *onnx.Model, places []string) (precision.Variant, error) {
	f.asked = append(f.asked, "check "+name+" for "+strings.Join(places, " "))
	if m == nil {
		return precision.Variant{}, errors.New("no model")
	}
	return f.variant(name, places), nil
}

func (f *fakeMaker) variant(name string, places []string) precision.Variant {
	v := precision.Variant{Precision: name, Path: f.file, Digest: "d", Bytes: 7, Converted: 2, Accuracy: map[string]accuracy.Report{},
		Rejected: map[string]string{}, Kept: []precision.KeptNode{{Node: "n", Error: 0.5}}, FromCache: f.cached[name]}
	for _, p := range places {
		cosine, known := f.cosines[name+" "+p]
		if !known {
			cosine = 1
		}
		v.Accuracy[p] = accuracy.Report{Rows: 4, Outputs: map[string]accuracy.Figures{"y": {CosineMean: cosine}}}
		if cosine < 0.99 {
			v.Rejected[p] = "cosine is too low"
		}
	}
	return v
}

// allWork is a Trier for which everything works.
func allWork(context.Context, search.Place, string) (string, error) { return "", nil }

// variantCase makes a profile with a model on disk.
func variantCase(t *testing.T, rest string) (spec.Profile, profile.Subject, *fakeMaker) {
	t.Helper()
	dir := t.TempDir()
	model := filepath.Join(dir, "m.onnx")
	if err := build.MLP().Write(model, 0); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own.onnx"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\n"+rest))
	if err != nil {
		t.Fatal(err)
	}
	s, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return p, s, &fakeMaker{file: model}
}

func TestMakeVariants(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {execution_provider: [openvino, cpu, cuda], precision: [fp32, int8, fp16, int8_static]}")
	maker.cosines = map[string]float64{"int8 openvino": 0.96, "fp16 cpu": 0.5, "fp16 openvino": 0.5}
	maker.unmade = map[string]bool{"int8_static": true}
	facts := search.Facts{Unavailable: map[string]string{"cuda": "no GPU"}}
	v, err := profile.MakeVariants(t.Context(), p, s, facts, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
	if err != nil {
		t.Fatal(err)
	}
	// cpu comes first. All others are compared with the original on cpu. A missing provider is not
	// requested.
	if diff := cmp.Diff([]string{"make fp32 for openvino", "make int8 for cpu openvino", "make fp16 for cpu openvino", "make int8_static for cpu openvino"}, maker.asked); diff != "" {
		t.Error(diff)
	}
	wantRejected := []search.Rejection{
		{Precision: "int8", Provider: "openvino", Reason: "cosine is too low"},
		{Precision: "fp16", Provider: "cpu", Reason: "cosine is too low"}, {Precision: "fp16", Provider: "openvino", Reason: "cosine is too low"},
		{Precision: "int8_static", Reason: "nothing to convert"},
	}
	if diff := cmp.Diff(wantRejected, v.Rejected); diff != "" {
		t.Error(diff)
	}
	var files, records []string
	for _, f := range v.Files {
		files = append(files, f.Precision)
	}
	for _, r := range v.Records {
		records = append(records, r.Precision)
	}
	// fp16 serves nowhere, so its file is not needed.
	if !slices.Equal(files, []string{"int8"}) || !slices.Equal(records, []string{"fp32", "int8", "fp16", "int8_static"}) {
		t.Errorf("files of %v, records of %v", files, records)
	}
	want := journal.Variant{Precision: "int8", Path: maker.file, SHA256: "d", Bytes: 7, Converted: 2, Kept: []journal.KeptNode{{Node: "n", Error: 0.5}}}
	got := v.Records[1]
	got.Accuracy, got.Rejected = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if extended := s.With(v.Files); len(extended.Files) != 2 || len(s.Files) != 1 {
		t.Errorf("%d files with the variants, %d in the original subject", len(extended.Files), len(s.Files))
	}
}

// A model that answers random rows with no number is served in the reference place. The user's own rows
// are to be corrected instead.
func TestVariantsThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {execution_provider: [cpu, openvino], precision: [fp32, int8]}")
	maker.source = &precision.SourceError{Err: errors.New("all elements are NaN"), Random: true}
	v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
	if err != nil {
		t.Fatal(err)
	}
	reason := maker.source.Error()
	want := []search.Rejection{{Precision: "fp32", Provider: "openvino", Reason: reason}, {Precision: "int8", Reason: reason}}
	if diff := cmp.Diff(want, v.Rejected); diff != "" || len(v.Files) != 0 {
		t.Errorf("%d files; rejected -want +got:\n%s", len(v.Files), diff)
	}
	maker.source.Random = false
	if _, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time)); !errors.Is(err, maker.source) {
		t.Errorf("rows of the user: %v", err)
	}
}

// The caller learns whether anything had to be made.
func TestFreshVariants(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {precision: [fp32, int8, fp16]}")
	for _, test := range []struct {
		cached []string
		want   bool
	}{{nil, true}, {[]string{"int8"}, true}, {[]string{"int8", "fp16"}, false}} {
		maker.cached = map[string]bool{}
		for _, name := range test.cached {
			maker.cached[name] = true
		}
		v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
		if err != nil || v.Fresh != test.want {
			t.Errorf("with %q in the cache: fresh %t, %v; want %t", test.cached, v.Fresh, err, test.want)
		}
	}
}

func TestOwnFilesAreCompared(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {precision: {fp32: m.onnx, small: own.onnx}}")
	v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"check small for cpu"}, maker.asked); diff != "" {
		t.Error(diff)
	}
	// The file is the subject's already.
	if len(v.Files) != 0 || len(v.Records) != 1 || !v.Records[0].Own {
		t.Errorf("variants %+v", v)
	}
}

// A constant that requests may replace is fixed in a converted file, and may be in one of the user's own.
// Such a file cannot serve a configuration that has it as an optional input.
func TestOptionalInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, isDeclared := range map[string]bool{"m": true, "same": true, "fixed": false} {
		g := build.NewGraph(name)
		x := g.Input("x", onnx.Float, onnx.Fixed(1))
		if isDeclared {
			g.Input("scale", onnx.Float, onnx.Fixed(1))
		}
		g.Floats("scale", []float32{3}, 1)
		g.OutputAs("y", g.Node("Mul", []string{x, "scale"}), onnx.Float, onnx.Fixed(1))
		if err := g.Model().Write(filepath.Join(dir, name+".onnx"), 0); err != nil {
			t.Fatal(err)
		}
	}
	const required = `input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }`
	const optional = `input { name: "scale" data_type: TYPE_FP32 dims: [ 1 ] optional: true } `
	for _, c := range []struct {
		config, precisions string
		asked              []string
	}{
		{required, "[fp32, int8]", []string{"make int8 for cpu"}},
		{optional + required, "[fp32, int8]", nil},
		{optional + required, "{fp32: m.onnx, mine: same.onnx}", []string{"check mine for cpu"}},
		{optional + required, "{fp32: m.onnx, mine: fixed.onnx}", nil},
	} {
		if err := os.WriteFile(filepath.Join(dir, "c.pbtxt"), []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := spec.ParseProfile(filepath.Join(dir, "p.yaml"), []byte("model: m.onnx\nconfig: c.pbtxt\nspace: {precision: "+c.precisions+"}"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := profile.OpenSubject(p, profile.Place{})
		if err != nil {
			t.Fatal(err)
		}
		maker := &fakeMaker{file: filepath.Join(dir, "m.onnx")}
		v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.asked, maker.asked); diff != "" {
			t.Errorf("%s %s: asked (-want +got):\n%s", c.config, c.precisions, diff)
		}
		const reason = `its file has the optional input "scale" of the configuration as a constant`
		if isRejected := len(v.Rejected) == 1 && strings.HasPrefix(v.Rejected[0].Reason, reason); isRejected != (c.asked == nil) {
			t.Errorf("%s %s: rejected %v", c.config, c.precisions, v.Rejected)
		}
	}
}

func TestNothingIsComparedWithoutALimit(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {execution_provider: [cpu, openvino]}")
	v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
	if err != nil || len(v.Records) != 0 || len(maker.asked) != 0 {
		t.Errorf("variants %+v, error %v, asked %v", v, err, maker.asked)
	}
}

// A provider may work with the original and with none of a variant's operators.
func TestProviderThatDoesNotTakeAVariant(t *testing.T) {
	t.Parallel()
	p, s, maker := variantCase(t, "space: {execution_provider: [cpu, openvino], precision: [fp32, int8]}")
	var tried []string
	v, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, func(_ context.Context, place search.Place, model string) (string, error) {
		tried = append(tried, place.String()+" "+filepath.Base(model))
		return "it takes none of the model's nodes", nil
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []search.Rejection{{Precision: "int8", Provider: "openvino", Reason: "it takes none of the model's nodes"}}
	if diff := cmp.Diff(want, v.Rejected); diff != "" || !slices.Equal(tried, []string{"openvino m.onnx"}) {
		t.Errorf("tried %v: %s", tried, diff)
	}
	_, err = profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, func(context.Context, search.Place, string) (string, error) {
		return "", context.Canceled
	}, 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	p, s, _ := variantCase(t, "space: {precision: [fp32, int8]}\naccuracy: {rows: 5}")
	data, calibration, err := profile.Data(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if data.Rows != 5 || !data.Synthetic || calibration.Rows != 5 || data.Digest() == calibration.Digest() {
		t.Errorf("data %d rows, calibration %d rows: want 5 synthetic ones each, and others", data.Rows, calibration.Rows)
	}
	p.Accuracy.Data = filepath.Join(t.TempDir(), "absent.npz")
	_, _, err = profile.Data(p, s)
	if input := new(profile.InputError); !errors.As(err, &input) || !strings.Contains(err.Error(), "p.yaml: accuracy.data: ") {
		t.Errorf("error %v, want an InputError that names the field", err)
	}
}

// A stock Triton has one runtime. A provider that only another runtime has is neither measured nor
// judged. If several are measured, a provider is judged in each runtime that has it. All are
// compared with the original on cpu in the first one.
func TestEveryMeasuredRuntimeJudges(t *testing.T) {
	t.Parallel()
	facts := search.Facts{Runtimes: []search.RuntimeFacts{{Name: "cpu@1", Unavailable: map[string]string{"openvino": "not in this build"}}, {Name: "openvino@1"}}}
	for target, want := range map[string][]string{
		"triton": {"make int8 for cpu"},
		"tuner": {
			"make fp32 for cpu in openvino@1 openvino in openvino@1",
			"make int8 for cpu in cpu@1 cpu in openvino@1 openvino in openvino@1",
		},
	} {
		p, s, maker := variantCase(t, "deploy_target: "+target+"\nspace: {runtime: [cpu, openvino], execution_provider: [cpu, openvino], precision: [fp32, int8]}")
		maker.cosines = map[string]float64{"int8 cpu in openvino@1": 0.5}
		v, err := profile.MakeVariants(t.Context(), p, s, facts, maker, allWork, profile.VariantTime(p.Search.Budget.Time))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, maker.asked); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
		var rejected []search.Rejection
		if target == "tuner" {
			rejected = []search.Rejection{{Precision: "int8", Provider: "cpu", Runtime: "openvino@1", Reason: "cosine is too low"}}
		}
		if diff := cmp.Diff(rejected, v.Rejected); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
}

func TestCompares(t *testing.T) {
	t.Parallel()
	const limit = "constraints: {accuracy: {metric: cosine, min: 0.5}}\n"
	for text, want := range map[string]bool{
		"space: {instance_count: [1]}":                         false, // no limit
		limit + "space: {instance_count: [1]}":                 false, // only the original on cpu
		limit + "space: {execution_provider: [cpu, cuda]}":     false, // cuda is missing here
		limit + "space: {execution_provider: [cpu, openvino]}": true,
		"space: {precision: [fp32, int8]}":                     true,
		"space: {execution_provider: cuda, precision: int8}":   false, // it would serve nowhere
	} {
		p, _, _ := variantCase(t, text)
		if got := profile.Compares(p, search.Facts{Unavailable: map[string]string{"cuda": "no GPU"}}); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

// The quick search measures one precision: the first that serves. No other is made, unless the
// first is rejected.
func TestQuickSearchMakesOnePrecision(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		space   string
		cosine  float64 // of int8 on cpu
		want    []string
		planned []string
	}{
		{"precision: [int8, fp16, fp32]", 1, []string{"make int8 for cpu"}, []string{"int8"}},
		{"precision: [int8, fp16, fp32]", 0.5, []string{"make int8 for cpu", "make fp16 for cpu"}, []string{"int8"}},
		{"precision: [fp32, int8]", 1, nil, nil}, // all others are compared with the original on cpu
	} {
		p, s, maker := variantCase(t, "search: {strategy: quick}\nspace: {"+test.space+", instance_count: [1, 2]}")
		maker.cosines = map[string]float64{"int8 cpu": test.cosine}
		if _, err := profile.MakeVariants(t.Context(), p, s, search.Facts{}, maker, allWork, profile.VariantTime(p.Search.Budget.Time)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(maker.asked, test.want) {
			t.Errorf("%s, cosine %v: asked %q, want %q", test.space, test.cosine, maker.asked, test.want)
		}
		if got := profile.Conversions(p, search.Facts{}); !slices.Equal(got, test.planned) {
			t.Errorf("%s: conversions %q, want %q", test.space, got, test.planned)
		}
	}
}
