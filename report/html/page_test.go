package html

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	markup "golang.org/x/net/html"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/internal/webpage/webpagetest"
	"tuner/measure"
	"tuner/model/modelconfig"
	"tuner/ort/addon"
	"tuner/profile/journal"
	"tuner/report/figures"
	resultjson "tuner/report/json"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/search/verdict"
	"tuner/spec"
)

// htmlOf writes the page, and reads it as a browser would.
func htmlOf(t *testing.T, r analyze.Result) (text []byte, root *markup.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, true); err != nil {
		t.Fatal(err)
	}
	root, err := markup.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), root
}

func TestHTMLStructure(t *testing.T) {
	t.Parallel()
	check := func(name string, r analyze.Result, want, without []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, root := htmlOf(t, r)
			ids := map[string]int{}
			for n := range root.Descendants() {
				if id := reporttest.Attribute(n, "id"); id != "" {
					ids[id]++
				}
			}
			for _, id := range append(want, "answer", "curve", "limits", "answers", "four", "charts", "tradeoff", "throughput", "latency", "distribution", "service", "progress", "candidates", "origin") {
				if ids[id] != 1 {
					t.Errorf("id %q is there %d times", id, ids[id])
				}
			}
			for _, id := range without {
				if ids[id] > 0 {
					t.Errorf("id %q is there", id)
				}
			}
			if !strings.Contains(strings.Join(strings.Fields(reporttest.TextOf(root)), " "), strings.Join(strings.Fields(figures.AnswerOf(r).Headline), " ")) {
				t.Errorf("the page does not say %q", figures.AnswerOf(r).Headline)
			}
			if len(text) > 200_000 {
				t.Errorf("the page has %d bytes", len(text))
			}
			webpagetest.CheckSelfContained(t, root)
		})
	}
	check("found", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Top: 3}), []string{"deploy", "why", "config", "breakdown", "knobs", "state", "trust"}, []string{"accuracy"})
	check("variants", reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}), []string{"deploy", "why", "accuracy"}, nil)
	check("infeasible", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), []string{"why"}, []string{"deploy", "config"})
	check("failed", reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{}),
		nil, []string{"deploy", "config", "why"})
}

// Names from model files and YAML are plain text everywhere.
func TestHTMLHostileNames(t *testing.T) {
	t.Parallel()
	const hostile = `</script><script>pwned=1</script><img src=x onerror=pwned=1>'"<!--{{.}}` + "\u2028"
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	r.Header.Model, r.Header.Spec.Path, r.Header.Fingerprint, r.Ending.Reason = hostile, hostile, hostile, hostile
	r.Failures[0].Reason = hostile
	for i := range r.Configs {
		r.Configs[i].Name = hostile + r.Configs[i].Name
		if c := r.Configs[i].Candidate; !c.IsDefault() {
			r.Configs[i].Candidate = c.With(hostile, hostile)
		}
	}
	for i := range r.Explanation.Subjects {
		r.Explanation.Subjects[i].Name = hostile + r.Explanation.Subjects[i].Name
	}
	for i := range r.Course {
		r.Course[i].Name = hostile + r.Course[i].Name
	}
	for _, f := range r.Fronts {
		for i := range f.Points {
			f.Points[i].Name = hostile + f.Points[i].Name
		}
	}
	r.Explanation.Knobs[0].Knob = hostile
	_, root := htmlOf(t, r)
	webpagetest.CheckSelfContained(t, root)
	if images := reporttest.Elements(root, "img"); len(images) > 0 {
		t.Errorf("a name became %d images", len(images))
	}
	data := reporttest.DataOfPage(t, root)
	if data["model"] != hostile {
		t.Errorf("the model's name is %q in the data", data["model"])
	}
	if title := reporttest.Elements(root, "title"); len(title) != 1 || !strings.HasPrefix(reporttest.TextOf(title[0]), hostile) {
		t.Errorf("the title is %q", reporttest.TextOf(title[0]))
	}
}

