package dryrun

import (
	"testing"

	"tuner/search"
	"tuner/spec"
)

// A dry run announces a check only if there is something to compare.
func TestCheckText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"constraints: {accuracy: {metric: cosine, min: 0.5}}": "",
		"space: {precision: [fp32, int8]}":                    "cosine ≥ 0.99 on synthetic inputs",
		"space: {precision: [fp32, int8]}\naccuracy: {data: rows.npz}\nconstraints: {accuracy: {metric: mean_abs_error, max: 2}}": "mean abs error ≤ 2 on rows.npz",
	} {
		p, err := spec.ParseProfile("p.yaml", []byte("model: m.onnx\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if got := checkText(p, search.Facts{}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
