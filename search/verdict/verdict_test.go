package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// beliefs are known distributions. Each metric has a mean and a deviation for every cell, and a
// share of the deviation that all cells have in common.
type beliefs struct {
	cells  []posterior.Measured
	means  map[measure.Metric][]float64
	own    map[measure.Metric][]float64
	shared float64
	places map[string]int // by candidate and load
}

func (b *beliefs) Measured() []posterior.Measured { return b.cells }

func (b *beliefs) IsPredicted(posterior.Cell, measure.Metric) bool { return true }

func (b *beliefs) Joint(cells []posterior.Cell, m measure.Metric) (posterior.Joint, bool) {
	if b.means[m] == nil {
		return posterior.Joint{}, false
	}
	means, covariances := make([]float64, len(cells)), make([]float64, len(cells)*len(cells))
	place := make([]int, len(cells))
	for i, c := range cells {
		place[i] = b.places[c.Candidate.Key()+c.Load.String()]
		means[i] = b.means[m][place[i]]
	}
	for i := range cells {
		for k := range cells {
			covariances[i*len(cells)+k] = b.shared * b.shared
		}
		covariances[i*len(cells)+i] += b.own[m][place[i]] * b.own[m][place[i]]
	}
	return posterior.NewJoint(means, covariances), true
}

// add adds a cell: infer/s, seconds, bytes, and relative deviations of the first two.
func (b *beliefs) add(c search.Candidate, concurrency int, x, p99, memory, dx, dp float64) {
	if b.means == nil {
		b.means, b.own, b.places = map[measure.Metric][]float64{}, map[measure.Metric][]float64{}, map[string]int{}
	}
	cell := posterior.Cell{Candidate: c, Load: measure.Load{Concurrency: concurrency, BatchSize: 1}}
	b.places[c.Key()+cell.Load.String()] = len(b.cells)
	b.cells = append(b.cells, posterior.Measured{Cell: cell, Trials: 1})
	enter := func(m measure.Metric, value, deviation float64) {
		b.means[m] = append(b.means[m], math.Log(value))
		b.own[m] = append(b.own[m], deviation)
	}
	enter(measure.Throughput, x, dx)
	enter(measure.LatencyP99, p99, dp)
	enter(measure.LatencyAvg, p99/2, dp)
	enter(measure.Memory, memory, 0.02)
}

func (b *beliefs) shuffled(random *rand.Rand) *beliefs {
	c := &beliefs{shared: b.shared}
	for _, i := range random.Perm(len(b.cells)) {
		value := func(m measure.Metric) float64 { return math.Exp(b.means[m][i]) }
		c.add(b.cells[i].Candidate, b.cells[i].Load.Concurrency, value(measure.Throughput), value(measure.LatencyP99),
			value(measure.Memory), b.own[measure.Throughput][i], b.own[measure.LatencyP99][i])
	}
	return c
}

func candidate(settings ...string) search.Candidate {
	c := search.Candidate{}
	for i := 0; i < len(settings); i += 2 {
		c = c.With(settings[i], search.Value(settings[i+1]))
	}
	return c
}

func limit(m measure.Metric, most float64) search.Constraint {
	return search.Constraint{Metric: m, Max: &most}
}

func options(constraints ...search.Constraint) verdict.Options {
	return verdict.Options{
		Space: search.Space{Facts: search.Facts{Cores: 2, Batching: true, Base: map[string]search.Value{search.KnobPrecision: "fp32"}}},
		Goal:  search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}, Constraints: constraints},
	}
}

