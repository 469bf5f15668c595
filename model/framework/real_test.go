package framework_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/model/framework"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/ort"
	"tuner/ort/sessionoption"
)

// makeModels saves models into a folder:
//
//   - a module with an embedding and a linear layer as TorchScript, pickled, and as weights only,
//   - one with an operator that only the newer exporter supports,
//   - one whose sum depends on a size, which tracing cannot see.
const makeModels = `
import sys, torch
open(sys.argv[1] + "/nets.py", "w").write('''
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)
        self.last = torch.nn.Linear(4, 3)
    def forward(self, ids, scale):
        return {"scores": self.last(self.table(ids).mean(1) * scale), "length": ids.sum(1)}
class Tuple(Net):
    def forward(self, ids, scale):
        return tuple(super().forward(ids, scale).values())
class Spectrum(torch.nn.Module):
    def forward(self, x):
        return torch.fft.rfft(x).abs()
class Depends(torch.nn.Module):
    def forward(self, ids, scale):
        return scale + (1.0 if ids.shape[1] > 70 else 0.0)
''')
sys.path.insert(0, sys.argv[1])
import nets
torch.manual_seed(7)
net = nets.Net().eval()
traced = nets.Tuple().eval()
example = (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 1))
torch.jit.save(torch.jit.trace(traced, example), sys.argv[1] + "/script.pt")
torch.save(net, sys.argv[1] + "/pickled.pth")
torch.save(net.state_dict(), sys.argv[1] + "/weights.pth")
torch.save(nets.Spectrum(), sys.argv[1] + "/spectrum.pth")
torch.save(nets.Depends(), sys.argv[1] + "/depends.pth")
`

// runtime runs models with ONNX Runtime in this process.
type runtime struct{ *ort.Runtime }

func (r runtime) Run(ctx context.Context, model string, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	s, err := r.NewSession(model, ort.SessionOptions{Settings: sessionoption.Settings{sessionoption.IntraOpThreads: "1"}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var feeds []*ort.Tensor
	for _, info := range s.Inputs() {
		feed, err := r.NewTensor(ort.ElementType(in[info.Name].Type), in[info.Name].Shape, in[info.Name].Data)
		if err != nil {
			return nil, err
		}
		defer feed.Close()
		feeds = append(feeds, feed)
	}
	var names []string
	for _, info := range s.Outputs() {
		names = append(names, info.Name)
	}
	outputs, err := s.Run(ctx, feeds, names)
	if err != nil {
		return nil, err
	}
	got := map[string]inputs.Tensor{}
	for i, o := range outputs {
		got[names[i]] = inputs.Tensor{Type: onnx.DataType(o.Type()), Shape: slices.Clone(o.Shape()), Data: slices.Clone(o.Bytes())}
		o.Close()
	}
	return got, nil
}

// TestRealPyTorch exports with PyTorch. TUNER_TORCH_PYTHON names a Python that has torch, onnx,
// onnxscript and numpy.
func TestRealPyTorch(t *testing.T) {
	python, library := os.Getenv("TUNER_TORCH_PYTHON"), os.Getenv("TUNER_ORT_LIBRARY")
	if python == "" || library == "" {
		t.Skip("needs PyTorch and ONNX Runtime: set TUNER_TORCH_PYTHON and TUNER_ORT_LIBRARY")
	}
	dir := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), python, "-c", makeModels, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	r, err := ort.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	export := func(name string, change func(s *framework.Source)) (*onnx.Model, error) {
		s := framework.Source{Framework: of(t, "model.pt"), Path: filepath.Join(dir, name), Inputs: []framework.Input{
			{Name: "ids", Type: onnx.Int64, Shape: []int64{-1, -1}}, {Name: "scale", Type: onnx.Float, Shape: []int64{-1, 1}}}}
		change(&s)
		out := filepath.Join(dir, name+".onnx")
		report, err := framework.Export(t.Context(), s, python, out, runtime{r})
		if err != nil {
			return nil, err
		}
		t.Logf("%s: %+v", name, report)
		return onnx.Read(out)
	}
	plain := func(*framework.Source) {}
	trusted := func(s *framework.Source) { s.AllowPickle = true }

	check := func(name string, change func(*framework.Source), outputs ...string) {
		m, err := export(name, change)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for i, want := range outputs {
			if got := m.Outputs()[i].String(); got != want {
				t.Errorf("%s: output %s, want %s", name, got, want)
			}
		}
	}
	check("script.pt", plain, "output_0 FLOAT[batch,3]", "output_1 INT64[batch]")
	check("script.pt", func(s *framework.Source) { s.Outputs = []string{"a", "b"} }, "a FLOAT[batch,3]", "b INT64[batch]")
	check("pickled.pth", trusted, "scores FLOAT[batch,3]", "length INT64[batch]")
	check("spectrum.pth", func(s *framework.Source) {
		s.AllowPickle, s.Inputs = true, []framework.Input{{Name: "x", Type: onnx.Float, Shape: []int64{-1, 16}}}
	}, "output FLOAT[batch,9]")
	refuse := func(name, want string, change func(*framework.Source)) {
		if _, err := export(name, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refuse("pickled.pth", "it needs your permission", plain)
	refuse("weights.pth", "weights alone", plain)
	refuse("script.pt", "the model has 2 outputs, 1 names are given", func(s *framework.Source) { s.Outputs = []string{"only"} })
	refuse("script.pt", "PyTorch cannot run it", func(s *framework.Source) { s.Inputs = s.Inputs[:1] })
	refuse("nets.py", "PyTorch cannot read it", plain)
	refuse("depends.pth", "the exported model's outputs are not PyTorch's", trusted)
}
