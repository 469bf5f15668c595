package results

import (
	"errors"
	"math"
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
// 1.25 at most, and if a configuration may be 3 × as good, 1/(1.25 · 3) at least.
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
		{Model: "m", Machine: "a", Repeat: 1, Part: deliveries[0].Part, Elapsed: time.Minute, Least: 1 / (1.25 * 3), Most: 1.25},
		{Model: "m", Machine: "b", Repeat: 1, Part: deliveries[1].Part, Most: math.Inf(1)},
	}
	if err != nil || len(list) != 2 || math.Abs(list[0].Least-want[0].Least) > 1e-9 {
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
