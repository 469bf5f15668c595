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
	"tuner/report/html"
	resultjson "tuner/report/json"
	"tuner/report/junit"
	"tuner/report/markdown"
	"tuner/report/reporttest"
	"tuner/report/result"
	"tuner/report/text"
	"tuner/search"
	"tuner/search/verdict"
)

// named is the answer as an output names it. Parts that an output lacks are "".
type named struct{ config, load, probability string }

// campaigns yields the recorded campaigns and synthetic ones of several shapes. Each is analyzed
// under several limits: loose, tight, and impossible ones.
func campaigns(t *testing.T, check func(name string, r analyze.Result)) {
	t.Helper()
	look := func(name string, c analyze.Campaign, o analyze.Options) {
		r, err := analyze.Analyze(c, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		check(name, r)
	}
	views := func(name string, c analyze.Campaign, limits ...float64) {
		for _, limit := range limits {
			goal := c.Profile.Goal
			goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
			look(fmt.Sprintf("%s within %g s", name, limit), c, analyze.Options{Goal: &goal})
			look(fmt.Sprintf("%s within %g s, surely", name, limit), c, analyze.Options{Goal: &goal, Confidence: 0.99})
		}
	}
	for _, name := range []string{"guided", "minilm"} {
		c, err := analyze.Replay("../testdata/journals/" + name)
		if err != nil {
			t.Fatal(err)
		}
		views(name, c, 0.003, 0.017, 0.025, 0.031, 0.055, 1)
	}
	views("typical", reporttest.Typical(t).Campaign(), 0.003, 0.017, 0.0312, 0.05, 0.06, 1)
	views("variants", reporttest.WithVariants(t).Campaign(), 0.003, 0.03, 0.05)
	views("nothing left to try", exhausted(t, 2, 4, 16).Campaign(), 0.003, 0.0096, 0.0097, 0.0098, 0.0099, 0.0125, 0.015, 0.0165, 0.017, 0.0175, 0.02, 0.031, 0.05)
	views("nothing better", exhausted(t, 1, 4).Campaign(), 0.025, 0.05)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 1<<random.IntN(5))
		for range 1 + random.IntN(5) {
			c, load := analyzetest.Candidate(1+random.IntN(2), 1+random.IntN(2), 4<<random.IntN(3)), 1<<random.IntN(6)
			b.Measure(c, load)
			if random.IntN(3) == 0 {
				b.Confirm(c, load)
			}
		}
		views(fmt.Sprintf("random campaign %d", i), b.Campaign(), 0.01+0.05*random.Float64())
	}
}

// exhausted returns a campaign that measured its whole space at every load several times. Its
// instances have one thread each and these batches.
func exhausted(t *testing.T, instances int, batches ...int) *analyzetest.Builder {
	list := strings.ReplaceAll(fmt.Sprint(batches), " ", ", ")
	profile := strings.NewReplacer("intra_op_threads: [1, 2]", "intra_op_threads: [1]", "instance_count: [1, 2]", fmt.Sprintf("instance_count: [%d]", instances),
		"[4, 8, 16]", list, "{min: 1, max: 64, scale: pow2}", "[4, 8, 16]").Replace(analyzetest.Profile)
	b := analyzetest.New(t, profile)
	for range 5 {
		b.Measure(search.Candidate{}, 4, 8, 16)
		for _, batch := range batches {
			b.Measure(analyzetest.Candidate(instances, 1, batch), 4, 8, 16)
		}
	}
	for _, load := range []int{4, 8, 16} {
		b.Confirm(search.Candidate{}, load)
		for _, batch := range batches {
			b.Confirm(analyzetest.Candidate(instances, 1, batch), load)
		}
	}
	return b.End("the space is exhausted", false)
}

// Every output names the same configuration at the same load with the same probability.
func TestEveryOutputGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	seen := map[verdict.State]int{}
	campaigns(t, func(name string, r analyze.Result) {
		best := r.Configs[0]
		want := named{best.Name, strconv.FormatFloat(best.Best.Load.Level(), 'g', -1, 64), verdict.Percent(best.Choice.Holds)}
		seen[figures.AnswerOf(r).State]++
		for output, got := range map[string]named{
			"terminal": inText(t, r, reporttest.Written(t, r, text.WriteTable)), "run's answer": inText(t, r, reporttest.Written(t, r, text.WriteAnswer)),
			"table's row": inRow(t, r), "report.md": inText(t, r, unescaped(reporttest.Written(t, r, markdownOf))), "result.json": inJSON(t, r), "CSV": inCSV(t, r),
			"junit.xml": inJUnit(t, r), "report.html": inPage(t, r), "config.pbtxt": inConfig(t, r, want),
		} {
			expected := want
			if got.probability == "" {
				expected.probability = ""
			}
			if diff := cmp.Diff(expected, got, cmp.AllowUnexported(named{})); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, output, diff)
			}
		}
		checkClaims(t, name, r)
	})
	for _, state := range []verdict.State{verdict.Nothing, verdict.Unfinished, verdict.Close, verdict.NoGain, verdict.Proven} {
		if seen[state] == 0 {
			t.Errorf("no campaign is %s: %v", state, seen)
		}
	}
}

