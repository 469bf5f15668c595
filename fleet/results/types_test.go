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
		best := point(x)
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

// point has a throughput that is known to 1 %.
func point(x float64) analyze.Point {
	return analyze.Point{Sample: analyze.Sample{Windows: 20, Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: x, Lo: x * 0.99, Hi: x * 1.01}}}}
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

// world is a law by which machines of simulated fleets differ. All are standard deviations of logs.
type world struct {
	machine     float64 // between machines of a type, the same for all configurations
	interaction float64 // between configurations on one machine
	noise       float64 // of one measurement
	random      *rand.Rand
}

// campaign measures the default and two configurations on a new machine of a type whose best has a throughput. The other
// one has 5 % less, and the default half.
func (w world) campaign(best float64) analyze.Result {
	m := w.machine * w.random.NormFloat64()
	list := make([]float64, 3)
	for i, of := range []float64{0.5 * best, best, 0.95 * best} {
		list[i] = of * math.Exp(m+math.Hypot(w.interaction, w.noise)*w.random.NormFloat64())
	}
	r := configs(list[1:]...)
	base := point(list[0])
	r.Configs = append(r.Configs, analyze.Config{Name: "default", Best: &base, Points: []analyze.Point{base}})
	return r
}

// covered counts how often the intervals of simulated fleets are right. The types a and b cost the same an hour, and the
// best on b has 95 % of the throughput of that on a.
type covered struct{ gain, mean, next, cheapest int }

func (w world) fleets(t *testing.T, n, machines int) (c covered) {
	hourly := map[string]float64{"a": 0.36, "b": 0.36}
	has := func(i *Interval, x float64) int {
		if i.Lo <= x && x <= i.Hi {
			return 1
		}
		return 0
	}
	for range n {
		of := map[string][]analyze.Result{}
		for range machines {
			of["a"] = append(of["a"], w.campaign(100))
			of["b"] = append(of["b"], w.campaign(95))
		}
		m := ranked(t, hourly, of)
		a := m.Types[slices.IndexFunc(m.Types, func(x Type) bool { return x.Machine == "a" })]
		best := map[string]float64{"c1": 100, "c2": 95}[a.Configuration] // the truth of the one that was chosen
		c.gain += has(a.Gain, best/50)
		c.mean += has(a.Throughput, best)
		// A pod of 0.36 an hour costs 100/x of a million inferences at x infer/s.
		another := best * math.Exp(math.Sqrt(w.machine*w.machine+w.interaction*w.interaction+w.noise*w.noise)*w.random.NormFloat64())
		c.next += has(a.Next, 100/another)
		if m.Types[0].Machine == "a" || m.Types[1].Tied {
			c.cheapest++
		}
	}
	return c
}

// F13 of docs/design/fleet.md: of 2,000 simulated fleets, the interval of the gain over the default covers the true gain in
// 93 to 97 %, as that of the mean over machines does, and that of another machine covers one that was not measured.
// The cheapest type is right or a tie in 95 % at least.
func TestCoverageOverMachines(t *testing.T) {
	t.Parallel()
	const fleets = 2000
	for i, machine := range []float64{0, 0.03, 0.10} {
		for j, interaction := range []float64{0, 0.03} {
			for _, k := range []int{2, 3, 5, 9} {
				t.Run(fmt.Sprintf("machines %g, interaction %g, %d of each", machine, interaction, k), func(t *testing.T) {
					t.Parallel()
					w := world{machine, interaction, 0.01, rand.New(rand.NewPCG(uint64(10*i+j), uint64(k)))}
					c := w.fleets(t, fleets, k)
					for what, n := range map[string]int{"gain": c.gain, "mean": c.mean, "another machine": c.next} {
						if share := float64(n) / fleets; share < 0.93 || share > 0.97 {
							t.Errorf("the interval of the %s covers it in %.2f %%", what, 100*share)
						}
					}
					if share := float64(c.cheapest) / fleets; share < 0.95 {
						t.Errorf("the cheapest type is right or tied in %.2f %%", 100*share)
					}
				})
			}
		}
	}
}

// The gain is about differences on each machine: a slow and a fast machine with the same factor leave no doubt. One on
// which the default misses the constraints does not count.
func TestGain(t *testing.T) {
	t.Parallel()
	with := func(best, base float64) analyze.Result {
		r := configs(best)
		p := point(base)
		if base == 0 {
			p.Misses = []search.Miss{{}}
		}
		r.Configs = append(r.Configs, analyze.Config{Name: "default", Best: &p, Points: []analyze.Point{p}})
		return r
	}
	check := func(name string, want *Interval, list ...analyze.Result) {
		t.Helper()
		got := ranked(t, nil, map[string][]analyze.Result{"a": list}).Types[0].Gain
		if (got == nil) != (want == nil) || got != nil && (math.Abs(got.Value/want.Value-1) > 1e-6 || math.Abs(got.Lo/want.Lo-1) > 1e-6 || math.Abs(got.Hi/want.Hi-1) > 1e-6) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("the same factor", &Interval{2, 2, 2}, with(100, 50), with(50, 25), with(100, 0))
	// Logs ln 2 and ln 4: mean ln √8, s/√2 = ln 2 / 2, t(0.975; 1) = 12.706205.
	half := math.Exp(12.706205 * math.Ln2 / 2)
	check("other factors", &Interval{math.Sqrt(8), math.Sqrt(8) / half, math.Sqrt(8) * half}, with(100, 50), with(100, 25))
	own := with(100, 50)
	own.Goal.Objective = search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}
	own.Configs[0].Gain = &measure.Estimate{Value: 2, Lo: 1.9, Hi: 2.1}
	check("one machine: its own", &Interval{2, 1.9, 2.1}, own)
	own.Goal.Objective.Terms[0].Metric = measure.LatencyP99
	check("another objective", nil, own)
	check("no default", nil, configs(100), configs(100))
	m := ranked(t, nil, map[string][]analyze.Result{"a": {with(100, 50), with(100, 95)}})
	if !strings.Contains(strings.Join(m.Summary, " "), "a: its configuration cannot be told from the default: 1.451 [") {
		t.Errorf("%q", m.Summary)
	}
}
