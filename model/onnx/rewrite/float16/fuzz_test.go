package float16_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/rewrite/batch"
	"tuner/model/onnx/rewrite/float16"
	"tuner/model/onnx/rewrite/rewritetest"
)

// For any graph in the file, the rewrites do not panic, and give the same bytes twice. A second
// rewrite of their result finds nothing to do.
func FuzzFloat16AndBatch(f *testing.F) {
	moved := rewritetest.Rows(func(g *build.Graph, x string) string {
		x = g.Node("Unsqueeze", []string{x, g.Int64s("one", []int64{1}, 1)})
		x = g.Node("Transpose", []string{x}, build.IntsAttribute("perm", 1, 0, 2, 3))
		x = g.Node("Squeeze", []string{x, g.Int64s("zero", []int64{0}, 1)})
		x = g.Node("Slice", []string{x, g.Int64s("from", []int64{0}, 1), g.Int64s("to", []int64{2}, 1), g.Int64s("axis", []int64{2}, 1)})
		x = g.Node("Gather", []string{x, g.Int64s("index", []int64{0})}, build.IntAttribute("axis", 1))
		return g.Node("Softmax", []string{g.Node("Flatten", []string{x})})
	})
	for _, m := range []*onnx.Model{build.Simple(), rewritetest.FixedTo(build.Simple(), 3), topOfTwo(), branching(), rewritetest.Attention(2), moved} {
		data, err := proto.Marshal(m.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		m, err := onnx.Parse("/nonexistent/model.onnx", data)
		if err != nil {
			return
		}
		for _, keep := range []bool{false, true} {
			half, _, err := float16.Convert(m, float16.Options{KeepIO: keep})
			if err != nil {
				continue
			}
			again, _ := toFloat16(t, m, float16.Options{KeepIO: keep})
			if rewritetest.Digest(t, half) != rewritetest.Digest(t, again) {
				t.Error("two conversions to fp16 differ")
			}
			if _, summary, err := float16.Convert(half, float16.Options{KeepIO: keep}); err == nil {
				t.Errorf("fp16 converts again: %q", summary.Converted)
			}
		}
		if free, err := batch.Symbolic(m); err == nil {
			if _, err := batch.Symbolic(free); err == nil {
				t.Error("the batch becomes symbolic twice")
			}
		}
	})
}
