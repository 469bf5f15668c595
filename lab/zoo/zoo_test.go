package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/engine/api"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// Newer exports of Paddle declare an output as a scalar. The configuration says that the model batches.
func TestWithOutputs(t *testing.T) {
	t.Parallel()
	g := build.NewGraph("line")
	x := g.Input("x", onnx.Float, onnx.Symbol("n"), onnx.Fixed(3))
	g.OutputAs("y", x, onnx.Float)
	out := &configpb.ModelOutput{Name: "y", Dims: []int64{3}}
	for most, want := range map[int32]bool{0: false, 4: true} {
		m := withOutputs(g.Model(), &modelconfig.Config{MaxBatchSize: most, Output: []*configpb.ModelOutput{out}})
		if got := inputs.Batches(m); got != want {
			t.Errorf("max_batch_size %d: batches %v, want %v", most, got, want)
		}
	}
}

// Numbers may differ by a thousandth, or by nearly nothing beside the largest one. Everything else is
// equal.
func TestDifference(t *testing.T) {
	t.Parallel()
	floats := func(values ...float64) api.Tensor {
		tensor := api.Tensor{Name: "y", Datatype: "FP32", Shape: []int64{int64(len(values))}}
		for _, v := range values {
			tensor.Data = binary.LittleEndian.AppendUint32(tensor.Data, math.Float32bits(float32(v)))
		}
		return tensor
	}
	whole := func(data ...byte) api.Tensor {
		return api.Tensor{Name: "y", Datatype: "UINT8", Shape: []int64{int64(len(data))}, Data: data}
	}
	for name, c := range map[string]struct {
		a, b  api.Tensor
		equal bool
	}{
		"the same":         {floats(1, 2), floats(1, 2), true},
		"a thousandth":     {floats(1000), floats(1000.9), true},
		"more":             {floats(1000), floats(1001.1), false},
		"beside a large":   {floats(1e-6, 1), floats(2e-6, 1), true},
		"alone":            {floats(1e-6), floats(2e-6), false},
		"no numbers":       {floats(math.NaN()), floats(math.NaN()), true},
		"no number here":   {floats(math.NaN()), floats(1), false},
		"infinite":         {floats(math.Inf(1)), floats(math.Inf(1)), true},
		"infinite here":    {floats(math.Inf(1)), floats(1), false},
		"other shape":      {floats(1), floats(1, 1), false},
		"other type":       {whole(1, 2, 3, 4), floats(1), false},
		"whole numbers":    {whole(1, 2), whole(1, 2), true},
		"other whole ones": {whole(1, 2), whole(1, 3), false},
	} {
		if reason := difference(c.a, c.b); (reason == "") != c.equal {
			t.Errorf("%s: %q", name, reason)
		}
	}
}

// A refusal counts if it is early, a mistake of the input, and says what to do.
func TestPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    Result
		want bool
	}{
		"served":         {Result{}, true},
		"not equal":      {Result{Served: "output y"}, false},
		"refused":        {Result{Exit: exit.Usage, Took: time.Second, Refusal: "no hint: do this"}, true},
		"too late":       {Result{Exit: exit.Usage, Took: 6 * time.Second, Refusal: "no hint: do this"}, false},
		"without remedy": {Result{Exit: exit.Usage, Took: time.Second, Refusal: "no"}, false},
		"failed":         {Result{Exit: 1, Took: time.Second, Refusal: "no hint: do this"}, false},
	} {
		if got := c.r.Passed(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The table replaces the one before, and nothing else of the page.
func TestReplaceTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zoo.md")
	if err := os.WriteFile(path, []byte("head\n"+tableBegins+"\nold\n"+tableEnds+"\ntail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceTable(path, []Result{{Name: "zoo_a", Package: "p", Task: "x | y"}}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, want := range []string{"head\n", "\ntail\n", "1 models of 1 packages: 1 are served", "x \\| y"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "old") {
		t.Error("the old table is there")
	}
	if err := os.WriteFile(path, []byte("no place"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replaceTable(path, nil); err == nil {
		t.Error("a page without a place for the table was taken")
	}
}
