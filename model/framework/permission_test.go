package framework_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tuner/model/framework"
)

// stubTorch replaces PyTorch. It records load calls in $LOADED. It treats every file as TorchScript
// and refuses it.
const stubTorch = `
import os
__version__ = os.environ["STUB_VERSION"]
def note(text):
    with open(os.environ["LOADED"], "a") as f:
        f.write(text + "\n")
def manual_seed(n): pass
def load(path, map_location=None, weights_only=None):
    note(f"load weights_only={weights_only}")
    raise ValueError("a stub")
class jit:
    @staticmethod
    def load(path, map_location=None):
        note("jit.load")
        raise RuntimeError("no TorchScript")
`

// Before 2.6, PyTorch ran code of files even with weights_only. So nothing is loaded without
// permission.
func TestOldPyTorchNeedsPermission(t *testing.T) {
	if exec.Command("python3", "-c", "").Run() != nil {
		t.Skip("needs python3")
	}
	stubs := t.TempDir()
	for name, content := range map[string]string{"torch.py": stubTorch, "numpy.py": "", "onnx.py": ""} {
		writeFile(t, filepath.Join(stubs, name), content)
	}
	t.Setenv("PYTHONPATH", stubs)
	s := source(t)
	writeFile(t, s.Path, "\x80\x02 a pickle")
	export := func(version string, mayPickle bool) (string, error) {
		loaded := filepath.Join(t.TempDir(), "loaded")
		t.Setenv("LOADED", loaded)
		t.Setenv("STUB_VERSION", version)
		s.AllowPickle = mayPickle
		_, err := framework.Export(t.Context(), s, "python3", filepath.Join(t.TempDir(), "model.onnx"), answer{})
		text, readErr := os.ReadFile(loaded)
		if readErr != nil && !os.IsNotExist(readErr) {
			t.Fatal(readErr)
		}
		return string(text), err
	}
	for _, version := range []string{"2.5.1+cu121", "1.13.0", "2.5.0a0+git1234"} {
		loaded, err := export(version, false)
		if loaded != "" || !errors.Is(err, framework.ErrPermission) || !strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "2.6") {
			t.Errorf("PyTorch %s loaded %q, and %v", version, loaded, err)
		}
	}
	for version, mayPickle := range map[string]bool{"2.6.0+cpu": false, "2.10.0": false, "3.0": false, "2.5.1": true} {
		loaded, err := export(version, mayPickle)
		if !strings.HasPrefix(loaded, "jit.load\nload weights_only=True\n") || err == nil || !strings.Contains(err.Error(), "a stub") {
			t.Errorf("PyTorch %s, permitted: %t: loaded %q, and %v", version, mayPickle, loaded, err)
		}
	}
}
