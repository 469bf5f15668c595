package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/alloctest"
	"tuner/internal/exit"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/precision/accuracy"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/ort/sessionoption"
	"tuner/pipeline/steps"
	"tuner/profile"
	"tuner/profile/journal"
	"tuner/profile/preparation"
	"tuner/profile/starter"
	"tuner/search"
	"tuner/spec"
	"tuner/spec/draft"
)

// TestMain answers nothing where tuner asks itself about ONNX Runtime: this binary has no verbs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		os.Exit(exit.Usage)
	}
	os.Exit(m.Run())
}

// wishOf returns the wish from flags of `tuner run`.
func wishOf(t *testing.T, flags ...string) draft.Wish {
	t.Helper()
	w := draft.Wish{Precisions: []string{recipe.Original, "int8"}}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--p99":
			w.P99 = value
		case "--budget":
			w.Budget = value
		case "--until":
			w.Until = value
		case "--mode":
			w.Mode = value
		case "--precision":
			w.Precisions = []string{value}
		default:
			t.Fatalf("there is no flag %s", name)
		}
	}
	return w
}

func writeText(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func writeModel(t *testing.T, path string, m *onnx.Model) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(path, 0); err != nil {
		t.Fatal(err)
	}
}

func readProfileAt(t *testing.T, path string) spec.Profile {
	t.Helper()
	p, err := spec.ReadProfile(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The files of a run do not change if they ask for the same. If they ask for something else, the
// run is refused. Only another budget or until replaces the profile.
func TestRunKeepsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "words.onnx")
	writeModel(t, model, build.Identity(onnx.Float))
	out := filepath.Join(dir, "out")
	opened, err := starter.Open(t.Context(), "run", model, addon.Libraries{})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	write := func(flags ...string) error {
		t.Helper()
		path, _, err := writeFiles(Request{Wish: wishOf(t, flags...), Messages: &said}, "words", opened, out)
		if want := filepath.Join(out, draft.ProfileName); err == nil && path != want {
			t.Errorf("the profile is %q, want %q", path, want)
		}
		return err
	}
	text := func() string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(out, draft.ProfileName))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if err := write("--p99=30ms", "--budget=5m"); err != nil {
		t.Fatal(err)
	}
	p := readProfileAt(t, filepath.Join(out, draft.ProfileName))
	if p.Output != out || p.Model.Path != model || p.Model.Config != "" || p.Search.Budget.Time != 5*time.Minute || len(p.Goal.Constraints) != 1 {
		t.Errorf("profile %+v", p)
	}
	if diff := cmp.Diff([]string{"int8"}, p.Model.Convert); diff != "" {
		t.Errorf("precisions that are made: %s", diff)
	}
	if !strings.Contains(said.String(), "are examples, and the figures depend on them: INPUT0 [128] (a sequence of 128 steps); set yours with --shape") {
		t.Errorf("it said %q", &said)
	}
	edited := "# mine\n" + text()
	writeText(t, filepath.Join(out, draft.ProfileName), edited, 0o600)
	writeText(t, filepath.Join(out, draft.AnalyzeName), "input: .\ntop: 1\n", 0o600)
	if err := write("--p99=30ms", "--budget=5m"); err != nil || text() != edited {
		t.Errorf("the same again: %v, file changed %t", err, text() != edited)
	}
	for _, other := range [][]string{{"--p99=20ms", "--budget=5m"}, {"--budget=5m"}, {"--p99=30ms", "--budget=5m", "--precision=fp32"}, {"--p99=20ms", "--budget=9m"}, {"--p99=30ms", "--budget=5m", "--mode=online"}} {
		if err := write(other...); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "describes another run than this command; they differ in: ") || text() != edited {
			t.Errorf("%v: error %v, file changed %t", other, err, text() != edited)
		}
	}
	if err := write("--p99=30ms", "--budget=9m"); err != nil || readProfileAt(t, filepath.Join(out, draft.ProfileName)).Search.Budget.Time != 9*time.Minute {
		t.Errorf("another budget: %v", err)
	}
	for flag, want := range map[string]float64{"--until=5%": 0.05, "--until=2%": 0.02} {
		if err := write("--p99=30ms", "--budget=9m", flag); err != nil || readProfileAt(t, filepath.Join(out, draft.ProfileName)).Search.Until != want {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if analysis, err := os.ReadFile(filepath.Join(out, draft.AnalyzeName)); err != nil || string(analysis) != "input: .\ntop: 1\n" {
		t.Errorf("analyze.yaml is %q, %v", analysis, err)
	}
	// Another output folder counts as something else.
	before := text()
	elsewhere := regexp.MustCompile(`(?m)^output: .*$`).ReplaceAllString(before, "output: elsewhere")
	writeText(t, filepath.Join(out, draft.ProfileName), elsewhere, 0o600)
	if err := write("--p99=30ms", "--budget=9m"); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "describes another run") || text() != elsewhere {
		t.Errorf("another output: error %v, file changed %t", err, text() != elsewhere)
	}
	writeText(t, filepath.Join(out, draft.ProfileName), before, 0o600)
	// The user's additions to the accuracy section are kept with another budget.
	mine := text() + "accuracy: {rows: 8}\n"
	writeText(t, filepath.Join(out, draft.ProfileName), mine, 0o600)
	if err := write("--p99=30ms", "--budget=5m"); exit.CodeOf(err) != exit.Usage || text() != mine {
		t.Errorf("another budget of an edited file: error %v", err)
	}
	writeText(t, filepath.Join(out, draft.ProfileName), "model: [", 0o600)
	if err := write(); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "not valid YAML") {
		t.Errorf("a broken profile: %v", err)
	}
}

