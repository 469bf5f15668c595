package decide

import (
	"math"
	"math/rand/v2"
	"testing"
)

// tell passes pairs of one criterion to a gate until it ends. It returns the number of pairs that
// the gate took.
func tell(g *Gate, values ...float64) int {
	for i, v := range values {
		if g.Tell(plain(v)) {
			return i + 1
		}
	}
	return len(values)
}

// plain makes values of a pair on a machine without other processes.
func plain(logs ...float64) []Value {
	var values []Value
	for _, log := range logs {
		values = append(values, Value{Logs: []float64{log}})
	}
	return values
}

// wave makes n values that alternate around a mean by an amount.
func wave(mean, by float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = mean + by*float64(1-2*(i%2))
	}
	return values
}

func newPlan(t *testing.T, pairs, criteria int) Plan {
	t.Helper()
	p, err := NewPlan(pairs, criteria)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanFitsThePairs(t *testing.T) {
	t.Parallel()
	for pairs, want := range map[int][2]int{5: {1, 5}, 9: {1, 9}, 10: {1, 10}, 19: {1, 10}, 37: {3, 30}, 60: {6, 60}, 1000: {6, 60}} {
		p := newPlan(t, pairs, 1)
		if p.Looks() != want[0] || p.MostPairs() != want[1] {
			t.Errorf("%d pairs: %d looks up to pair %d, want %v", pairs, p.Looks(), p.MostPairs(), want)
		}
	}
	if _, err := NewPlan(4, 1); err == nil || err.Error() != "cannot decide on 4 pairs: at least 5 are needed" {
		t.Errorf("4 pairs: %v", err)
	}
}

// The levels at each look come from tables. Six looks of Pocock at two-sided 5 % have the critical
// value 2.453, which is 0.71 % on each side. The last look of O'Brien and Fleming has 2.053, which
// is 2.0 % (Jennison and Turnbull, tables 2.1 and 2.3). Student's quantiles are larger.
func TestPlanHasTheTabulatedLevels(t *testing.T) {
	t.Parallel()
	p := newPlan(t, 60, 1)
	for k := range 6 {
		if got := p.holds[k].beyond; math.Abs(got-0.0071) > 0.0001 {
			t.Errorf("look %d passes at level %.4f, want 0.0071", k+1, got)
		}
		if p.holds[k].critical <= 2.453 || k > 0 && p.holds[k].critical >= p.holds[k-1].critical {
			t.Errorf("look %d passes beyond %.3f", k+1, p.holds[k].critical)
		}
	}
	if got := p.fails[5].beyond; math.Abs(got-0.0200) > 0.0003 {
		t.Errorf("the last look fails at level %.4f, want 0.020", got)
	}
	if first := p.fails[0]; first.beyond > 1e-6 || math.IsInf(first.critical, 0) || math.IsNaN(first.critical) {
		t.Errorf("the first look fails at %+v, want what is beyond doubt", first)
	}
	// Each of two criteria may fail the gate, so each has half of the error probability. Both must
	// pass, so each has all of it for passing.
	two := newPlan(t, 60, 2)
	if two.fails[5].beyond >= p.fails[5].beyond || two.holds[5] != p.holds[5] {
		t.Errorf("two criteria fail at %.4f and pass at %.4f", two.fails[5].beyond, two.holds[5].beyond)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	tolerated := -math.Log(0.98)
	for name, c := range map[string]struct {
		values []float64
		want   Verdict
		pairs  int
	}{
		"nothing changed, quiet":     {wave(0, 0.005, 60), Pass, 10},
		"better":                     {wave(-0.1, 0.01, 60), Pass, 10},
		"far worse":                  {wave(0.5, 0.01, 60), Fail, 10},
		"worse":                      {wave(0.05, 0.02, 60), Fail, 20},
		"at what is allowed":         {wave(tolerated, 0.02, 60), Inconclusive, 60},
		"nothing changed, very loud": {wave(0, 0.2, 60), Inconclusive, 60},
		"no noise":                   {wave(0, 0, 60), Pass, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := New(newPlan(t, 60, 1), []Criterion{{Tolerated: tolerated}})
			pairs := tell(g, c.values...)
			if g.Verdict() != c.want || pairs != c.pairs {
				t.Errorf("%s after %d pairs, want %s after %d; %+v", g.Verdict(), pairs, c.want, c.pairs, g.Standings())
			}
			s := g.Standings()[0]
			switch {
			case c.want == Pass && s.Hi > tolerated, c.want == Fail && s.Lo <= tolerated, c.want == Inconclusive && (s.Lo > tolerated || s.Hi <= tolerated):
				t.Errorf("%s, but the interval is %+v", c.want, s)
			}
		})
	}
}

// Where the pairs end between two looks, the later one is made there, at its own level. Fewer than
// five pairs are no look, nor is there one twice.
func TestTheLastLookIsAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan   int // pairs for which there seemed to be time
		values []float64
		want   Verdict
		looks  int
	}{
		"five of six":        {6, wave(0, 0.001, 5), Pass, 1},
		"five of six, worse": {6, wave(0.5, 0.001, 5), Fail, 1},
		"four of six":        {6, wave(0, 0.001, 4), Inconclusive, 0},
		"loud":               {6, wave(0, 0.2, 5), Inconclusive, 1},
		"25 of 30":           {30, wave(0.034, 0.02, 25), Fail, 3},
		"20 of 30":           {30, wave(0.02, 0.02, 20), Inconclusive, 2},
	} {
		g := New(newPlan(t, c.plan, 1), []Criterion{{Tolerated: 0.02}})
		if n := tell(g, c.values...); n != len(c.values) || g.Verdict() != Inconclusive {
			t.Fatalf("%s: %s after %d pairs", name, g.Verdict(), n)
		}
		if isDecided := g.End(); g.Verdict() != c.want || isDecided != (c.want != Inconclusive) || g.Looks() != c.looks || !g.Tell(plain(0)) {
			t.Errorf("%s: %s after %d looks, decided %t; %+v", name, g.Verdict(), g.Looks(), isDecided, g.Standings())
		}
	}
}