// The page has commands to copy. A path in them is one word for a shell, also one from a journal of
// somebody else.
func TestHTMLCommandsQuotePaths(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	r.Header.Operators = []addon.File{{Path: "/opt/lib/ops.so"}, {Path: "/opt/it's; touch pwned; '/ops.so"}}
	_, root := htmlOf(t, r)
	var commands []string
	for _, pre := range reporttest.Elements(root, "pre") {
		commands = append(commands, reporttest.TextOf(pre))
	}
	want := `tuner serve --model-repository repository --allow-op-library /opt/lib/ops.so --allow-op-library '/opt/it'\''s; touch pwned; '\''/ops.so'`
	if !slices.ContainsFunc(commands, func(text string) bool { return strings.Contains(text, want) }) {
		t.Errorf("the page lacks %s:\n%q", want, commands)
	}
}

func TestHTMLIsReproducible(t *testing.T) {
	t.Parallel()
	first, _ := htmlOf(t, reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}))
	if again, _ := htmlOf(t, reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{})); !bytes.Equal(first, again) {
		t.Error("the same campaign gives another page")
	}
}

// The data has every configuration with all its loads and its config.pbtxt, and every trial.
func TestHTMLData(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	_, root := htmlOf(t, r)
	var data struct {
		Lines          []string
		Loads          []measure.Load
		Knobs          []struct{ Name string }
		Reasons        []string
		Configurations []struct {
			Name     string
			Rank     int
			Tie      int
			Best     *int
			Settings []int
			Points   [][]json.RawMessage
			Failures [][2]int
			Config   []int
		}
		Latencies []struct {
			Configuration int
			Quantiles     [][2]float64
		}
		Trials [][]float64
	}
	encoded, err := json.Marshal(reporttest.DataOfPage(t, root))
	if err == nil {
		err = json.Unmarshal(encoded, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Configurations) != len(r.Configs) || len(data.Trials) != r.Trials || len(data.Knobs) != 3 {
		t.Fatalf("%d configurations, %d trials, %d knobs", len(data.Configurations), len(data.Trials), len(data.Knobs))
	}
	for i, c := range r.Configs {
		got := data.Configurations[i]
		var lines []string
		for _, n := range got.Config {
			lines = append(lines, data.Lines[n])
		}
		want, err := modelconfig.Format(c.Deployed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), strings.Join(lines, "\n")+"\n"); diff != "" {
			t.Errorf("%s: config.pbtxt (-want +got):\n%s", c.Name, diff)
		}
		if got.Name != c.Name || got.Rank != c.Rank || len(got.Points) != len(c.Points) || (got.Best == nil) != (c.Best == nil) {
			t.Errorf("%s: got %+v", c.Name, got)
		}
	}
	if a, b := data.Configurations[0].Tie, data.Configurations[1].Tie; a != 1 || b != 1 || data.Configurations[2].Tie != 0 {
		t.Errorf("the first two are tied: %d, %d", a, b)
	}
	last := data.Configurations[len(data.Configurations)-1]
	if len(last.Failures) != 1 || !strings.HasPrefix(data.Reasons[last.Failures[0][1]], "start: the engine was not ready") {
		t.Errorf("failures of the last are %v of %q", last.Failures, data.Reasons)
	}
	checkDistribution(t, data.Latencies[0].Quantiles, r.Explanation.Subjects[0].Latencies)
}

// checkDistribution compares with the histogram. 2,459 requests allow quantiles up to 99.95 %.
func checkDistribution(t *testing.T, quantiles [][2]float64, want measure.Histogram) {
	t.Helper()
	ascending := slices.IsSortedFunc(quantiles, func(a, b [2]float64) int { return int(1e6 * (a[0] - b[0] + a[1] - b[1])) })
	last := quantiles[len(quantiles)-1]
	if len(quantiles) < 20 || !ascending || last[0] != 0.9995 {
		t.Errorf("quantiles are %v", quantiles)
	}
	for _, q := range quantiles {
		if exact := want.Quantile(q[0]).Seconds(); q[1] < exact*0.9999 || q[1] > exact*1.0001 {
			t.Errorf("the %v-quantile is %v, want %v", q[0], q[1], exact)
		}
	}
}

