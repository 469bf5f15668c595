package rewrite_test

import (
	"path/filepath"
	"slices"
	"testing"

	"tuner/onnx"
	"tuner/onnx/build"
	"tuner/onnx/inputs"
	"tuner/onnx/rewrite"
	"tuner/ort"
	"tuner/precision/calibrate"
)

// calibrated returns the ranges of what a model computes of some batches.
func calibrated(t *testing.T, m *onnx.Model, batches ...map[string]inputs.Tensor) map[string]rewrite.Range {
	t.Helper()
	values, err := rewrite.Activations(m)
	if err != nil {
		t.Fatal(err)
	}
	exposed, err := rewrite.Expose(m, values)
	if err != nil {
		t.Fatal(err)
	}
	collector, err := calibrate.New("")
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, exposed)
	for _, batch := range batches {
		seen := map[string]inputs.Tensor{}
		results := infer(t, s, batch)
		for _, value := range values {
			if in, ok := batch[value]; ok {
				seen[value] = in
			} else {
				seen[value] = floatTensor(results[value], int64(len(results[value])))
			}
		}
		if err := collector.Add(seen); err != nil {
			t.Fatal(err)
		}
	}
	return collector.Ranges()
}

func int8Static(t *testing.T, m *onnx.Model, o rewrite.Int8StaticOptions) (*onnx.Model, rewrite.Summary) {
	t.Helper()
	q, summary, err := rewrite.Int8Static(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return q, summary
}

// random are normally distributed inputs of a model, from a seed of their own.
func random(t *testing.T, m *onnx.Model, batch int, seed uint64) map[string]inputs.Tensor {
	t.Helper()
	derived, err := inputs.Derive(m, inputs.Options{Default: 7})
	if err != nil {
		t.Fatal(err)
	}
	return inputs.Generate(derived, batch, seed)
}

// optimized returns the operators that ONNX Runtime's CPU provider makes of a model.
func optimized(t *testing.T, m *onnx.Model) map[string]int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "optimized.onnx")
	loadWith(t, m, ort.SessionOptions{IntraOpThreads: 1, OptimizedModelPath: path})
	o, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, op := range operators(o) {
		count[op]++
	}
	return count
}

// ONNX Runtime computes the image classifiers in integers from the input to the logits, and they agree with fp32.
func TestInt8StaticOfImageClassifiers(t *testing.T) {
	t.Parallel()
	runtime(t)
	for name, m := range map[string]*onnx.Model{"cnn": build.CNN(0), "resnet": build.ResNet(), "mobilenet": build.MobileNet()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 64
			q, summary := int8Static(t, m, rewrite.Int8StaticOptions{Ranges: calibrated(t, m, random(t, m, rows, 1))})
			if len(summary.Kept) > 0 {
				t.Errorf("kept: %v", summary.Kept)
			}
			t.Log(summary.Converted, optimized(t, q))
			in := random(t, m, rows, 2) // other rows than those it was calibrated on
			want, got := infer(t, load(t, m), in)["logits"], infer(t, load(t, q), in)["logits"]
			classes := len(want) / rows
			agree, sum, least := 0, 0.0, 1.0
			for i := 0; i < len(want); i += classes {
				a, b := want[i:i+classes], got[i:i+classes]
				if slices.Index(a, slices.Max(a)) == slices.Index(b, slices.Max(b)) {
					agree++
				}
				sum += cosine(a, b)
				least = min(least, cosine(a, b))
			}
			t.Logf("cosine mean %v, least %v; %d of %d agree", sum/rows, least, agree, rows)
		})
	}
}
