package html

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// campaigns returns the recorded campaigns, and synthetic ones with other goals.
func campaigns(t testing.TB) map[string]analyze.Result {
	list := map[string]analyze.Result{}
	enter := func(name string, c analyze.Campaign) {
		r, err := analyze.Analyze(c, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list[name] = r
	}
	for _, name := range []string{"minilm", "guided"} {
		c, err := analyze.Replay(filepath.Join("..", "..", "testdata", "journals", name))
		if err != nil {
			t.Fatal(err)
		}
		enter(name, c)
	}
	for name, goal := range map[string]string{
		"latency":       "objective: throughput\nconstraints: {latency_p99: {max: 30ms}}\n",
		"two limits":    "objective: throughput\nconstraints: {latency_p95: {max: 25ms}, memory: {max: 300MB}}\n",
		"no limit":      "objective: throughput\n",
		"weights":       "weights: {throughput: 2, latency_p99: 1}\nconstraints: {memory: {max: 300MB}}\n",
		"a least value": "objective: latency_p99\nconstraints: {throughput: {min: 300}}\n",
	} {
		head, _, _ := strings.Cut(analyzetest.Profile, "objective:")
		enter(name, various(t, head+goal))
	}
	return list
}

// various makes a campaign with several configurations under several loads, and finals of some.
func various(t testing.TB, profile string) analyze.Campaign {
	b := analyzetest.New(t, profile).Measure(search.Candidate{}, 2, 4, 8, 16)
	for _, c := range []search.Candidate{
		analyzetest.Candidate(1, 1, 4), analyzetest.Candidate(1, 2, 8), analyzetest.Candidate(2, 1, 4),
		analyzetest.Candidate(2, 1, 16), analyzetest.Candidate(4, 1, 8),
	} {
		b.Measure(c, 4, 8, 16, 32)
	}
	b.Fail(analyzetest.Candidate(8, 2, 64), 8, measure.StageStart, "the engine was not ready after 1m0s")
	for range 2 {
		b.Confirm(analyzetest.Candidate(2, 1, 16), 16).Confirm(search.Candidate{}, 8)
	}
	return b.End("the space is exhausted", false).Campaign()
}

func cellOf(c *verdict.Choice) string {
	if c == nil {
		return "nothing"
	}
	return fmt.Sprint(c.Candidate, " at ", c.Load)
}

func limitText(v *float64) string {
	if v == nil {
		return "no limit"
	}
	return fmt.Sprint(*v)
}

// The page has the decisions of Result.Decide at each of its places. Between places, for limits
// with three digits, the recommended configuration and the one at the edge stay the same.
func TestAnswersAreTheDecisions(t *testing.T) {
	t.Parallel()
	for name, r := range campaigns(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := answersOf(r)
			owns, turning := 0, 0
			for _, row := range a.rows {
				for i, p := range row.places {
					want := r.Decide(a.constraintsAt(r.Goal, p.limit, row.limit))
					if p.isOwn {
						owns++
						want = r.Verdict
					}
					where := fmt.Sprintf("under %s and %s", limitText(p.limit), limitText(row.limit))
					checkSame(t, where, p.verdict, want)
					if i+1 < len(row.places) && p.limit != nil && row.places[i+1].limit != nil {
						checkBetween(t, r, a, row, i)
						turning++
					}
				}
			}
			if owns != 1 || turning == 0 {
				t.Errorf("%d places are the report's own, %d turn", owns, turning)
			}
		})
	}
}

func checkSame(t *testing.T, where string, got, want verdict.Verdict) {
	t.Helper()
	for role, of := range map[string]func(verdict.Verdict) *verdict.Choice{
		"recommended": func(v verdict.Verdict) *verdict.Choice { return v.Recommended },
		"edge":        func(v verdict.Verdict) *verdict.Choice { return v.Edge },
		"nearest":     func(v verdict.Verdict) *verdict.Choice { return v.Nearest },
		"default":     func(v verdict.Verdict) *verdict.Choice { return v.Default },
	} {
		a, b := of(got), of(want)
		if cellOf(a) != cellOf(b) || a != nil && math.Abs(a.Holds-b.Holds) > 1e-9 {
			t.Errorf("%s: %s is %s, want %s", where, role, cellOf(a), cellOf(b))
		}
	}
}

// checkBetween tries limits between a place and the next one.
func checkBetween(t *testing.T, r analyze.Result, a answers, of row, i int) {
	t.Helper()
	here, next := of.places[i], of.places[i+1]
	for step := range 12 {
		limit := rounded(*here.limit*math.Pow(*next.limit / *here.limit, float64(step)/12), !a.axes[0].isLeast)
		isPast := limit >= *next.limit
		if a.axes[0].isLeast {
			isPast = limit <= *next.limit
		}
		if isPast {
			continue
		}
		v := r.Decide(a.constraintsAt(r.Goal, &limit, of.limit))
		if cellOf(v.Recommended) != cellOf(here.verdict.Recommended) || v.Recommended != nil && cellOf(v.Edge) != cellOf(here.verdict.Edge) {
			t.Errorf("under %v and %s: %s and %s, at the place before (%v) %s and %s", limit, limitText(of.limit), cellOf(v.Recommended), cellOf(v.Edge),
				*here.limit, cellOf(here.verdict.Recommended), cellOf(here.verdict.Edge))
		}
	}
}

// The page has a place for each step of the verdict's own curve. A looser limit never gives a worse
// answer.
func TestAnswersFollowTheCurve(t *testing.T) {
	t.Parallel()
	for name, r := range campaigns(t) {
		a := answersOf(r)
		for _, row := range a.rows {
			last := math.Inf(-1)
			for _, p := range row.places {
				best := p.verdict.Recommended
				if best == nil || p.limit == nil { // without a limit, a percentile may have too few requests
					continue
				}
				if best.Score.Mean < last {
					t.Errorf("%s: under %s and %s the score is %v, below %v of a tighter limit", name, limitText(p.limit), limitText(row.limit), best.Score.Mean, last)
				}
				last = best.Score.Mean
			}
			if !row.isOwn || a.axes[0].own == nil { // without a limit, a curve does not check the number of requests
				continue
			}
			for _, curve := range r.Verdict.LimitCurves {
				for _, s := range curve.Steps {
					isPlace := slices.ContainsFunc(row.places, func(p place) bool { return p.limit != nil && *p.limit == rounded(s.Limit, curve.IsLeast) })
					if curve.Metric == a.axes[0].metric && !isPlace {
						t.Errorf("%s: the step at %v is no place", name, s.Limit)
					}
				}
			}
		}
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, up, down float64
	}{{0.0223401, 0.0224, 0.0223}, {299.69e6, 300e6, 299e6}, {0.5, 0.5, 0.5}, {9.999, 10, 9.99}, {1622.9, 1630, 1620}} {
		if up, down := rounded(c.limit, false), rounded(c.limit, true); up != c.up || down != c.down {
			t.Errorf("%v is rounded to %v and %v, want %v and %v", c.limit, up, down, c.up, c.down)
		}
	}
}

// The closest pairs of 1, 1.1, 2, 2.1 and 4 by ratio are 2 and 2.1, then 1 and 1.1.
func TestThinned(t *testing.T) {
	t.Parallel()
	list := []float64{1, 1.1, 2, 2.1, 4}
	if got := thinned(list, 3); !slices.Equal(got, []float64{1.1, 2.1, 4}) || len(thinned(list, 5)) != 5 {
		t.Errorf("thinned to %v", got)
	}
}
