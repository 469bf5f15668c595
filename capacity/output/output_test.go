package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tuner/capacity"
	"tuner/internal/golden"
	"tuner/measure"
)

// plan is an answer with all parts.
func plan() capacity.Plan {
	best := capacity.Fleet{
		About: "chosen", Type: "c7i", Configuration: "config_1", Setup: "2 × int8, batch 8",
		Scaling: capacity.Scaling{Scaler: capacity.HPA, Min: 2, Max: 14, Target: 312.5, Tolerance: 0.03, Down: 120, Window: 60, Startup: 30},
		Cost:    12.34, Hours: 34.6, Within: 0.9931, WorstDay: 0.9905, P50: 0.012, P99: 0.041, Mean: 1.44, Peak: 11, Changes: 20,
	}
	cheaper := best
	cheaper.About, cheaper.Cost, cheaper.WorstDay = "misses the limit: 330 requests/s per replica", 12.1, 0.9871
	fixed := best
	fixed.About, fixed.Cost, fixed.Scaling = "no autoscaler", 30, capacity.Scaling{Scaler: capacity.Fixed, Min: 11, Max: 11, Startup: 30}
	usual := best
	usual.About, usual.Cost = "on 80 % CPU", 16
	ideal := best
	ideal.About, ideal.Cost = "clairvoyant", 12
	return capacity.Plan{
		Format: capacity.Format, Status: capacity.Satisfied, Summary: "2 to 14 replicas of config_1 on c7i: cost 12.34 a day.", Model: "minilm",
		Asked: capacity.Asked{
			Traffic: "peak 400/s, office hours, for a week", Days: 7, Requests: 1e8, Mean: 12_345, Peak: 41_234.5, Dispersion: 1.5, Limit: 0.05, Share: 0.99,
			Balancer: "random", Scaler: capacity.HPA, Window: 60, MinReplicas: 1, MaxReplicas: 100, Step: 15, Seed: 1,
		},
		Best: best, Alternatives: []capacity.Fleet{cheaper, fixed}, Usual: &usual, Clairvoyant: ideal,
		Configurations: []capacity.Candidate{{
			Type: "c7i", Configuration: "config_1", Setup: "2 × int8, batch 8", Price: 0.357, Capacity: 400, Safe: 350, LeastCost: 12, Tried: 9,
			Checks: []capacity.Check{{Load: measure.Load{Concurrency: 8, BatchSize: 1}, Measured: 0.025, Simulated: 0.026}},
		}},
		Verification: &capacity.Verification{
			Server: "the bundled engine", Engines: 3, Replicas: 11, Begin: 118_800, Length: 60, PlannedRate: 370, Rate: 185, Slowness: 2, InTurn: true, Capacity: 0.5, Cores: 2,
			Limit: 0.1, Sender: 0.2, WithoutSender: 0.105, Requests: 22_000, Late: 440, Simulated: capacity.Latencies{P50: 0.03, P99: 0.12, Within: 0.994},
			Measured: capacity.Latencies{P50: 0.031, P99: 0.126, Within: 0.993}, P99Range: [2]float64{0.118, 0.135}, Outcome: capacity.Confirmed,
		},
		Notes: []string{"No price is known."},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteText(&b, plan(), true); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "plan.txt"), b.String())
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteMarkdown(&b, plan(), true); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "plan.md"), b.String())
}

// The JSON form has the whole plan.
func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteJSON(&b, plan()); err != nil {
		t.Fatal(err)
	}
	var got capacity.Plan
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || !reflect.DeepEqual(got, plan()) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A replay whose p99 is known less exactly than the comparison asks for says so, and how exactly: 0.118 to 0.135 s are 6 % and
// 7 % around 0.126 s.
func TestAnInexactReplaySaysSo(t *testing.T) {
	t.Parallel()
	const says = "By chance alone the measured p99 may be "
	p := plan()
	if text := strings.Join(verification(p), "\n"); strings.Contains(text, says) {
		t.Error(text)
	}
	p.Verification.P99Range = [2]float64{0.12, 0.189}
	if text := strings.Join(verification(p), "\n"); !strings.Contains(text, says+"5 % shorter or 50 % longer") {
		t.Error(text)
	}
}

// Without the flag, the explanation is left out.
func TestExplanationIsAskedFor(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteText(&b, plan(), false); err != nil || strings.Contains(b.String(), "Simulated") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// Names from files cannot change what a reader sees.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	p := plan()
	p.Best.Configuration, p.Model = "a|b\x1b[2J<script>", "x\n# y"
	var text, markdown bytes.Buffer
	if err := errors.Join(WriteText(&text, p, true), WriteMarkdown(&markdown, p, true)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") || strings.Contains(markdown.String(), "<script>") || strings.Contains(markdown.String(), "\n# y") || strings.Contains(markdown.String(), "a|b") {
		t.Errorf("%q\n%q", text.String(), markdown.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	if WriteText(failing{}, plan(), true) == nil || WriteMarkdown(failing{}, plan(), true) == nil || WriteJSON(failing{}, plan()) == nil {
		t.Error("a lost output is no error")
	}
}

// The page has the plan and all answers, and names from files are text.
func TestPage(t *testing.T) {
	t.Parallel()
	p := plan()
	p.Model = "<script>alert(1)</script>"
	around := capacity.WhatIf{
		Rates: []float64{0.5, 1}, Limits: []float64{0.05}, Startups: []float64{1}, Types: []string{"c7i</script>"}, Prices: []float64{0.357},
		Answers: [][]capacity.Answer{{{Satisfied: true, Configuration: "config_1", Min: 1, Max: 7, Target: 312.5, Hours: 20, Within: 0.993, P99: 0.04}, {Configuration: "config_2", Min: 2, Max: 2}}},
	}
	var b bytes.Buffer
	if err := WriteHTML(&b, p, around); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"Plan for &lt;script&gt;", `<input type="range" name="rate" min="0" max="1" value="1"`, `"Configuration":"config_2"`, "41234 requests/s at the peak", "The replay confirms the plan"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "c7i</script>") {
		t.Error("a name is markup")
	}
	if WriteHTML(failing{}, p, around) == nil {
		t.Error("a lost output is no error")
	}
}
