package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/programtest"
	"tuner/lab/peers"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// The benchmark starts itself as its neighbour, which in tests is this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asNeighbour {
		program.Main("campaign", parted())
		return
	}
	os.Exit(m.Run())
}

func TestProfilesParse(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{models: "/models", sentences: "/rows.npz"}}
	for _, c := range []campaign{{Model: minilm(), Name: "exhaustive", Strategy: "grid", Seed: 1, Limit: usualLimit}, {Model: minilm(), Name: "guided-1", Strategy: "guided", Budget: 90 * time.Second, Seed: 7, Limit: 50 * time.Millisecond}} {
		text, err := b.profile(c, "/out/"+c.Name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := spec.ParseProfile("profile.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, text)
		}
		if p.Search.Strategy != c.Strategy || p.Search.Budget.Time != c.Budget || p.Search.Seed != uint64(c.Seed) || p.Output != "/out/"+c.Name {
			t.Errorf("%s: the profile is %+v", c.Name, p.Search)
		}
		if limit := p.Goal.Constraints[0]; limit.Metric != measure.LatencyP99 || *limit.Max != c.Limit.Seconds() {
			t.Errorf("the limit is %v", limit)
		}
	}
}

func TestAnswerOfModelAnalyzer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.csv")
	text := "Model,Batch,Concurrency,Model Config Path,Instance Group,Max Batch Size,Satisfies Constraints,Throughput (infer/sec),p99 Latency (ms)\n" +
		"minilm,1,8,minilm_config_default,1:CPU,16,Yes,465.1,29.9\nminilm,1,4,minilm_config_3,2:CPU,2,Yes,283.0,20.1\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var a answer
	variant, err := a.read(path)
	if err != nil || variant != "minilm_config_default" || a.concurrency != 8 || a.throughput != 465.1 || a.p99 != 0.0299 || a.measured != 2 || a.beyond {
		t.Errorf("%q, %+v, %v", variant, a, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "Yes", "No")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.read(path); err != nil || !a.beyond {
		t.Errorf("%+v, %v of an answer that satisfies nothing", a, err)
	}
	if err := os.WriteFile(path, []byte("Model,Batch\nminilm,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.read(path); err == nil {
		t.Error("a table without figures is read")
	}
}

// The ratio is 1.1 in every pair.
func TestRow(t *testing.T) {
	t.Parallel()
	own := []figures{{110, 0.02, 0}, {220, 0.03, 0}, {330, 0.04, 0}}
	other := []figures{{100, 0.01, 0}, {200, 0.01, 0}, {300, 0.01, 0}}
	a := answer{by: "tuner", text: search.Candidate{}.Describe(), concurrency: 8, campaign: 61 * time.Second, measured: 33, throughput: 215, p99: 0.0299}
	check := func(a answer, times string) {
		t.Helper()
		want := "| tuner | default at concurrency 8 | " + times + ", 33 | 215, 29.9 ms | 220, 30.0 ms | **1.10** (1.10–1.10) | ≥ 1 |\n"
		if got := row(a, own, other, "≥ 1"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check(a, "campaign 1m1s")
	a.wall = 90 * time.Second
	check(a, "1m30s (campaign 1m1s)")
	a.campaign = 0 // Model Analyzer has no such time
	check(a, "1m30s")
}

// tunerScript is a tuner whose campaigns are a recorded journal. It records its arguments, and a
// variant in the cache. If no answer satisfies the constraints, it exits like tuner.
const tunerScript = `#!/bin/sh
dir="${0%/*}"
echo "$1 $(ls "$TUNER_CACHE" 2>/dev/null)" >> "$dir/calls"
mkdir -p "$TUNER_CACHE"
touch "$TUNER_CACHE/variant"
if [ "$1" = profile ]; then
	mkdir "${3%.profile.yaml}" && cp "$dir/journal.jsonl" "${3%.profile.yaml}" || exit 1
else
	echo '{"answer": {"state": "unfinished"}}' > "$3/result.json"
fi
exit "$(cat "$dir/exit")"
`

// newBench returns a bench with that tuner, and a clock that advances by ten minutes at each
// reading.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "journals", "guided", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tuner": tunerScript, "journal.jsonl": string(text), "exit": "0"} {
		programtest.Write(t, filepath.Join(dir, name), text)
	}
	clock := time.Unix(0, 0)
	now := func() time.Time { clock = clock.Add(10 * time.Minute); return clock }
	return &bench{options: options{tuner: filepath.Join(dir, "tuner"), output: t.TempDir()}, now: now, messages: t.Output()}
}

// recorded returns the duration of the journal's campaign. The programs around it take ten minutes.
func recorded(t *testing.T, b *bench) time.Duration {
	t.Helper()
	_, records, err := journal.Read(filepath.Dir(b.tuner))
	if err != nil {
		t.Fatal(err)
	}
	var end struct{ Elapsed time.Duration }
	if err := json.Unmarshal(records[len(records)-1].Data, &end); err != nil || end.Elapsed < time.Second {
		t.Fatalf("the journal ends with %+v, %v", end, err)
	}
	return end.Elapsed
}

func TestProgramsAreTimedFromNothing(t *testing.T) {
	b := newBench(t)
	for range 2 { // the second run finds the campaign and the variants of the first
		a, err := b.whole(t.Context(), campaign{Model: minilm(), Name: "one", Strategy: "guided", Seed: 1})
		if err != nil || a.wall != 10*time.Minute || a.campaign != recorded(t, b) {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(filepath.Dir(b.tuner), "calls"))
	if want := "profile \nanalyze variant\n"; err != nil || string(calls) != want+want {
		t.Errorf("calls, with what is in the cache: %q, %v; want %q twice", calls, err, want)
	}
}

// One trial need not satisfy the constraints.
func TestPreparation(t *testing.T) {
	b := newBench(t)
	for exit, isRight := range map[string]bool{"0": true, "5": true, "1": false} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(b.tuner), "exit"), []byte(exit), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := b.preparation(t.Context(), campaign{Model: minilm(), Name: "one", Strategy: "guided", Seed: 1})
		if (err == nil) != isRight || isRight && got != 10*time.Minute-recorded(t, b) {
			t.Errorf("exit code %s: %v, %v", exit, got, err)
		}
	}
}

