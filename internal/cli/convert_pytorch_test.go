package cli

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/dataset/npy"
	"tuner/onnx"
	"tuner/onnx/build"
	"tuner/onnx/inputs"
	"tuner/precision"
	"tuner/pytorch"
)

// echoOpener is an opener whose sessions answer y with x.
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

// fakePyTorch is a shell script in the place of a Python with PyTorch: it exports the sample model, whose output y was x.
func fakePyTorch(t *testing.T, status string) string {
	t.Helper()
	return fakeExport(t, build.Simple(), "x", "y", status)
}

// fakeExport is such a script that exports a model, whose output was the input.
func fakeExport(t *testing.T, m *onnx.Model, in, out, status string) string {
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
		writeText(t, filepath.Join(dir, name), buffer.String(), 0o600)
	}
	writeText(t, filepath.Join(dir, "result.json"), status, 0o600)
	python := filepath.Join(dir, "python")
	writeText(t, python, "#!/bin/sh\ncp '"+dir+"'/*.onnx '"+dir+"'/*.npz '"+dir+"'/*.json \"$2\"\n", 0o700)
	return python
}

func writeText(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestExportPyTorch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "net.pt")
	writeText(t, path, "TorchScript", 0o600)
	out, err := exportTarget(path, filepath.Join(dir, "made"), false)
	if err != nil {
		t.Fatal(err)
	}
	source, err := pytorchOptions{inNames: "x", inShapes: "[-1,1]", outNames: "y, z"}.source(path)
	if err != nil || len(source.Outputs) != 2 || source.Outputs[1] != "z" {
		t.Fatalf("%+v, %v", source, err)
	}
	var said bytes.Buffer
	python := fakePyTorch(t, `{"status": "ok", "torch": "2.x", "kind": "TorchScript", "exporter": "one exporter", "examples": 1}`)
	if err := exportPyTorch(t.Context(), console{err: &said}, source, python, out, echoOpener{}); err != nil {
		t.Fatal(err)
	}
	if _, err := onnx.Read(out); err != nil {
		t.Error(err)
	}
	if want := "TorchScript, exported by the one exporter of PyTorch 2.x; greatest difference from PyTorch's outputs on 1 random inputs: 0\n"; !strings.HasSuffix(said.String(), want) {
		t.Errorf("it said %q, want %q", said.String(), want)
	}

	if _, err := exportTarget(path, filepath.Join(dir, "made"), false); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the file is there: %v", err)
	}
	if again, err := exportTarget(path, filepath.Join(dir, "made"), true); err != nil || again != out {
		t.Errorf("by force: %q, %v", again, err)
	}
	err = exportPyTorch(t.Context(), console{err: &said}, source, fakePyTorch(t, `{"status": "pickle"}`), out, echoOpener{})
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "here the permission is --allow-pickle") {
		t.Errorf("pickled: %v", err)
	}
}

func TestAgreementText(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]pytorch.Report{
		"outputs equal PyTorch's on 2 random inputs":                             {Examples: 2, MaxAbs: math.NaN()}, // whole numbers
		"greatest difference from PyTorch's outputs on 3 random inputs: 1.2e-07": {Examples: 3, MaxAbs: 1.19e-7},
	} {
		if got := agreementText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPyTorchFlags(t *testing.T) {
	t.Parallel()
	given := func(flag string) bool { return flag == "in-names" }
	if err := checkPyTorchFlags("net.onnx", given); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--in-names is for PyTorch's files") {
		t.Errorf("%v", err)
	}
	if err := checkPyTorchFlags("net.PTH", given); err != nil {
		t.Error(err)
	}
	_, err := pytorchOptions{inNames: "x"}.source("net.pt")
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "there are 1 names and 0 shapes; a PyTorch file does not tell them: use --in-names") {
		t.Error(err)
	}
}
