package report_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	markup "golang.org/x/net/html"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/report"
	resultcsv "tuner/report/csv"
	"tuner/report/figures"
	"tuner/report/formats"
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/junit"
	"tuner/report/reporttest"
	"tuner/report/result"
	"tuner/report/text"
	"tuner/search"
	"tuner/search/verdict"
)

// campaignsOfTwo yields campaigns of two models of several shapes. Each is analyzed under several limits.
func campaignsOfTwo(t *testing.T, check func(name string, r analyze.Result)) {
	t.Helper()
	views := func(name string, c analyze.Campaign, limits ...float64) {
		for _, limit := range limits {
			goal := c.Profile.Goal
			goal.Constraints = slices.Clone(goal.Constraints)
			goal.Constraints[0].Max = &limit
			for _, confidence := range []float64{0, 0.99} {
				r, err := analyze.Analyze(c, analyze.Options{Goal: &goal, Confidence: confidence})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				check(fmt.Sprintf("%s within %g s at %g", name, limit, confidence), r)
			}
		}
	}
	views("typical", analyzetest.OfTwo(t).Campaign(), 0.001, 0.01, 0.0145, 0.02, 0.03, 0.05, 1)
	views("everything measured", allOfTwo(t).Campaign(), 0.001, 0.0145, 0.03, 0.05)
	random := rand.New(rand.NewPCG(3, 4))
	scales := []float64{0.5, 1, 1.5, 2, 3, 4}
	for i := range 10 {
		b := analyzetest.NewTogether(t, analyzetest.ProfileOfTwo).Seeded(uint64(i)).Measure(search.Candidate{}, scales[random.IntN(3)])
		for range 1 + random.IntN(5) {
			c, scale := analyzetest.Both(1+random.IntN(2), 4<<random.IntN(3), 1+random.IntN(2)), scales[random.IntN(len(scales))]
			b.Measure(c, scale)
			if random.IntN(3) == 0 {
				b.Confirm(c, scale)
			}
		}
		views(fmt.Sprintf("random campaign %d", i), b.Campaign(), 0.01+0.05*random.Float64())
	}
}

// allOfTwo returns a campaign that measured its whole space several times. The only other configuration has a
// batch of 16 for the encoder.
func allOfTwo(t *testing.T) *analyzetest.Together {
	profile := strings.NewReplacer("instance_count: [1, 2], max_batch_size: [4, 8, 16]", "max_batch_size: [16]", "    space: {instance_count: [1, 2]}\n", "    space: none\n",
		"[0.5, 1, 1.5, 2, 3, 4]", "[1, 1.5, 2, 3, 4]").Replace(analyzetest.ProfileOfTwo)
	other := search.NewCandidate(search.Setting{Knob: "encoder.max_batch_size", Value: search.IntValue(16)})
	b := analyzetest.NewTogether(t, profile)
	for range 5 {
		b.Measure(search.Candidate{}, 1, 1.5, 2, 3, 4).Measure(other, 1, 1.5, 2, 3, 4)
	}
	for _, scale := range []float64{1, 1.5, 2, 3, 4} {
		b.Confirm(search.Candidate{}, scale).Confirm(other, scale)
	}
	return b.End("the space is exhausted")
}

// Every output names the same server at the same scale with the same probability, and the same figure of each
// model beside its limit.
func TestEveryOutputGivesTheSameAnswerOfSeveralModels(t *testing.T) {
	t.Parallel()
	seen := map[verdict.State]int{}
	campaignsOfTwo(t, func(name string, r analyze.Result) {
		best := r.Configs[0]
		seen[figures.AnswerOf(r).State]++
		scale := strconv.FormatFloat(best.Best.Load.Scale, 'g', -1, 64)
		want := named{best.Name, scale, verdict.Percent(best.Choice.Holds)}
		for output, got := range map[string]named{
			"terminal": atScale(t, r, reporttest.Written(t, r, text.WriteTable)), "report.md": atScale(t, r, unescaped(reporttest.Written(t, r, markdownOf))),
			"report.html": atScale(t, r, pageText(t, r)), "result.json": severalInJSON(t, r), "CSV": severalInCSV(t, r), "junit.xml": severalInJUnit(t, r),
			"table's row": severalInRow(t, r), "config.pbtxt": severalInConfig(t, r, want),
		} {
			expected := want
			if got.probability == "" {
				expected.probability = ""
			}
			if diff := cmp.Diff(expected, got, cmp.AllowUnexported(named{})); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, output, diff)
			}
		}
		checkShares(t, name, r)
	})
	for _, state := range []verdict.State{verdict.Nothing, verdict.Unfinished} {
		if seen[state] == 0 {
			t.Errorf("no campaign is %s: %v", state, seen)
		}
	}
	if seen[verdict.Proven]+seen[verdict.NoGain]+seen[verdict.Close] == 0 {
		t.Errorf("no campaign has an answer: %v", seen)
	}
}

