package shapes_test

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/onnx/onnxpb"
	"tuner/model/onnx/shapes"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// Every value that ONNX Runtime computes has the inferred type and shape. A symbol has the same
// size everywhere.
func TestAgreesWithONNXRuntime(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	models := samples()
	delete(models, "failing") // none of its runs completes
	if dir := os.Getenv("TUNER_MODELS"); dir != "" {
		for _, name := range []string{"minilm", "resnet", "mobilenet", "lstm"} {
			path := filepath.Join(dir, name+".onnx")
			if _, err := os.Stat(path); err != nil && name != "minilm" {
				continue // lab/samplemodels has not made this sample here
			}
			m, err := onnx.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			models[name] = m
		}
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			infos, err := shapes.Infer(m)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, infos, computed(t, m))
		})
	}
}

// computed runs the model with every value of its main graph as an output.
func computed(t *testing.T, m *onnx.Model) map[string]inputs.Tensor {
	t.Helper()
	s := orttest.Load(t, exposed(m), ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	return orttest.Infer(t, s, orttest.Generate(t, m, 7, 3, 1))
}

// exposed makes every value an output. ONNX Runtime finds the types itself.
func exposed(m *onnx.Model) *onnx.Model {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	known := map[string]bool{}
	for _, v := range p.Graph.Output {
		known[v.GetName()] = true
	}
	for _, node := range p.Graph.Node {
		for _, name := range node.GetOutput() {
			if name != "" && !known[name] {
				p.Graph.Output = append(p.Graph.Output, &onnxpb.ValueInfoProto{Name: proto.String(name)})
			}
		}
	}
	return onnx.New(p)
}

func compare(t *testing.T, infos map[string]shapes.Info, values map[string]inputs.Tensor) {
	t.Helper()
	symbols := map[string]int64{}
	for name, v := range values {
		info, ok := infos[name]
		switch {
		case !ok:
			t.Errorf("%q is %v%v, nothing was inferred", name, v.Type, v.Shape)
			continue
		case info.Type != v.Type:
			t.Errorf("%q is %v, inferred %v", name, v.Type, info.Type)
		case !info.Ranked || len(info.Shape) != len(v.Shape):
			t.Errorf("%q is %v, inferred %+v", name, v.Shape, info)
			continue
		}
		for i, d := range info.Shape {
			size := v.Shape[i]
			if before, ok := symbols[d.Symbol]; d.Symbol != "" && ok && before != size {
				t.Errorf("%q is %v, but %q was %d elsewhere", name, v.Shape, d.Symbol, before)
			}
			symbols[d.Symbol] = size
			if d.IsFixed() && d.Size != size {
				t.Errorf("%q is %v, inferred %+v", name, v.Shape, info.Shape)
			}
		}
	}
}