// The page's own answer is the result's verdict, in its words and figures. Its Pareto sets are the
// result's.
func TestHTMLAnswer(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 8}}})
	_, root := htmlOf(t, r)
	var data struct {
		Latency measure.Metric
		Two     bool `json:"two_servers"`
		Rows    []struct {
			Places []struct {
				Own    bool
				Answer int
			}
		}
		Answers []struct {
			Figure string
			Roles  []int
		}
		Roles []struct {
			As, Holds string
			Choice    int
		}
		Choices []struct {
			Name, Load string
			Figures    [][3]string
		}
		Pareto []struct {
			Metrics []measure.Metric
			Points  [][2]int
		}
	}
	encoded, err := json.Marshal(reporttest.DataOfPage(t, root))
	if err == nil {
		err = json.Unmarshal(encoded, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	if data.Latency != measure.LatencyP99 || data.Two {
		t.Errorf("latency %q, two servers %v", data.Latency, data.Two)
	}
	owns, want := 0, r.Verdict.Recommended
	for _, row := range data.Rows {
		for _, p := range row.Places {
			if !p.Own {
				continue
			}
			owns++
			answer := data.Answers[p.Answer]
			role := data.Roles[answer.Roles[0]]
			choice := data.Choices[role.Choice]
			if !strings.Contains(figures.AnswerOf(r).Headline, answer.Figure) || role.As != "recommended" || role.Holds != want.HoldsText() || choice.Load != want.Load.String() ||
				choice.Figures[0][1] != measure.Throughput.Format(want.Values[measure.Throughput].Value) {
				t.Errorf("the answer is %+v, of %+v; want %s", answer, choice, want.Text(r.Goal))
			}
		}
	}
	if owns != 1 {
		t.Errorf("%d places are the report's own", owns)
	}
	var fronts []analyze.Front
	for _, f := range data.Pareto {
		front := analyze.Front{Metrics: f.Metrics}
		for _, p := range f.Points {
			c := r.Configs[p[0]]
			front.Points = append(front.Points, analyze.FrontPoint{Name: c.Name, Load: c.Points[p[1]].Load})
		}
		fronts = append(fronts, front)
	}
	if diff := cmp.Diff(r.Fronts, fronts, cmpopts.IgnoreFields(analyze.FrontPoint{}, "Values")); diff != "" {
		t.Errorf("Pareto sets (-want +got):\n%s", diff)
	}
}

// A gain is the multiple of the default's value, as in all reports for people: of a latency that falls it
// is below 1.
func TestHTMLGainOfALatency(t *testing.T) {
	t.Parallel()
	latency := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.LatencyP99, Weight: 1}}}}
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(analyzetest.Candidate(2, 1, 16), 8)
	r := reporttest.Ranked(t, b, analyze.Options{Goal: &latency})
	best := r.Configs[0]
	if best.Candidate.IsDefault() || best.Gain == nil || best.Gain.Value <= 1 {
		t.Fatalf("the best is %s with a gain of %v", best.Name, best.Gain)
	}
	ratio := verdict.Words{Goal: r.Goal}.Ratio(*best.Gain)
	_, root := htmlOf(t, r)
	var data struct {
		Configurations []struct{ Gain []float64 }
		Roles          []struct{ As, Gain string }
	}
	encoded, err := json.Marshal(reporttest.DataOfPage(t, root))
	if err == nil {
		err = json.Unmarshal(encoded, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{ratio.Value, ratio.Lo, ratio.Hi}
	if diff := cmp.Diff(want, data.Configurations[0].Gain, cmpopts.EquateApprox(1e-4, 0)); diff != "" || ratio.Value >= 1 { // the page has five digits
		t.Errorf("the table's gain (-want +got):\n%s", diff)
	}
	if want := verdict.Factor(ratio.Value) + " ×"; !slices.ContainsFunc(data.Roles, func(role struct{ As, Gain string }) bool {
		return role.As != "default" && strings.HasPrefix(role.Gain, want)
	}) {
		t.Errorf("the cards' gains are %v, want %s", data.Roles, want)
	}
}

// Each trial is drawn at the value of its own windows, not at that of its point.
func TestHTMLTrials(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	c := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8).Measure(best, 16).Measure(best, 16)
	windows := c.Campaign().Events[2].Measurement.Windows
	for i := range windows {
		windows[i].Duration *= 2
	}
	r := reporttest.Ranked(t, c, analyze.Options{})
	_, root := htmlOf(t, r)
	list := reporttest.DataOfPage(t, root)["trials"].([]any)
	value := func(i int) float64 { return list[i].([]any)[4].(float64) }
	// The same requests in twice the time are half of the throughput.
	if ratio := value(1) / value(2); math.Abs(ratio-2) > 1e-3 {
		t.Errorf("two trials of a point are at %v and %v, want twice as much", value(1), value(2))
	}
}