// One failed criterion decides. An open one keeps the gate from passing. A passed one stays passed.
func TestSeveralCriteria(t *testing.T) {
	t.Parallel()
	criteria := []Criterion{{Tolerated: 0.02}, {Tolerated: 0.02}}
	quiet, loud, bad := wave(0, 0.005, 60), wave(0, 0.2, 60), wave(0.5, 0.01, 60)
	for name, c := range map[string]struct {
		second []float64
		want   Verdict
		pairs  int
	}{"both pass": {quiet, Pass, 10}, "one fails": {bad, Fail, 10}, "one is open": {loud, Inconclusive, 60}} {
		g := New(newPlan(t, 60, 2), criteria)
		pairs := 0
		for i := range 60 {
			pairs = i + 1
			if g.Tell(plain(quiet[i], c.second[i])) {
				break
			}
		}
		if g.Verdict() != c.want || pairs != c.pairs {
			t.Errorf("%s: %s after %d pairs, want %s after %d", name, g.Verdict(), pairs, c.want, c.pairs)
		}
		if first := g.Standings()[0]; first.Verdict != Pass || first.Pairs != 10 {
			t.Errorf("%s: the first criterion is %+v, want that of the first look", name, first)
		}
	}
}

// More pairs do not reduce the error of a baseline from another day. With a spread of 5 %, a
// difference of 2 % is never significant.
func TestSpreadStays(t *testing.T) {
	t.Parallel()
	plan := newPlan(t, 60, 1)
	g := New(plan, []Criterion{{Tolerated: 0.02, Spread: 0.05}})
	tell(g, wave(0, 0.001, 60)...)
	if g.Verdict() != Inconclusive || g.Standings()[0].Error < 0.05 {
		t.Errorf("%s, %+v", g.Verdict(), g.Standings())
	}
	if n, ok := g.NeededPairs(); ok {
		t.Errorf("%d pairs are said to be enough", n)
	}
	// Six looks of Pocock pass within 2.453 standard errors.
	for spread, want := range map[float64]bool{0: true, 0.0081: true, 0.0082: false, 0.05: false} {
		if got := (Criterion{Tolerated: 0.02, Spread: spread}).CanPass(); got != want {
			t.Errorf("a spread of %g: %t, want %t", spread, got, want)
		}
	}
}

