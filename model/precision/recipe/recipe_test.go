package recipe

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/rewrite"
	"tuner/model/onnx/rewrite/quantization"
)

// Each row is whole, and its rewrite obeys the rules of docs/how-to/add-a-precision.md.
func TestRows(t *testing.T) {
	t.Parallel()
	if table[0].Name != Original || table[0].Lossy {
		t.Errorf("the first row is %s, want the original", table[0].Name)
	}
	for i, r := range table {
		switch {
		case r.Name == "" || r.About == "" || r.Convert == nil:
			t.Errorf("row %d (%q) is not whole", i, r.Name)
		case slices.Index(Names(), r.Name) != i:
			t.Errorf("%s has two rows", r.Name)
		case r.Probe != nil && !r.Lossy:
			t.Errorf("%s keeps nodes for accuracy, and cannot lose any", r.Name)
		}
		testConvert(t, r)
	}
}

// testConvert converts a perceptron twice.
func testConvert(t *testing.T, r Recipe) {
	t.Helper()
	m := build.MLP()
	before := digest(t, m)
	s := settingsFor(t, r, m)
	made, summary, err := r.Convert(m, s)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	again, _, err := r.Convert(m, s)
	if err != nil || digest(t, made) != digest(t, again) {
		t.Errorf("%s: a second conversion gives another model, %v", r.Name, err)
	}
	if digest(t, m) != before {
		t.Errorf("%s: the conversion changes its argument", r.Name)
	}
	if r.Lossy == (digest(t, made) == before) {
		t.Errorf("%s: the model is the same: %t", r.Name, !r.Lossy)
	}
	if r.Probe == nil {
		return
	}
	if _, outputs, err := r.Probe(m, s); err != nil || len(outputs) != len(summary.Converted) {
		t.Errorf("%s: the probe measures %v, %v; converted are %v", r.Name, outputs, err, summary.Converted)
	}
	s.Keep = summary.Converted
	if _, _, err := r.Convert(m, s); !errors.Is(err, rewrite.ErrNothing) {
		t.Errorf("%s: with all nodes kept: %v", r.Name, err)
	}
}

// settingsFor returns settings with a range for each activation if the precision needs them.
func settingsFor(t *testing.T, r Recipe, m *onnx.Model) Settings {
	t.Helper()
	s := Settings{Bits: 8}
	if !r.Calibrated {
		return s
	}
	values, err := quantization.Activations(m)
	if err != nil {
		t.Fatal(err)
	}
	s.Ranges = map[string]quantization.Range{}
	for _, v := range values {
		s.Ranges[v] = quantization.Range{Min: -1, Max: 1}
	}
	return s
}

func digest(t *testing.T, m *onnx.Model) string {
	t.Helper()
	d, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLists(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string][2][]string{
		"all":         {Names(), {"fp32", "fp16", "int8", "int8_static"}},
		"made":        {Made(), {"fp16", "int8", "int8_static"}},
		"usual, CPUs": {Usual(false), {"fp32", "int8", "int8_static"}},
		"usual, GPUs": {Usual(true), {"fp32", "fp16"}},
	} {
		if diff := cmp.Diff(lists[1], lists[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string]bool{"fp32": false, "fp16": true, "mine": true} {
		if got := IsLossy(name); got != want {
			t.Errorf("IsLossy(%s) = %t", name, got)
		}
	}
}
