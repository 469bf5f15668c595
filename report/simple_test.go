package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tuner/analyze"
	"tuner/measure"
	"tuner/report/formats"
	"tuner/report/reporttest"
	"tuner/spec/plots"
)

// The charts that a file asks for come in addition to the usual ones. Charts with the same axes
// differ only in the title and in the points left out.
func TestPlotsOfTheUser(t *testing.T) {
	t.Parallel()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Plots: []plots.Plot{
		{Name: "mine", Title: "Throughput against p99 latency", X: measure.LatencyP99, Y: measure.Throughput},
		{Name: "load", Y: measure.LatencyP99, IsMonotonic: true},
	}})
	dir := t.TempDir()
	if _, err := formats.All().WriteAll(dir, r, []string{"png"}); err != nil {
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
