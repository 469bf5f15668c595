package orttest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"tuner/model/dataset/elements"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

// LoadOneThread opens a session with one thread.
func LoadOneThread(t testing.TB, m *onnx.Model) *ort.Session {
	t.Helper()
	return Load(t, m, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
}

// LoadOpenVINO opens a session on OpenVINO with one thread.
func LoadOpenVINO(t testing.TB, m *onnx.Model) *ort.Session {
	t.Helper()
	return Load(t, m, ort.SessionOptions{Providers: []ort.Provider{{Name: "openvino", Options: map[string]string{"num_of_threads": "1"}}}})
}

// CheckConverted runs a model and a session of its conversion on random inputs. The cosine of each
// output must be at least least.
func CheckConverted(t testing.TB, m *onnx.Model, converted *ort.Session, least float64) {
	t.Helper()
	in := Random(t, m, 3, 1)
	CheckAgreement(t, InferFloats(t, LoadOneThread(t, m), in), InferFloats(t, converted, in), least)
}

// Random makes random inputs that a model accepts. Open dimensions have 7 elements.
func Random(t testing.TB, m *onnx.Model, batch int, seed uint64) map[string]inputs.Tensor {
	t.Helper()
	return Generate(t, m, 7, batch, seed)
}

// InferFloats runs a model and returns its FLOAT and FLOAT16 outputs by name.
func InferFloats(t testing.TB, s *ort.Session, in map[string]inputs.Tensor) map[string][]float32 {
	t.Helper()
	results := map[string][]float32{}
	for name, out := range Infer(t, s, in) {
		if out.Type != onnx.Float && out.Type != onnx.Float16 {
			continue
		}
		for _, v := range elements.Floats(out) {
			results[name] = append(results[name], float32(v))
		}
	}
	return results
}

// FloatTensor makes a FLOAT tensor.
func FloatTensor(values []float32, shape ...int64) inputs.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return inputs.Tensor{Type: onnx.Float, Shape: shape, Data: data}
}

// CheckAgreement compares the outputs of two models. The cosine of each output must be at least
// least.
func CheckAgreement(t testing.TB, want, got map[string][]float32, least float64) {
	t.Helper()
	for output := range want {
		if c := Cosine(want[output], got[output]); !(c >= least) {
			t.Errorf("%s: cosine %v, want %v", output, c, least)
		}
	}
}

// Cosine returns the cosine similarity of two vectors.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

// ReadMiniLM reads the sample model. It skips the test as MiniLM does.
func ReadMiniLM(t testing.TB) *onnx.Model {
	t.Helper()
	m, err := onnx.Read(MiniLM(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Sentences returns the token ids of real sentences as MiniLM's inputs. path is that of
// testdata/minilm/reference.json.
func Sentences(t testing.TB, path string) map[string]inputs.Tensor {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ref map[string]json.RawMessage
	if err := json.Unmarshal(data, &ref); err != nil {
		t.Fatal(err)
	}
	in := map[string]inputs.Tensor{}
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		var rows [][]int64
		if err := json.Unmarshal(ref[name], &rows); err != nil {
			t.Fatal(err)
		}
		var raw []byte
		for _, v := range slices.Concat(rows...) {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
		}
		in[name] = inputs.Tensor{Type: onnx.Int64, Shape: []int64{int64(len(rows)), int64(len(rows[0]))}, Data: raw}
	}
	return in
}
