package html

import (
	"math"
	"testing"

	"tuner/analyze"
	"tuner/measure"
	"tuner/search/posterior"
	"tuner/search/verdict"
	"tuner/spec"
)

func pageFor(r analyze.Result) Page {
	return Page{Result: r, Titles: make([]string, len(r.Configs))}
}

// Every place in the page's data names the choices of its decision, with their loads and
// probabilities.
func TestPlacesNameTheDecisions(t *testing.T) {
	t.Parallel()
	for name, r := range campaigns(t) {
		a, d := answersOf(r), newDecisions(pageFor(r))
		for i, row := range a.rows {
			for k, p := range row.places {
				answer, named := d.Answers[d.Rows[i].Places[k].Answer], map[string]Role{}
				for _, n := range answer.Roles {
					named[d.Roles[n].As] = d.Roles[n]
				}
				v := p.verdict
				for as, c := range map[string]*verdict.Choice{"recommended": v.Recommended, "edge": v.Edge, "nearest": v.Nearest, "default": v.Default} {
					role, isNamed := named[as]
					if isNamed != (c != nil) || isNamed && (role.Of.Load != c.Load.String() || role.Holds != holdsText(*c)) {
						t.Errorf("%s: row %d, place %d: %s is %+v, want %v", name, i, k, as, role, cellOf(c))
					}
				}
				if got := d.Standings[answer.Standing]; len(got) != len(v.Choices) || v.Recommended != nil && got[indexOf(v, v.Recommended)] != '2' {
					t.Errorf("%s: row %d, place %d: standings are %q", name, i, k, got)
				}
				checkLightest(t, v)
			}
		}
	}
}

func indexOf(v verdict.Verdict, c *verdict.Choice) int {
	for i, o := range v.Choices {
		if cellOf(&o) == cellOf(c) {
			return i
		}
	}
	return -1
}

// checkLightest checks that no choice as sure needs less memory by more than a tie, that none within a tie of the
// least is better, and that each recommended choice has a lightest one beside it.
func checkLightest(t *testing.T, v verdict.Verdict) {
	t.Helper()
	got := lightest(v)
	if got == nil {
		if v.Recommended != nil {
			t.Errorf("no choice is the lightest beside %s", cellOf(v.Recommended))
		}
		return
	}
	least := math.Inf(1)
	for _, c := range v.Choices {
		if isSafe(c, v.Confidence) {
			least = min(least, c.Values[measure.Memory].Value)
		}
	}
	if m := got.Values[measure.Memory].Value; m > least*(1+verdict.Tie) {
		t.Errorf("%s needs %.0f bytes, and %.0f are the least", cellOf(got), m, least)
	}
	for _, c := range v.Choices {
		if isSafe(c, v.Confidence) && c.Values[measure.Memory].Value <= least*(1+verdict.Tie) && c.Score.Mean > got.Score.Mean {
			t.Errorf("%s is better than %s, and needs as little memory", cellOf(&c), cellOf(got))
		}
	}
}

// Memory that differs by a third of a per cent is no reason to give up a third of the throughput.
func TestLightest(t *testing.T) {
	t.Parallel()
	choice := func(memory, score float64) verdict.Choice {
		return verdict.Choice{Holds: 1, Score: posterior.Normal{Mean: score}, Values: map[measure.Metric]measure.Estimate{measure.Memory: {Value: memory}}}
	}
	v := verdict.Verdict{Confidence: 0.95, Choices: []verdict.Choice{choice(267.2e6, 756), choice(201.1e6, 412), choice(201.7e6, 670), choice(205e6, 700)}}
	if got := lightest(v); got == nil || got.Score.Mean != 670 {
		t.Errorf("got %+v, want the best of those that need the least", got)
	}
}

// In the order of means the verdict's answer may not come first, so the page shows none.
func TestOtherOrdersHaveNoAnswer(t *testing.T) {
	t.Parallel()
	r := campaigns(t)["minilm"]
	r.Rank = spec.RankTop3Mean
	if d := newDecisions(pageFor(r)); len(d.Answers) > 0 || len(d.Limits) > 0 || d.cards() != nil {
		t.Errorf("%d answers, %d limits", len(d.Answers), len(d.Limits))
	}
}

// The page has only the report's own answer if no other decision can be made, or if there are too
// many choices.
func TestOwnAnswerAlone(t *testing.T) {
	t.Parallel()
	r := campaigns(t)["minilm"]
	alone := func(r analyze.Result) bool {
		d := newDecisions(pageFor(r))
		return len(d.Answers) == 1 && len(d.Limits) == 0 && d.own() != nil && d.cards()[0].As == "recommended"
	}
	many, without := r, r
	for len(many.Verdict.Choices) <= mostAlone {
		many.Verdict.Choices = append(many.Verdict.Choices, r.Verdict.Choices...)
	}
	without.Decide = nil
	if !alone(many) || !alone(without) {
		t.Error("there is another answer than the report's own")
	}
}
