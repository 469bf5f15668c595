package conversion

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/model/framework"
	"tuner/model/framework/frameworktest"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
	"tuner/model/precision"
)

// echoOpener is an opener whose sessions return input x as output y.
type echoOpener struct{}

func (echoOpener) Open(_ context.Context, _ *onnx.Model, provider string) (precision.Session, error) {
	if provider != "cpu" {
		return nil, errors.New("only the CPU is trusted with the comparison")
	}
	return echoOpener{}, nil
}

func (echoOpener) Infer(_ context.Context, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	return map[string]inputs.Tensor{"y": in["x"]}, nil
}

func (echoOpener) Close(context.Context) {}

func TestExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "net.pt")
	if err := os.WriteFile(path, []byte("TorchScript"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exportTarget(path, filepath.Join(dir, "made"), false)
	if err != nil {
		t.Fatal(err)
	}
	in, err := framework.ParseInputs("x", "[-1,1]", "")
	if err != nil {
		t.Fatal(err)
	}
	of, _ := framework.Of(path)
	source := framework.Source{Framework: of, Path: path, Inputs: in, Outputs: []string{"y"}}
	var said bytes.Buffer
	python := frameworktest.Python(t, build.Simple(), "x", "y", frameworktest.Status)
	if err := Export(t.Context(), &said, source, python, out, echoOpener{}); err != nil {
		t.Fatal(err)
	}
	if _, err := onnx.Read(out); err != nil {
		t.Error(err)
	}
	if want := "TorchScript, exported by one exporter with PyTorch 2.x; greatest difference from the outputs of PyTorch on 1 random inputs: 0\n"; !strings.HasSuffix(said.String(), want) {
		t.Errorf("it said %q, want %q", said.String(), want)
	}

	if _, err := exportTarget(path, filepath.Join(dir, "made"), false); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the file is there: %v", err)
	}
	if again, err := exportTarget(path, filepath.Join(dir, "made"), true); err != nil || again != out {
		t.Errorf("by force: %q, %v", again, err)
	}
	err = Export(t.Context(), &said, source, frameworktest.Python(t, build.Simple(), "x", "y", `{"status": "pickle"}`), out, echoOpener{})
	if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "give the permission with --allow-pickle") {
		t.Errorf("pickled: %v", err)
	}
}

func TestAgreementText(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]framework.Report{
		"outputs equal those of PyTorch on 2 random inputs":                           {Examples: 2, MaxAbs: math.NaN()}, // whole numbers
		"greatest difference from the outputs of PyTorch on 3 random inputs: 1.2e-07": {Examples: 3, MaxAbs: 1.19e-7},
	} {
		if got := agreementText("PyTorch", r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
