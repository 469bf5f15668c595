package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// Model is a model of a repository.
type Model struct {
	Name     string
	File     string   // a name that modelFile knows, or that of a sample; "no_version": the model has no version
	Versions []string // 1 unless given
	Config   string   // config.pbtxt; empty: no file
	Labels   string   // labels.txt; empty: no file
}

// ReadModels reads the description of a repository: a txtar archive with a section "NAME FILE
// [VERSION...]" for each model, whose text is its config.pbtxt. A section "labels" is the labels.txt of
// the model before it.
func ReadModels(archive string) ([]Model, error) {
	data, err := os.ReadFile(archive)
	if err != nil {
		return nil, fmt.Errorf("cannot read the description of a repository: %w", err)
	}
	var models []Model
	for _, section := range txtar.Parse(data).Files {
		words := strings.Fields(section.Name)
		if section.Name == "labels" && len(models) > 0 {
			models[len(models)-1].Labels = string(section.Data)
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%s: section %q has no ONNX file", archive, section.Name)
		}
		m := Model{Name: words[0], File: words[1], Versions: words[2:], Config: strings.TrimSpace(string(section.Data))}
		if len(m.Versions) == 0 {
			m.Versions = []string{"1"}
		}
		models = append(models, m)
	}
	return models, nil
}

// WriteRepository makes a model repository in folder. samples is a folder with the output of
// samplemodels.
func WriteRepository(models []Model, folder, samples string) error {
	for _, m := range models {
		if err := m.write(filepath.Join(folder, m.Name), samples); err != nil {
			return fmt.Errorf("cannot make model %q: %w", m.Name, err)
		}
	}
	return nil
}