// Between looks there is an interval but no verdict. Before the second pair there is no interval
// either.
func TestStandingsBetweenLooks(t *testing.T) {
	t.Parallel()
	g := New(newPlan(t, 60, 1), []Criterion{{Tolerated: 0.02}})
	tell(g, 0.5)
	if s := g.Standings()[0]; !math.IsInf(s.Lo, -1) || !math.IsInf(s.Hi, 1) || s.Value != 0.5 || s.Verdict != Inconclusive {
		t.Errorf("after one pair: %+v", s)
	}
	tell(g, wave(0.5, 0.001, 6)...)
	if s := g.Standings()[0]; s.Verdict != Inconclusive || s.Pairs != 7 || math.IsInf(s.Hi, 1) || !(s.Lo < s.Value && s.Value < s.Hi) {
		t.Errorf("after seven pairs: %+v", s)
	}
	if g.Looks() != 0 {
		t.Errorf("%d looks, want none", g.Looks())
	}
}

// 60 values that lie 10 % above and below 0 have the standard error 0.1·√(60/59)/(0.8·√60) =
// 0.01627. The tolerance is 0.02 away, and the last look passes beyond 2.453 errors. That takes
// 60·(2.453·0.01627/0.02)² = 239 pairs. The next look is after 240.
func TestNeededPairs(t *testing.T) {
	t.Parallel()
	g := New(newPlan(t, 60, 1), []Criterion{{Tolerated: 0.02}})
	tell(g, wave(0, 0.1, 60)...)
	if n, ok := g.NeededPairs(); !ok || n != 240 {
		t.Errorf("%d, %t, want 240; %+v", n, ok, g.Standings())
	}
	// The past look cannot decide again. With half a per cent more it would have passed.
	g = New(newPlan(t, 60, 1), []Criterion{{Tolerated: 0.0407}})
	tell(g, wave(0, 0.1, 59)...)
	if n, ok := g.NeededPairs(); !ok || n != 60 {
		t.Errorf("before the last look %d, %t, want 60", n, ok)
	}
	if g.Tell(plain(-0.1)); g.Verdict() != Inconclusive {
		t.Fatalf("%s, %+v", g.Verdict(), g.Standings())
	}
	if n, ok := g.NeededPairs(); !ok || n != 70 {
		t.Errorf("after the last look %d, %t, want 70", n, ok)
	}
	if n, ok := New(newPlan(t, 60, 1), []Criterion{{}}).NeededPairs(); ok {
		t.Errorf("without a pair %d are needed", n)
	}
}

// If others took nothing, the values stay equal to the last digit. The gates are random, with and
// without a slope.
func TestNothingIsTakenOutWithoutOthers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		plan := newPlan(t, 60, 1)
		with, without := New(plan, []Criterion{{Tolerated: 0.02, Slope: 1}}), New(plan, []Criterion{{Tolerated: 0.02}})
		for ended := false; !ended; {
			logs := make([]float64, 1+random.IntN(12))
			for i := range logs {
				logs[i] = 0.05 * random.NormFloat64()
			}
			ended = with.Tell([]Value{{logs, make([]float64, len(logs))}})
			if again := without.Tell([]Value{{Logs: logs}}); again != ended {
				t.Fatalf("ended %t and %t", ended, again)
			}
		}
		if a, b := with.Standings()[0], without.Standings()[0]; a != b {
			t.Fatalf("%+v, without the correction %+v", a, b)
		}
	}
}

// Computed by hand: each pair has a single value. 0.1 of it comes from the neighbour for each 0.1
// of withheld time. The correction leaves 0.01 of each.
func TestSingleValuesAreCorrectedAcrossPairs(t *testing.T) {
	t.Parallel()
	var pairs []Value
	for i := range 10 {
		x := 0.05 * float64(i)
		pairs = append(pairs, Value{Logs: []float64{0.01 + x}, Withheld: []float64{x}})
	}
	s := Criterion{Slope: 1}.settle(pairs)
	for _, v := range s.values {
		if math.Abs(v-0.01) > 1e-9 || s.doubt > 1e-9 || math.Abs(s.slope-1) > 1e-9 {
			t.Errorf("%g ± %g at a slope of %g, want 0.01", v, s.doubt, s.slope)
		}
	}
	// Without a baseline, values are corrected to the mean of the withheld time, 0.225.
	if values := (Criterion{Slope: 1, IsAlone: true}).settle(pairs).values; math.Abs(values[3]-0.235) > 1e-9 {
		t.Errorf("alone %g, want 0.235", values[3])
	}
	if values := (Criterion{}).settle(pairs).values; values[2] != pairs[2].Logs[0] {
		t.Errorf("without a slope %g", values[2])
	}
}