// A model that needs no conversion is read once: its files can be written after it has gone.
func TestRunReadsTheModelOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, out := filepath.Join(dir, "words.onnx"), filepath.Join(dir, "out")
	writeModel(t, model, build.Identity(onnx.Float))
	r := Request{Model: model, Dir: out, Wish: wishOf(t), Messages: io.Discard}
	c, err := newConversion(t.Context(), r)
	if err != nil || c.skipped == "" {
		t.Fatalf("conversion %+v, %v; want none", c, err)
	}
	if err := os.Remove(model); err != nil {
		t.Fatal(err)
	}
	served, err := c.served(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := writeFiles(r, c.name, served, c.dir)
	if err != nil || path != filepath.Join(out, draft.ProfileName) {
		t.Errorf("wrote %q, %v", path, err)
	}
}

// A size that is given for a symbol applies to every input with that symbol.
func TestGivenShapes(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "bert.onnx")
	g := build.NewGraph("bert")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Symbol("sequence")}
	ids, mask := g.Input("ids", onnx.Float, shape...), g.Input("mask", onnx.Float, shape...)
	g.Input("image", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3), onnx.Symbol("height"))
	g.OutputAs("OUTPUT", g.Node("Add", []string{ids, mask}), onnx.Float, shape...)
	writeModel(t, model, g.Model())
	opened, err := starter.Open(t.Context(), "run", model, addon.Libraries{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want, wrong string, given map[string][]int64) {
		t.Helper()
		first, err := opened.Starter(".", given)
		if wrong != "" {
			if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%v: error %v, want %q", given, err, wrong)
			}
			return
		}
		if got := shapesText(first.Shapes); got != want || err != nil {
			t.Errorf("%v: %q, %v; want %q", given, got, err, want)
		}
	}
	const picture = "image [3 224] (sides of 224 pixels, as images of ImageNet)"
	check("ids [128] (a sequence of 128 steps), mask [128] (a sequence of 128 steps), "+picture, "", nil)
	check("ids [64], mask [64], "+picture, "", map[string][]int64{"ids": {64}})
	// different given sizes of one symbol are kept
	check("ids [128], mask [64], image [3 8]", "", map[string][]int64{"ids": {128}, "mask": {64}, "image": {3, 8}})
	check("", "--shape words: the model has no such input; its inputs are\n    ids FLOAT[batch,sequence]", map[string][]int64{"words": {8}})
	check("", "--shape ids: [1 8] does not fit ids FLOAT[batch,sequence]; leave out the batch dimension", map[string][]int64{"ids": {1, 8}})
	check("", "--shape image: [4 8] does not fit", map[string][]int64{"image": {4, 8}})
}

