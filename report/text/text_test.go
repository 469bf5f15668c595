package text

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/ort/sessionoption"
	"tuner/report/figures"
	"tuner/report/reporttest"
	"tuner/search"
	"tuner/spec"
)

// A table with all columns and with wide figures fits a terminal.
func TestTableFitsATerminal(t *testing.T) {
	t.Parallel()
	profile := strings.Replace(analyzetest.Profile, "intra_op_threads: [1, 2]",
		"intra_op_threads: [1, 2]\n  max_queue_delay: [0, 100us]\n  graph_optimization: [basic, all]", 1)
	b := analyzetest.New(t, profile).Measure(search.Candidate{}, 8)
	for _, delay := range []search.Value{"0us", "100us", "20000us"} {
		c := analyzetest.Candidate(2, 1, 16).With(search.KnobMaxQueueDelay, delay)
		if delay != "0us" {
			c = c.With(sessionoption.GraphOptimization, "basic").With(search.KnobExecutionProvider, "openvino")
		}
		b.Measure(c, 16)
	}
	r := reporttest.Ranked(t, b, analyze.Options{})
	for i := range r.Configs {
		c := &r.Configs[i]
		c.Setup.Precision = []string{"fp32", "int8_static"}[i%2]
		c.Best.Values[measure.Throughput] = measure.Estimate{Value: 12345.6, Lo: 12222.2, Hi: 12469}
		c.Best.Values[measure.Memory] = measure.Estimate{Value: 12345e6}
	}
	var text bytes.Buffer
	if err := WriteTable(&text, r); err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"Delay", "Provider", "Precision"} {
		if !strings.Contains(text.String(), header) {
			t.Errorf("no column %s:\n%s", header, text.String())
		}
	}
	if !strings.Contains(text.String(), "graph_optimization basic") {
		t.Errorf("a knob without a column is not named:\n%s", text.String())
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
			t.Errorf("line has %d columns: %s", n, line)
		}
	}
}

func TestHostileTextCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, analyze.Result) error{"table": WriteTable, "explanation": WriteExplanation, "answer": WriteAnswer} {
		if text := reporttest.Written(t, reporttest.Hostile(t), write); strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("%s: control characters in %q", name, text)
		}
	}
}

// Colours are the only difference: the best row is green, and figures beyond a limit are red.
func TestColors(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t).Measure(analyzetest.Candidate(1, 1, 8), 64), analyze.Options{})
	plain, colored := reporttest.Written(t, r, WriteTable), reporttest.Written(t, r, WriteColoredTable)
	if strings.Contains(plain, "\x1b") {
		t.Error("the plain table has colours")
	}
	bare := strings.NewReplacer("\x1b[1;32m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(colored)
	if diff := cmp.Diff(plain, bare); diff != "" {
		t.Errorf("colours change the text (-plain +colored):\n%s", diff)
	}
	for line := range strings.Lines(colored) {
		switch {
		case strings.Contains(line, figures.BestMark):
			if !strings.HasPrefix(line, "\x1b[1;32m") {
				t.Errorf("the best is not green: %q", line)
			}
		case strings.Contains(line, "config_6"): // 64 requests on one instance take far more than 50 ms
			if !strings.Contains(line, "!\x1b[0m") || !strings.HasSuffix(line, "\x1b[31mno\x1b[0m\n") {
				t.Errorf("what misses the limit is not red: %q", line)
			}
		}
	}
}

