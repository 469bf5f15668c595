package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/fleet/record"
	"tuner/measure"
	"tuner/search"
)

// configs makes a result with a figure for each number of instances, from 1; 0 means that it misses the
// constraints. The first is the winner.
func configs(throughputs ...float64) analyze.Result {
	var r analyze.Result
	for i, x := range throughputs {
		best := analyze.Point{Sample: analyze.Sample{Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: x, Lo: x * 0.99, Hi: x * 1.01}}}}
		if x == 0 {
			best.Misses = []search.Miss{{}}
		}
		r.Configs = append(r.Configs, analyze.Config{Name: fmt.Sprint("c", i+1), Candidate: search.NewCandidate(search.Setting{Knob: search.KnobInstanceCount, Value: search.IntValue(i + 1)}), Best: &best, Points: []analyze.Point{best}})
	}
	slices.SortStableFunc(r.Configs, func(a, b analyze.Config) int {
		return -int(math.Copysign(1, throughputOf(a).Value-throughputOf(b).Value))
	})
	return r
}

func name(c analyze.Config) string { return c.Name }

// ranked ranks campaigns of one model, given by type and machine.
func ranked(t *testing.T, hourly map[string]float64, of map[string][]analyze.Result) ModelAnswer {
	t.Helper()
	l := List{Run: "r"}
	folders := map[string]analyze.Result{}
	for machine, results := range of {
		for i, r := range results {
			folder := fmt.Sprintf("%s/%d", machine, i+1)
			folders["/"+folder] = r
			l.Campaigns = append(l.Campaigns, Campaign{Model: "m", Machine: machine, Repeat: i + 1, Folder: folder, Result: &record.Result{}, Price: hourly[machine]})
		}
	}
	r, err := Rank("/", l, func(dir string) (analyze.Result, error) { return folders[dir], nil }, name)
	if err != nil {
		t.Fatal(err)
	}
	return r.Models[0]
}

// Three machines of a type and three of another one. The interval is Student's over machines.
func TestTypes(t *testing.T) {
	t.Parallel()
	m := ranked(t, map[string]float64{"a": 0.36, "b": 0.36}, map[string][]analyze.Result{
		"a": {configs(100, 50), configs(110, 50), configs(121, 50)},
		"b": {configs(50), configs(55), configs(60.5)},
	})
	a, b := m.Types[0], m.Types[1]
	// The logs are ln 110 and ± ln 1.1, so s = ln 1.1; t(0.975; 2) = 4.302653. A pod of 0.36 an hour costs
	// 100/x of a million inferences at x infer/s.
	s := math.Log(1.1)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	near("throughput", a.Throughput.Value, 110)
	near("its end", a.Throughput.Hi, 110*math.Exp(4.302653*s/math.Sqrt(3)))
	near("cost", a.Cost.Value, 100.0/110)
	near("another one at most", a.Next.Hi, 100.0/110*math.Exp(4.302653*s*math.Sqrt(4.0/3)))
	near("the worst", a.Worst, 1)
	// Equal variances and sizes: Welch's is Student's with 4 degrees of freedom, t = 2.776445.
	near("b to a", b.ToBest.Value, 2)
	near("b to a, at least", b.ToBest.Lo, 2*math.Exp(-2.776445*s*math.Sqrt(2.0/3)))
	if a.Machine != "a" || a.Machines != 3 || b.Tied || len(m.Rows) != 6 || a.Winners != nil {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, want := range []string{"Cheapest: a, 0.9091 [", "b costs 2 × as much (", "Another machine of type a will cost 0.", "is worse with a probability of 1/4."} {
		if !strings.Contains(strings.Join(m.Summary, "\n"), want) {
			t.Errorf("%q is not in %q", want, m.Summary)
		}
	}
}

// The configuration of a type is the one that is best over its machines, and not the one that happens to
// win on some. One that misses the constraints on a machine does not have a figure there.
func TestTypesDisagree(t *testing.T) {
	t.Parallel()
	m := ranked(t, map[string]float64{"a": 0.36}, map[string][]analyze.Result{"a": {configs(100, 99), configs(80, 100)}})
	if x := m.Types[0]; x.Configuration != "c2" || len(x.Winners) != 2 || x.Machines != 2 {
		t.Errorf("%+v", x)
	}
	m = ranked(t, map[string]float64{"a": 0.36}, map[string][]analyze.Result{"a": {configs(100, 90), configs(0, 90), configs(100, 90)}})
	if x := m.Types[0]; x.Configuration != "c2" || x.Machines != 3 {
		t.Errorf("%+v", x)
	}
	// No configuration keeps them on both: a figure of one machine is about that machine.
	m = ranked(t, map[string]float64{"a": 0.36}, map[string][]analyze.Result{"a": {configs(100, 0), configs(0, 0)}})
	if x := m.Types[0]; x.Machines != 1 || x.Next != nil || x.Throughput.Hi != 101 || !strings.Contains(strings.Join(m.Summary, "\n"), "on 1 of 2 machines") {
		t.Errorf("%+v %q", x, m.Summary)
	}
}

// F13 of the contract: simulated fleets. The interval over machines covers the type's mean, the interval of
// another machine covers one that was not measured, and the cheapest type is right or a tie.
func TestCoverageOverMachines(t *testing.T) {
	t.Parallel()
	const fleets = 200
	r := rand.New(rand.NewPCG(3, 4))
	for _, sd := range []float64{0.03, 0.10} {
		for _, k := range []int{2, 3, 5, 9} {
			mean, next, right := 0, 0, 0
			for range fleets {
				machine := func(center float64) analyze.Result { return configs(center * math.Exp(sd*r.NormFloat64())) }
				of := map[string][]analyze.Result{}
				for range k {
					of["a"] = append(of["a"], machine(100))
					of["b"] = append(of["b"], machine(95))
				}
				m := ranked(t, map[string]float64{"a": 0.36, "b": 0.36}, of)
				i := slices.IndexFunc(m.Types, func(x Type) bool { return x.Machine == "a" })
				if a := m.Types[i]; a.Cost.Lo <= 1 && 1 <= a.Cost.Hi {
					mean++
				}
				if cost := math.Exp(sd * r.NormFloat64()); m.Types[i].Next.Lo <= cost && cost <= m.Types[i].Next.Hi {
					next++
				}
				if m.Types[0].Machine == "a" || m.Types[1].Tied {
					right++
				}
			}
			// 95 % of 200 has a standard deviation of 1.5 %; four of them are allowed.
			if low := fleets * 89 / 100; mean < low || next < low || right < low || mean == fleets || next == fleets {
				t.Errorf("sd %g, %d machines: mean %d, another one %d, cheapest %d of %d", sd, k, mean, next, right, fleets)
			}
		}
	}
}