func markdownOf(w io.Writer, r analyze.Result) error { return markdown.Write(w, r, false) }

// checkClaims compares the claims with the known figures. The first lines give state and answer. A
// configuration that misses a limit is not recommended. A better stage comes last.
func checkClaims(t *testing.T, name string, r analyze.Result) {
	t.Helper()
	a := figures.AnswerOf(r)
	head := strings.Join(strings.Split(reporttest.Written(t, r, text.WriteTable), "\n")[:12], "\n")
	first := strings.Join(strings.Fields(head), " ")
	if !strings.HasPrefix(first, a.Headline) {
		t.Errorf("%s: the first line is not %q:\n%s", name, a.Headline, head)
	}
	for _, line := range a.Lines {
		isEvidence := line.Name == verdict.LineElse || line.Name == "Basis"
		if !isEvidence && !strings.Contains(head, "\n"+line.Name+": ") {
			t.Errorf("%s: %s is not in the first twelve lines:\n%s", name, line.Name, head)
		}
	}
	if !strings.HasPrefix(a.Headline, a.State.Badge()) {
		t.Errorf("%s: %q does not say that it is %s", name, a.Headline, a.State)
	}
	best := *r.Configs[0].Choice
	isNearest, isRecommended := a.Lines[0].Name == verdict.LineNearest, a.Lines[0].Name == verdict.LineRecommended
	if (len(best.Misses) > 0) != isNearest {
		t.Errorf("%s: what misses %v is %s", name, best.Misses, a.Lines[0].Name)
	}
	if isRecommended && (best.Holds < r.Verdict.Confidence || best.IsUnknown()) {
		t.Errorf("%s: recommended with a probability of %g, %g was asked for", name, best.Holds, r.Verdict.Confidence)
	}
	list := figures.Stages(r)
	last := list[len(list)-1].Config.Best
	for _, s := range list[:len(list)-1] {
		if s.Title != "default" && s.Config.Best != nil && s.Config.Best.Score.Value > last.Score.Value {
			t.Errorf("%s: %s has score %g, above the best's %g", name, s.Title, s.Config.Best.Score.Value, last.Score.Value)
		}
	}
	for _, c := range r.Configs {
		for _, p := range c.Points {
			for metric, e := range p.Values {
				if e.Lo < 0 {
					t.Errorf("%s: %s of %s at %s is %v", name, metric, c.Name, p.Load, e)
				}
			}
		}
	}
	judged := readJUnit(t, r)
	if isPassed := judged.Failure == nil && judged.Skipped == nil; isPassed != (best.Limits[0].Probability >= r.Verdict.Confidence && !best.IsUnknown()) {
		t.Errorf("%s: junit.xml has %+v of a limit that is kept with probability %g", name, judged, best.Limits[0].Probability)
	}
}

// answerLine matches the first line of an answer's statements, even if it is folded.
var answerLine = regexp.MustCompile(`(?:Recommended|At the edge|Nearest)(?:\*\*)?: (\S+).*? at concurrency (\d+): .*?kept: ([<>]?\d+ %)`)

func inText(t *testing.T, r analyze.Result, text string) named {
	t.Helper()
	found := answerLine.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if found == nil {
		t.Fatalf("there is no answer in\n%s", text)
	}
	return named{fullName(r, found[1]), found[2], found[3]}
}

func fullName(r analyze.Result, short string) string {
	if short == "default" {
		return r.Header.Model + "_config_default"
	}
	return r.Header.Model + "_" + short
}

// inRow reads the first row of the terminal's table.
func inRow(t *testing.T, r analyze.Result) named {
	t.Helper()
	g := figures.NewRanking(r)
	cell := func(head string) string { return g.Cells[0][slices.Index(figures.Titles(g.Heads), head)] }
	n := named{fullName(r, strings.TrimSuffix(cell("Config"), " *")), cell("Load"), ""}
	if text := regexp.MustCompile(`[<>]?\d+ %`).FindString(cell("OK")); text != "" {
		n.probability = text
	} else if cell("OK") != figures.MissesWord {
		t.Errorf("the first row says %q", cell("OK"))
	}
	return n
}

var escaped = regexp.MustCompile(`\\(.)`)

// unescaped returns Markdown's text without escapes.
func unescaped(text string) string {
	return strings.NewReplacer("&lt;", "<", "&amp;", "&").Replace(escaped.ReplaceAllString(text, "$1"))
}

