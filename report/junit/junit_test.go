package junit

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/search/verdict"
)

// readJUnit reads the file as a foreign tool does.
func readJUnit(t *testing.T, r analyze.Result) suites {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	var suites suites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatalf("%v:\n%s", err, b.String())
	}
	return suites
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	check := func(name string, r analyze.Result, tests, failures int, wants ...string) {
		t.Helper()
		suites := readJUnit(t, r)
		suite := suites.Suites[0]
		if len(suite.Cases) != tests || suite.Tests != tests || suites.Tests != tests || suite.Failures != failures || suites.Failures != failures {
			t.Errorf("%s: %d cases, %d tests, %d failures; want %d and %d", name, len(suite.Cases), suite.Tests, suite.Failures, tests, failures)
		}
		var text strings.Builder
		for _, c := range suite.Cases {
			text.WriteString(c.Class + ": " + c.Name + ": " + c.Out + "\n")
			if c.Failure != nil {
				text.WriteString(c.Failure.Type + ": " + c.Failure.Message + "\n")
			}
			if c.Skipped != nil {
				text.WriteString("skipped: " + c.Skipped.Message + "\n")
			}
		}
		for _, want := range wants {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text.String())
			}
		}
	}
	check("satisfied", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), 2, 0,
		"minilm_config_4: p99 ≤ 50 ms at concurrency 16: ", "p99 is 31.", "kept with probability >99 %", "error rate ≤ 1 % at concurrency 16")
	check("infeasible", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), 2, 1, "constraint: p99 is ", "the limit of 3.00 ms")
	check("recorded", reporttest.OfAnother(t), 2, 1, "p99 ≤ 3 ms at concurrency 1", "constraint: p99 is 5.00 ms, 67 % above the limit of 3.00 ms",
		"skipped: another program measured it, and does not report how many requests failed")
	unknown := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	unknown.Configs[0].Best.Misses = append(unknown.Configs[0].Best.Misses, search.Miss{Constraint: search.Constraint{Metric: measure.Energy}})
	check("without a score", unknown, 3, 1, "energy per inference > 0 at concurrency 16", "constraint: energy")
	failed := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Fail(search.Candidate{}, 4, measure.StageLoad, "invalid graph"), analyze.Options{})
	check("unmeasured", failed, 1, 1, "unmeasured: Nothing was measured")
}

// A constraint that is kept with less than the required probability fails. One with too few
// requests is skipped, and the message says how many are missing.
func TestJUnitJudgesByProbability(t *testing.T) {
	t.Parallel()
	limit := 0.05
	constraint := search.Constraint{Metric: measure.LatencyP99, Max: &limit}
	check := func(name string, l verdict.Limit, failure, skipped string) {
		t.Helper()
		var j testCase
		l.Constraint = constraint
		j.judge(l, 0.95)
		if got := j.Failure; (got == nil) != (failure == "") || got != nil && got.Message != failure {
			t.Errorf("%s: failure %+v, want %q", name, got, failure)
		}
		if got := j.Skipped; (got == nil) != (skipped == "") || got != nil && got.Message != skipped {
			t.Errorf("%s: skipped %+v, want %q", name, got, skipped)
		}
	}
	check("kept", verdict.Limit{Probability: 0.95}, "", "")
	check("a coin flip", verdict.Limit{Probability: 0.63}, "p99 ≤ 50 ms is kept with probability 63 %, but 95 % is required", "")
	check("nearly", verdict.Limit{Probability: 0.9499}, "p99 ≤ 50 ms is kept with probability 94 %, but 95 % is required", "")
	check("too few requests", verdict.Limit{Probability: 0.99, Needs: 240}, "", "p99 ≤ 50 ms is not known: it needs 240 more requests")
	check("too few, but predicted", verdict.Limit{Probability: 0.99, Needs: 240, IsModelled: true}, "", "")
}

// Two limits that are each kept with 96.5 % pass, and are kept together with 93 %, which is less than the required 95 %. A
// configuration that does not start again fails, too, although its figures keep its limit.
func TestJUnitJudgesAllLimitsTogether(t *testing.T) {
	t.Parallel()
	check := func(name string, r analyze.Result, want ...string) {
		t.Helper()
		var got []string
		for _, c := range readJUnit(t, r).Suites[0].Cases {
			text, _, _ := strings.Cut(c.Name, " at concurrency ")
			if c.Failure != nil {
				text += ": " + c.Failure.Type + ": " + c.Failure.Message
			}
			got = append(got, text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	one := func() *analyzetest.Builder {
		return analyzetest.New(t, analyzetest.Profile).Measure(search.Candidate{}, 4)
	}
	point := *reporttest.Ranked(t, one(), analyze.Options{}).Configs[0].Best
	goal := analyzetest.Narrow(t, point, 0.965, measure.LatencyAvg, measure.Throughput)
	first, second := verdict.ConstraintText(goal.Constraints[0]), verdict.ConstraintText(goal.Constraints[1])
	check("two limits", reporttest.Ranked(t, one(), analyze.Options{Goal: goal}), first, second, "all limits together: confidence: all limits together are kept with probability 93 %, but 95 % is required", "error rate ≤ 1 %")
	check("does not start again", reporttest.Ranked(t, one().FailFinal(search.Candidate{}, 4), analyze.Options{}), "p99 ≤ 50 ms", "all limits together: constraint: its fresh processes failed", "error rate ≤ 1 %")
}

func TestHostileTextInJUnit(t *testing.T) {
	t.Parallel()
	if suites := readJUnit(t, reporttest.Hostile(t)); len(suites.Suites[0].Cases) != 2 {
		t.Errorf("%d cases", len(suites.Suites[0].Cases))
	}
}
