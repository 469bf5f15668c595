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

	"tuner/analyze"
	"tuner/fleet"
	"tuner/fleet/record"
	"tuner/measure"
	"tuner/search"
	"tuner/search/verdict"
)

// A campaign ends early only if all that its type can reach costs more than what another type has
// reached, by more than machines differ.
func TestHopeless(t *testing.T) {
	t.Parallel()
	const first = 2 * time.Minute
	part := &record.Part{}
	standing := func(machine string, least, most float64) Standing {
		return Standing{Model: "m", Machine: machine, Repeat: 1, Part: part, Elapsed: first, Least: least, Most: most}
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
	cheap := standing("a", 0.5, 1)
	check("it can cost 1.2 × as much at least", "b", cheap, standing("b", 1.2, 2))
	check("within what machines differ by", "", cheap, standing("b", 1.09, 2))
	check("it may become cheaper", "", cheap, standing("b", 0.9, 2))
	check("nothing is known of it", "", cheap, standing("b", 0, math.Inf(1)))
	check("nothing is known of the other", "", standing("a", 0, math.Inf(1)), standing("b", 5, 6))
	early := standing("b", 5, 6)
	early.Elapsed--
	check("too early", "", cheap, early)
	done := standing("b", 5, 6)
	done.Part = nil
	check("it has its result", "", cheap, done)
	other := standing("b", 5, 6)
	other.Model = "n"
	check("another model", "", cheap, other)
	check("another machine of the type", "", cheap, standing("a", 5, 6))
	_, why := Hopeless([]Standing{cheap, standing("b", 1.2, 2)}, first)
	if want := "after 2m0s no configuration is likely to cost less than 1.2 of a million inferences, and on a one costs at most 1"; why[0] != want {
		t.Errorf("%q", why)
	}
}

// The standing follows from the bound of the search: a pod of 0.36 an hour at 100 [80, 125] infer/s costs
// 1.25 at most. If a configuration may be 3 × as good, it costs 1/3.068 at least: ln 3.068 = √(ln² 1.25 + ln² 3).
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
		r := answer(100, 80, 125)
		r.Account.Elapsed, r.Verdict = time.Minute, verdict.Verdict{More: 2}
		r.Goal.Objective = search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}
		return r, nil
	})
	want := []Standing{
		{Model: "m", Machine: "a", Repeat: 1, Part: deliveries[0].Part, Elapsed: time.Minute, Least: 1 / 3.0681, Most: 1.25},
		{Model: "m", Machine: "b", Repeat: 1, Part: deliveries[1].Part, Most: math.Inf(1)},
	}
	if err != nil || len(list) != 2 || math.Abs(list[0].Least-want[0].Least) > 1e-5 {
		t.Fatalf("%+v, %v", list, err)
	}
	list[0].Least = want[0].Least
	if d := cmp.Diff(want, list); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(folders[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains: %v", folders[0], err)
	}
}

// At most one in twenty of the best configurations is beyond the bound, whatever the doubts are: the true one that was
// found, or another one that the search expects to be no better, and of which it says the upper end.
func TestBounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	const z, draws = 1.96, 20_000
	for range 40 {
		found, other, common, below := 0.2*random.Float64(), 0.4*random.Float64(), 0.1*random.Float64(), 0.2*random.Float64()
		about := math.Hypot(found, common)
		more := max(0, math.Expm1(1.645*math.Hypot(other, found)-below))
		least, most := Bounds(Interval{1, math.Exp(-z * about), math.Exp(z * about)}, more, func(throughput float64) float64 { return 1 / throughput })
		beyond, short := 0, 0
		for range draws {
			both := common * random.NormFloat64()
			a, b := found*random.NormFloat64()+both, other*random.NormFloat64()+both-below
			if max(a, b) > -math.Log(least) {
				beyond++
			}
			if a < -math.Log(most) {
				short++
			}
		}
		// 0.05 has a deviation of 0.0015 in so many draws
		if share := float64(beyond) / draws; share > 0.055 {
			t.Errorf("doubts of %.3f and %.3f, %.3f in common, others %.3f below: %.3f of the best are beyond the bound", found, other, common, below, share)
		}
		if share := float64(short) / draws; math.Abs(share-0.025) > 0.005 {
			t.Errorf("%.3f of what was found costs more than the bound", share)
		}
	}
	if least, _ := Bounds(Interval{1, 0.9, 1.1}, math.Inf(1), func(throughput float64) float64 { return 1 / throughput }); least != 0 {
		t.Errorf("if anything may be better, at least %g", least)
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