// random makes a campaign of several configurations under several loads. Throughput saturates and
// latency grows with the load, both with errors.
func random(seed uint64) *beliefs {
	r := rand.New(rand.NewPCG(seed, 7))
	b := &beliefs{shared: 0.05 * r.Float64()}
	for i := range 2 + r.IntN(6) {
		c := candidate()
		if i > 0 {
			c = candidate("precision", []string{"fp32", "int8"}[r.IntN(2)], "instance_count", fmt.Sprint(1+r.IntN(3)), "max_batch_size", fmt.Sprint(1<<r.IntN(4)))
		}
		if slices.ContainsFunc(b.cells, func(m posterior.Measured) bool { return m.Candidate.Key() == c.Key() }) {
			continue
		}
		top, service := 100+300*r.Float64(), 0.005+0.02*r.Float64()
		for _, n := range []int{1, 2, 4, 8, 16} {
			if i > 0 && r.Float64() < 0.3 {
				continue
			}
			x := top * (1 - math.Exp(-float64(n)/4)) * math.Exp(0.05*r.NormFloat64())
			b.add(c, n, x, (service+float64(n)/x)*1.3*math.Exp(0.1*r.NormFloat64()), 1e8*(1+r.Float64()), 0.01+0.1*r.Float64(), 0.02+0.2*r.Float64())
		}
	}
	return b
}

// Loosening any limit never makes the recommended answer worse.
func TestLooserLimitsAreNoWorse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		b := random(seed)
		for _, metric := range []measure.Metric{measure.LatencyP99, measure.Memory} {
			last, at := math.Inf(-1), 0.0
			for step := range 20 {
				p99, memory := 0.060, 1.6e8
				if metric == measure.LatencyP99 {
					p99 = 0.010 * math.Pow(1.2, float64(step))
				} else {
					memory = 0.9e8 * math.Pow(1.06, float64(step))
				}
				v := verdict.Decide(b, options(limit(measure.LatencyP99, p99), limit(measure.Memory, memory)))
				if v.Recommended == nil {
					continue
				}
				if v.Recommended.Score.Mean < last {
					t.Fatalf("seed %d: %s step %d (%.4g): %.4f is below %.4f of a tighter limit (%.4g)", seed, metric, step, p99, v.Recommended.Score.Mean, last, at)
				}
				last, at = v.Recommended.Score.Mean, p99
			}
		}
	}
}

// The curve equals the answers of Decide at each limit.
func TestCurveIsTheAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		b := random(seed)
		curve := verdict.Decide(b, options(limit(measure.LatencyP99, 0.050))).LimitCurves[0]
		for step := range 30 {
			p99 := 0.008 * math.Pow(1.14, float64(step))
			v := verdict.Decide(b, options(limit(measure.LatencyP99, p99)))
			want := -1
			for _, s := range curve.Steps {
				if s.Limit <= p99 {
					want = s.Choice
				}
			}
			switch {
			case (want < 0) != (v.Recommended == nil):
				t.Fatalf("seed %d, %.4g s: curve has choice %d, the verdict %v", seed, p99, want, v.Recommended)
			case want >= 0 && v.Choices[want].Score != v.Recommended.Score:
				t.Fatalf("seed %d, %.4g s: curve has %v, the verdict %v", seed, p99, v.Choices[want].Score, v.Recommended.Score)
			}
		}
	}
}

// No choice that may be recommended with the same confidence beats the recommended one in objective
// and latency by more than a tie. The exceptions would give up the default or its precision without
// a shown gain.
func TestRecommendedIsNotDominated(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		v := verdict.Decide(random(seed), options(limit(measure.LatencyP99, 0.060)))
		if v.Recommended == nil {
			continue
		}
		r := v.Recommended
		for _, c := range v.Choices {
			lighter := c.Values[measure.LatencyP99].Value < r.Values[measure.LatencyP99].Value
			isBetter := c.Score.Mean > r.Score.Mean+0.011 && lighter && c.Holds >= 0.95
			precision, _ := r.Candidate.Get("precision")
			isKept := r.Candidate.IsDefault() || precision != "int8"
			if isBetter && !isKept {
				t.Errorf("seed %d: %v at %v (%.3f) is better than the recommended %v at %v (%.3f)", seed, c.Candidate, c.Load, c.Score.Mean, r.Candidate, r.Load, r.Score.Mean)
			}
		}
	}
}

