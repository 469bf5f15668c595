package cli

import (
	"strings"
	"testing"

	"tuner/internal/exit"
	"tuner/model/framework"
)

func TestFrameworkFlags(t *testing.T) {
	t.Parallel()
	given := func(flag string) bool { return flag == "in-names" }
	if err := checkFrameworkFlags("net.onnx", given); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "--in-names is for models of PyTorch (.pt, .pth), TensorFlow") {
		t.Errorf("%v", err)
	}
	if err := checkFrameworkFlags("net.PTH", given); err != nil {
		t.Error(err)
	}
	of, _ := framework.Of("net.pt")
	if s, err := (frameworkOptions{inNames: "x", inShapes: "[-1,1]", outNames: "y, z"}).source(of, "net.pt"); err != nil || len(s.Outputs) != 2 || s.Outputs[1] != "z" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err := frameworkOptions{inNames: "x"}.source(of, "net.pt")
	if exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "there are 1 names and 0 shapes; a PyTorch file does not have them: use --in-names") {
		t.Error(err)
	}
}