// An answer that is not recommended shows its probability.
func TestHTMLEdgeIsSaid(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	e := r.Verdict.Recommended.Values[measure.LatencyP99]
	limit := e.Value * math.Sqrt(e.Hi/e.Value) // about one standard deviation above the p99: 84 %
	goal := r.Goal
	goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
	v := r.Decide(goal.Constraints)
	if v.Edge == nil {
		t.Fatal("nothing is at the edge")
	}
	v.Recommended = nil
	want := " with a probability of " + v.Edge.HoldsText()
	if got := say(goal, v).Claim; !strings.HasSuffix(got, want) {
		t.Errorf("the claim is %q, want it to end with %q", got, want)
	}
	if got := newVerdict(r).Claim; strings.Contains(got, "probability") {
		t.Errorf("what is recommended is said with doubt: %q", got)
	}
}

// Chips give reasons to trust or to doubt the answer.
func TestHTMLTrust(t *testing.T) {
	t.Parallel()
	doubts := func(r analyze.Result) (list []string) {
		for _, c := range trust(r) {
			if c.IsDoubt {
				list = append(list, c.Text)
			}
		}
		return list
	}
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	if got := doubts(r); len(got) > 0 {
		t.Errorf("doubts of a sound campaign: %q", got)
	}
	r.Withheld.Mean, r.Withheld.Most = 0.12, 0.3
	if got := doubts(r); !slices.Equal(got, []string{"others use 12 % of the CPU time, the average while measuring (30 % in the worst window)"}) {
		t.Errorf("doubts beside a neighbour: %q", got)
	}
	r.Withheld.Mean = 0.002 // one window alone: the page says what the answer's lines say, and no more
	if got := doubts(r); len(got) > 0 {
		t.Errorf("doubts after one disturbed window: %q", got)
	}
	if !slices.ContainsFunc(trust(r), func(c Chip) bool {
		return c.Text == "a quiet machine, except for a window in which others used 30 % of the CPU time"
	}) {
		t.Errorf("chips after one disturbed window: %v", trust(r))
	}
	unsure := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 8), analyze.Options{})
	if got := doubts(unsure); !slices.Contains(got, "not measured again") {
		t.Errorf("doubts without finals: %q", got)
	}
	if got := trust(reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()})); got != nil {
		t.Errorf("chips without an answer: %v", got)
	}
}

// A remote server that is not restarted has no fresh processes.
func TestHTMLOfARemoteServer(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, hint string, again ...string) {
		t.Helper()
		if got := newDocument(pageFor(r)).Again; !slices.Equal(got, again) {
			t.Errorf("measured again: %q, want %q", got, again)
		}
		chip := Chip{Text: again[len(again)-1], Link: "#candidates", Hint: hint}
		if !slices.Contains(trust(r), chip) {
			t.Errorf("chips %+v lack %+v", trust(r), chip)
		}
	}
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	check(r, "The answer was measured again on fresh engine processes, in turn with the default.", "measured again on 1 fresh process", "measured again on 2 fresh processes")
	r.Header.Server = &journal.ServerInfo{Mode: "remote"}
	check(r, "The remote server loaded the answer again, and it was measured again. The server itself was not restarted.",
		"measured again with the model reloaded 1 time", "measured again with the model reloaded 2 times")
}

// The documentation has every key of the data.
func TestHTMLFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/report-data-fields.md")
	if err != nil {
		t.Fatal(err)
	}
	_, root := htmlOf(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}))
	for _, key := range slices.Sorted(maps.Keys(reporttest.KeysOf(reporttest.DataOfPage(t, root)))) {
		if !strings.Contains(string(doc), "`"+key) {
			t.Errorf("docs/reference/report-data-fields.md does not mention %q", key)
		}
	}
}