// A mean of fewer than three loads is not labelled as one of three.
func TestMeanOfFewLoads(t *testing.T) {
	t.Parallel()
	best := analyzetest.Candidate(2, 1, 16)
	check := func(b *analyzetest.Builder, want ...string) {
		t.Helper()
		text := strings.Join(strings.Fields(reporttest.Written(t, reporttest.Ranked(t, b, analyze.Options{Rank: spec.RankTop3Mean}), WriteTable)), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
	}
	begin := func() *analyzetest.Builder { return analyzetest.New(t, analyzetest.Profile) }
	check(begin().Measure(search.Candidate{}, 8).Measure(best, 16), "each at its best load.", " mean of 1 ", "loads, so the mean is over 1.")
	check(begin().Measure(search.Candidate{}, 4, 8).Measure(best, 8, 16), "each on average over its two best loads.", " mean of 2 ", "loads, so the mean is over 2.")
	check(begin().Measure(search.Candidate{}, 2, 4, 8).Measure(best, 4, 8, 16), "each on average over its three best loads.", " mean of 3 ", "over the loads within the limits.")
}

// Before the first trial there are no figures and no failures.
func TestNothingWasTried(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile), analyze.Options{})
	text := reporttest.Written(t, r, WriteTable)
	if !strings.Contains(text, "no trial was made") || strings.Contains(text, figures.FailedWord) {
		t.Errorf("of a campaign without a trial:\n%s", text)
	}
	untried := reporttest.Ranked(t, analyzetest.New(t, analyzetest.Profile).Measure(analyzetest.Candidate(2, 1, 16), 16), analyze.Options{})
	if text := reporttest.Written(t, untried, WriteTable); strings.Contains(text, figures.FailedWord) {
		t.Errorf("the default was not tried, and has not failed:\n%s", text)
	}
}

// The answer gives the result, its certainty, its assumptions, and the state of the output files.
func TestAnswer(t *testing.T) {
	t.Parallel()
	check := func(name string, r analyze.Result, want ...string) {
		t.Helper()
		var b bytes.Buffer
		if err := WriteAnswer(&b, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, text)
			}
		}
		if strings.Contains(strings.TrimSpace(b.String()), "\n\n") {
			t.Errorf("%s: more than a paragraph:\n%s", name, &b)
		}
	}
	check("found", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{}), "Recommended: config_4 (2 instances × 1 thread, batch 16) at concurrency 16: ",
		"p99 ≤ 50 ms kept: >99 %", "1.59 × the default's throughput [", "Assumed: requests of input_ids [32] (as given)", "; measured again on 2 fresh processes.")
	check("int8", reporttest.Ranked(t, reporttest.WithVariants(t), analyze.Options{}), "int8 on cpu has cosine 0.9931 on 240 rows of your data (limit ")
	busy := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	busy.Withheld = analyze.Withheld{Others: measure.Others{Mean: 0.12, Most: 0.3}}
	check("busy", busy, "others use 12 % of the CPU time, the average while measuring (30 % in the worst window).")
	check("infeasible", reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), "Unfinished: no measured configuration keeps the limits", "Nearest: default at ")
	check("nothing", reporttest.Ranked(t, reporttest.Complete(t), analyze.Options{Goal: reporttest.Tight()}), "Nothing satisfies p99 ≤ 3 ms. Nearest: default at ")
	check("interrupted", reporttest.Ranked(t, reporttest.Typical(t).End("interrupted by the user", true), analyze.Options{}), "Unfinished: ", "; interrupted;")
	if err := WriteAnswer(reporttest.Failing{}, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})); !errors.Is(err, reporttest.ErrFull) {
		t.Errorf("error is %v, want %v", err, reporttest.ErrFull)
	}
}

// The text gives the reason why two configurations are not compared.
func TestWhatIsNotCompared(t *testing.T) {
	t.Parallel()
	check := func(r analyze.Result, want string) {
		t.Helper()
		if text := strings.Join(strings.Fields(reporttest.Written(t, r, WriteExplanation)), " "); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := reporttest.Written(t, reporttest.OfTwoServers(t, false), WriteExplanation); strings.Contains(text, "the default's throughput") {
		t.Errorf("the default was measured on another server, and is compared:\n%s", text)
	}
	check(reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Rank: spec.RankTop3Mean}), "at concurrency 4 cannot be compared: it was measured at too few loads for a mean.")
}