func inJSON(t *testing.T, r analyze.Result) named {
	t.Helper()
	var d result.Result
	if err := json.Unmarshal([]byte(reporttest.Written(t, r, resultjson.Write)), &d); err != nil {
		t.Fatal(err)
	}
	first := d.Configurations[0]
	if n := d.Best + d.Nearest; n != first.Name {
		t.Errorf("result.json: %q is first, and %q is best or nearest", first.Name, n)
	}
	sentences := strings.Join(d.Ending.Statement, " ") // they identify configurations by their settings
	if found := answerLine.FindStringSubmatch(sentences); found == nil || found[3] != verdict.Percent(*d.Answer.Probability) {
		t.Errorf("result.json claims %q with probability %g", sentences, *d.Answer.Probability)
	}
	return named{first.Name, strconv.Itoa(first.BestLoad.Concurrency), verdict.Percent(*d.Answer.Probability)}
}

func inCSV(t *testing.T, r analyze.Result) named {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(reporttest.Written(t, r, resultcsv.WriteInference))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(head string) string { return rows[1][slices.Index(rows[0], head)] }
	if isKept := cell("Satisfies Constraints") == "Yes"; isKept != r.Configs[0].Satisfies() {
		t.Errorf("CSV: the answer satisfies the constraints: %t", isKept)
	}
	return named{cell("Model Config Path"), cell("Concurrency"), ""}
}

// junitCase is a test case of junit.xml.
type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Out     string    `xml:"system-out"`
	Failure *struct{} `xml:"failure"`
	Skipped *struct{} `xml:"skipped"`
}

// readJUnit reads the first test case of junit.xml, as a foreign tool does.
func readJUnit(t *testing.T, r analyze.Result) junitCase {
	t.Helper()
	var suites struct {
		Cases []junitCase `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(reporttest.Written(t, r, junit.Write)), &suites); err != nil || len(suites.Cases) == 0 {
		t.Fatalf("%d cases in junit.xml, %v", len(suites.Cases), err)
	}
	return suites.Cases[0]
}

func inJUnit(t *testing.T, r analyze.Result) named {
	t.Helper()
	c := readJUnit(t, r)
	_, load, _ := strings.Cut(c.Name, " at concurrency ")
	_, probability, _ := strings.Cut(c.Out, ", kept with probability ")
	return named{c.Class, load, probability}
}

func inPage(t *testing.T, r analyze.Result) named {
	t.Helper()
	page := func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) }
	root, err := markup.Parse(strings.NewReader(reporttest.Written(t, r, page)))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(reporttest.DataOfPage(t, root))
	var d struct {
		Loads          []measure.Load
		Configurations []struct {
			Name   string
			Best   int
			Points [][]json.RawMessage
		}
	}
	if err == nil {
		err = json.Unmarshal(encoded, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := d.Configurations[0]
	load, err := strconv.Atoi(string(first.Points[first.Best][0]))
	if err != nil {
		t.Fatal(err)
	}
	said := inText(t, r, reporttest.TextOf(root))
	if want := strconv.Itoa(d.Loads[load].Concurrency); said.config != first.Name || said.load != want {
		t.Errorf("report.html says %v, and its data %s at %s", said, first.Name, want)
	}
	return said
}

// inConfig reads the comments of the optimal configuration. Without a configuration that is likely
// to keep the limits there are none.
func inConfig(t *testing.T, r analyze.Result, otherwise named) named {
	t.Helper()
	if _, ok := r.Winner(); !ok {
		return otherwise
	}
	text := reporttest.Written(t, r, report.WriteConfig)
	if !strings.Contains(text, "\n# "+figures.AnswerOf(r).Headline+"\n") {
		t.Errorf("config.pbtxt does not say %q", figures.AnswerOf(r).Headline)
	}
	return inText(t, r, text)
}

// Two limits that are each kept with 70 % are kept together with 49 %. Then the point satisfies the constraints in no
// format, since its configuration does not.
func TestPointsSatisfyAsTheirConfigurationDoes(t *testing.T) {
	t.Parallel()
	one := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4)
	}
	point := *reporttest.Ranked(t, one(), analyze.Options{}).Configs[0].Best
	r := reporttest.Ranked(t, one(), analyze.Options{Goal: analyzetest.Narrow(t, point, 0.703, measure.LatencyAvg, measure.Throughput)})
	if c := r.Configs[0]; c.Satisfies() || len(c.Best.Misses) > 0 {
		t.Fatalf("satisfies: %t, misses %v: the test shows nothing", c.Satisfies(), c.Best.Misses)
	}
	inCSV(t, r) // compares with the configuration
	var d result.Result
	if err := json.Unmarshal([]byte(reporttest.Written(t, r, resultjson.Write)), &d); err != nil {
		t.Fatal(err)
	}
	if c := d.Configurations[0]; c.Satisfies || c.Points[0].Satisfies {
		t.Errorf("result.json: the configuration satisfies the constraints: %t, its point: %t", c.Satisfies, c.Points[0].Satisfies)
	}
}