// A running campaign is decided as its report will be. Only the mean latency is missing, unless the
// goal names it.
func TestARunningCampaignIsDecidedAlike(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		for _, o := range []verdict.Options{options(limit(measure.LatencyP99, 0.060)), options(limit(measure.LatencyAvg, 0.030))} {
			report := verdict.Decide(random(seed), o)
			if o.Goal.Constraints[0].Metric != measure.LatencyAvg {
				for _, c := range report.Choices {
					delete(c.Values, measure.LatencyAvg)
				}
			}
			o.IsRunning = true
			if diff := cmp.Diff(report, verdict.Decide(random(seed), o), cmpopts.EquateNaNs(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("seed %d (-report +running):\n%s", seed, diff)
			}
		}
	}
}

// The order of the trials does not change the verdict.
func TestOrderOfTrialsDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		b := random(seed)
		o := options(limit(measure.LatencyP99, 0.050))
		x, y := verdict.Decide(b, o), verdict.Decide(b.shuffled(rand.New(rand.NewPCG(seed, 1))), o)
		if x.State != y.State || x.Answer().Candidate.Key() != y.Answer().Candidate.Key() || x.Answer().Load != y.Answer().Load {
			t.Errorf("seed %d: %s %v, in another order %s %v", seed, x.State, x.Answer().Cell, y.State, y.Answer().Cell)
		}
		for i := range x.Configs {
			if x.Configs[i].Candidate.Key() != y.Configs[i].Candidate.Key() {
				t.Errorf("seed %d: place %d differs", seed, i)
			}
		}
	}
}

// A higher load without a gain is not recommended: 66.0 infer/s at six in flight are no better than
// 65.6 at two.
func TestLoadIsWorthWhatItBrings(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 40, 0.030, 1e8, 0.01, 0.05)
	one := candidate("instance_count", "2")
	b.add(one, 2, 65.6, 0.040, 1e8, 0.01, 0.05)
	b.add(one, 6, 66.0, 0.124, 1e8, 0.01, 0.05)
	v := verdict.Decide(b, options(limit(measure.LatencyP99, 0.200)))
	if v.Recommended == nil || v.Recommended.Load.Concurrency != 2 || v.State != verdict.Proven {
		t.Errorf("%s, recommended %+v, want two in flight", v.State, v.Recommended)
	}
}

// Lower precision is recommended only if its gain is shown.
func TestPrecisionNeedsAGain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, deviation float64
		state        verdict.State
		precision    search.Value
	}{{102, 0.03, verdict.NoGain, ""}, {160, 0.03, verdict.Proven, "int8"}, {160, 0.40, verdict.NoGain, ""}} {
		b := &beliefs{}
		b.add(candidate(), 1, 100, 0.011, 1e8, c.deviation, c.deviation)
		b.add(candidate("precision", "int8"), 1, c.x, 0.011*100/c.x, 0.9e8, c.deviation, c.deviation)
		o := options(limit(measure.LatencyP99, 0.050))
		v := verdict.Decide(b, o)
		got, _ := v.Answer().Candidate.Get("precision")
		if got != c.precision || v.State != c.state && v.State != verdict.Unfinished {
			t.Errorf("%.0f infer/s ± %.0f %%: %s with precision %q, want %s with %q", c.x, 100*c.deviation, v.State, got, c.state, c.precision)
		}
	}
}