func TestBudgetWithin(t *testing.T) {
	t.Parallel()
	if got, err := budgetWithin(11*time.Minute+100*time.Millisecond, 40*time.Second); err != nil || got != 10*time.Minute+20*time.Second {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := budgetWithin(time.Minute, time.Minute); err == nil {
		t.Error("a budget of nothing")
	}
}

// The recorded campaign gives the same answer for every seed.
func TestEqualAnswersAreOneFinding(t *testing.T) {
	b := newBench(t)
	found, err := b.findings(t.Context(), trust{name: "quiet", campaigns: 2, limit: 50 * time.Millisecond})
	if err != nil || len(found) != 1 || !slices.Equal(found[0].seeds, []string{"1", "2"}) || !slices.Equal(found[0].states, []string{"unfinished", "unfinished"}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// The second answer measures 5 % better than the most promising one, which therefore has 0.95 of
// the best.
func TestTrustTable(t *testing.T) {
	t.Parallel()
	first := []figures{{100, 0.049, 0.15}, {200, 0.051, 0.15}, {300, 0.050, 0.15}}
	second := []figures{{105, 0.051, 0.15}, {210, 0.052, 0.16}, {315, 0.050, 0.14}}
	a := answer{text: "default", concurrency: 8, throughput: 215, p99: 0.0299}
	got := trustTable("Title", 50*time.Millisecond, []finding{
		{answer: a, seeds: []string{"1", "3"}, states: []string{"proven", "unfinished"}, own: first, other: first}, {answer: a, seeds: []string{"2"}, states: []string{"proven"}, own: second, other: first}, {seeds: []string{"4"}, states: []string{"nothing satisfies"}},
	})
	want := `
### Title

| seed | answer | state | infer/s and p99, its own report | in pairs, medians | throughput of the first's | p99 within 50ms | at least 0.97 of the best measured | foreign CPU |
|---|---|---|---|---|---|---|---|---|
| 1, 3 | default at concurrency 8 | proven, unfinished | 215, 29.9 ms | 200, 50.0 ms | **1.00** (1.00–1.00) | yes | **no** (0.95) | 15 % |
| 2 | default at concurrency 8 | proven | 215, 29.9 ms | 210, 51.0 ms | **1.05** (1.05–1.05) | **no** | yes (1.00) | 15 % |
| 4 | none | nothing satisfies | | | | **no** | **no** | |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A rest after a burst takes (1/0.3 − 1) of its time.
func TestDutyTakesItsShare(t *testing.T) {
	t.Parallel()
	d := newDuty(1)
	var bursts time.Duration
	const n = 10_000
	for range n {
		burst, rest := d.next()
		if share := burst.Seconds() / (burst + rest).Seconds(); math.Abs(share-neighbourShare) > 0.001 {
			t.Errorf("a burst of %v before a rest of %v", burst, rest)
		}
		bursts += burst
	}
	// The standard error of a mean of this many exponential times is 1 %.
	if mean := bursts / n; mean < burstTime*97/100 || mean > burstTime*103/100 {
		t.Errorf("a burst takes %v in the mean, want %v", mean, burstTime)
	}
}

func TestNeighbourEndsWithTheWork(t *testing.T) {
	b := newBench(t)
	want := errors.New("cold")
	if _, err := b.besides(1, func() error { return want }); !errors.Is(err, want) || strings.Contains(err.Error(), "neighbour") {
		t.Errorf("%v, want %v alone", err, want)
	}
	if err := neighbour(t.Context(), []string{"seed"}, io.Discard, io.Discard); err == nil {
		t.Error("a seed that is no number")
	}
}

func TestPublishedModels(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{models: "/models"}, peers: &peers.Peers{Triton: "/triton", PerfAnalyzer: "/perf_analyzer"}}
	for _, p := range rivals() {
		text, err := b.profile(campaign{Model: p.subject, Strategy: "grid", Seed: 1, Limit: 9 * time.Millisecond, Runner: "/triton"}, "/out")
		if err != nil {
			t.Fatal(err)
		}
		profile, err := spec.ParseProfile("profile.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", p.Name, err, text)
		}
		if profile.Name != p.Name || *profile.Goal.Constraints[0].Max != 0.009 || profile.Runner.Server != "/triton" || len(profile.Inputs.Shape) != len(p.Shapes) {
			t.Errorf("%s: the profile is %+v", p.Name, profile)
		}
	}
}

// 110 single requests in a second take 9.1 ms each, and four times as long is 36.4 ms.
func TestWholeLimit(t *testing.T) {
	t.Parallel()
	if got := wholeLimit(110); got != 37*time.Millisecond {
		t.Errorf("%v", got)
	}
}

func TestRowOfAContest(t *testing.T) {
	t.Parallel()
	check := func(c contest, want string) {
		t.Helper()
		c.model.made.What, c.engine, c.limit = "a model", "Triton", 9*time.Millisecond
		if got := c.row(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	fast, slow := []figures{{110, 0.008, 0}, {220, 0.008, 0}, {330, 0.008, 0}}, []figures{{100, 0.007, 0}, {200, 0.007, 0}, {300, 0.007, 0}}
	one := func(list []figures) side {
		return side{answer{text: "default", repository: "/r", concurrency: 2, throughput: 150, p99: 0.006}, list}
	}
	const ours = "| a model | Triton | 9ms | default at concurrency 2: 220, 8.0 ms | default at concurrency 2: 200, 7.0 ms | **1.10** (1.10–1.10) | "
	check(contest{guided: one(fast), grid: one(slow)}, ours+"| |\n")
	check(contest{guided: one(fast), grid: one(slow), analyzerFailed: errors.New("it failed:\na | b")}, ours+"none: it failed: a / b | |\n")
	check(contest{guided: one(fast), grid: one(slow), ours: one(slow), analyzers: one(slow)}, ours+"default at concurrency 2: 200, 7.0 ms | **1.00** (1.00–1.00) |\n")
	check(contest{grid: one(nil), analyzers: one(nil)}, "| a model | Triton | 9ms | none | default at concurrency 2: 150, 6.0 ms by its own report |  | "+
		"default at concurrency 2: 150, 6.0 ms by its own report |  |\n")
	beyond := one(slow)
	beyond.beyond = true
	check(contest{guided: one(fast), grid: one(slow), ours: one(slow), analyzers: beyond},
		ours+"default, beyond the limit by its own report, at concurrency 2: 200, 7.0 ms | **1.00** (1.00–1.00) |\n")
	check(contest{failed: errors.New("cold")}, "| a model | Triton | 9ms | failed: cold | | | | |\n")
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"-what", "nothing"}, {"-pairs", "0"}, {"-budget", "-1s"}, {"-tuner", "nowhere"}} {
		all := append([]string{"-tuner", "main.go", "-models", ".", "-sentences", "main.go"}, args...)
		if _, err := program.Parse(define, all, t.Output()); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