func (m Model) write(folder, samples string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if m.Config != "" {
		if err := os.WriteFile(filepath.Join(folder, "config.pbtxt"), []byte(m.Config+"\n"), 0o644); err != nil {
			return err
		}
	}
	if m.Labels != "" {
		if err := os.WriteFile(filepath.Join(folder, "labels.txt"), []byte(m.Labels), 0o644); err != nil {
			return err
		}
	}
	if m.File == "no_version" {
		return nil
	}
	data, err := modelFile(m.File, samples)
	if err != nil {
		return err
	}
	for _, version := range m.Versions {
		if err := os.Mkdir(filepath.Join(folder, version), 0o755); err != nil {
			return err
		}
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, version, "model.onnx"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// modelFile returns the ONNX file of a name. It looks first at generated good ones, then at bad
// ones, then in the folder samples. For "missing" there is no file.
func modelFile(name, samples string) ([]byte, error) {
	switch name {
	case "sum_and_difference":
		return marshal(sumAndDifference(onnx.Symbol("batch")).Proto())
	case "sum_and_difference_fixed":
		return marshal(sumAndDifference(onnx.Fixed(1)).Proto())
	case "sum_and_difference_string":
		return marshal(simpleOf(onnx.String).Proto())
	case "sum_and_difference_int8":
		return marshal(simpleOf(onnx.Int8).Proto())
	case "any_shape":
		return marshal(negation(onnx.Symbol("batch"), onnx.Symbol("height"), onnx.Symbol("width")).Proto())
	case "accumulator":
		return marshal(build.Accumulator().Proto())
	case "streaming_detector":
		return marshal(build.StreamingDetector(true).Proto())
	case "streaming_detector_alone":
		return marshal(build.StreamingDetector(false).Proto())
	case "observer", "observer_float", "observer_bool", "observer_text":
		return marshal(observer(name).Proto())
	case "plus_start":
		return marshal(plusStart().Proto())
	case "dyna":
		return marshal(dyna().Proto())
	case "dyna_text":
		return marshal(dynaText().Proto())
	case "replaceable":
		return marshal(replaceable().Proto())
	case "vector":
		return marshal(negation(onnx.Symbol("batch")).Proto())
	case "scalar":
		return marshal(negation().Proto())
	// three times as long as the sample, so that the time between two executions hardly counts
	case "slow_constant_time":
		return marshal(build.ConstantTime(3000).Proto())
	case "newer_ir", "newer_opset", "unknown_operator", "lost_data":
		return marshal(broken(name))
	case "missing":
		return nil, nil
	case "empty":
		return []byte{}, nil
	case "garbage":
		return []byte("this is no ONNX file"), nil
	case "truncated":
		data, err := modelFile("mlp", samples)
		return data[:len(data)/2], err
	}
	data, err := os.ReadFile(filepath.Join(samples, name+".onnx"))
	if err != nil {
		return nil, fmt.Errorf("%w; make -C lab conformance makes the sample models", err)
	}
	return data, nil
}

// marshal is deterministic, so that both servers and all runs get the same bytes.
func marshal(model *onnxpb.ModelProto) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(model)
}

// sumAndDifference makes sum = x + y and diff = x - y, all FLOAT[batch, 4].
func sumAndDifference(batch onnx.Dim) *onnx.Model {
	g := build.NewGraph("sum_and_difference")
	shape := []onnx.Dim{batch, onnx.Fixed(4)}
	x, y := g.Input("x", onnx.Float, shape...), g.Input("y", onnx.Float, shape...)
	g.OutputAs("sum", g.Node("Add", []string{x, y}), onnx.Float, shape...)
	g.OutputAs("diff", g.Node("Sub", []string{x, y}), onnx.Float, shape...)
	return g.Model()
}

// replaceable makes y = x * scale + offset, all FLOAT[4]. A run may replace the constants scale,
// [1,2,3,4], and offset, zeros.
func replaceable() *onnx.Model {
	g := build.NewGraph("replaceable")
	x := g.Input("x", onnx.Float, onnx.Fixed(4))
	scale, offset := g.Input("scale", onnx.Float, onnx.Fixed(4)), g.Input("offset", onnx.Float, onnx.Fixed(4))
	g.Floats(scale, []float32{1, 2, 3, 4}, 4)
	g.Floats(offset, make([]float32, 4), 4)
	g.OutputAs("y", g.Node("Add", []string{g.Node("Mul", []string{x, scale}), offset}), onnx.Float, onnx.Fixed(4))
	return g.Model()
}

// simpleOf makes Triton's simple model for a type that ONNX Runtime's operators do not compute
// with. OUTPUT0 = INPUT0 + INPUT1 and OUTPUT1 = INPUT0 - INPUT1 are all t[batch, 16], and are
// computed as INT32.
func simpleOf(t onnx.DataType) *onnx.Model {
	g := build.NewGraph("simple")
	shape := []onnx.Dim{onnx.Symbol("batch"), onnx.Fixed(16)}
	cast := func(value string, to onnx.DataType) string {
		return g.Node("Cast", []string{value}, build.IntAttribute("to", int64(to)))
	}
	a, b := cast(g.Input("INPUT0", t, shape...), onnx.Int32), cast(g.Input("INPUT1", t, shape...), onnx.Int32)
	g.OutputAs("OUTPUT0", cast(g.Node("Add", []string{a, b}), t), t, shape...)
	g.OutputAs("OUTPUT1", cast(g.Node("Sub", []string{a, b}), t), t, shape...)
	return g.Model()
}

// negation makes y = -x, FLOAT of the given shape.
func negation(shape ...onnx.Dim) *onnx.Model {
	g := build.NewGraph("negation")
	g.OutputAs("y", g.Node("Neg", []string{g.Input("x", onnx.Float, shape...)}), onnx.Float, shape...)
	return g.Model()
}

// broken returns a model with one fault for which ONNX Runtime refuses it.
func broken(how string) *onnxpb.ModelProto {
	model := sumAndDifference(onnx.Symbol("batch")).Proto()
	switch how {
	case "newer_ir":
		model.IrVersion = proto.Int64(99)
	case "newer_opset":
		model.OpsetImport[0].Version = proto.Int64(99)
	case "unknown_operator":
		model.Graph.Node[0].OpType = proto.String("Frobnicate")
	case "lost_data":
		model.Graph.Initializer = append(model.Graph.Initializer, &onnxpb.TensorProto{
			Name: proto.String("w"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{4},
			DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
			ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("w.bin")}},
		})
	}
	return model
}
