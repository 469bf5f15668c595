package results

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/measure"
	"tuner/search"
	"tuner/search/posterior"
	"tuner/search/verdict"
)

// beliefs are distributions of the throughputs of configurations, one of each engine process: logarithms, and the
// deviation that all have in common.
type beliefs struct {
	own    []posterior.Normal
	shared float64
}

func (b beliefs) Measured() []posterior.Measured {
	var list []posterior.Measured
	for i := range b.own {
		c := search.Candidate{}.With(search.KnobInstanceCount, search.IntValue(i+1))
		list = append(list, posterior.Measured{Cell: posterior.Cell{Candidate: c, Load: measure.Load{Concurrency: 1, BatchSize: 1}}, Trials: 1})
	}
	return list
}

func (b beliefs) Joint(cells []posterior.Cell, m measure.Metric) (posterior.Joint, bool) {
	means, covariances := make([]float64, len(cells)), make([]float64, len(cells)*len(cells))
	for i := range covariances {
		covariances[i] = b.shared * b.shared
	}
	for i, c := range cells {
		own := b.own[b.index(c)]
		means[i] = own.Mean
		covariances[i*len(cells)+i] += own.Deviation * own.Deviation
	}
	return posterior.NewJoint(means, covariances), m == measure.Throughput
}

func (b beliefs) index(c posterior.Cell) int {
	v, _ := c.Candidate.Get(search.KnobInstanceCount)
	n, _ := v.Int() // it was made of a number
	return n - 1
}

func (b beliefs) IsPredicted(posterior.Cell, measure.Metric) bool { return false }

func throughput() search.Goal {
	return search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
}

// verdict decides, beside rivals that keep the constraints with a probability.
func (b beliefs) verdict(holds float64, rivals ...posterior.Normal) verdict.Verdict {
	o := verdict.Options{Goal: throughput()}
	for i, r := range rivals {
		c := search.Candidate{}.With(search.KnobInstanceCount, search.IntValue(100+i))
		o.Rivals = append(o.Rivals, verdict.Rival{Candidate: c, Score: r, Holds: holds})
	}
	return verdict.Decide(b, o)
}

// priced returns the outlook at a price of a second.
func priced(v verdict.Verdict, price float64) Outlook {
	return OutlookOf(v, func(throughput float64) float64 { return price / throughput })
}

// A campaign ends early only if all that its type can reach costs more than what another type has
// reached, by more than machines differ. All is known within 0.1 %.
func TestHopeless(t *testing.T) {
	t.Parallel()
	const first = 2 * time.Minute
	part := &record.Part{}
	standing := func(machine string, cost float64, rivals ...posterior.Normal) Standing {
		v := beliefs{own: []posterior.Normal{{Mean: 0, Deviation: 0.001}}}.verdict(1, rivals...)
		return Standing{Model: "m", Machine: machine, Repeat: 1, Part: part, Elapsed: first, Outlook: priced(v, cost)}
	}
	check := func(name string, want string, list ...Standing) {
		t.Helper()
		ended, why := Hopeless(list, first)
		got := ""
		for _, x := range ended {
			got += x.Machine
		}
		if got != want || len(why) != len(ended) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	unknown := func(machine string) Standing {
		return Standing{Model: "m", Machine: machine, Repeat: 1, Part: part, Elapsed: first}
	}
	cheap := standing("a", 1)
	check("it costs 1.11 × as much", "b", cheap, standing("b", 1.11))
	check("within what machines differ by", "", cheap, standing("b", 1.09))
	check("another configuration may cost a half", "", cheap, standing("b", 1.5, posterior.Normal{Mean: math.Log(2), Deviation: 0.001}))
	check("another configuration may cost 0.8 ×", "b", cheap, standing("b", 1.5, posterior.Normal{Mean: math.Log(1.25), Deviation: 0.001}))
	check("nothing is known of it", "", cheap, unknown("b"))
	check("nothing is known of the other", "", unknown("a"), standing("b", 5))
	early := standing("b", 5)
	early.Elapsed--
	check("too early", "", cheap, early)
	done := standing("b", 5)
	done.Part = nil
	check("it has its result", "", cheap, done)
	other := standing("b", 5)
	other.Model = "n"
	check("another model", "", cheap, other)
	check("another machine of the type", "", cheap, standing("a", 5))
	// 1.5 / 1.25, within 1.645 · 0.001; the cheapest of those that are cheaper is said, within 1.96 · 0.001
	_, why := Hopeless([]Standing{standing("c", 1.05), cheap, standing("b", 1.5, posterior.Normal{Mean: math.Log(1.25), Deviation: 0.001})}, first)
	if want := "after 2m0s no configuration is likely to cost less than 1.198 of a million inferences, and on a one costs 1 [0.998, 1.002]"; len(why) != 1 || why[0] != want {
		t.Errorf("%q", why)
	}
}

// The standing follows from the verdict: a pod of 0.36 an hour at 100 infer/s costs 1 for a million.
func TestStandings(t *testing.T) {
	t.Parallel()
	p := plan(t)
	deliveries := []record.Delivery{
		{Item: record.Item{Job: record.JobName(p.Run, "a")}, Part: &record.Part{Journal: []byte("{a}\n")}},
		{Item: record.Item{Job: record.JobName(p.Run, "b")}, Part: &record.Part{Journal: []byte("{b")}},
	}
	var folders []string
	list, err := Standings(p, deliveries, func(dir string) (analyze.Result, error) {
		folders = append(folders, dir)
		if text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl")); err != nil || string(text) != "{a}\n" {
			return analyze.Result{}, errors.New("too short")
		}
		r := analyze.Result{Goal: throughput(), Verdict: beliefs{own: []posterior.Normal{{Mean: math.Log(100), Deviation: 0.1}}}.verdict(1)}
		r.Account.Elapsed = time.Minute
		return r, nil
	})
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	// ln 1 − 1.645 · 0.1
	if x := list[0]; len(x.Outlook.offers) != 1 || math.Abs(x.Outlook.offers[0].cost.Mean) > 1e-9 || math.Abs(math.Log(x.Outlook.least())+0.1645) > 1e-4 {
		t.Errorf("%+v, at least %g", x.Outlook.offers, x.Outlook.least())
	}
	if x := list[1]; x.Outlook.offers != nil || x.Outlook.undercuts(posterior.Normal{Mean: -10}) != 1 {
		t.Errorf("%+v", x.Outlook)
	}
	want := []Standing{
		{Model: "m", Machine: "a", Repeat: 1, Part: deliveries[0].Part, Elapsed: time.Minute},
		{Model: "m", Machine: "b", Repeat: 1, Part: deliveries[1].Part},
	}
	if d := cmp.Diff(want, list, cmpopts.IgnoreFields(Standing{}, "Outlook")); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(folders[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains: %v", folders[0], err)
	}
}

// Of the types that are ended, at most one in twenty would have been cheaper by less than what machines differ by, whatever
// the doubts are: truths are drawn from what both campaigns believe.
func TestEndedTypesAreNotTheCheapest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	const draws = 4000
	normal := func() posterior.Normal {
		return posterior.Normal{Mean: -0.3 * random.Float64(), Deviation: 0.001 + 0.2*random.Float64()}
	}
	judged, worst := 0, 0.0
	for range 400 {
		this, holds, price := beliefs{shared: 0.1 * random.Float64()}, random.Float64(), 1+random.Float64()
		for range 1 + random.IntN(6) {
			this.own = append(this.own, normal())
		}
		var rivals []posterior.Normal
		for range random.IntN(6) {
			rivals = append(rivals, normal())
		}
		other := beliefs{own: []posterior.Normal{normal()}}
		if _, ok := priced(this.verdict(holds, rivals...), price).isBeatenBy(priced(other.verdict(1), 1)); !ok {
			continue
		}
		judged++
		wrong := 0
		for range draws {
			most := math.Inf(-1)
			shared := this.shared * random.NormFloat64()
			for _, n := range this.own {
				most = max(most, n.Mean+n.Deviation*random.NormFloat64()+shared)
			}
			for _, n := range rivals {
				if value := n.Mean + n.Deviation*random.NormFloat64(); random.Float64() < holds {
					most = max(most, value)
				}
			}
			found := other.own[0].Mean + other.own[0].Deviation*random.NormFloat64()
			if math.Log(price)-most < math.Log(betweenMachines)-found {
				wrong++
			}
		}
		worst = max(worst, float64(wrong)/draws)
	}
	// 0.05 has a deviation of 0.0034 in so many draws
	if judged < 50 || worst > 0.06 {
		t.Errorf("%d types are ended, and one of them is the cheapest in %.3f of the draws", judged, worst)
	}
}

