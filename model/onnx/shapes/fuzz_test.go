package shapes_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/alloctest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/shapes"
)

// For any graph in the file, inference does not panic. Every value has a type, and no size is below
// -1.
func FuzzInfer(f *testing.F) {
	models := []*onnx.Model{build.Simple(), build.ConstantTime(0)}
	for _, o := range operators() {
		m, _ := o.model()
		p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
		// any type: Parse refuses a file without one
		p.Graph.Output[0].Type = build.Simple().Proto().Graph.Output[0].Type
		models = append(models, onnx.New(p))
	}
	for _, m := range models {
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
