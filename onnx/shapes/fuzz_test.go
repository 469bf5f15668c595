package shapes_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/onnx"
	"tuner/onnx/build"
	"tuner/onnx/shapes"
)

// FuzzInfer: whatever graph the file holds, inference does not panic, gives every value a type, and no size below -1.
func FuzzInfer(f *testing.F) {
	for _, m := range []*onnx.Model{build.Simple(), build.MLP(), build.CNN(1), build.BertSquadLike(), build.EmbeddingRecommender(), build.ConstantTime(1)} {
		p := proto.Clone(m.Proto())
		data, err := proto.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 1<<18 { // larger ones are mostly weights, which teach the fuzzer nothing
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse("/nonexistent/model.onnx", data)
		if err != nil {
			return
		}
		infos, err := shapes.Infer(m)
		if err != nil {
			return
		}
		for name, info := range infos {
			if info.Type == 0 || !info.Ranked && len(info.Shape) > 0 {
				t.Errorf("%q: %+v", name, info)
			}
			for _, d := range info.Shape {
				if d.Size < -1 || d.IsFixed() && d.Symbol != "" {
					t.Errorf("%q: %+v", name, info)
				}
			}
		}
	})
}
