package analyze_test

import (
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
)

// Each cause of failures is reported once, in order of first occurrence. What was measured does not
// make another cause.
func TestFailureGroups(t *testing.T) {
	t.Parallel()
	a, b := analyzetest.Candidate(1, 1, 4), analyzetest.Candidate(2, 1, 4)
	campaign := analyzetest.New(t, analyzetest.Profile).Fail(a, 1, measure.StageLoad, "no such graph").Fail(b, 2, measure.StageCrash, "no such graph").
		Fail(b, 4, measure.StageLoad, "no such graph").End("nothing serves", false).Campaign()
	r, err := analyze.Analyze(campaign, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	groups := r.FailureGroups()
	if r.IsMeasured() || len(groups) != 2 || groups[0].Count != 2 || groups[0].First.Name != r.Failures[0].Name || groups[1].Count != 1 || groups[1].First.Stage != measure.StageCrash {
		t.Errorf("measured: %t, %+v", r.IsMeasured(), groups)
	}
	campaign = analyzetest.New(t, analyzetest.Profile).Fail(a, 1, measure.StageMemory, "uses 79 MB").Fail(b, 2, measure.StageMemory, "uses 80 MB").
		Fail(b, 4, measure.StageCrash, "exit status 1").Fail(a, 4, measure.StageCrash, "exit status 2").End("nothing serves", false).Campaign()
	if r, err = analyze.Analyze(campaign, analyze.Options{}); err != nil {
		t.Fatal(err)
	}
	if groups = r.FailureGroups(); len(groups) != 3 || groups[0].Count != 2 || groups[0].First.Reason != "uses 79 MB" {
		t.Errorf("causes: %+v", groups)
	}
	campaign = analyzetest.New(t, analyzetest.Profile).Fail(a, 1, measure.StageLoad, "no such graph").Measure(b, 2).End("done", false).Campaign()
	if r, err = analyze.Analyze(campaign, analyze.Options{}); err != nil || !r.IsMeasured() {
		t.Errorf("with figures: %t, %v", r.IsMeasured(), err)
	}
}