// The analyze.yaml beside a profile is used if it is about the same campaign.
func TestAnalysisBesideTheProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := spec.Profile{Path: filepath.Join(dir, "profile.yaml"), Output: filepath.Join(dir, "out")}
	check := func(text string, top int, said string) {
		t.Helper()
		if text != "" {
			writeText(t, filepath.Join(dir, draft.AnalyzeName), text, 0o600)
		}
		var err bytes.Buffer
		a, failure := analysisOf(&err, p)
		if failure != nil || a.Top != top || !spec.IsSamePath(a.Input, p.Output) || !spec.IsSamePath(a.Output, p.Output) || !strings.Contains(err.String(), said) {
			t.Errorf("%q: %+v, %v; said %q", text, a, failure, &err)
		}
	}
	check("", 3, "")
	check("input: out\ntop: 7\n", 7, "")
	check(fmt.Sprintf("input: %q\ntop: 5\n", filepath.Join(dir, "out")), 5, "")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if p.Output, err = filepath.Rel(here, p.Output); err != nil { // one path is relative, the other absolute
		t.Fatal(err)
	}
	check("input: out\ntop: 6\n", 6, "")
	check("input: elsewhere\ntop: 7\n", 3, "analyze.yaml belongs to another campaign")
	writeText(t, filepath.Join(dir, draft.AnalyzeName), "input: out\ntop: many\n", 0o600)
	if _, err := analysisOf(io.Discard, p); exit.CodeOf(err) != exit.Usage {
		t.Errorf("error %v, want exit code 2", err)
	}
}

