package main

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tuner/lab/landscape"
	"tuner/lab/program"
	"tuner/search/plan"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"more"}, {"-seeds", "0"}, {"-budget", "0s"}, {"-strategies", "oracle"}, {"-neighbour", "1"}, {"-neighbour", "-0.1"}} {
		if _, err := program.Parse(define, args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := program.Parse(define, []string{"-strategies", "random,tpe", "-landscapes", "cpu"}, io.Discard)
	if err != nil || len(o.strategies) != 2 || o.landscapes[0] != "cpu" || o.seeds != 50 {
		t.Errorf("%v, %+v", err, o)
	}
}

// Every campaign claims the statements of its verdict, and guided predicts unmeasured cells.
// Baselines claim nothing.
func TestClaims(t *testing.T) {
	t.Parallel()
	l, err := landscape.Load("../../testdata/landscapes/minilm.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	limit := l.Limits()[1]
	for _, name := range strategies() {
		s, err := newStrategy(name, l, limit, l.Settings(limit, time.Minute, 1))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		o := l.Run(s, limit, 1, nil)
		isCampaign, isModel := slices.Contains(plan.Names(), name), name == "guided"
		if o.Trials == 0 || o.Claims.Value.Stated != isCampaign || o.Claims.Kept.Stated != isCampaign ||
			o.Claims.Throughput.Count > 0 != isModel || o.Claims.P99.Count > 0 != isModel {
			t.Errorf("%s: after %d trials, %+v", name, o.Trials, o.Claims)
		}
	}
}

// outcome returns a campaign with one recommendation from a time on, which is a tenth worse over
// long hours.
func outcome(at time.Duration, regret float64) landscape.Outcome {
	step := landscape.Step{At: at}
	step.Regret[landscape.Now], step.Regret[landscape.Long] = regret, min(regret+0.1, 1)
	o := landscape.Outcome{Steps: []landscape.Step{step}, Regret: step.Regret, Launches: 7, Trials: 70, Measured: 0.05,
		Elapsed: 9 * time.Minute, Value: landscape.Coverage{Stated: true, Covers: regret < 0.03}}
	o.False[landscape.Now] = regret == 1
	return o
}

func TestReport(t *testing.T) {
	t.Parallel()
	l := &landscape.Landscape{Name: "sample", Recorded: true}
	other := &landscape.Landscape{Name: "other", Recorded: true}
	limit := landscape.Limit{Name: "tight", P99: 0.020}
	// Four campaigns: two within 1 %, one of them from the start; one at 4 %; one beyond the limit.
	// The last takes 5 minutes and 20 launches.
	list := []landscape.Outcome{outcome(30*time.Second, 0), outcome(90*time.Second, 0.01), outcome(time.Minute, 0.04), outcome(time.Minute, 1)}
	list[3].Elapsed, list[3].Launches = 5*time.Minute, 20
	all := []series{{l, limit, "random", list}, {other, limit, "random", list[:1]}}
	var out bytes.Buffer
	if err := report(&out, options{strategies: []string{"random"}, budget: 10 * time.Minute, tuned: []string{"sample"}}, all); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"sample, p99 ≤ 20.00 ms (tight)",
		"now: P(≤2/5 %) 60 s 120 s 300 s 600 s false long: P(≤2/5 %) 60 s 120 s 300 s 600 s false",
		// 60 s: one at 0, one at 4 %
		"random 4 0.25/0.50 0.50/0.75 0.50/0.75 0.50/0.75 25.0 % 0.00/0.00 0.00/0.00 0.00/0.00 0.00/0.00 0.0 %",
		"90 s never 7 (10) 70 (70) 5.0 (5.0) 540 (480) –", "50.0 % of 4", "all recorded landscapes",
		"each landscape by itself, all limits", "sample chosen on it random 4", "other not chosen on it random 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "all synthetic") || strings.Contains(text, "900 s") || strings.Contains(text, "probability of keeping") {
		t.Errorf("says what was not run:\n%s", out.String())
	}
}

func TestReportOfClaims(t *testing.T) {
	t.Parallel()
	l := &landscape.Landscape{Name: "sample", Recorded: true}
	var list []landscape.Outcome
	add := func(probability float64, now, long, holds, isOver bool, regret float64) {
		o := outcome(time.Minute, regret)
		o.Claims = landscape.Claims{Value: landscape.Coverage{Stated: true, Covers: true}, Bound: landscape.Coverage{Stated: true, Covers: holds}, IsOver: isOver,
			Kept: landscape.Kept{Stated: true, Probability: probability}, Throughput: landscape.Misfit{Count: 2, Squares: 8}}
		o.Claims.Kept.True[landscape.Now], o.Claims.Kept.True[landscape.Long] = now, long
		list = append(list, o)
	}
	add(0.72, true, false, true, true, 0)
	add(0.78, true, true, false, false, 0.04)
	add(1, true, true, true, false, 0.01)
	add(0.3, false, false, true, true, 1)
	var out bytes.Buffer
	all := []series{{l, landscape.Limit{Name: "tight", P99: 0.020}, "guided", list}}
	if err := report(&out, options{strategies: []string{"guided"}, budget: time.Minute, neighbour: 0.3}, all); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"beside a neighbour that takes 30 % of the cores",
		// bound: all, by budget, wrong; √(8/2) = 2
		"75.0 % of 4 50.0 % of 2 50.0 % of 2 2.00 of 8 –",
		// bins from below 0.5 to 0.9–1.0
		"guided 0.30: 0.00, 0.00 of 1 – – 0.75: 1.00, 0.50 of 2 – 1.00: 1.00, 1.00 of 1",
		"50.0 % of 4 strategy answer's", // ended by budget
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// Of four campaigns one gets better and none gets worse: a difference of 1/4. Its deviation is that of
// 0, 0, 0 and 1, which is 1/2, so the interval is 1/4 ± 3.182 · 1/4.
func TestPairs(t *testing.T) {
	t.Parallel()
	l := &landscape.Landscape{Name: "sample", Recorded: true}
	limit := landscape.Limit{Name: "tight", P99: 0.020}
	before := []landscape.Outcome{outcome(30*time.Second, 0), outcome(30*time.Second, 0.01), outcome(30*time.Second, 0.04), outcome(30*time.Second, 1)}
	after := slices.Clone(before)
	after[2] = outcome(30*time.Second, 0.02)
	path := filepath.Join(t.TempDir(), "before.json")
	if err := save(path, outline([]series{{l, limit, "guided", before}, {l, limit, "random", before}}, time.Minute)); err != nil {
		t.Fatal(err)
	}
	earlier, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	list := outline([]series{{l, limit, "guided", after}}, time.Minute)
	pairs, err := pairsOf(earlier, list)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := differences(&out, time.Minute, []string{"guided", "random"}, pairs); err != nil {
		t.Fatal(err)
	}
	want := "guided sample 4 0.50 → 0.75: +0.250 [-0.546, +1.046] 0.25 → 0.25: +0.000 [+0.000, +0.000]"
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) || strings.Contains(text, "random") {
		t.Errorf("lacks %q:\n%s", want, out.String())
	}
	if _, err := pairsOf(earlier, outline([]series{{l, limit, "guided", after}}, 2*time.Minute)); err == nil {
		t.Error("campaigns of other budgets are compared")
	}
	if _, err := read(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a file that is not there is read")
	}
}