// What is deployed has the original precision, unless its gain is shown: over each choice with the
// original precision that no simpler one displaces, it is better in the objective with the required
// probability, or faster in latency with that probability. Where nothing is recommended, only
// choices count that are as likely to keep the limits.
func TestOriginalPrecisionUnlessAGainIsShown(t *testing.T) {
	t.Parallel()
	lossy := 0
	for seed := range uint64(1000) {
		b := random(seed)
		place := func(c verdict.Choice) int { return b.places[c.Candidate.Key()+c.Load.String()] }
		// the probability that a metric of one choice is above another's; errors in common cancel
		above := func(m measure.Metric, one, other verdict.Choice) float64 {
			i, k := place(one), place(other)
			deviation := math.Hypot(b.own[m][i], b.own[m][k])
			return 0.5 * math.Erfc(-(b.means[m][i]-b.means[m][k])/deviation/math.Sqrt2)
		}
		for _, p99 := range []float64{0.015, 0.030, 0.060} {
			v := verdict.Decide(b, options(limit(measure.LatencyP99, p99)))
			answer := v.Answer()
			if precision, _ := answer.Candidate.Get("precision"); precision != "int8" || v.Nearest != nil {
				continue
			}
			lossy++
			for _, c := range v.Choices {
				precision, _ := c.Candidate.Get("precision")
				isAsSafe := c.Holds >= answer.Holds || v.Recommended != nil && c.Holds >= verdict.Likely
				if precision == "int8" || c.IsDisplaced || !isAsSafe {
					continue
				}
				if above(measure.Throughput, *answer, c) < 0.95 && above(measure.LatencyP99, c, *answer) < 0.95 && above(measure.LatencyAvg, c, *answer) < 0.95 {
					t.Errorf("seed %d, p99 ≤ %v: %v at %v is the answer, and not shown to be better than %v at %v", seed, p99, answer.Candidate, answer.Load, c.Candidate, c.Load)
				}
			}
		}
	}
	if lossy < 100 {
		t.Errorf("only %d answers have another precision: the test says little", lossy)
	}
}

// A configuration that was measured for load curves alone leads only if the space has it. Otherwise
// it is last in the list.
func TestCurvesLeadWithinTheSpace(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.020, 1e8, 0.01, 0.05)
	b.add(candidate("intra_op_threads", "2", "max_batch_size", "8"), 1, 150, 0.020, 1e8, 0.01, 0.05)
	b.add(candidate("intra_op_threads", "1"), 1, 200, 0.020, 1e8, 0.01, 0.05)
	b.cells[2].OnlyLoadCurve = true
	for _, c := range []struct {
		batches []search.Value
		answer  string
	}{{[]search.Value{"4", "8"}, "intra_op_threads=1"}, {[]search.Value{"8", "16"}, "intra_op_threads=2 max_batch_size=8"}} {
		o := options(limit(measure.LatencyP99, 0.050))
		o.Space.Knobs = []search.Knob{{Name: "intra_op_threads", Values: []search.Value{"1", "2"}}, {Name: "max_batch_size", Values: c.batches}}
		o.Space.Facts.Base["max_batch_size"] = "4"
		v := verdict.Decide(b, o)
		if got := v.Answer().Candidate.Key(); got != c.answer || v.Recommended == nil {
			t.Errorf("batches of %v: the answer is %s, want %s", c.batches, got, c.answer)
		}
		if last := v.Configs[2]; last.IsOutside != (c.batches[0] == "8") || last.IsOutside && last.Candidate.Key() != "intra_op_threads=1" {
			t.Errorf("batches of %v: the last is %s, outside: %t", c.batches, last.Candidate, last.IsOutside)
		}
	}
}

// A configuration that does not start again is named as nearest at most, even if nothing else was
// measured.
func TestBrokenIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.020, 1e8, 0.01, 0.05)
	b.cells[0].IsBroken = true
	if v := verdict.Decide(b, options(limit(measure.LatencyP99, 0.050))); v.Satisfies() || v.Nearest == nil || v.State != verdict.Nothing {
		t.Errorf("%s, satisfies: %t", v.State, v.Satisfies())
	}
}

