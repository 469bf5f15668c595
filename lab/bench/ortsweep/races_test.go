package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"tuner/lab/program"
	"tuner/measure/stats"
	"tuner/search"
	"tuner/spec"
)

func TestSpaceReads(t *testing.T) {
	t.Parallel()
	s, err := spec.ParseSweep("race.yaml", []byte(sweepText(options{model: "m.onnx", data: "d.npz", budget: time.Minute, sequence: 32}, 3)))
	if err != nil || s.Search.Seed != 3 || s.Search.Budget.Time != time.Minute || len(s.Inputs.Shape) != 3 {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-ort-library", ""}, {"-ort-library", "x", "-rounds", "2"}, {"-ort-library", "x", "more"}} {
		if _, err := program.Parse(define, append([]string{"-tuner", "main.go"}, args...), io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	candidate := func(threads search.Value) search.Candidate {
		return search.Candidate{}.With(search.KnobIntraOpThreads, threads)
	}
	var a, b raceResult
	a.Elapsed, a.Winner.Settings = 10, candidate("1")
	b.Elapsed, b.Winner.Settings = 20, candidate("2")
	every := exhaustive{standings: []standing{{candidate("1"), stats.Estimate{Value: 2}}, {candidate("3"), stats.Estimate{Value: 1.9}}}, elapsed: 100 * time.Second}
	// 1 and 3 of the exhaustive measurement, 2 of race b
	if list := finalists([]raceResult{a, b}, every); len(list) != 3 {
		t.Errorf("finalists are %v", list)
	}
	var out bytes.Buffer
	met := meeting{[]search.Candidate{{}, candidate("1"), candidate("2")}, stats.NewBlocks([][]float64{{10, 11, 12}, {20, 22, 24}, {15, 16.5, 18}})}
	if err := report(&out, []raceResult{a, b}, every, met); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.500 × (1.500 to 1.500)  intra_op_threads=2",
		"race  1: 100.0 % (100.0 to 100.0) of the best, 10.0 % of the exhaustive time", "race  2:  75.0 % (75.0 to 75.0) of the best, 20.0 %",
		"1 of 2 races within 2 % of the best; 1 certainly not"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
