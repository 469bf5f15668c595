package inputs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

func TestExample(t *testing.T) {
	t.Parallel()
	open, symbol, fixed := onnx.Dim{Size: -1}, onnx.Symbol, onnx.Fixed
	for name, c := range map[string]struct {
		v    onnx.Value
		want []int64
	}{
		"a sequence":            {onnx.Value{Name: "ids", Type: onnx.Int64, Shape: []onnx.Dim{symbol("seq")}}, []int64{32}},
		"an image":              {onnx.Value{Name: "x", Type: onnx.Float, Shape: []onnx.Dim{open, fixed(3), open, open}}, []int64{32, 3, 224, 224}},
		"of one channel, last":  {onnx.Value{Name: "x", Type: onnx.Uint8, Shape: []onnx.Dim{fixed(1), symbol("h"), symbol("w"), fixed(1)}}, []int64{1, 224, 224, 1}},
		"a line of text":        {onnx.Value{Name: "x", Type: onnx.Float, Shape: []onnx.Dim{fixed(1), fixed(3), fixed(48), open}}, []int64{1, 3, 48, 48}},
		"sides by their names":  {onnx.Value{Name: "x", Type: onnx.Float, Shape: []onnx.Dim{symbol("Height"), symbol("width")}}, []int64{224, 224}},
		"a mask of attention":   {onnx.Value{Name: "attention_mask", Type: onnx.Float, Shape: []onnx.Dim{fixed(1), fixed(1), symbol("s"), symbol("s")}}, []int64{1, 1, 32, 32}},
		"a cache of attention":  {onnx.Value{Name: "past", Type: onnx.Float, Shape: []onnx.Dim{fixed(1), fixed(12), symbol("s"), fixed(64)}}, []int64{1, 12, 32, 64}},
		"whole numbers":         {onnx.Value{Name: "x", Type: onnx.Int64, Shape: []onnx.Dim{fixed(1), fixed(3), open, open}}, []int64{1, 3, 32, 32}},
		"all sizes of the file": {onnx.Value{Name: "x", Type: onnx.Float, Shape: []onnx.Dim{fixed(1), fixed(3), fixed(32), fixed(32)}}, []int64{1, 3, 32, 32}},
	} {
		if diff := cmp.Diff(c.want, inputs.Example(c.v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if isImage := name == "an image" || name == "of one channel, last" || name == "a line of text"; inputs.IsImage(c.v) != isImage {
			t.Errorf("%s is an image: %t", name, !isImage)
		}
	}
}