// An existing file is not replaced. Exceptions are files that an earlier run made, or had begun to
// make, for the same model and without a campaign.
func TestRunReplacesNoModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := modelConversion{Request: Request{Model: "net.pt"}, dir: dir, target: filepath.Join(dir, "net.onnx"), key: "a"}
	log := func(known ...steps.Step) *steps.Log {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, steps.FileName)); err != nil {
			t.Fatal(err)
		}
		l, err := steps.Open(dir, stepLines{io.Discard}, time.Now)
		for _, s := range known {
			err = errors.Join(err, l.Do(t.Context(), s.Name, s.Key, func() (steps.Outcome, error) {
				return steps.Outcome{State: s.State, Files: []string{c.target}}, nil
			}))
		}
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	check := func(what string, l *steps.Log, want string) {
		t.Helper()
		err := c.checkFiles(l)
		if want == "" && err != nil || want != "" && (exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
	made := steps.Step{Name: steps.Convert, State: steps.OK, Key: "a"}
	check("nothing is there", log(), "")
	writeText(t, c.target, "mine", 0o600)
	check("a file of the user's", log(), `which exists: use it with 'tuner run `)
	check("our own", log(made), "")
	killed := log()
	if err := killed.Claim(steps.Convert, "a", c.target); err != nil {
		t.Fatal(err)
	}
	check("that of a run that was killed", killed, "")
	made.Key = "b"
	check("our own of another model", log(made), "")
	writeText(t, filepath.Join(dir, journal.FileName), "", 0o600)
	check("our own of another model, measured", log(made), "changed after the campaign")
	made.Key = "a"
	check("our own, measured", log(made), "")

	profileAt := filepath.Join(dir, draft.ProfileName)
	writeText(t, profileAt, "model: net.onnx\n", 0o600)
	check("with its profile", log(made), "")
	writeText(t, profileAt, "model: other.onnx\n", 0o600)
	check("with the profile of another model", log(made), `describes another model than "net.pt"`)
	writeText(t, profileAt, "model: [", 0o600)
	check("with a broken profile", log(made), "not valid YAML")
}

func TestOutcomesOfVariants(t *testing.T) {
	t.Parallel()
	p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\nspace: {precision: [fp32, int8, fp16]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	report := func(cosine float64) accuracy.Report {
		return accuracy.Report{Rows: 64, Synthetic: true, Outputs: map[string]accuracy.Figures{"y": {CosineMean: cosine}}}
	}
	int8 := journal.Variant{Precision: "int8", Converted: 34, Kept: []journal.KeptNode{{Node: "a"}, {Node: "b"}},
		Accuracy: map[string]accuracy.Report{"cpu": report(0.9931), "openvino": report(0.9)}, Rejected: map[string]string{"openvino": "cosine is 0.9"}}
	fp16 := journal.Variant{Precision: "fp16", Rejected: map[string]string{"": "the operator set is too old"}}
	check := func(name string, got, want steps.Outcome) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	check("made", precisionOutcome(p, []journal.Variant{int8, fp16}), steps.Outcome{
		Text: "int8 has 34 operators converted (2 stay in fp32 for accuracy); fp16 cannot be made: the operator set is too old"})
	check("unmade", precisionOutcome(p, []journal.Variant{fp16}), steps.Skip("fp16 cannot be made: the operator set is too old"))
	check("own files", precisionOutcome(p, []journal.Variant{{Precision: "small", Own: true}}), steps.Skip("the profile asks for no other precision than the model's own"))
	check("compared", accuracyOutcome(p, []journal.Variant{int8, fp16}), steps.Outcome{
		Text: "int8 on cpu is accepted: cosine 0.9931; int8 on openvino is rejected: cosine is 0.9; limit cosine ≥ 0.99, on 64 rows of synthetic (random) inputs"})
	own := journal.Variant{Precision: "int8", Accuracy: map[string]accuracy.Report{"cpu": {Rows: 8, Outputs: int8.Accuracy["cpu"].Outputs}}}
	p.Inputs.Data = "requests.npz"
	check("rows of the requests", accuracyOutcome(p, []journal.Variant{own}), steps.Outcome{
		Text: "int8 on cpu is accepted: cosine 0.9931; limit cosine ≥ 0.99, on 8 rows of requests.npz"})
	p.Accuracy.Data = "rows.npz"
	check("rows of its own", accuracyOutcome(p, []journal.Variant{own}), steps.Outcome{
		Text: "int8 on cpu is accepted: cosine 0.9931; limit cosine ≥ 0.99, on 8 rows of rows.npz"})
	check("nothing to compare", accuracyOutcome(p, []journal.Variant{fp16}), steps.Skip("every candidate computes as the original does on cpu"))
}

// A best configuration with optimization on cpu has an optimized graph. Otherwise there is a
// reason.
func TestOptimizable(t *testing.T) {
	t.Parallel()
	limit := 1e-6
	impossible := &search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: "throughput", Weight: 1}}},
		Constraints: []search.Constraint{{Metric: "latency_p99", Max: &limit}}}
	for name, tt := range map[string]struct {
		best search.Candidate
		goal *search.Goal
		want string
	}{
		"nothing satisfies": {analyzetest.Candidate(2, 1, 16), impossible, "nothing satisfies the constraints"},
		"another provider":  {analyzetest.Candidate(2, 1, 16).With(search.KnobExecutionProvider, "openvino"), nil, "the best runs on openvino, which compiles the model itself"},
		"another library":   {analyzetest.Candidate(2, 1, 16), nil, "the best runs on cpu@1.31.1, which is not a library on this machine"},
		"disabled":          {analyzetest.Candidate(2, 1, 16).With(sessionoption.GraphOptimization, "disable"), nil, "the best has graph optimization disabled"},
	} {
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(tt.best, 16)
		r, err := analyze.Analyze(b.Campaign(), analyze.Options{Goal: tt.goal})
		if err != nil {
			t.Fatal(err)
		}
		j := job{campaign: preparation.Campaign{Setup: profile.Setup{Profile: b.Campaign().Profile}}}
		if o, reason, err := j.optimizable(r); reason != tt.want || err != nil || o.key != "" || o.dir() != filepath.Join("out", "optimized") {
			t.Errorf("%s: %+v, %q, %v; want %q", name, o, reason, err, tt.want)
		}
	}
}

