package profile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/orttest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/ort"
	"tuner/ort/sessionoption"
	"tuner/profile"
)

func TestMain(m *testing.M) { os.Exit(orttest.Main(m)) }

// A configuration must have the output sizes that ONNX Runtime reports: those declared in the file,
// narrowed by those inferred from the graph.
func TestSignatureIsONNXRuntimes(t *testing.T) {
	t.Parallel()
	orttest.Runtime(t)
	models := map[string]*onnx.Model{"scalar": build.Scalar(), "mlp": build.MLP(), "cnn": build.CNN(0), "lstm": build.LSTM(),
		"bertsquad": build.BertSquadLike(), "recommender": build.EmbeddingRecommender(), "simple": build.Simple(), "scalar in the file alone": scalarOnPaper()}
	for _, name := range []string{"minilm", "mobilenet", "resnet"} {
		m, err := onnx.Read(filepath.Join(os.Getenv("TUNER_MODELS"), name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		models[name] = m
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]int64{}
			for _, out := range profile.Signature(m).Outputs {
				got[out.Name] = out.Dims
			}
			want := map[string][]int64{}
			for _, out := range orttest.Load(t, m, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}}).Outputs() {
				want[out.Name] = out.Shape
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("shapes of outputs (-ONNX Runtime +signature):\n%s", diff)
			}
		})
	}
}

// scalarOnPaper is a model that declares its output of two dimensions as a scalar, as paddle2onnx does.
func scalarOnPaper() *onnx.Model {
	g := build.NewGraph("paper")
	x := g.Input("x", onnx.Float, onnx.Symbol("batch"), onnx.Fixed(3))
	g.OutputAs("y", g.Node("Softmax", []string{x}), onnx.Float)
	return g.Model()
}
