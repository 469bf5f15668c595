package orttest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ort"
)

// Load writes a model and opens a session of it until the test ends.
func Load(t testing.TB, m *onnx.Model, o ort.SessionOptions) *ort.Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Write(path, 0); err != nil {
		t.Fatal(err)
	}
	return Open(t, path, o)
}

// Open opens a session of a model file until the test ends.
func Open(t testing.TB, path string, o ort.SessionOptions) *ort.Session {
	t.Helper()
	s, err := Runtime(t).NewSession(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Infer runs a model and returns its outputs by name.
func Infer(t testing.TB, s *ort.Session, in map[string]inputs.Tensor) map[string]inputs.Tensor {
	t.Helper()
	out, err := TryInfer(t, s, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TryInfer is Infer for a run that may fail. The error is ONNX Runtime's.
func TryInfer(t testing.TB, s *ort.Session, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	t.Helper()
	var feeds []*ort.Tensor
	for _, info := range s.Inputs() {
		feed, err := newFeed(Runtime(t), in[info.Name])
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		feeds = append(feeds, feed)
	}
	var names []string
	for _, info := range s.Outputs() {
		names = append(names, info.Name)
	}
	outputs, err := s.Run(t.Context(), feeds, names)
	if err != nil {
		return nil, err
	}
	results := map[string]inputs.Tensor{}
	for i, o := range outputs {
		results[names[i]] = copied(t, o)
		o.Close()
	}
	return results, nil
}

// newFeed makes ONNX Runtime's tensor. Both packages use ONNX's numbers of types.
func newFeed(r *ort.Runtime, in inputs.Tensor) (*ort.Tensor, error) {
	if in.Type == onnx.String {
		var wire []byte
		for _, text := range in.Strings {
			wire = append(binary.LittleEndian.AppendUint32(wire, uint32(len(text))), text...)
		}
		return r.NewStringTensor(in.Shape, [][]byte{wire})
	}
	return r.NewTensor(ort.ElementType(in.Type), in.Shape, in.Data)
}

// copied copies a tensor into Go's memory.
func copied(t testing.TB, o *ort.Tensor) inputs.Tensor {
	t.Helper()
	out := inputs.Tensor{Type: onnx.DataType(o.Type()), Shape: slices.Clone(o.Shape()), Data: slices.Clone(o.Bytes())}
	if o.Type() == ort.String {
		wire, err := o.Strings()
		if err != nil {
			t.Fatal(err)
		}
		for len(wire) > 0 {
			end := 4 + binary.LittleEndian.Uint32(wire)
			out.Strings, wire = append(out.Strings, wire[4:end]), wire[end:]
		}
	}
	return out
}

// Generate makes random inputs that a model accepts. Open dimensions get the given size.
func Generate(t testing.TB, m *onnx.Model, size int64, batch int, seed uint64) map[string]inputs.Tensor {
	t.Helper()
	derived, err := inputs.Derive(m, inputs.Options{Default: size})
	if err != nil {
		t.Fatal(err)
	}
	return inputs.Generate(derived, batch, seed)
}

// OpenVINO skips a test unless the library has OpenVINO.
func OpenVINO(t testing.TB) {
	t.Helper()
	if !slices.Contains(Runtime(t).Providers(), "openvino") {
		t.Skip("this ONNX Runtime build has no OpenVINO: 'make test' runs this test with the flavour that has it")
	}
}

// MiniLM returns the path of the sample model. It skips the test if no folder of sample models is
// named.
func MiniLM(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TUNER_MODELS")
	if dir == "" {
		t.Skip("needs the MiniLM model: run 'make test', or set TUNER_MODELS to the folder of minilm.onnx")
	}
	return filepath.Join(dir, "minilm.onnx")
}
