package report_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report"
	"tuner/report/figures"
	"tuner/report/html"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/search"
)

// Where the best configuration divides the cores, every output says with which options the server gives each
// model its cores, and the written configurations name them.
func TestOutputsOfDividedCores(t *testing.T) {
	t.Parallel()
	both := analyzetest.Both(2, 16, 2)
	divided := search.NewCandidate(slices.Concat([]search.Setting{{Knob: search.KnobIsolation, Value: search.DividedCores([]int{1, 1})}}, both.Settings())...)
	c := analyzetest.NewTogether(t, analyzetest.ProfileOfTwo+"isolation: [shared, cores]\n").
		Measure(search.Candidate{}, 1, 1.5).Measure(divided, 1, 2, 3).Finals(divided, 3, 1.5).End("the space is exhausted").Campaign()
	r, err := analyze.Analyze(c, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	best, ok := r.Winner()
	if !ok || best.Candidate.Key() != divided.Key() {
		t.Fatalf("the best is %s", best.Candidate)
	}
	// the encoder is the first model, and both get one of two cores
	const encoder, ranker = "cores_0-0,cpu-cores=0-0", "cores_1-1,cpu-cores=1-1"
	options := "--host-policy=" + encoder + " --host-policy=" + ranker
	for output, got := range map[string]string{
		"terminal": reporttest.Written(t, r, text.WriteTable), "report.md": unescaped(reporttest.Written(t, r, markdownOf)),
		"report.html": pageText(t, r), "config.pbtxt": reporttest.Written(t, r, func(w io.Writer, r analyze.Result) error {
			return report.WriteConfig(w, r.OfEach()[1])
		}),
	} {
		if flat := strings.Join(strings.Fields(strings.ReplaceAll(got, "\n# ", " ")), " "); !strings.Contains(flat, options) {
			t.Errorf("%s lacks %q:\n%s", output, options, got)
		}
	}
	page := reporttest.Written(t, r, func(w io.Writer, r analyze.Result) error { return html.Write(w, r, true) })
	for _, command := range []string{"tuner serve --model-repository repository " + options, `repository&#34; ` + options} {
		if !strings.Contains(page, command) {
			t.Errorf("report.html lacks the command %s", command)
		}
	}
	first := parsedResult(t, r).Configurations[0]
	if diff := cmp.Diff([]string{encoder, ranker}, first.HostPolicies); diff != "" {
		t.Errorf("result.json (-want +got):\n%s", diff)
	}
	for i, policy := range []string{"cores_0-0", "cores_1-1"} {
		if text := first.Models[i].Config; strings.Count(text, `host_policy: "`+policy+`"`) != 1 {
			t.Errorf("%s has not the policy %s:\n%s", first.Models[i].Model, policy, text)
		}
		if s := figures.SharesOf(r, best)[i]; s.Cores != []string{"0", "1"}[i] || !strings.HasSuffix(s.String(), "; cores "+s.Cores) {
			t.Errorf("%s has the cores %q: %s", s.Model, s.Cores, s)
		}
	}
	g := figures.NewRanking(r)
	at := slices.Index(figures.Titles(g.Heads), "Cores")
	if at < 0 || g.Cells[0][at] != "1+1" || g.Cells[len(g.Cells)-1][at] != "shared" {
		t.Errorf("the ranking has the columns %v", g)
	}
	other, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if note := figures.ServeNote(other); note != "" || parsedResult(t, other).Configurations[0].HostPolicies != nil {
		t.Errorf("on shared cores the server needs options: %s", note)
	}
}
