package main

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/lab/peers"
	"tuner/lab/program"
	"tuner/measure"
	"tuner/measure/stats"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/search/plan"
	"tuner/spec"
)

func TestProfile(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{server: onTriton, output: "/out"}, peers: &peers.Peers{Triton: "/peers/tritonserver"}}
	p, err := spec.ParseProfile("/out/p.yaml", []byte(b.profile(short, "/lib/ops.so", plan.Stagewise, "{trials: 16}")))
	if err != nil {
		t.Fatal(err)
	}
	if p.Search.Budget.Trials != 16 || p.Runner.Server != "/peers/tritonserver" || p.Output != "/out/triton-search" || p.Inputs.Data != "/out/texts.json" {
		t.Errorf("the profile is %+v", p)
	}
	facts := search.Facts{Cores: 4, Parts: map[string]search.Facts{"tokenizer": {Cores: 4, BaseInstances: 1}, "encoder": {Cores: 4, BaseInstances: 1, Batching: true}, "head": {Cores: 4, BaseInstances: 1, Batching: true}}}
	if n, _ := p.Space(facts).Candidates().Len(); n != 2*20*4 {
		t.Errorf("%d configurations, want 2 × 20 × 4", n)
	}
}

// found makes a campaign's result of throughputs by configuration.
func found(throughputs map[string]float64) analyze.Result {
	r := analyze.Result{}
	for _, name := range []string{"tokenizer", "encoder"} {
		r.Stages = append(r.Stages, analyze.Served{Header: journal.Header{Model: name}})
	}
	r.Stages = append(r.Stages, analyze.Served{Header: journal.Header{Model: "search"}, Calls: true})
	for text, v := range throughputs {
		var settings []search.Setting
		for _, one := range strings.Fields(text) {
			knob, value, _ := strings.Cut(one, "=")
			settings = append(settings, search.Setting{Knob: knob, Value: search.Value(value)})
		}
		point := analyze.Point{Sample: analyze.Sample{Values: map[measure.Metric]measure.Estimate{measure.Throughput: {Value: v}}}}
		r.Configs = append(r.Configs, analyze.Config{Candidate: search.NewCandidate(settings...), Best: &point, Points: []analyze.Point{point}})
	}
	return r
}

// The choice for a stage counts with the best choice for the others.
func TestEffects(t *testing.T) {
	t.Parallel()
	r := found(map[string]float64{
		"tokenizer.instance_count=1 encoder.instance_count=1": 50, "tokenizer.instance_count=2 encoder.instance_count=1": 40,
		"tokenizer.instance_count=1 encoder.instance_count=2": 90, "tokenizer.instance_count=2 encoder.instance_count=2": 100,
	})
	got := effects(r.Stages, r.Configs)
	// the tokenizer: 100 with two and 90 with one; the encoder: 100 with two and 50 with one
	if len(got) != 2 || math.Abs(got["tokenizer"]-100.0/90) > 1e-9 || got["encoder"] != 2 {
		t.Errorf("got %v", got)
	}
}

// 96 is within 5 % of 100, and 94 is not. The default and what is not in the space do not count.
func TestNearBest(t *testing.T) {
	t.Parallel()
	var space []search.Candidate
	for _, n := range []string{"1", "2", "3", "4"} {
		space = append(space, search.NewCandidate(search.Setting{Knob: "encoder.instance_count", Value: search.Value(n)}))
	}
	r := found(map[string]float64{"encoder.instance_count=1": 100, "encoder.instance_count=2": 96, "encoder.instance_count=3": 94, "": 99, "encoder.intra_op_threads=1": 98})
	measured := ofSpace(r.Configs, space)
	if n := nearBest(measured); n != 2 || len(measured) != 3 {
		t.Errorf("%d of %d configurations are near the best, want 2 of 3", n, len(measured))
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := found(map[string]float64{"tokenizer.instance_count=1 encoder.instance_count=1": 50})
	o := outcome{result: r, measured: slices.Repeat(r.Configs, 160), candidates: 160, trials: 16}
	text := report(onTriton, o, o, stats.Estimate{Value: 0.98, Lo: 0.95, Hi: 1.01})
	for _, want := range []string{"**0.980** (0.950–1.010), with 10.0 % of the points", "160 of 160 configurations are within 5 %", "the same configuration", "1.00 for tokenizer, 1.00 for encoder."} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// The tokenizer pads each text to one length, and the encoder takes that.
func TestConfigs(t *testing.T) {
	t.Parallel()
	list := configs("/lib/ops.so")
	if !strings.Contains(list["tokenizer"], "dims: [ 1, 48 ]") || !strings.Contains(list["encoder"], "dims: [ 48 ]") || !strings.Contains(list["tokenizer"], `op_library_filename: "/lib/ops.so"`) {
		t.Errorf("got %v", list)
	}
	if err := tokenizer("[PAD]\n[UNK]\n").CheckServable(); err != nil {
		t.Error(err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-what", "nothing"}, {"-server", "other"}, {"-pairs", "0"}, {"-time", "0s"}, {"-together", "0s"}} {
		if _, err := program.Parse(define, args, io.Discard); err == nil || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
