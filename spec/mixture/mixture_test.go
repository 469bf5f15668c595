package mixture_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/mix"
	"tuner/spec"
	"tuner/spec/document"
	"tuner/spec/mixture"
)

func TestMix(t *testing.T) {
	t.Parallel()
	check := func(text string, want mixture.Mix) {
		t.Helper()
		p, err := spec.ParseProfile("dir/profile.yaml", []byte("model: a\nload: {inputs: {mix: "+text+"}}"))
		if diff := cmp.Diff(want, p.Inputs.Mix); diff != "" || err != nil {
			t.Errorf("%s (-want +got), %v:\n%s", text, err, diff)
		}
	}
	check("[{weight: 6, shape: {x: [16]}}, {weight: 0.5, shape: {x: [64]}}]", mixture.Mix{Shapes: []mix.Kind{
		{Share: 6, Shapes: map[string][]int64{"x": {16}}}, {Share: 0.5, Shapes: map[string][]int64{"x": {64}}}}})
	check("{dimension: s, values: {16: 6, 64: 0}}", mixture.Mix{Dimension: "s", Values: []mix.Size{{Size: 16, Weight: 6}, {Size: 64}}})
	check("{dimension: s, histogram: h.csv}", mixture.Mix{Dimension: "s", Histogram: "dir/h.csv"})
	check("{dimension: s, lognormal: {p50: 40, p99: 300, max: 512}}", mixture.Mix{Dimension: "s", Lognormal: mix.Lognormal{P50: 40, P99: 300, Max: 512}})
}

func TestMistakesInMixes(t *testing.T) {
	t.Parallel()
	check := func(text, want string) {
		t.Helper()
		_, err := spec.ParseProfile("profile.yaml", []byte("model: a\nload: {inputs: {mix: "+text+"}}"))
		var mistakes document.Errors
		if !errors.As(err, &mistakes) {
			t.Errorf("%s: got the error %v", text, err)
			return
		}
		if got := mistakes[0].Path + ": " + mistakes[0].Problem; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	check("16", "load.inputs.mix: must be a list of shapes, or a distribution of a dimension")
	check("[]", "load.inputs.mix: is an empty list")
	check("[{weight: -1, shape: {x: [1]}}]", "load.inputs.mix[0].weight: is not a weight")
	check("[{weight: .nan, shape: {x: [1]}}]", "load.inputs.mix[0].weight: is not a weight")
	check("[{weight: 0, shape: {x: [1]}}]", "load.inputs.mix: has weights that sum to zero")
	check("[{weight: 1}]", "load.inputs.mix[0].shape: is required")
	check("[{weight: 1, shape: {x: [0]}}]", "load.inputs.mix[0].shape.x[0]: is out of range")
	check("{values: {16: 6}}", "load.inputs.mix.dimension: is required")
	check("{dimension: s}", "load.inputs.mix: has 0 of values, histogram, lognormal or sizes")
	check("{dimension: s, values: {16: 6}, histogram: h.csv}", "load.inputs.mix: has 2 of values, histogram, lognormal or sizes")
	check("{dimension: s, sizes: t.csv}", "load.inputs.mix.sizes: is no source of sizes")
	check("{dimension: s, sizes: trace}", "load.inputs: has a mix with the sizes of a trace, and load.arrivals has no trace")
	check("{dimension: s, values: {0: 6}}", "load.inputs.mix.values.0: is out of range")
	check("{dimension: s, values: {16: 0}}", "load.inputs.mix.values: has weights that sum to zero")
	check("{dimension: s, lognormal: {p50: 40}}", "load.inputs.mix.lognormal.p99: is required")
	check("{dimension: s, lognormal: {p50: 40, p99: 30}}", "load.inputs.mix.lognormal: has a p99 below its p50")
}

// A profile reads again what --mix reads.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"s=16:6,64:3,256:0.5", "s=h.csv", "s=p50:40,p99:300,max:512", "a b=p50:40,p99:300"} {
		m, err := mixture.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		line, err := m.YAML()
		if err != nil {
			t.Fatal(err)
		}
		p, err := spec.ParseProfile("profile.yaml", []byte("model: a\nload: {inputs: {mix: "+line+"}}"))
		if diff := cmp.Diff(m, p.Inputs.Mix); diff != "" || err != nil {
			t.Errorf("%q is written as %s (-flag +profile), %v:\n%s", text, line, err, diff)
		}
	}
	for _, text := range []string{"", "s", "s=", "=16:1", "s=16", "s=x:1", "s=16:x", "s=p50:3,16:1"} {
		if m, err := mixture.Parse(text); err == nil {
			t.Errorf("%q: got %+v", text, m)
		}
	}
}

// FuzzParse checks that every flag is refused, or written as a valid line of YAML.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"s=16:6,64:3", "s=h.csv", "s=p50:40,p99:300,max:512", "{=1:1", "\n=1:NaN"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := mixture.Parse(text)
		if err != nil {
			return
		}
		if line, err := m.YAML(); err != nil || line == "" {
			t.Errorf("%q becomes %q, %v", text, line, err)
		}
	})
}
