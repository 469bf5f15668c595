package precision

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/model/dataset"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
)

// make makes a variant and fails the test on an error.
func (l *lab) make(k *Maker, precision string, providers ...string) Variant {
	l.t.Helper()
	l.opened = nil
	v, err := k.Make(l.t.Context(), precision, providers)
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func nodes(kept []KeptNode) string {
	var names []string
	for _, n := range kept {
		names = append(names, n.Node)
	}
	return strings.Join(names, ",")
}

// A variant that keeps the limit is not changed. The result has all known figures.
func TestMakeAccepts(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]float64{"a": .25, "b": .125})
	k := l.maker(.5, nil)
	v := l.make(k, recipe.Int8, "cpu", "openvino")
	// The errors add up to 3/8. The order is: the original, and the variant on each provider.
	if diff := cmp.Diff([]string{"int8  on cpu", "source on cpu", "int8  on openvino"}, l.opened, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("sessions: -want +got:\n%s", diff)
	}
	want := Variant{Precision: recipe.Int8, Converted: 2, Rejected: map[string]string{}, Notes: []string{"a note"},
		Left: []rewrite.Kept{{Node: "odd", Op: "Gemm", Reason: "its alpha is 2"}}}
	if diff := cmp.Diff(want, v, cmpopts.IgnoreFields(Variant{}, "Path", "Digest", "Bytes", "Accuracy")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, provider := range []string{"cpu", "openvino"} {
		if r := v.Accuracy[provider]; r.Rows != 20 || r.Outputs["y"].MaxAbs != .375 {
			t.Errorf("%s: %+v", provider, r)
		}
	}
	if info, err := os.Stat(v.Path); err != nil || info.Size() != v.Bytes {
		t.Errorf("%v, %v; the variant has %d bytes", info, err, v.Bytes)
	}
}

// As few nodes as possible stay in fp32, the worst first.
func TestMakeRescues(t *testing.T) {
	t.Parallel()
	// If the n worst of eight() are kept, 8/2^n - 1/32 remains.
	for _, c := range []struct {
		largest float64 // allowed error
		kept    string
		tried   []int // tried numbers of nodes, in order
	}{
		{8, "", nil},
		{4, "a", []int{1}},                       // 3.97 is left
		{2, "a,b", []int{1, 2}},                  // 1.97
		{1, "a,b,c", []int{1, 2, 4, 3}},          // .97; four would also be enough
		{.5, "a,b,c,d", []int{1, 2, 4, 3}},       // .47
		{.25, "a,b,c,d,e", []int{1, 2, 4, 6, 5}}, // .22; at most six of eight
	} {
		l := newLab(t, eight())
		v := l.make(l.maker(c.largest, func(o *Options) { o.MaxKept = .75 }), recipe.Int8, "cpu")
		if got := nodes(v.Kept); got != c.kept || len(v.Rejected) != 0 || v.Converted != 8-len(v.Kept) {
			t.Errorf("limit %v: kept %q, want %q; rejected %v, converted %d", c.largest, got, c.kept, v.Rejected, v.Converted)
		}
		if len(v.Left) != 1 {
			t.Errorf("limit %v: left are %+v, want the one that cannot be converted", c.largest, v.Left)
		}
		if diff := cmp.Diff(c.tried, tries(l.opened), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("limit %v: -want +got:\n%s", c.largest, diff)
		}
	}
}

// tries returns the numbers of kept nodes in the opened sessions, without those that keep none.
func tries(opened []string) []int {
	var numbers []int
	for _, name := range opened {
		kept := strings.TrimSuffix(strings.TrimPrefix(name, "int8 "), " on cpu")
		if strings.HasPrefix(name, "int8 ") && kept != "" {
			numbers = append(numbers, len(strings.Split(kept, ",")))
		}
	}
	return numbers
}

