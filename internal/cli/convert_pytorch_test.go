package cli

import (
	"os"
	"strings"
	"testing"

	"tuner/internal/exit"
)

func writeText(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestPyTorchFlags(t *testing.T) {
	t.Parallel()
	given := func(flag string) bool { return flag == "in-names" }
	if err := checkPyTorchFlags("net.onnx", given); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "--in-names is for PyTorch's files") {
		t.Errorf("%v", err)
	}
	if err := checkPyTorchFlags("net.PTH", given); err != nil {
		t.Error(err)
	}
	if s, err := (pytorchOptions{inNames: "x", inShapes: "[-1,1]", outNames: "y, z"}).source("net.pt"); err != nil || len(s.Outputs) != 2 || s.Outputs[1] != "z" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err := pytorchOptions{inNames: "x"}.source("net.pt")
	if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "there are 1 names and 0 shapes; a PyTorch file does not have them: use --in-names") {
		t.Error(err)
	}
}
