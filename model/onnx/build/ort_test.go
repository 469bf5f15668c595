package build_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// oneThread has the options of every session in these tests.
var oneThread = ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}}

// Every model runs on the inputs derived from it, at two batch sizes. Its outputs have the declared
// shapes.
func TestModelsRunOnDerivedInputs(t *testing.T) {
	t.Parallel()
	models := map[string]*onnx.Model{
		"simple": build.Simple(), "mlp": build.MLP(), "cnn": build.CNN(0), "cnn_fixed": build.CNN(1),
		"bertsquad": build.BertSquadLike(), "recommender": build.EmbeddingRecommender(), "constant_time": build.ConstantTime(10),
		"resnet": build.ResNet(), "mobilenet": build.MobileNet(), "lstm": build.LSTM(),
	}
	for _, typ := range onnx.ServableTypes() {
		models["identity_"+typ.String()] = build.Identity(typ)
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := orttest.Load(t, m, oneThread)
			for _, batch := range []int{1, 3} {
				runDerived(t, m, s, batch)
			}
		})
	}
}

func runDerived(t *testing.T, m *onnx.Model, s *ort.Session, batch int) {
	t.Helper()
	results := orttest.Infer(t, s, orttest.Generate(t, m, 5, batch, uint64(batch)))
	for _, v := range m.Outputs() {
		want := v.Dims()
		for i := range want {
			switch {
			case i == 0 && inputs.Batches(m):
				want[i] = int64(batch)
			case want[i] < 0:
				want[i] = 5
			}
		}
		if diff := cmp.Diff(want, results[v.Name].Shape); diff != "" {
			t.Errorf("shape of %s at batch %d (-want +got):\n%s", v, batch, diff)
		}
	}
}