// A variant that still misses the limit keeps no node in fp32, and reports the miss.
func TestMakeRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		precision string
		change    func(*Options)
		spoil     func(*lab)
		want      string
	}{
		"too few may be kept": {recipe.Int8, nil, nil, // a quarter of eight: a and b; 1.97 remains
			`max_abs_error is 7.96875, more than 0.5 (output "y"); with the 2 most sensitive of 8 nodes in fp32 it is 1.96875`},
		"none may be kept": {recipe.Int8, func(o *Options) { o.MaxKept = .1 }, nil,
			`max_abs_error is 7.96875, more than 0.5 (output "y"); none of its 8 nodes may stay in fp32 (at most 10 %, and never all)`},
		// seven: with eight there is nothing to convert
		"all may be kept": {recipe.Int8, func(o *Options) { least := 1e-3; o.MaxKept, o.Limit.Max = 1, &least }, nil,
			`max_abs_error is 7.96875, more than 0.001 (output "y"); with the 7 most sensitive of 8 nodes in fp32 it is 0.03125`},
		"no attempt runs": {recipe.Int8, nil, func(l *lab) { l.refuse["int8 a on cpu"], l.refuse["int8 a,b on cpu"] = "crashed", "out of memory" },
			`max_abs_error is 7.96875, more than 0.5 (output "y"); with the 2 most sensitive of 8 nodes in fp32 there are no figures: out of memory`},
		"keeping is switched off": {recipe.Int8, func(o *Options) { o.MaxKept = 0 }, nil, `max_abs_error is 7.96875, more than 0.5 (output "y")`},
		"fp16":                    {"fp16", nil, nil, `max_abs_error is 7.96875, more than 0.5 (output "y")`},
		"no probe": {recipe.Int8, nil, func(l *lab) { l.refuse["probe on cpu"] = "too large" },
			`max_abs_error is 7.96875, more than 0.5 (output "y"); the sensitivity of its nodes could not be measured: too large`},
	} {
		l := newLab(t, eight())
		if c.spoil != nil {
			c.spoil(l)
		}
		v := l.make(l.maker(.5, c.change), c.precision, "cpu")
		if diff := cmp.Diff(map[string]string{"cpu": c.want}, v.Rejected); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if len(v.Kept) != 0 || v.Accuracy["cpu"].Outputs["y"].MaxAbs != 7.96875 {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A provider that does not run the variant is rejected with its reason. The limit is kept on the
// first one that does.
func TestMakePerProvider(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	l.refuse["cuda"] = "no GPU"
	l.factor["openvino"] = 4
	k := l.maker(5, nil)
	// On cpu 7.97 remains, and with a kept 3.97. On openvino it is four times as much.
	v := l.make(k, recipe.Int8, "cuda", "cpu", "openvino")
	if diff := cmp.Diff(map[string]string{"cuda": "no GPU", "openvino": `max_abs_error is 15.875, more than 5 (output "y")`}, v.Rejected); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if nodes(v.Kept) != "a" {
		t.Errorf("kept %q", nodes(v.Kept))
	}
	// While it does not run the variant, the file that was made for cpu is used.
	v = l.make(k, recipe.Int8, "cuda", "cpu", "openvino")
	if diff := cmp.Diff([]string{"int8 a on cuda"}, l.opened); diff != "" || v.Rejected["cuda"] != "no GPU" {
		t.Errorf("%+v; -want +got:\n%s", v.Rejected, diff)
	}
	// Later it may run the variant. Then it chooses the nodes, as if it had run it the first time.
	delete(l.refuse, "cuda")
	l.factor["cuda"] = 2 // of 7.97: a and b must stay, which leaves 3.94
	v = l.make(k, recipe.Int8, "cuda", "cpu", "openvino")
	if nodes(v.Kept) != "a,b" || v.Rejected["cuda"] != "" || v.FromCache {
		t.Errorf("kept %q; %+v, from the cache: %t", nodes(v.Kept), v.Rejected, v.FromCache)
	}
	if v = l.make(k, recipe.Int8, "cuda", "cpu", "openvino"); !v.FromCache || nodes(v.Kept) != "a,b" {
		t.Errorf("the second time: %+v", v)
	}
}

// Variants that all providers refused are tried again. So are those whose rescue failed because of
// a refusal.
func TestRefusalsAreNoVerdict(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string][]string{
		"the variant":       {"int8  on cpu"},
		"the probe":         {"probe on cpu"},
		"the rescued":       {"int8 a on cpu", "int8 a,b on cpu"},
		"the last, rescued": {"int8 a,b on cpu"},
	} {
		l := newLab(t, eight())
		for _, session := range refused {
			l.refuse[session] = "the engine ended by itself"
		}
		k := l.maker(2, nil) // met with a and b in fp32
		if v := l.make(k, recipe.Int8, "cpu"); v.Rejected["cpu"] == "" || len(v.Kept) != 0 {
			t.Errorf("%s is refused, but %+v", name, v)
		}
		clear(l.refuse)
		if v := l.make(k, recipe.Int8, "cpu"); len(v.Rejected) != 0 || nodes(v.Kept) != "a,b" {
			t.Errorf("%s runs again, but rejected %v, kept %q", name, v.Rejected, nodes(v.Kept))
		}
		if v := l.make(k, recipe.Int8, "cpu"); !v.FromCache || nodes(v.Kept) != "a,b" {
			t.Errorf("%s, the third time: %+v", name, v)
		}
	}
}

// Figures of one provider are kept if the next one fails.
func TestFiguresOutliveAnError(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]float64{"a": .25})
	k := l.maker(0, nil)
	l.fail = map[string]error{"int8  on openvino": errBroken}
	if _, err := k.Make(t.Context(), recipe.Int8, []string{"cpu", "openvino"}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	l.fail = nil
	v := l.make(k, recipe.Int8, "cpu", "openvino")
	if diff := cmp.Diff([]string{"int8  on openvino"}, l.opened); diff != "" || len(v.Accuracy) != 2 {
		t.Errorf("%+v; -want +got:\n%s", v, diff)
	}
}

