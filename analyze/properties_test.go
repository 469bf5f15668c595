package analyze_test

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// campaigns is the number of random campaigns for the property tests.
const campaigns = 200

// randomCampaign has the default and some configurations under random loads. The server's trials
// vary by up to 8 %. Some configurations are confirmed. Some were measured for the load curves
// only, inside or outside the space.
func randomCampaign(t *testing.T, seed uint64) analyze.Campaign {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	b := analyzetest.New(t, analyzetest.Profile).Noisy(seed, 0.08*r.Float64())
	loads := func() []int {
		var list []int
		for range 1 + r.IntN(4) {
			list = append(list, 1<<r.IntN(6))
		}
		return slices.Repeat(list, 1+r.IntN(2))
	}
	number := func(n int) search.Value { return search.IntValue(n) }
	b.Measure(search.Candidate{}, loads()...)
	for range 1 + r.IntN(4) {
		c, list := analyzetest.Candidate(1+r.IntN(2), 1+r.IntN(2), 4<<r.IntN(3)), loads()
		b.Measure(c, list...)
		if r.IntN(3) == 0 {
			b.Confirm(c, list[0]).Confirm(search.Candidate{}, 8)
		}
	}
	if r.IntN(2) == 0 {
		b.Curve(search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: number(1)}), loads()...)
	}
	if r.IntN(4) == 0 {
		b.Curve(search.NewCandidate(search.Setting{Knob: search.KnobIntraOpThreads, Value: number(1)},
			search.Setting{Knob: search.KnobInstanceCount, Value: number(4)}), loads()...)
	}
	return b.End("the space is exhausted", false).Campaign()
}

// onEach runs a check on every n-th random campaign, and on every recorded journal.
func onEach(t *testing.T, every int, check func(t *testing.T, name string, c analyze.Campaign)) {
	t.Helper()
	for seed := 0; seed < campaigns; seed += every {
		check(t, "campaign "+string(search.IntValue(seed)), randomCampaign(t, uint64(seed)))
	}
	dir := filepath.Join("..", "testdata", "journals")
	journals, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range journals {
		c, err := analyze.Replay(filepath.Join(dir, j.Name()))
		if err != nil {
			t.Fatal(err)
		}
		check(t, j.Name(), c)
	}
}

func analyzed(t *testing.T, c analyze.Campaign, o analyze.Options) analyze.Result {
	t.Helper()
	r, err := analyze.Analyze(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// within returns a campaign's goal with another limit on p99.
func within(c analyze.Campaign, limit float64) search.Goal {
	goal := c.Profile.Goal
	goal.Constraints = []search.Constraint{{Metric: measure.LatencyP99, Max: &limit}}
	return goal
}

// After a limit is loosened, the objective of the recommended configuration is never lower.
func TestLooserLimitsAreNoWorse(t *testing.T) {
	t.Parallel()
	onEach(t, 8, func(t *testing.T, name string, c analyze.Campaign) {
		last := math.Inf(-1)
		for limit := 0.008; limit < 0.4; limit *= 2.2 {
			goal := within(c, limit)
			checkLooser(t, name, limit, analyzed(t, c, analyze.Options{Goal: &goal}).Verdict, &last)
		}
	})
}

// checkLooser compares the recommended score within a limit with the one within a tighter limit.
func checkLooser(t *testing.T, name string, limit float64, v verdict.Verdict, last *float64) {
	t.Helper()
	switch {
	case v.Recommended == nil && !math.IsInf(*last, -1):
		t.Errorf("%s: within %.4g nothing is recommended, and within less something is", name, limit)
	case v.Recommended != nil && v.Recommended.Score.Mean < *last-1e-9:
		t.Errorf("%s: within %.4g the score is %.4f, and within less %.4f", name, limit, v.Recommended.Score.Mean, *last)
	case v.Recommended != nil:
		*last = v.Recommended.Score.Mean
	}
}

// checkDecide loosens the limits of a result step by step.
func checkDecide(t *testing.T, name string, c analyze.Campaign, r analyze.Result) {
	t.Helper()
	last, lastMemory := math.Inf(-1), math.Inf(-1)
	for limit := 0.004; limit < 1; limit *= 1.5 { // s
		checkLooser(t, name, limit, r.Decide(within(c, limit).Constraints), &last)
	}
	for bytes := 150e6; bytes < 500e6; bytes *= 1.2 {
		constraints := append(slices.Clone(c.Profile.Goal.Constraints), search.Constraint{Metric: measure.Memory, Max: &bytes})
		checkLooser(t, name+", of memory", bytes, r.Decide(constraints), &lastMemory)
	}
}

// A result's best configuration agrees with the verdict:
//
//   - it is the verdict's answer, with the verdict's figures,
//   - it keeps each limit with a probability of at least one half,
//   - it is in each Pareto set that has the objective's metric,
//   - it is never below the first stage,
//   - it is never worse if a limit is looser.
func TestResultFollowsTheVerdict(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, name string, c analyze.Campaign) {
		r := analyzed(t, c, analyze.Options{})
		first, answer := r.Configs[0], r.Verdict.Answer()
		if first.Candidate.Key() != answer.Candidate.Key() || first.Best.Load != answer.Load ||
			first.Choice.Holds != answer.Holds {
			t.Errorf("%s: the first is %v at %v, the answer %v", name, first.Candidate, first.Best.Load, answer.Cell)
		}
		for metric, e := range answer.Values {
			if first.Best.Values[metric] != e {
				t.Errorf("%s: the first has %s %v, the answer %v", name, metric, first.Best.Values[metric], e)
			}
		}
		checkDecide(t, name, c, r)
		winner, ok := r.Winner()
		if ok != r.Verdict.Satisfies() {
			t.Errorf("%s: there is a winner: %t; something satisfies: %t", name, ok, r.Verdict.Satisfies())
		}
		if !ok {
			return
		}
		for _, x := range winner.Best.Chances {
			if x.Probability < 0.5 {
				t.Errorf("%s: the winner keeps %v with %.2f", name, x.Constraint, x.Probability)
			}
		}
		if stage, ok := r.Config(r.FirstStage); ok && stage.Score.Value > winner.Score.Value {
			t.Errorf("%s: the first stage has the score %.4f, the best %.4f", name, stage.Score.Value, winner.Score.Value)
		}
		if r.Verdict.Recommended != nil {
			checkFronts(t, name, r)
		}
		checkEffects(t, name, c, r)
	})
}

