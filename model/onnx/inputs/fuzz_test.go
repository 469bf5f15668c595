package inputs_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// For any graph in the file, deriving and generating do not panic. The tensors have the size of
// their shapes.
func FuzzDerive(f *testing.F) {
	for _, m := range []*onnx.Model{build.Simple(), build.EmbeddingRecommender(), build.ConstantTime(1), build.Identity(onnx.Uint8)} {
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
		list, err := inputs.Derive(m, inputs.Options{Default: 2})
		if err != nil {
			return
		}
		for _, in := range list {
			if n, ok := onnx.Elements(in.Dims); !ok || n > 1<<16 {
				return // valid, but too large to generate in this test
			}
		}
		for name, tensor := range inputs.Generate(list, 2, 1) {
			n, _ := onnx.Elements(tensor.Shape)
			if int64(len(tensor.Data)) != n*tensor.Type.Size() {
				t.Errorf("%q: %d bytes for %v%v", name, len(tensor.Data), tensor.Type, tensor.Shape)
			}
		}
	})
}