// An attempt that does not run does not prevent others.
func TestRescueOutlivesARefusal(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	l.refuse["int8 a on cpu"] = "crashed"
	if v := l.make(l.maker(2, nil), recipe.Int8, "cpu"); len(v.Rejected) != 0 || nodes(v.Kept) != "a,b" {
		t.Errorf("%+v", v)
	}
}

func TestMakeErrors(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	var unmakeable *Unmakeable
	_, err := l.maker(.5, nil).Make(t.Context(), recipe.Int8, []string{"cpu"})
	if !errors.Is(err, ErrUnmakeable) || !errors.Is(err, rewrite.ErrNothing) || !errors.As(err, &unmakeable) || unmakeable.Precision != recipe.Int8 {
		t.Errorf("nothing to convert: %v", err)
	}

	l = newLab(t, eight())
	l.refuse["source on cpu"] = "unknown operator"
	var source *SourceError
	k := l.maker(.5, nil)
	if _, err := k.Make(t.Context(), recipe.Int8, []string{"cpu"}); !errors.As(err, &source) || source.Path != k.source.Path() || !strings.Contains(err.Error(), "does not run it on cpu, so there is nothing to compare variants with: unknown operator") {
		t.Errorf("a source that does not run: %v", err)
	}

	l = newLab(t, eight())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if _, err := l.maker(.5, nil).Make(ctx, recipe.Int8, []string{"cpu"}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Elements that the original does not compute are counted and reported, also from the cache. They
// judge nothing.
func TestNonFiniteOriginal(t *testing.T) {
	t.Parallel()
	with := func(values ...float32) func(*Options) {
		return func(o *Options) {
			o.Data = dataset.Dataset{Name: "odd.npz", Rows: 2, Batched: true, Inputs: map[string]inputs.Tensor{"x": floats(values, 2, 2)}}
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	l := newLab(t, map[string]float64{"a": .25})
	k := l.maker(.5, with(1, nan, inf, 2))
	for range 2 {
		v := l.make(k, recipe.Int8, "cpu", "openvino")
		want := []string{"a note", `2 elements of the original's output "y" are NaN or infinite: they are not compared`}
		if diff := cmp.Diff(want, v.Notes); diff != "" || len(v.Rejected) != 0 || v.Accuracy["cpu"].Outputs["y"].MaxAbs != .25 {
			t.Errorf("%+v; notes: -want +got:\n%s", v, diff)
		}
	}
	var source *SourceError
	_, err := l.maker(.5, with(nan, nan, inf, nan)).Make(t.Context(), recipe.Int8, []string{"cpu"})
	if want := `on the data "odd.npz", all 4 elements of output "y" are NaN or infinite: there is nothing to compare variants with`; !errors.As(err, &source) || !strings.Contains(err.Error(), want) {
		t.Errorf("no number at all: %v lacks %q", err, want)
	}
	if source != nil && source.Random {
		t.Error("rows of a file are taken for random ones")
	}
	random := func(o *Options) { with(nan, nan, nan, nan)(o); o.Data.Synthetic = true }
	if _, err := l.maker(.5, random).Make(t.Context(), recipe.Int8, []string{"cpu"}); !errors.As(err, &source) || !source.Random {
		t.Errorf("random rows: %v", err)
	}
}

// Labels that do not match are the user's mistake if the limit needs them. Otherwise they give a
// note.
func TestLabelsThatDoNotFit(t *testing.T) {
	t.Parallel()
	with := func(class int64, metric string) func(*Options) {
		return func(o *Options) {
			if o.Data.Labels = make([]int64, o.Data.Rows); class > 0 {
				o.Data.Labels[0] = class
			}
			if metric != "" {
				o.Limit.Metric = metric
			}
		}
	}
	const note = `the labels of "rows" fit no output: they are not used`
	l := newLab(t, map[string]float64{"a": .25})
	k := l.maker(.5, with(2, "")) // two classes: 0 and 1
	for range 2 {
		if v := l.make(k, recipe.Int8, "cpu"); !slices.Contains(v.Notes, note) || len(v.Rejected) != 0 || v.Accuracy["cpu"].Labels != nil {
			t.Errorf("labels beyond the classes: %+v", v)
		}
	}
	if v := l.make(l.maker(.5, with(1, "")), recipe.Int8, "cpu"); slices.Contains(v.Notes, note) || v.Accuracy["cpu"].Labels == nil {
		t.Errorf("labels that fit: %+v", v)
	}
	refuse := func(err error, want string) {
		t.Helper()
		if !errors.As(err, new(*SourceError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	_, err := l.maker(.5, with(2, "top1_accuracy_loss")).Make(t.Context(), recipe.Int8, []string{"cpu"})
	refuse(err, `on the data "rows", the labels fit no output: they need an output of rows × classes`)
	largest := .5
	_, err = NewMaker(l.source(), l, Options{Data: rows(1), Cache: "cache", Limit: &accuracy.Limit{Metric: "top1_accuracy_loss", Max: &largest}})
	refuse(err, `the limit is on top1_accuracy_loss, and the data "rows" has no labels; add an array named label`)
}

func TestNewMakerChecksItsOptions(t *testing.T) {
	t.Parallel()
	nothing := accuracy.Limit{Metric: "cosine"}
	for want, change := range map[string]func(*Options){
		"without data":           func(o *Options) { o.Data.Rows = 0 },
		"share of 1.5":           func(o *Options) { o.MaxKept = 1.5 },
		"weights of 6 bits":      func(o *Options) { o.WeightBits = 6 },
		"without a cache folder": func(o *Options) { o.Cache = "" },
		"needs a bound":          func(o *Options) { o.Limit = &nothing },
	} {
		o := Options{Data: rows(1), Cache: "cache"}
		change(&o)
		l := newLab(t, nil)
		if _, err := NewMaker(l.source(), l, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// fp32 is the source itself. On cpu it is the reference, and it is judged on other providers.
func TestOriginal(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	k := l.maker(.5, nil)
	v := l.make(k, recipe.Original, "cpu")
	if v.Path != k.source.Path() || v.Digest != k.digest || len(v.Accuracy) != 0 || len(l.opened) != 0 {
		t.Errorf("%+v after %v", v, l.opened)
	}
	v = l.make(k, recipe.Original, "cpu", "openvino")
	if v.Accuracy["openvino"].Rows != 20 || len(v.Rejected) != 0 {
		t.Errorf("%+v", v)
	}
	if v = l.make(k, recipe.Original, "cpu", "openvino"); !v.FromCache || len(l.opened) != 0 {
		t.Errorf("the second time: %v were opened, from the cache: %t", l.opened, v.FromCache)
	}
}

// A user's own model is judged. It is not changed and not copied.
func TestCheck(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	k := l.maker(.5, nil)
	path := filepath.Join(t.TempDir(), "mine.onnx")
	if err := named(k.source, "int8 a,b,c").Write(path, 0); err != nil {
		t.Fatal(err)
	}
	check := func() Variant {
		l.opened = nil
		v, err := k.Check(t.Context(), "mine", read(t, path), []string{"cpu"})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := check()
	if v.Path != path || v.Precision != "mine" || v.Rejected["cpu"] != `max_abs_error is 0.96875, more than 0.5 (output "y")` || v.FromCache {
		t.Errorf("%+v", v)
	}
	if v = check(); !v.FromCache || len(l.opened) != 0 || v.Rejected["cpu"] == "" {
		t.Errorf("the second time: %v were opened, %+v", l.opened, v)
	}
}

func TestDeterminism(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	k := l.maker(0, func(o *Options) { o.Data = rows(8) }) // one batch: each run is one inference
	r, err := k.Determinism(t.Context(), "cpu")
	if err != nil || r.Outputs["y"].MaxAbs != 0 || len(l.opened) != 2 {
		t.Errorf("%+v, %v, sessions %v", r, err, l.opened)
	}
	l.wobble = .25
	// from the first to the third run
	if r, err = k.Determinism(t.Context(), "openvino"); err != nil || r.Outputs["y"].MaxAbs != .5 {
		t.Errorf("%+v, %v", r, err)
	}
	l.opened = nil
	if r, err = k.Determinism(t.Context(), "openvino"); err != nil || r.Outputs["y"].MaxAbs != .5 || len(l.opened) != 0 {
		t.Errorf("the second time: %+v, %v, sessions %v", r, err, l.opened)
	}
}

// Elements that a variant makes non-finite are reported on each provider, also from the cache. The
// figures skip them.
func TestLostElements(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]float64{"a": math.NaN()}) // 20 rows of 2 elements are lost
	k := l.maker(0, nil)
	for range 2 {
		v := l.make(k, recipe.Int8, "cpu", "openvino")
		const lost = `40 elements of output "y" are NaN or infinite in the variant alone; the figures leave them out`
		if diff := cmp.Diff([]string{"a note", "on cpu, " + lost, "on openvino, " + lost}, v.Notes); diff != "" || len(v.Rejected) != 0 {
			t.Errorf("rejected %v; notes: -want +got:\n%s", v.Rejected, diff)
		}
	}
}

// The message says that too few nodes may stay in fp32 to fix such elements.
func TestLostElementsAreNotRescued(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	l := newLab(t, map[string]float64{"a": nan, "b": nan, "c": nan, "d": nan, "e": 0, "f": 0, "g": 0, "h": 0})
	const lost = `output "y" has 40 elements that are NaN or infinite where the original's are not`
	want := map[string]string{"cpu": lost + "; with the 2 most sensitive of 8 nodes in fp32 " + lost}
	if v := l.make(l.maker(.5, nil), recipe.Int8, "cpu"); !cmp.Equal(want, v.Rejected) {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, v.Rejected))
	}
}

// Every variant misses a limit that applies to no output, and no nodes are kept for it.
func TestLimitThatNothingHas(t *testing.T) {
	t.Parallel()
	l := newLab(t, eight())
	least := .5
	// of two classes
	k := l.maker(0, func(o *Options) { o.Limit = &accuracy.Limit{Metric: "top5_agreement", Min: &least} })
	v, err := k.Make(t.Context(), recipe.Int8, []string{"cpu"})
	const want = `no output has the metric of the limit top5 agreement ≥ 0.5; set a limit on one of cosine, max_abs_error, `
	if got := v.Rejected["cpu"]; err != nil || !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "(--metric, or constraints.accuracy in a profile)") {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if n := len(l.opened); n != 2 {
		t.Errorf("sessions %q, want the source's and the variant's", l.opened)
	}
}

// If one output has the metric of the limit, others need not have it.
func TestUnjudgedOutputs(t *testing.T) {
	t.Parallel()
	least := .5
	k := &Maker{options: Options{Limit: &accuracy.Limit{Metric: "cosine", Min: &least}}}
	report := accuracy.Report{Outputs: map[string]accuracy.Figures{"n": {CosineMean: math.NaN()}, "y": {CosineMean: 1}}}
	notes := k.unjudged(map[string]accuracy.Report{"cpu": report, "openvino": report})
	if diff := cmp.Diff([]string{`output "n" is not judged: it has no cosine`}, notes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Outputs that would take more than half of the memory are reported after the first batch. Its 8 rows
// have 8·2·4 = 64 bytes, so 20 rows have 160: 320 for the original and a variant, 480 for three runs
// of the original.
func TestMemory(t *testing.T) {
	t.Parallel()
	check := func(what string, memory int64, fits bool, run func(k *Maker) error) {
		t.Helper()
		l := newLab(t, map[string]float64{"a": .25})
		k := l.maker(.5, nil)
		k.memory = memory
		err := run(k)
		if fits && err != nil || !fits && (!errors.As(err, new(*SourceError)) || !strings.Contains(err.Error(), `the outputs of 20 rows of "rows" takes`) ||
			!strings.Contains(err.Error(), "compare fewer rows (--rows N, or accuracy.rows in a profile)") || l.runs > 1) {
			t.Errorf("%s, %d bytes: %v after %d inferences", what, memory, err, l.runs)
		}
	}
	judge := func(k *Maker) error {
		_, err := k.Make(t.Context(), recipe.Int8, []string{"cpu"})
		return err
	}
	check("a variant", 639, false, judge)
	check("a variant", 640, true, judge)
	check("a variant, of unknown memory", 0, true, judge)
	repeat := func(k *Maker) error {
		_, err := k.Determinism(t.Context(), "cpu")
		return err
	}
	check("repetition", 959, false, repeat)
	check("repetition", 960, true, repeat)
}

// Of rows of several shapes the small ones come first. The large ones are counted when they come, and
// the rows behind them never run. 8 rows of 2 and 8 of 20 elements have 64 + 640 = 704 bytes. With 8 more
// of 20 elements they have 1344, but after the first two batches the estimate is 704·24/16 = 1056.
func TestMemoryOfSeveralShapes(t *testing.T) {
	t.Parallel()
	part := func(columns int64) dataset.Dataset {
		return dataset.Dataset{Name: "rows", Rows: 8, Batched: true, Inputs: map[string]inputs.Tensor{"x": floats(make([]float32, 8*columns), 8, columns)}}
	}
	for _, c := range []struct {
		parts  []dataset.Dataset
		memory int64
		runs   int // inferences until it is reported; 0: it fits
	}{
		{[]dataset.Dataset{part(2), part(20)}, 4*704 - 1, 2},
		{[]dataset.Dataset{part(2), part(20)}, 4 * 704, 0},
		{[]dataset.Dataset{part(2), part(20), part(20)}, 4*1056 - 1, 2},
		{[]dataset.Dataset{part(2), part(20), part(20)}, 4*1344 - 1, 3},
		{[]dataset.Dataset{part(2), part(20), part(20)}, 4 * 1344, 0},
	} {
		l := newLab(t, map[string]float64{"a": .25})
		k := l.maker(.5, func(o *Options) { o.Data = dataset.Join(c.parts) })
		k.memory = c.memory
		_, err := k.Make(t.Context(), recipe.Int8, []string{"cpu"})
		if c.runs == 0 && err != nil || c.runs > 0 && (!errors.As(err, new(*SourceError)) || l.runs != c.runs) {
			t.Errorf("%d parts, %d bytes: %v after %d inferences", len(c.parts), c.memory, err, l.runs)
		}
	}
}