// The page also says how its configurations were compared.
func TestViewsOfThePage(t *testing.T) {
	t.Parallel()
	page := func(w io.Writer, r analyze.Result) error { return Write(w, r, false) }
	at8 := reporttest.Written(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{At: spec.At{Load: measure.Load{Concurrency: 8}}}), page)
	mean := reporttest.Written(t, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Rank: spec.RankTop3Mean}), page)
	const load, rank = ">All are compared at concurrency=8; ", ">Ranked by the mean of the three highest throughputs over the loads within the limits"
	if !strings.Contains(at8, load) || strings.Contains(at8, rank) || !strings.Contains(mean, rank) || strings.Contains(mean, load) {
		t.Error("the page does not say how its configurations were compared, or says what is not so")
	}
}

func objective(terms ...search.Term) search.Goal {
	return search.Goal{Objective: search.Objective{Terms: terms}}
}

// If nothing satisfies the goal, the page names the missed limits only. Failed requests have a
// limit that no goal names.
func TestWhatIsMissed(t *testing.T) {
	t.Parallel()
	refusing := func() analyze.Campaign { // refuses half of the requests
		c := reporttest.Complete(t).Campaign()
		for _, e := range c.Events {
			for i, w := range e.Measurement.Windows {
				e.Measurement.Windows[i].Errors = w.Requests
			}
		}
		return c
	}
	short, much := 0.003, 1e12
	quick, small := search.Constraint{Metric: measure.LatencyP99, Max: &short}, search.Constraint{Metric: measure.Memory, Max: &much}
	check := func(want string, c analyze.Campaign, constraints ...search.Constraint) {
		t.Helper()
		goal := objective(search.Term{Metric: measure.Throughput, Weight: 1})
		goal.Constraints = constraints
		r, err := analyze.Analyze(c, analyze.Options{Goal: &goal})
		if err != nil {
			t.Fatal(err)
		}
		if got := figures.AnswerOf(r).Summary(); !strings.HasPrefix(got, "Nothing satisfies "+want+". ") || !strings.Contains(got, "Nearest: default at ") {
			t.Errorf("want that nothing satisfies %s:\n%s", want, got)
		}
		if got := newVerdict(r).Claim; got != "satisfies "+want {
			t.Errorf("the page says that none %s, want %s", got, want)
		}
	}
	check("error rate ≤ 1 %", refusing())
	check("error rate ≤ 1 %", refusing(), small)
	check("p99 ≤ 3 ms, error rate ≤ 1 %", refusing(), small, quick)
	check("p99 ≤ 3 ms", reporttest.Complete(t).Campaign(), quick, small)
	energy := objective(search.Term{Metric: measure.Energy, Weight: 1})
	unknown := analyze.Config{Best: &analyze.Point{Sample: analyze.Sample{Misses: energy.Unscored(func(measure.Metric) (float64, bool) { return 0, false })}}}
	if got, want := figures.MissedText(analyze.Result{Goal: energy, Configs: []analyze.Config{unknown}}), "energy per inference > 0"; got != want {
		t.Errorf("without a score what is missed is %q, want %q", got, want)
	}
}

// The notes of every report and result.json contain the time that others took.
func TestOthersAreTold(t *testing.T) {
	t.Parallel()
	b := analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4).Beside(0.25)
	r := reporttest.Ranked(t, b, analyze.Options{})
	const want = "Other processes took 25 % of the CPU time on average (up to 25 %); figures are corrected to the average."
	for name, lines := range map[string][]string{"table": figures.Notes(r, figures.Ranking{}), "page": pageNotes(r)} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s: %q", name, lines)
		}
	}
	var text bytes.Buffer
	if err := resultjson.Write(&text, r); err != nil {
		t.Fatal(err)
	}
	var d struct{ Withheld struct{ Mean, Slope float64 } }
	if err := json.Unmarshal(text.Bytes(), &d); err != nil || d.Withheld.Mean != 0.25 || d.Withheld.Slope != -1 {
		t.Errorf("%+v, %v", d, err)
	}
}
