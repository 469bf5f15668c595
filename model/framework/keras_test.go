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

// stubKeras replaces Keras. It records how it is asked to load a file, and refuses the file.
const stubKeras = `
import os
__version__ = os.environ["STUB_VERSION"]
class models:
    @staticmethod
    def load_model(path, compile=True, safe_mode=True):
        with open(os.environ["LOADED"], "a") as f:
            f.write(f"safe_mode={safe_mode}\n")
        raise ValueError("a stub")
`

// stubTensorFlow replaces TensorFlow, as far as it is used before Keras loads a file.
const stubTensorFlow = `
__version__ = "2.x"
class random:
    @staticmethod
    def set_seed(n): pass
`

// Before 3.13.2, Keras had ways around its safe_mode. So nothing is loaded without permission, and
// only permission switches safe_mode off.
func TestOldKerasNeedsPermission(t *testing.T) {
	if exec.Command("python3", "-c", "").Run() != nil {
		t.Skip("needs python3")
	}
	stubs := t.TempDir()
	for name, content := range map[string]string{"keras.py": stubKeras, "tensorflow.py": stubTensorFlow, "tf2onnx.py": "", "numpy.py": "", "onnx.py": ""} {
		writeFile(t, filepath.Join(stubs, name), content)
	}
	t.Setenv("PYTHONPATH", stubs)
	path := filepath.Join(t.TempDir(), "net.h5")
	writeFile(t, path, "\x89HDF\r\n")
	for _, c := range []struct {
		version    string
		isAllowed  bool
		wantLoaded string
	}{
		{"2.15.0", false, ""}, {"3.9.0", false, ""}, {"3.13.1", false, ""},
		{"3.13.2", false, "safe_mode=True\n"}, {"3.15.1", false, "safe_mode=True\n"}, {"4.0.0", false, "safe_mode=True\n"},
		{"3.9.0", true, "safe_mode=False\n"}, {"3.15.1", true, "safe_mode=False\n"},
	} {
		record := filepath.Join(t.TempDir(), "loaded")
		t.Setenv("LOADED", record)
		t.Setenv("STUB_VERSION", c.version)
		s := framework.Source{Framework: of(t, path), Path: path, AllowPickle: c.isAllowed}
		_, err := framework.Export(t.Context(), s, "python3", filepath.Join(t.TempDir(), "model.onnx"), answer{})
		loaded, readErr := os.ReadFile(record)
		if readErr != nil && !os.IsNotExist(readErr) {
			t.Fatal(readErr)
		}
		if string(loaded) != c.wantLoaded || errors.Is(err, framework.ErrPermission) != (c.wantLoaded == "") {
			t.Errorf("Keras %s, permitted: %t: loaded %q, and %v", c.version, c.isAllowed, loaded, err)
		}
		if c.wantLoaded == "" && !strings.Contains(err.Error(), c.version) {
			t.Errorf("%v does not name the version", err)
		}
	}
}
