// Package frameworktest replaces a Python with PyTorch, for tests of code that exports models.
package frameworktest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tuner/internal/programtest"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
)

// Status is the report of a successful export.
const Status = `{"status": "ok", "version": "2.x", "kind": "TorchScript", "exporter": "one exporter", "examples": 1}`

// Python makes a shell script that replaces a Python with PyTorch, and returns its path. It exports
// a model and reports status. It also reports that the model's output out was equal to its input
// in.
func Python(t *testing.T, m *onnx.Model, in, out, status string) string {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(filepath.Join(dir, "model.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	tensor := inputs.Tensor{Type: onnx.Float, Shape: []int64{1, 1}, Data: onnx.AppendFloat(nil, onnx.Float, 0.5)}
	for name, arrays := range map[string]map[string]inputs.Tensor{"example0.in.npz": {in: tensor}, "example0.out.npz": {out: tensor}} {
		var buffer bytes.Buffer
		if err := npy.WriteArchive(&buffer, arrays); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), buffer.String())
	}
	write(t, filepath.Join(dir, "result.json"), status)
	return programtest.Write(t, filepath.Join(dir, "python"), "#!/bin/sh\ncp '"+dir+"'/*.onnx '"+dir+"'/*.npz '"+dir+"'/*.json \"$2\"\n")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