// If no choice keeps the limits with the required confidence, the answer is at the edge. With a
// lower confidence the same choice is recommended.
func TestEdge(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.080, 1e8, 0.01, 0.05)
	b.add(candidate("instance_count", "2"), 4, 200, 0.048, 1e8, 0.01, 0.05)
	o := options(limit(measure.LatencyP99, 0.050))
	if v := verdict.Decide(b, o); v.State != verdict.Close || v.Edge == nil || v.Recommended != nil {
		t.Errorf("%s, want %s", v.State, verdict.Close)
	}
	o.Confidence = 0.75
	if v := verdict.Decide(b, o); v.Recommended == nil || v.Recommended.Load.Concurrency != 4 {
		t.Errorf("%s at confidence 0.75, want a recommendation", v.State)
	}
	if v := verdict.Decide(b, options(limit(measure.LatencyP99, 0.020))); v.State != verdict.Nothing || v.Nearest == nil || len(v.Tradeoffs) == 0 {
		t.Errorf("%s under 20 ms, want %s and what would have to give", v.State, verdict.Nothing)
	}
}

// If no measured choice keeps the limits, a campaign is unfinished as long as another may keep
// them. Until then no limit is proposed for loosening.
func TestNothingSatisfiesSoFar(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.080, 1e8, 0.01, 0.05)
	check := func(holds float64, isOpen bool, want verdict.State, words string) {
		t.Helper()
		o := options(limit(measure.LatencyP99, 0.020))
		o.IsOpen = isOpen
		o.Rivals = []verdict.Rival{{Candidate: candidate("instance_count", "2"), Score: posterior.Normal{Mean: math.Log(110), Deviation: 0.2}, Holds: holds}}
		v := verdict.Decide(b, o)
		text := strings.Join(v.Sentences(o.Goal), "\n")
		if v.State != want || v.Nearest == nil || !strings.Contains(text, words) || strings.Contains(text, "would have to give") != (want == verdict.Nothing) {
			t.Errorf("a rival that keeps the limit with %g: %s, want %s and %q:\n%s", holds, v.State, want, words, text)
		}
	}
	check(0.3, false, verdict.Unfinished, "another may, with a probability of 30 %")
	check(0.04, false, verdict.Nothing, "Nothing satisfies the limits")
	check(0.04, true, verdict.Unfinished, "some were never tried")
}

// A campaign is unfinished until its answer was measured on a fresh launch. Figures of other origin
// have no launch.
func TestUnconfirmedIsUnfinished(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 1e-6, 0.05)
	o := options(limit(measure.LatencyP99, 0.050))
	check := func(fresh int, mustConfirm bool, want verdict.State) {
		t.Helper()
		b.cells[0].Fresh, o.MustConfirm = fresh, mustConfirm
		if v := verdict.Decide(b, o); v.State != want {
			t.Errorf("%s, want %s", v.State, want)
		}
	}
	check(0, true, verdict.Unfinished)
	check(1, true, verdict.NoGain)
	check(0, false, verdict.NoGain)
}

// The reason that is said is the one that keeps a campaign unfinished. With 53 % to gain it is the gain, unless the user
// would not wait for 60 %: then it is the missing fresh launch.
func TestReasonOfAnUnfinishedCampaign(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 1e-6, 0.05)
	o := options(limit(measure.LatencyP99, 0.050))
	o.MustConfirm = true
	o.Rivals = []verdict.Rival{{Candidate: candidate("instance_count", "2"), Score: posterior.Normal{Mean: math.Log(110), Deviation: 0.2}, Holds: 1}}
	for until, want := range map[float64]string{
		0:   "a configuration up to 1.53 × better may exist",
		0.6: "the answer was not measured again on a fresh process",
	} {
		o.Until = until
		if got := verdict.Decide(b, o).Headline(verdict.Words{Goal: o.Goal}); !strings.HasPrefix(got, "Unfinished: "+want) {
			t.Errorf("until %g: %q, want %q", until, got, want)
		}
	}
}