func TestIdentityCopies(t *testing.T) {
	t.Parallel()
	for _, typ := range onnx.ServableTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			m := build.Identity(typ)
			in := orttest.Generate(t, m, 5, 2, 1)
			out := orttest.Infer(t, orttest.Load(t, m, oneThread), in)
			if !slices.Equal(out["OUTPUT0"].Data, in["INPUT0"].Data) {
				t.Errorf("bytes % x became % x", in["INPUT0"].Data, out["OUTPUT0"].Data)
			}
			if diff := cmp.Diff(in["INPUT0"].Strings, out["OUTPUT0"].Strings); diff != "" {
				t.Errorf("strings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSimpleAddsAndSubtracts(t *testing.T) {
	t.Parallel()
	var a, b, sum, difference []byte
	for i := range uint32(16) {
		a = binary.LittleEndian.AppendUint32(a, i)
		b = binary.LittleEndian.AppendUint32(b, 2)
		sum = binary.LittleEndian.AppendUint32(sum, i+2)
		difference = binary.LittleEndian.AppendUint32(difference, i-2)
	}
	tensor := func(data []byte) inputs.Tensor {
		return inputs.Tensor{Type: onnx.Int32, Shape: []int64{1, 16}, Data: data}
	}
	s := orttest.Load(t, build.Simple(), oneThread)
	out := orttest.Infer(t, s, map[string]inputs.Tensor{"INPUT0": tensor(a), "INPUT1": tensor(b)})
	if !slices.Equal(out["OUTPUT0"].Data, sum) || !slices.Equal(out["OUTPUT1"].Data, difference) {
		t.Errorf("got % x and % x", out["OUTPUT0"].Data, out["OUTPUT1"].Data)
	}
}

func TestConstantTimeCopies(t *testing.T) {
	t.Parallel()
	m := build.ConstantTime(50)
	in := orttest.Generate(t, m, 0, 4, 1)
	out := orttest.Infer(t, orttest.Load(t, m, oneThread), in)
	if !slices.Equal(out["OUTPUT"].Data, in["INPUT"].Data) {
		t.Error("the output is not the input")
	}
}

func TestFailingLoadsAndFails(t *testing.T) {
	t.Parallel()
	m := build.Failing()
	_, err := orttest.TryInfer(t, orttest.Load(t, m, oneThread), orttest.Generate(t, m, 0, 1, 1))
	var failure *ort.Error
	if !errors.As(err, &failure) {
		t.Errorf("a run gave %v, want ONNX Runtime's error", err)
	}
}

// reference is testdata/minilm/reference.json: what tools/minilm_reference.py computed with PyTorch
// and transformers.
type reference struct {
	Sentences []string    `json:"sentences"`
	IDs       [][]int64   `json:"input_ids"`
	Mask      [][]int64   `json:"attention_mask"`
	Types     [][]int64   `json:"token_type_ids"`
	Embedding [][]float64 `json:"embedding"`
}

func readReference(t *testing.T) reference {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "minilm", "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ref reference
	if err := json.Unmarshal(data, &ref); err != nil {
		t.Fatal(err)
	}
	return ref
}

// The embeddings agree with those of an independent implementation. They are computed for all
// sentences in one padded batch, and for each sentence alone. Padding must not change them.
func TestMiniLMGivesTheReferenceEmbeddings(t *testing.T) {
	t.Parallel()
	ref := readReference(t)
	s := orttest.Open(t, orttest.MiniLM(t), oneThread)
	batch := len(ref.Sentences)
	compare(t, ref, 0, embed(t, s, ref.IDs, ref.Mask, ref.Types))
	for i := range batch {
		length := 0
		for _, m := range ref.Mask[i] {
			length += int(m)
		}
		alone := embed(t, s, [][]int64{ref.IDs[i][:length]}, [][]int64{ref.Mask[i][:length]}, [][]int64{ref.Types[i][:length]})
		compare(t, ref, i, alone)
	}
}

func embed(t *testing.T, s *ort.Session, ids, mask, types [][]int64) [][]float64 {
	t.Helper()
	out := orttest.Infer(t, s, map[string]inputs.Tensor{
		"input_ids": matrix(ids), "attention_mask": matrix(mask), "token_type_ids": matrix(types),
	})
	rows := make([][]float64, len(ids))
	data := out["embedding"].Data
	for i := range rows {
		for range 384 {
			rows[i] = append(rows[i], float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
			data = data[4:]
		}
	}
	return rows
}

func matrix(rows [][]int64) inputs.Tensor {
	var data []byte
	for _, row := range rows {
		for _, v := range row {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
	}
	return inputs.Tensor{Type: onnx.Int64, Shape: []int64{int64(len(rows)), int64(len(rows[0]))}, Data: data}
}

// compare compares rows with the reference from row first on. 32-bit arithmetic in another order
// costs about 1e-7. The tolerances of 1e-4 and a cosine of 0.99999 allow for other processors.
func compare(t *testing.T, ref reference, first int, rows [][]float64) {
	t.Helper()
	for i, row := range rows {
		want := ref.Embedding[first+i]
		var dot, norm, wantNorm, worst float64
		for j := range row {
			dot += row[j] * want[j]
			norm += row[j] * row[j]
			wantNorm += want[j] * want[j]
			worst = max(worst, math.Abs(row[j]-want[j]))
		}
		if cosine := dot / math.Sqrt(norm*wantNorm); !(cosine >= 0.99999 && worst <= 1e-4) {
			t.Errorf("%q: cosine %.7f, largest difference %.2g", ref.Sentences[first+i], cosine, worst)
		}
		if math.Abs(norm-1) > 1e-5 {
			t.Errorf("%q: the embedding's squared length is %v, want 1", ref.Sentences[first+i], norm)
		}
	}
}

func TestMiniLMRunsOnDerivedInputs(t *testing.T) {
	t.Parallel()
	path := orttest.MiniLM(t)
	m, err := onnx.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	derived, err := inputs.Derive(m, inputs.Options{Shape: map[string][]int64{"input_ids": {32}}})
	if err != nil {
		t.Fatal(err)
	}
	// The published vocabulary has 30522 tokens and 2 token types. One given shape sets the shared
	// symbol.
	want := map[string]inputs.Range{"input_ids": {Lo: 0, Hi: 30522}, "attention_mask": {Lo: 0, Hi: 2}, "token_type_ids": {Lo: 0, Hi: 2}}
	for _, in := range derived {
		if in.Range != want[in.Name] || !slices.Equal(in.Dims, []int64{32}) {
			t.Errorf("%s: %v of %v, want [32] of %v", in.Name, in.Dims, in.Range, want[in.Name])
		}
	}
	out := orttest.Infer(t, orttest.Open(t, path, oneThread), inputs.Generate(derived, 4, 1))
	if diff := cmp.Diff([]int64{4, 384}, out["embedding"].Shape); diff != "" {
		t.Error(diff)
	}
}

// ONNX Runtime finds the tensors that Write stored outside the file.
func TestExternalDataRuns(t *testing.T) {
	t.Parallel()
	m := build.MLP()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Write(path, 1); err != nil { // a limit of one byte moves all larger tensors outside
		t.Fatal(err)
	}
	in := orttest.Generate(t, m, 0, 2, 1)
	got := orttest.Infer(t, orttest.Open(t, path, oneThread), in)
	want := orttest.Infer(t, orttest.Load(t, m, oneThread), in)
	if !slices.Equal(got["OUTPUT"].Data, want["OUTPUT"].Data) {
		t.Error("with external data the model computes something else")
	}
}
