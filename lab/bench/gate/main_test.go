package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"tuner/lab/program"
	"tuner/spec"
)

func TestFilesOfKinds(t *testing.T) {
	t.Parallel()
	o, err := program.Parse(define, []string{"-ort-library", "lib.so", "-model", "m.onnx", "-tuner", "main.go"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, k := range kinds() {
		file, err := write(dir, o, k)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g, err := spec.ParseGate(file, text)
		if err != nil || g.Baseline.Model != o.model || g.Candidate.Model != o.model || (g.Candidate.Engine == "") != (k.name == "same") {
			t.Errorf("%s: %+v, %v", k.name, g, err)
		}
		if k.name == "same" {
			continue
		}
		script, err := os.ReadFile(g.Candidate.Engine)
		if err != nil || !strings.Contains(string(script), asSlow+" "+strings.Join(k.slow.args(), " ")+` "$@"`) {
			t.Errorf("%s: the engine is %q, %v", k.name, script, err)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	got := summary(kind{name: "slow"}, []result{{Verdict: "fail", Elapsed: 100, Pairs: 10}, {Verdict: "pass", Elapsed: 300, Pairs: 30}, {Verdict: "fail", Elapsed: 200, Pairs: 20}})
	if want := "slow: 1 pass, 2 fail, 0 inconclusive of 3; median 200 s, 20 pairs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// The summary shows whether p99 finds a slow tail even if throughput fails with it.
	tail := func(throughput, p99 string) result {
		return result{Verdict: "fail", Elapsed: 100, Pairs: 10, Criteria: []criterion{{Metric: "throughput", Verdict: throughput}, {Metric: "latency_p99", Verdict: p99}}}
	}
	got = summary(kind{name: "tail"}, []result{tail("fail", "fail"), tail("inconclusive", "fail"), tail("fail", "inconclusive")})
	if want := "tail: 0 pass, 3 fail, 0 inconclusive of 3; median 100 s, 10 pairs; throughput alone: 0 pass, 2 fail, 1 inconclusive" +
		"; latency_p99 alone: 0 pass, 2 fail, 1 inconclusive"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-what", "fast", "-ort-library", "l"}, {"-runs", "0", "-ort-library", "l"}, {"-ort-library", ""}, {"x"}} {
		if _, err := program.Parse(define, append([]string{"-tuner", "main.go"}, args...), io.Discard); err == nil {
			t.Errorf("%q were accepted", args)
		}
	}
}