// In an open loop of 104 requests/s, nothing answers more than these. An answer of 100 infer/s leaves
// 4 % to others, whatever a rival promises, and also where some were never tried.
func TestMoreIsAtMostTheOfferedRate(t *testing.T) {
	t.Parallel()
	offered := measure.Load{RequestRate: 104, BatchSize: 1}
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 1e-6, 0.05)
	b.places = map[string]int{candidate().Key() + offered.String(): 0}
	b.cells[0].Load = offered
	o := options()
	o.Space.Load = search.LoadAxis{Levels: []float64{104}, Rate: true, BatchSize: 1}
	o.Rivals = []verdict.Rival{{Candidate: candidate("instance_count", "2"), Load: offered, Score: posterior.Normal{Mean: math.Log(110), Deviation: 0.2}, Holds: 1}}
	for _, isOpen := range []bool{false, true} {
		o.IsOpen = isOpen
		if v := verdict.Decide(b, o); math.Abs(v.More-0.04) > 1e-6 || v.State != verdict.NoGain {
			t.Errorf("some never tried: %t: %s, more %.4f, want %s and 0.04", isOpen, v.State, v.More, verdict.NoGain)
		}
	}
}

// The bound of the score is that of the offered rate, where that limits the objective.
func TestHighestScore(t *testing.T) {
	t.Parallel()
	check := func(metric measure.Metric, l measure.Load, want float64) {
		t.Helper()
		goal := search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: metric, Weight: 1}}}}
		if got := verdict.HighestScore(goal, l); got != want && math.Abs(got-want) > 1e-9 {
			t.Errorf("%s at %s: %v, want %v", metric, l, got, want)
		}
	}
	check(measure.Throughput, measure.Load{RequestRate: 50, BatchSize: 4}, math.Log(200))
	check("goodput_50ms", measure.Load{RequestRate: 50}, math.Log(50))
	check(measure.Throughput, measure.Load{Concurrency: 8}, math.Inf(1))
	check(measure.LatencyP99, measure.Load{RequestRate: 50}, math.Inf(1))
}

// More is a quantile of the possible gain: with one rival, of that rival's gain.
func TestMore(t *testing.T) {
	t.Parallel()
	b := &beliefs{}
	b.add(candidate(), 1, 100, 0.010, 1e8, 1e-6, 0.05)
	o := options(limit(measure.LatencyP99, 0.050))
	o.Rivals = []verdict.Rival{{Candidate: candidate("instance_count", "2"), Score: posterior.Normal{Mean: math.Log(110), Deviation: 0.2}, Holds: 1}}
	v := verdict.Decide(b, o)
	// ln 1.1 + 1.645 · 0.2 = 0.4243, and e^0.4243 − 1 = 0.528.
	if math.Abs(v.More-0.528) > 0.002 || v.State != verdict.Unfinished {
		t.Errorf("%s, more %.4f, want %s and 0.528", v.State, v.More, verdict.Unfinished)
	}
	o.Until = 0.6
	if v := verdict.Decide(b, o); v.State == verdict.Unfinished {
		t.Errorf("%s, although nobody waits for %.1f %%", v.State, 100*v.More)
	}
	o.Until = 0
	o.Rivals[0].Score.Deviation = 3 // ln 1.1 + 1.645 · 3 = 5.03, a factor of 153
	if v := verdict.Decide(b, o); !math.IsInf(v.More, 1) {
		t.Errorf("more %.4f than a hundred times, want no bound", v.More)
	}
	o.Rivals = nil
	if v := verdict.Decide(b, o); v.More != 0 {
		t.Errorf("more %.4f without a rival, want 0", v.More)
	}
	o.IsOpen = true
	if v := verdict.Decide(b, o); !math.IsInf(v.More, 1) {
		t.Errorf("more %.4f where nothing is known, want no bound", v.More)
	}
	if v := verdict.Decide(&beliefs{}, o); v.State != verdict.Unmeasured || v.Answer() != nil {
		t.Errorf("%s without a trial, want %s", v.State, verdict.Unmeasured)
	}
}