// answerAtScale matches the first line of an answer's statements about several models.
var answerAtScale = regexp.MustCompile(`(?:Recommended|At the edge|Nearest)(?:\*\*)?: (\S+).*? at scale ([0-9.]+): .*?kept: ([<>]?\d+ %)`)

func atScale(t *testing.T, r analyze.Result, text string) named {
	t.Helper()
	found := answerAtScale.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if found == nil {
		t.Fatalf("there is no answer in\n%s", text)
	}
	return named{fullName(r, found[1]), found[2], found[3]}
}

func pageText(t *testing.T, r analyze.Result) string {
	t.Helper()
	root, err := markup.Parse(strings.NewReader(reporttest.Written(t, r, func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) })))
	if err != nil {
		t.Fatal(err)
	}
	return reporttest.TextOf(root)
}

func severalInJSON(t *testing.T, r analyze.Result) named {
	t.Helper()
	d := parsedResult(t, r)
	first := d.Configurations[0]
	return named{first.Name, strconv.FormatFloat(first.BestLoad.Scale, 'g', -1, 64), verdict.Percent(*d.Answer.Probability)}
}

func parsedResult(t *testing.T, r analyze.Result) result.Result {
	t.Helper()
	var d result.Result
	if err := json.Unmarshal([]byte(reporttest.Written(t, r, resultjson.Write)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// severalInCSV reads the first row. Its cells have a value of each model.
func severalInCSV(t *testing.T, r analyze.Result) named {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(reporttest.Written(t, r, resultcsv.WriteInference))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(head string) string { return rows[1][slices.Index(rows[0], head)] }
	paths := strings.Split(cell("Model Config Path"), ",")
	encoder, isOf := strings.CutPrefix(paths[0], "encoder")
	ranker, isOther := strings.CutPrefix(paths[1], "ranker")
	if len(paths) != 2 || !isOf || !isOther || encoder != ranker || cell("Model") != "encoder,ranker" {
		t.Errorf("models %q are configured by %q", cell("Model"), paths)
	}
	// the encoder has 60 requests/s at scale 1
	rate, err := strconv.ParseFloat(strings.TrimSuffix(cell("Request Rate"), ","), 64)
	if err != nil {
		t.Fatal(err)
	}
	if isKept := cell("Satisfies Constraints") == "Yes"; isKept != r.Configs[0].Satisfies() {
		t.Errorf("CSV: the answer satisfies the constraints: %t", isKept)
	}
	return named{r.Header.Model + encoder, strconv.FormatFloat(rate/60, 'g', 6, 64), ""}
}

// severalInJUnit reads the first test case, which is the encoder's limit.
func severalInJUnit(t *testing.T, r analyze.Result) named {
	t.Helper()
	var suites struct {
		Cases []junitCase `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(reporttest.Written(t, r, junit.Write)), &suites); err != nil || len(suites.Cases) < 4 {
		t.Fatalf("%d cases in junit.xml, %v", len(suites.Cases), err)
	}
	for i, metric := range []string{"encoder p99", "ranker p99", "memory"} {
		c := suites.Cases[i]
		judged := r.Configs[0].Choice.Limits[i].Probability
		if !strings.HasPrefix(c.Name, metric+" ≤ ") || !strings.HasSuffix(c.Out, ", kept with probability "+verdict.Percent(judged)) {
			t.Errorf("case %d is %+v, want %s with %g", i, c, metric, judged)
		}
	}
	_, scale, _ := strings.Cut(suites.Cases[0].Name, " at scale ")
	return named{suites.Cases[0].Class, scale, ""}
}

func severalInRow(t *testing.T, r analyze.Result) named {
	t.Helper()
	g := figures.NewRanking(r)
	cell := func(head string) string { return g.Cells[0][slices.Index(figures.Titles(g.Heads), head)] }
	n := named{fullName(r, strings.TrimSuffix(cell("Config"), " *")), cell("Scale"), ""}
	if text := regexp.MustCompile(`[<>]?\d+ %`).FindString(cell("OK")); text != "" {
		n.probability = text
	} else if cell("OK") != figures.MissesWord {
		t.Errorf("the first row says %q", cell("OK"))
	}
	return n
}

// severalInConfig reads the comments of each model's optimal configuration.
func severalInConfig(t *testing.T, r analyze.Result, otherwise named) named {
	t.Helper()
	if _, ok := r.Winner(); !ok {
		return otherwise
	}
	for _, one := range r.OfEach() {
		text := reporttest.Written(t, one, report.WriteConfig)
		if !strings.Contains(text, "\n# "+figures.AnswerOf(r).Headline+"\n") || !strings.Contains(text, fmt.Sprintf("\nname: %q\n", one.Header.Model)) {
			t.Errorf("config.pbtxt of %s does not say %q:\n%s", one.Header.Model, figures.AnswerOf(r).Headline, text)
		}
		found := answerAtScale.FindStringSubmatch(text)
		if found == nil || found[2] != otherwise.load || found[3] != otherwise.probability {
			t.Errorf("config.pbtxt of %s says %q, want %+v", one.Header.Model, found, otherwise)
		}
	}
	return otherwise
}

// checkShares compares the outputs about each model: its load at the scale, its p99, and the probability
// of its limit.
func checkShares(t *testing.T, name string, r analyze.Result) {
	t.Helper()
	best, d := r.Configs[0], parsedResult(t, r)
	for i, model := range []string{"encoder", "ranker"} {
		share := d.Answer.Models[i]
		p99 := best.Best.Values[measure.LatencyP99.Of(model)]
		limit := best.Choice.Limits[i]
		if share.Model != model || share.Load != best.Best.Load.Of(model) || share.Values[measure.LatencyP99].Value != figures.Significant(p99.Value) ||
			share.Limits[0].Constraint.Metric != measure.LatencyP99 || diffOf(share.Limits[0].Probability, limit.Probability) > 1e-4 {
			t.Errorf("%s: result.json says %+v of %s, want p99 %g kept with %g", name, share, model, p99.Value, limit.Probability)
		}
		line := fmt.Sprintf("%s: %s", model, best.Best.Load.Of(model))
		figure := "p99 " + verdict.Interval(measure.LatencyP99, p99) + " of " + verdict.LimitText(measure.LatencyP99, *r.Goal.Constraints[i].Max) + ", kept: " + verdict.Percent(limit.Probability)
		for output, text := range map[string]string{
			"terminal": reporttest.Written(t, r, text.WriteTable), "report.md": strings.ReplaceAll(unescaped(reporttest.Written(t, r, markdownOf)), "**", ""), "report.html": pageText(t, r),
		} {
			if text = strings.Join(strings.Fields(text), " "); !strings.Contains(text, line) || !strings.Contains(text, figure) {
				t.Errorf("%s: %s does not say %q and %q:\n%s", name, output, line, figure, text[:min(len(text), 1500)])
			}
		}
	}
	headline := figures.AnswerOf(r).Headline
	if grown := "can grow " + verdict.Factor(best.Best.Load.Scale) + " ×"; r.Verdict.Recommended != nil && best.Best.Load.Scale > 1 &&
		best.Best.Load.Scale < 4 && !strings.Contains(headline, grown) {
		t.Errorf("%s: %q does not say %q", name, headline, grown)
	}
}

func diffOf(a, b float64) float64 { return max(a-b, b-a) }

// All files of several models are written, and none of those that only one model has.
func TestFilesOfSeveralModels(t *testing.T) {
	t.Parallel()
	c := analyzetest.OfTwo(t).Campaign()
	r, err := analyze.Analyze(c, analyze.Options{Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	written, err := formats.All().WriteReports(t.TempDir(), r, formats.All().Words())
	if err != nil {
		t.Fatal(err)
	}
	has := func(suffix string) bool {
		return slices.ContainsFunc(written, func(path string) bool { return strings.HasSuffix(path, suffix) })
	}
	for _, name := range []string{"report.md", "result.json", "report.html", "junit.xml", "limits_vs_scale.png", "points.csv", "trials.parquet", "metrics-model-inference.csv"} {
		if !has(name) {
			t.Errorf("no %s in %v", name, written)
		}
	}
	for _, name := range []string{"throughput_vs_p99.png", "pareto.png", "optim_Results.png"} {
		if has(name) {
			t.Errorf("%s is written", name)
		}
	}
}