// Another type's configuration counts only if it keeps the constraints, and its doubt about that adds up with the doubt
// about this type. Nothing is known of a type on which no configuration is likely to keep them.
func TestOutlook(t *testing.T) {
	t.Parallel()
	this := priced(beliefs{own: []posterior.Normal{{Deviation: 0.1}}}.verdict(1), 1.1*math.Exp(0.2)) // beaten by 2 deviations: 0.0228
	found := offer{holds: 1}
	for holds, want := range map[float64]bool{1: true, 0.973: true, 0.972: false} {
		found.holds = holds
		if _, ok := this.isBeatenBy(Outlook{offers: []offer{found}}); ok != want {
			t.Errorf("kept with %g: %t", holds, ok)
		}
	}
	v := beliefs{own: []posterior.Normal{{Deviation: 0.1}}}.verdict(1)
	v.Nearest, v.Recommended = v.Recommended, nil
	if o := priced(v, 1); o.offers != nil || o.undercuts(posterior.Normal{Mean: -100}) != 1 {
		t.Errorf("%+v", o)
	}
	// nothing is a hundred times as good, or the least cost is 0
	wide := priced(beliefs{own: []posterior.Normal{{}}}.verdict(1, posterior.Normal{Deviation: 3}), 1)
	if least := wide.least(); least != 0 {
		t.Errorf("at least %g", least)
	}
}

// The second stage has the types that may be the cheapest, and the values of their best configurations.
func TestLeft(t *testing.T) {
	t.Parallel()
	m := ranked(t, map[string]float64{"a": 0.36, "b": 0.36, "c": 0.36, "d": 0.36}, map[string][]analyze.Result{
		"a": {configs(100, 99, 10)}, "b": {configs(95)}, "c": {configs(20)}, "d": {configs(0)}})
	left := Left(Ranking{Models: []ModelAnswer{m}}, 2)
	for machine, want := range map[string]fleet.Space{"a": {"instance_count": {"1", "2"}}, "b": {"instance_count": {"1"}}, "c": nil, "d": nil} {
		space, ok := left(machine, "m")
		if d := cmp.Diff(want, space); d != "" || ok != (want != nil) {
			t.Errorf("%s: %t %s", machine, ok, d)
		}
	}
	if _, ok := left("a", "n"); ok {
		t.Error("another model")
	}
	if !strings.Contains(strings.Join(m.Summary, " "), "c costs 5 ×") {
		t.Errorf("%q", m.Summary)
	}
}
