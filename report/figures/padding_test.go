package figures_test

import (
	"os/exec"
	"strings"
	"testing"

	"tuner/analyze"
	"tuner/measure"
	"tuner/model/mix"
	"tuner/profile/journal"
	"tuner/report/figures"
	"tuner/search"
)

// padded returns a result whose first configuration was measured with a padding.
func padded(t *testing.T, padding search.Value) analyze.Result {
	t.Helper()
	of := func(share float64, n int64) mix.Kind {
		return mix.Kind{Share: share, Shapes: map[string][]int64{"ids": {n}, "mask": {n}, "sr": {1}}}
	}
	kinds, err := mix.New([]mix.Kind{of(6, 16), of(3, 60), of(1, 256)})
	if err != nil {
		t.Fatal(err)
	}
	r := analyze.Result{Pad: map[string]int64{"ids": 1}}
	r.Header.Mix = journal.NewMix(kinds)
	r.Goal = search.Goal{Objective: search.Objective{Terms: []search.Term{{Metric: measure.Throughput, Weight: 1}}}}
	c := search.NewCandidate(search.Setting{Knob: search.KnobPadding, Value: padding})
	r.Configs = []analyze.Config{{Candidate: c}}
	r.Explanation.Knobs = []search.KnobEffect{{Knob: search.KnobPadding, Chosen: padding, Others: []search.Effect{
		{Value: search.NoPadding, Basis: search.BasisMeasured, Change: measure.Estimate{Value: -0.25, Lo: -0.3, Hi: -0.2}}}}}
	return r
}

func TestClientWork(t *testing.T) {
	t.Parallel()
	if _, pads := figures.ClientWorkOf(padded(t, search.NoPadding)); pads {
		t.Error("without padding clients have work")
	}
	for padding, want := range map[search.Value][]string{
		"64":       {"requests padded to multiples of 64", "ids in dimension 1 with 1, mask in dimension 1 with 0", "90 % ids [64], mask [64], 10 % [256] instead of 60 % ids [16], mask [16]", "Without padding, the best is 25 % worse (20.0 to 30.0); measured."},
		"[64,256]": {"requests padded to 64, 256"},
		"longest":  {"requests padded to the longest"},
	} {
		w, pads := figures.ClientWorkOf(padded(t, padding))
		text := strings.Join(w.Lines, "\n")
		for _, part := range want {
			if !pads || !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in\n%s", padding, part, text)
			}
		}
		if !strings.Contains(w.Go, "func pad(") || !strings.Contains(w.Python, `inputs["ids"] = pad(inputs["ids"], 1, 1)`) {
			t.Errorf("%s: the code is\n%s\n%s", padding, w.Python, w.Go)
		}
	}
}

// The statements for Python and Go are of these languages: Python compiles them, gofmt takes them.
func TestClientCodeIsCode(t *testing.T) {
	t.Parallel()
	for _, padding := range []search.Value{"64", "[64,256]", "longest"} {
		w, _ := figures.ClientWorkOf(padded(t, padding))
		python := exec.CommandContext(t.Context(), "python3", "-c", "import sys; compile(sys.stdin.read(), 'client', 'exec')")
		python.Stdin = strings.NewReader(w.Python)
		if out, err := python.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", padding, err, out, w.Python)
		}
		format := exec.CommandContext(t.Context(), "gofmt", "-d")
		format.Stdin = strings.NewReader("package client\n\nimport \"slices\"\n\n" + w.Go)
		if out, err := format.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s\n%s", padding, err, out, w.Go)
		}
	}
}