// checkEffects compares the effects of knobs and the changes of subjects with the table: they are
// relative to its first row.
func checkEffects(t *testing.T, name string, c analyze.Campaign, r analyze.Result) {
	t.Helper()
	space := c.Profile.Space(c.Facts)
	for _, k := range r.Explanation.Knobs {
		for _, e := range k.Others {
			i := slices.IndexFunc(r.Configs, func(c analyze.Config) bool {
				return c.Best != nil && !c.CurveOnly && space.Value(c.Candidate, k.Knob) == e.Value
			})
			switch {
			case (i >= 0) != (e.Basis == search.BasisMeasured):
				t.Errorf("%s: %s %s is %s, its place in the table %d", name, k.Knob, e.Value, e.Basis, i)
			case i >= 0 && len(e.Misses) == 0 && e.Change != r.Configs[i].Choice.Against:
				t.Errorf("%s: %s %s changes %v, in the table %v", name, k.Knob, e.Value, e.Change, r.Configs[i].Choice.Against)
			}
		}
	}
	for _, s := range r.Explanation.Subjects {
		if c, ok := r.Config(s.Name); !ok || s.Change != nil && *s.Change != c.Choice.Against {
			t.Errorf("%s: the subject %s changes %v, in the table %v", name, s.Name, s.Change, c.Choice.Against)
		}
	}
}

func checkFronts(t *testing.T, name string, r analyze.Result) {
	t.Helper()
	best := r.Configs[0]
	for _, f := range r.Fronts {
		isIn := slices.ContainsFunc(f.Points, func(p analyze.FrontPoint) bool {
			return p.Name == best.Name && p.Load == best.Best.Load
		})
		if slices.Contains(f.Metrics, r.Goal.Objective.Terms[0].Metric) && !isIn {
			t.Errorf("%s: the recommended %s at %v is not in the front %+v", name, best.Name, best.Best.Load, f)
		}
	}
}

// The order of trials in the journal does not matter, since each has its time.
func TestOrderOfTrialsDoesNotMatter(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, name string, c analyze.Campaign) {
		if c.Profile.Search.Strategy != "grid" {
			return // a strategy learns in the order of its own requests
		}
		shuffled := c
		shuffled.Events = slices.Clone(c.Events)
		r := rand.New(rand.NewPCG(3, uint64(len(c.Events))))
		r.Shuffle(len(shuffled.Events), func(i, k int) {
			shuffled.Events[i], shuffled.Events[k] = shuffled.Events[k], shuffled.Events[i]
		})
		keys := func(c analyze.Campaign) []string {
			var list []string
			for _, x := range analyzed(t, c, analyze.Options{}).Configs {
				if x.Rank > 0 {
					list = append(list, x.Candidate.Key())
				}
			}
			return list
		}
		if one, other := keys(c), keys(shuffled); !slices.Equal(one, other) {
			t.Errorf("%s: the order is %v, of shuffled trials %v", name, one, other)
		}
	})
}

// Half of the data gives wider intervals in most cases. The windows of a trial share its error, so
// half of the trials are left out.
func TestFewerWindowsTellLess(t *testing.T) {
	t.Parallel()
	type cell struct {
		key  string
		load measure.Load
	}
	wider, all := 0, 0
	onEach(t, 4, func(t *testing.T, name string, c analyze.Campaign) {
		half, made := c, map[cell]int{}
		half.Events = nil
		for _, e := range c.Events {
			at := cell{e.Trial.Candidate.Key(), e.Trial.Load}
			if made[at]++; made[at]%2 == 1 {
				half.Events = append(half.Events, e)
			}
		}
		deviations := map[cell]float64{}
		for _, x := range analyzed(t, half, analyze.Options{}).Verdict.Choices {
			deviations[cell{x.Candidate.Key(), x.Load}] = x.Score.Deviation
		}
		for _, x := range analyzed(t, c, analyze.Options{}).Verdict.Choices {
			at := cell{x.Candidate.Key(), x.Load}
			if made[at] < 2 {
				continue
			}
			all++
			if deviations[at] > x.Score.Deviation {
				wider++
			}
		}
	})
	if all < 100 || float64(wider) < 0.8*float64(all) {
		t.Errorf("%d of %d intervals are wider with half of the windows", wider, all)
	}
}
