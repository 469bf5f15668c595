package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tuner/measure"
	"tuner/search"
	"tuner/spec"
)

func TestProfilesParse(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{models: "/models", sentences: "/rows.npz"}}
	for _, c := range []campaign{{Name: "exhaustive", Strategy: "grid", Seed: 1}, {Name: "guided-1", Strategy: "guided", Budget: 90 * time.Second, Seed: 7}} {
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
		if limit := p.Goal.Constraints[0]; limit.Metric != measure.LatencyP99 || *limit.Max != 0.030 {
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
	if err != nil || variant != "minilm_config_default" || a.concurrency != 8 || a.throughput != 465.1 || a.p99 != 0.0299 || a.measured != 2 {
		t.Errorf("%q, %+v, %v", variant, a, err)
	}
	if err := os.WriteFile(path, []byte("Model,Batch\nminilm,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.read(path); err == nil {
		t.Error("a table without figures is read")
	}
}

// A ratio of 1.1 in every pair.
func TestRow(t *testing.T) {
	t.Parallel()
	own := []figures{{110, 0.02}, {220, 0.03}, {330, 0.04}}
	other := []figures{{100, 0.01}, {200, 0.01}, {300, 0.01}}
	a := answer{by: "tuner", text: search.Candidate{}.Describe(), concurrency: 8, took: 61 * time.Second, measured: 33, throughput: 215, p99: 0.0299}
	want := "| tuner | default at concurrency 8 | 1m1s, 33 | 215, 29.9 ms | 220, 30.0 ms | **1.10** (1.10–1.10) | ≥ 1 |\n"
	if got := row(a, own, other, "≥ 1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"-what", "nothing"}, {"-pairs", "0"}, {"-budget", "0s"}, {"-tuner", "nowhere"}} {
		if _, err := parse(args, t.Output()); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
