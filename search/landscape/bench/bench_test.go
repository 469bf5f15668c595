package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"tuner/search/landscape"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"more"}, {"-seeds", "0"}, {"-budget", "0s"}, {"-strategies", "oracle"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse([]string{"-strategies", "random,tpe", "-landscapes", "cpu"}, io.Discard)
	if err != nil || len(o.strategies) != 2 || o.landscapes[0] != "cpu" || o.seeds != 50 {
		t.Errorf("%v, %+v", err, o)
	}
}

// What believes something says so; what only measures does not.
func TestClaims(t *testing.T) {
	t.Parallel()
	l, err := landscape.Load("../../../testdata/landscapes/minilm.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	limit := l.Limits()[1]
	for _, name := range strategies() {
		s, err := newStrategy(name, l, limit, l.Settings(limit, 2*time.Minute, 1))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o := l.Run(s, limit, 1, nil); o.Trials == 0 || o.Claim.Stated != (name == "guided") {
			t.Errorf("%s: after %d trials, %+v", name, o.Trials, o.Claim)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	outcome := func(at time.Duration, regret float64) landscape.Outcome {
		return landscape.Outcome{Steps: []landscape.Step{{At: at, Regret: regret}}, Regret: regret, Launches: 7, Trials: 70, Measured: 0.05,
			Elapsed: 9 * time.Minute, False: regret == 1, Value: landscape.Coverage{Stated: true, Covers: regret < 0.03}}
	}
	l := &landscape.Landscape{Name: "sample", Recorded: true}
	limit := landscape.Limit{Name: "tight", P99: 0.020}
	// Four campaigns: two within 1 %, one of them at once; one at 4 %; one beyond the limit.
	s := series{l, limit, "random", []landscape.Outcome{outcome(30*time.Second, 0), outcome(90*time.Second, 0.01), outcome(time.Minute, 0.04), outcome(time.Minute, 1)}}
	var out bytes.Buffer
	if err := report(&out, options{strategies: []string{"random"}, budget: 10 * time.Minute}, []series{s}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sample, p99 ≤ 20.00 ms (tight)", "P(≤1/2/5 %) 600 s", "0.25/0.25/0.50", "0.50/0.50/0.75", "90 s", "never", "25.0 %", "5.0 %", "540 s",
		"50.0 % of 4", "–", "all recorded landscapes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "all synthetic") || strings.Contains(out.String(), "900 s") {
		t.Errorf("says what was not run:\n%s", out.String())
	}
}