// If the step ends without an optimized model, that of an earlier winner is removed. A foreign
// folder stays and is an error.
func TestOutdatedOptimizedModel(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	model := filepath.Join(t.TempDir(), "minilm.onnx")
	writeModel(t, model, build.Identity(onnx.Float))
	check := func(ctx context.Context, name string, best search.Candidate, model string, want steps.State, change func(dir string), wrong string) {
		t.Helper()
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16)
		campaign := b.Campaign()
		campaign.Header.Models = []journal.ModelFile{{Precision: "fp32", Path: model, SHA256: "ab12"}}
		campaign.Profile.Output = t.TempDir()
		r, err := analyze.Analyze(campaign, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		log, err := steps.Open(campaign.Profile.Output, stepLines{io.Discard}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(campaign.Profile.Output, optimizedDir)
		writeModel(t, filepath.Join(dir, "model.onnx"), build.Identity(onnx.Float))
		if err := writeReceipt(dir); err != nil {
			t.Fatal(err)
		}
		change(dir)
		j := job{campaign: preparation.Campaign{Setup: profile.Setup{Profile: campaign.Profile}, Builds: []ortlib.Build{{Flavour: "cpu", Version: "1.31.1"}}}, log: log}
		err = j.optimize(ctx, r)
		if wrong == "" && err != nil || wrong != "" && (exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: error %v, want %q", name, err, wrong)
		}
		if s, _ := log.List().Get(steps.Optimize); s.State != want {
			t.Errorf("%s: the step is %s, want %s", name, s.State, want)
		}
		isForeign := strings.Contains(wrong, "cannot replace or remove")
		if _, err := os.Lstat(dir); (err == nil) != isForeign {
			t.Errorf("%s: the folder is there: %t", name, err == nil)
		}
	}
	ours := func(string) {}
	plain := analyzetest.Candidate(2, 1, 16)
	disabled := plain.With(sessionoption.GraphOptimization, "disable")
	check(t.Context(), "another winner", disabled, model, steps.Skipped, ours, "")
	check(ended, "an interruption", plain, model, steps.Interrupted, ours, "")
	check(t.Context(), "a model that is not there", plain, "nosuch.onnx", steps.Failed, ours, "nosuch.onnx")
	check(t.Context(), "a model of the user's", disabled, model, steps.Failed, func(dir string) {
		writeText(t, filepath.Join(dir, "model.onnx"), "mine", 0o600)
	}, "cannot replace or remove the optimized model")
	check(t.Context(), "a folder of the user's", disabled, model, steps.Failed, func(dir string) {
		if err := os.Remove(filepath.Join(dir, receiptName)); err != nil {
			t.Fatal(err)
		}
	}, "cannot replace or remove the optimized model")
}

// The commands after a run can be pasted, for every folder name and any number of times.
func TestRunNamesWhatComesNext(t *testing.T) {
	t.Parallel()
	r, err := analyze.Analyze(analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "it's out")
	quoted := "'" + strings.ReplaceAll(dir, "'", `'\''`)
	check := func(formats, want, without []string) {
		t.Helper()
		var out bytes.Buffer
		j := job{analysis: spec.Analyze{Path: filepath.Join(dir, draft.AnalyzeName), Input: dir, Output: dir, Formats: formats}}
		if err := j.writeAnswer(&out, r); err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(out.String(), "\n"+line+"\n") {
				t.Errorf("the answer lacks %q:\n%s", line, &out)
			}
		}
		for _, text := range without {
			if strings.Contains(out.String(), text) {
				t.Errorf("the answer has %q:\n%s", text, &out)
			}
		}
	}
	explain := "  tuner analyze -f " + quoted + "/analyze.yaml' --explain" // what the file says, the run has answered
	check([]string{"html", spec.FormatRepository}, []string{"report: " + dir + "/report.md", "page for a browser: " + dir + "/report.html", explain,
		"  tuner serve --model-repository " + quoted + "/repository'", "  tuner export triton --input " + quoted + "' -o " + quoted + "/deploy'"}, nil)
	check([]string{"csv"}, []string{explain}, []string{"report.html", "tuner serve", "tuner export", "chart"})
	r.Steps = steps.List{{Name: steps.Chart, State: steps.OK}}
	check([]string{"csv"}, []string{"Helm chart: " + dir + "/helm (README.md there says how to install it)"}, nil)
	for _, name := range []string{"deploy", "deploy-2"} { // exported before
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	check([]string{spec.FormatRepository}, []string{"  tuner export triton --input " + quoted + "' -o " + quoted + "/deploy-3'"}, nil)
}

// A chart's folder is replaced if its files are unchanged or missing. A foreign folder stays.
func TestChartOfTheUser(t *testing.T) {
	t.Parallel()
	check := func(what string, change func(dir string), want string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), chartDir)
		values := filepath.Join(dir, "chart", "values.yaml")
		if err := os.MkdirAll(filepath.Dir(values), 0o755); err != nil {
			t.Fatal(err)
		}
		writeText(t, values, "replicas: 1", 0o600)
		if err := writeReceipt(dir); err != nil {
			t.Fatal(err)
		}
		change(dir)
		err := removeChart(dir)
		if want == "" && err != nil || want != "" && (exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
		if _, err := os.Lstat(dir); (err == nil) != (want != "") {
			t.Errorf("%s: the folder is there: %t", what, err == nil)
		}
	}
	at := func(name, text string) func(string) {
		return func(dir string) { writeText(t, filepath.Join(dir, filepath.FromSlash(name)), text, 0o600) }
	}
	remove := func(name string) func(string) {
		return func(dir string) {
			if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("as written", func(string) {}, "")
	check("nothing there", remove("."), "")
	check("a missing file", remove("chart/values.yaml"), "")
	check("an edited file", at("chart/values.yaml", "replicas: 2"), "chart/values.yaml in it was changed since tuner wrote it; move it away, or leave helm out of the formats in analyze.yaml")
	check("another file", at("mine.yaml", "replicas: 2"), "mine.yaml in it was changed since")
	check("no receipt", remove(receiptName), "it was not written by tuner run")
	check("no receipt any more", at(receiptName, "dear diary"), ".tuner.json in it is damaged")
}

func TestStepLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := stepLines{&out}
	l.Begun(steps.Accuracy)
	l.Ended(steps.Step{Name: steps.Accuracy, State: steps.OK, Text: "int8 on cpu\nis accepted", Elapsed: 83 * time.Second}, false)
	l.Ended(steps.Step{Name: steps.Accuracy, State: steps.OK, Text: "accepted", Elapsed: time.Minute}, true)
	l.Ended(steps.Step{Name: steps.Accuracy, State: steps.Failed, Text: "the program says it"}, false)
	want := "3/7 accuracy check\n  ok after 1m23s: int8 on cpu is accepted\n  ok, done before: accepted\n  failed\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A receipt vouches for a folder only if it lists each file there as it is.
func FuzzReceipt(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "values.yaml"), []byte("replicas: 1"), 0o600); err != nil {
		f.Fatal(err)
	}
	if err := writeReceipt(dir); err != nil {
		f.Fatal(err)
	}
	receipt, err := os.ReadFile(filepath.Join(dir, receiptName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(receipt)
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"path":"values.yaml"}]`))
	f.Add(append(receipt[:len(receipt)-2], `,{"path":"../../outside","sha256":"d"}]`...))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		writeText(t, filepath.Join(dir, "values.yaml"), "replicas: 1", 0o600)
		writeText(t, filepath.Join(dir, receiptName), string(text), 0o600)
		bound := alloctest.Bound(t, len(text))
		why, err := foreignIn(dir)
		bound()
		if err != nil || why != "" {
			return
		}
		writeText(t, filepath.Join(dir, "values.yaml"), "replicas: 2", 0o600)
		if why, _ := foreignIn(dir); why == "" {
			t.Errorf("the receipt %q vouches for a file that was changed", text)
		}
	})
}
