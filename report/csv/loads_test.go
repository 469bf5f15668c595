package csv

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/report"
	"tuner/report/reporttest"
	"tuner/search"
)

// Each load has a row, in their order, with the best configuration there or with empty cells.
func TestLoads(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 64), analyze.Options{})
	lines, err := csv.NewReader(strings.NewReader(reporttest.Written(t, r, WriteLoads))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1+len(r.Loads) || len(r.Loads) != 2 {
		t.Fatalf("%d lines for %d loads", len(lines), len(r.Loads))
	}
	for i, l := range r.Loads {
		row := lines[i+1]
		name := ""
		if l.Best != nil {
			name = l.Best.Name
		}
		if row[0] != "minilm" || row[2] != []string{"4", "64"}[i] || row[4] != name || (row[8] == "") != (l.Best == nil) {
			t.Errorf("%q, want the best %q", row, name)
		}
	}
}

// The table is there where it is asked for, and `--format csv` prints it then.
func TestLoadsAreAskedFor(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4, 64), analyze.Options{})
	if first := (Format{}).Files(r, report.Output{})[0].Path; first != "results/metrics-model-inference.csv" {
		t.Errorf("%s comes first", first)
	}
	r.Each = true
	if first := (Format{}).Files(r, report.Output{})[0].Path; first != "results/loads.csv" {
		t.Errorf("%s comes first", first)
	}
}

// Cells are empty where several models differ, and where a recording lacks the figure.
func TestSetupCells(t *testing.T) {
	t.Parallel()
	two, err := analyze.Analyze(analyzetest.OfTwo(t).Campaign(), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	for name, c := range map[string]struct {
		setup analyze.Setup
		want  []string
	}{
		"two models":  {two.Default().Setup, []string{"2", "", ""}}, // one instance each
		"one model":   {one.Default().Setup, []string{"2", "4", "0"}},
		"a recording": {analyze.Setup{}, []string{"", "", ""}},
	} {
		if diff := cmp.Diff(c.want, setupCells(c.setup)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
