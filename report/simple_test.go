package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/measure"
	"tuner/spec"
)

func TestRising(t *testing.T) {
	t.Parallel()
	got := rising([]dot{{x: 3, y: 2}, {x: 1, y: 1}, {x: 2, y: 1}, {x: 5, y: 3}, {x: 4, y: 1.5}})
	want := []dot{{x: 1, y: 1}, {x: 3, y: 2}, {x: 5, y: 3}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(dot{})); diff != "" {
		t.Error(diff)
	}
}

// The pictures that a file asks for are beside the usual ones; those of the same axes are the same but for the title and the points left out.
func TestPlotsOfTheUser(t *testing.T) {
	t.Parallel()
	r := ranked(t, typical(t), analyze.Options{Plots: []spec.Plot{
		{Name: "mine", Title: "Throughput against p99 latency", X: measure.LatencyP99, Y: measure.Throughput},
		{Name: "load", Y: measure.LatencyP99, IsMonotonic: true},
	}})
	dir := t.TempDir()
	if _, err := WriteAll(dir, r, []string{spec.FormatPNG}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, "plots", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if !bytes.Equal(read("simple/mine.png"), read("throughput_vs_p99.png")) {
		t.Error("the user's picture of throughput against p99 differs from the report's own")
	}
	if bytes.Equal(read("simple/load.png"), read("throughput_vs_concurrency.png")) {
		t.Error("p99 against the load looks like throughput against the load")
	}
}
