// Package adding_test proves that a new precision needs only a row in the table of package recipe
// and its rewrite (docs/how-to/add-a-precision.md). The test adds both to a copy of the package, and
// runs itself again in a build with that copy. It takes the new precision through the program:
// profile.yaml, first profile, ortsweep.yaml, reference, the variant's file, search space, report.
package adding_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/overlay"
	"tuner/model/dataset"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
	"tuner/profile/journal"
	"tuner/report/formats"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/draft"
	"tuner/spec/reference"
)

// row is a precision that does not exist. Its weights are multiples of 1/256.
const row = `
	{
		Name: "grid", About: "has weights on a grid",
		Lossy: true, PaysOnCPU: true,
		Convert: onGrid,
	},
`

// rewriting is the rewrite of the row.
const rewriting = `package recipe

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/rewrite"
)

func onGrid(m *onnx.Model, _ Settings) (*onnx.Model, rewrite.Summary, error) {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	var s rewrite.Summary
	for _, w := range p.Graph.Initializer {
		for i := 0; i+4 <= len(w.RawData); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(w.RawData[i:]))
			v = float32(math.Round(float64(v)*256) / 256)
			binary.LittleEndian.PutUint32(w.RawData[i:], math.Float32bits(v))
		}
		s.Converted = append(s.Converted, w.GetName())
	}
	made, err := m.Replace(p)
	return made, s, err
}
`

func TestAddAPrecision(t *testing.T) {
	if _, known := recipe.Find("grid"); !known {
		if overlay.IsAgain() {
			t.Fatal("the build has no row for grid")
		}
		overlay.Run(t, map[string]string{"../table.go": overlay.Table(t, "../table.go", row), "../grid.go": rewriting})
		return
	}
	t.Run("profile", testProfile)
	t.Run("variant", testVariant)
	t.Run("report", testReport)
}

// parse reads a profile with a knob precision.
func parse(precisions string) (spec.Profile, error) {
	return spec.ParseProfile("p.yaml", []byte("model: m.onnx\nload: {concurrency: 1}\nspace: {precision: "+precisions+"}\n"))
}

// testProfile reads profiles, and writes what names the precisions.
func testProfile(t *testing.T) {
	p, err := parse("[fp32, grid]")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grid"}, p.Model.Convert); diff != "" {
		t.Errorf("to be made (-want +got):\n%s", diff)
	}
	for rejected, want := range map[string][]string{
		"": {"precision=fp32", "precision=grid"}, "grid": {"precision=fp32"},
	} {
		facts := search.Facts{Precisions: []string{"fp32", "grid"}}
		if rejected != "" {
			facts.Rejected = []search.Rejection{{Precision: rejected, Reason: "cosine is 0.5"}}
		}
		var got []string
		for _, c := range p.Space(facts).Candidates().All() {
			got = append(got, c.Key())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("candidates without %q (-want +got):\n%s", rejected, diff)
		}
	}
	if _, err := parse("[gird]"); err == nil || !strings.Contains(err.Error(), "int8_static, grid") {
		t.Errorf("a misspelt name: %v", err)
	}
	starter := draft.NewStarter("m.onnx")
	starter.Precisions = recipe.Choose(build.MLP(), false)
	first, err := starter.Profile()
	if err != nil || !strings.Contains(string(first), "# precision: [fp32, int8, grid]") {
		t.Errorf("the first profile.yaml, %v:\n%s", err, first)
	}
	sweep, err := spec.ParseSweep("s.yaml", []byte("model: m.onnx\n"))
	if err != nil || !slices.Contains(sweep.Model.Convert, "grid") {
		t.Errorf("a sweep makes %v, %v", sweep.Model.Convert, err)
	}
	if page := string(reference.Profile().Page()); !strings.Contains(page, "`grid` has weights on a grid.") {
		t.Errorf("the reference does not describe it:\n%s", page)
	}
}

// server answers for the perceptron of package build with ones.
type server struct{}

func (s server) Open(context.Context, *onnx.Model, string) (precision.Session, error) { return s, nil }

func (server) Infer(_ context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	rows := in["INPUT"].Shape[0]
	ones := make([]byte, 0, rows*8*4)
	for range rows * 8 {
		ones = binary.LittleEndian.AppendUint32(ones, math.Float32bits(1))
	}
	return map[string]inputs.Tensor{"OUTPUT": {Type: onnx.Float, Shape: []int64{rows, 8}, Data: ones}}, nil
}

func (server) Close(context.Context) {}

// testVariant makes the variant, and reads its file.
func testVariant(t *testing.T) {
	source := build.MLP()
	data, err := dataset.Synthetic(source, inputs.Options{}, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	maker, err := precision.NewMaker(source, server{}, precision.Options{Data: data, Limit: spec.DefaultLimit(), MaxKept: 1, Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	v, err := maker.Make(t.Context(), "grid", []string{"cpu"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Precision != "grid" || len(v.Rejected) > 0 || v.Converted != len(source.Initializers()) || v.Accuracy["cpu"].Rows != 4 {
		t.Errorf("the variant is %+v", v)
	}
	made, err := onnx.Read(v.Path)
	if err != nil {
		t.Fatal(err)
	}
	weights := 0
	for _, w := range made.Initializers() {
		values, err := made.Data(w)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(values) >= 4; values = values[4:] {
			weights++
			if v := 256 * math.Float32frombits(binary.LittleEndian.Uint32(values)); v != float32(math.Round(float64(v))) {
				t.Fatalf("%s has the weight %v/256", w.GetName(), v)
			}
		}
	}
	if weights == 0 {
		t.Error("the file has no weights")
	}
}

// testReport analyzes a campaign whose best configuration has the precision, and writes its reports.
func testReport(t *testing.T) {
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]", "precision: [fp32, grid]", 1)
	best := search.Candidate{}.With(search.KnobPrecision, "grid").With(search.KnobInstanceCount, "1").With(search.KnobMaxBatchSize, "16")
	nan := math.NaN()
	compared := accuracy.Report{Rows: 240, Outputs: map[string]accuracy.Figures{"embedding": {CosineMean: .9931, CosineP1: .98, CosineMin: .97,
		MaxAbs: .1, MeanAbs: .01, MaxRel: nan, MeanRel: nan, Top1: nan, Top5: nan, Neighbour: nan}}}
	result, err := analyze.Analyze(analyzetest.New(t, profile).
		Compared(journal.Variant{Precision: "grid", Path: "cache/grid.onnx", SHA256: "cd34", Bytes: 1000, Converted: 34,
			Accuracy: map[string]accuracy.Report{"cpu": compared}}).
		Won(best).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "analyzed")
	if _, err := formats.All().WriteReports(dir, result, nil); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(page), "(1 instance, grid, batch 16)") || !strings.Contains(string(page), "| grid | cpu | 0.001 MB | 0.9931 |") {
		t.Errorf("the report, %v:\n%s", err, page)
	}
}
