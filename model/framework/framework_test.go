package framework_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/internal/children/childrentest"
	"tuner/internal/programtest"
	"tuner/model/dataset/npy"
	"tuner/model/framework"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/inputs"
)

// floats makes a FLOAT tensor with one row.
func floats(values ...float64) inputs.Tensor {
	t := inputs.Tensor{Type: onnx.Float, Shape: []int64{1, int64(len(values))}}
	for _, v := range values {
		t.Data = onnx.AppendFloat(t.Data, onnx.Float, v)
	}
	return t
}

// answer is a Runner that always gives the same outputs.
type answer map[string]inputs.Tensor

func (a answer) Run(context.Context, string, map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	return a, nil
}

// source makes a file with some content, and an input for it.
func source(t *testing.T) framework.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.pt")
	writeFile(t, path, "weights")
	return framework.Source{Framework: of(t, path), Path: path, Inputs: []framework.Input{{Name: "x", Type: onnx.Float, Shape: []int64{-1, 2}}}}
}

// of returns the framework of a file.
func of(t *testing.T, path string) framework.Framework {
	t.Helper()
	f, ok := framework.Of(path)
	if !ok {
		t.Fatalf("%s belongs to no framework", path)
	}
	return f
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fakePython makes a shell script that replaces Python. It receives the program and its folder, and
// does what script says. $files has the files of a good run, in which PyTorch's output y is 1, 2.
func fakePython(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := build.Simple().Write(filepath.Join(files, "model.onnx"), 0); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(files, "result.json"), `{"status": "ok", "version": "2.x", "kind": "TorchScript", "exporter": "one", "examples": 1}`)
	for name, arrays := range map[string]map[string]inputs.Tensor{"example0.in.npz": {"x": floats(5, 6)}, "example0.out.npz": {"y": floats(1, 2)}} {
		var buffer bytes.Buffer
		if err := npy.WriteArchive(&buffer, arrays); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(files, name), buffer.String())
	}
	return programtest.Write(t, filepath.Join(dir, "python"), "#!/bin/sh\nfiles='"+files+"'\n"+script+"\n")
}

// checkClean checks that a failure leaves no files.
func checkClean(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left", e.Name())
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	// The program and the request exist when Python starts.
	python := fakePython(t, `grep -q '"opset":17' "$2/request.json" && grep -q 'torch.onnx' "$1" && cp "$files"/* "$2"`)
	dir := t.TempDir()
	out := filepath.Join(dir, "model.onnx")
	got, err := framework.Export(t.Context(), source(t), python, out, answer{"y": floats(1, 2.0005)})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.MaxAbs-0.0005) > 1e-6 || got.Version != "2.x" || got.Kind != "TorchScript" || got.Exporter != "one" || got.Examples != 1 {
		t.Errorf("report %+v", got)
	}
	if _, err := onnx.Read(out); err != nil {
		t.Error(err)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	checkClean(t, dir)
}

// A model that disagrees with PyTorch is not written.
func TestExportRefusesOtherOutputs(t *testing.T) {
	t.Parallel()
	python := fakePython(t, `cp "$files"/* "$2"`)
	check := func(name string, got answer, want string) {
		dir := t.TempDir()
		_, err := framework.Export(t.Context(), source(t), python, filepath.Join(dir, "model.onnx"), got)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		checkClean(t, dir)
	}
	check("values", answer{"y": floats(1, 2.5)}, `the exported model's outputs are not PyTorch's: output "y" differs by up to 0.5, relative 0.25`)
	check("NaN", answer{"y": floats(1, math.NaN())}, `output "y" differs`)
	check("shape", answer{"y": floats(1, 2, 3)}, "its shape is [1 3], the original's [1 2]")
	check("name", answer{"z": floats(1, 2)}, `lacks the output "y"`)
}

func TestExportExplains(t *testing.T) {
	t.Parallel()
	check := func(name, script string, want ...string) {
		dir := t.TempDir()
		_, err := framework.Export(t.Context(), source(t), fakePython(t, script), filepath.Join(dir, "model.onnx"), answer{})
		for _, part := range append(want, "cannot make an ONNX model of", "model.pt") {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", name, err, part)
			}
		}
		checkClean(t, dir)
	}
	says := func(status, message string) string {
		return `echo '{"status": "` + status + `", "message": "` + message + `"}' > "$2/result.json"`
	}
	check("packages", says("packages", "No module named torch"), "lacks a package (No module named torch)", "-m pip install torch onnx onnxscript",
		`torch.onnx.export(model, (torch.zeros((2,2,), dtype=torch.float32),), `, `dynamic_axes={"x": {0: "batch"}, "output": {0: "batch"}}, opset_version=17`)
	check("weights", says("weights", ""), "weights alone (a state_dict)", "load_state_dict")
	check("pickle", says("pickle", ""), "loading it runs any code that the file names", "torch.jit.save")
	check("old", says("old", "2.5.1"), "PyTorch 2.5.1 is older than 2.6", "it needs your permission", "-m pip install 'torch>=2.6'")
	check("classes", says("classes", "No module named net"), "(No module named net)", "PYTHONPATH")
	check("no module", says("no_module", "dict"), "it holds dict")
	check("unreadable", says("unreadable", "not a zip file"), "PyTorch cannot read it: not a zip file")
	check("outputs", says("outputs", "two"), ": two")
	check("run", says("run", "sizes"), "(x FLOAT[-1 2]): sizes")
	check("export", says("export", "no operator"), "PyTorch cannot export it:\n  no operator\n", "by hand")
	check("crash", `echo first; echo last >&2; exit 7`, "ended without a result", "exit status 7", "first\n  last")
	check("traceback", `printf 'fatal error: x.h\nTraceback:\n  File "x.py"\n    f()\n  1 %%\r100 %%\nRuntimeError: no'; exit 1`,
		"  fatal error: x.h\n  Traceback:\n    File \"x.py\"\n      f()\n  100 %\n  RuntimeError: no")
	check("torn result", `echo '{' > "$2/result.json"`, "ended without a result")
	check("no model", `cp "$files/result.json" "$2"`, "model.onnx")
	check("no example", `cp "$files"/*.onnx "$files"/*.json "$2"`, "example0.in.npz")
}

func TestExportWithoutPython(t *testing.T) {
	t.Parallel()
	_, err := framework.Export(t.Context(), source(t), filepath.Join(t.TempDir(), "python"), filepath.Join(t.TempDir(), "model.onnx"), answer{})
	for _, part := range []string{"was not found", "python3 -m pip install torch onnx onnxscript", "torch.jit.load("} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
}

// The error names the file or folder in the way.
func TestExportCannotWrite(t *testing.T) {
	t.Parallel()
	python := fakePython(t, `cp "$files"/* "$2"`)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "")
	if err := os.Mkdir(filepath.Join(dir, "folder.onnx"), 0o755); err != nil {
		t.Fatal(err)
	}
	for out, wrong := range map[string]string{"file/model.onnx": "file", "file/below/model.onnx": "file/below", "folder.onnx": "folder.onnx"} {
		_, err := framework.Export(t.Context(), source(t), python, filepath.Join(dir, out), answer{"y": floats(1, 2)})
		var write *framework.WriteError
		if !errors.As(err, &write) || write.Path != filepath.Join(dir, wrong) || !strings.Contains(err.Error(), fmt.Sprintf("cannot write %q: ", write.Path)) {
			t.Errorf("%s: %v", out, err)
		}
	}
}

func TestExportCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user is tired of waiting")
	cancel(cause)
	_, err := framework.Export(ctx, source(t), fakePython(t, "exit 1"), filepath.Join(t.TempDir(), "model.onnx"), answer{})
	if !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestExportChecksSource(t *testing.T) {
	t.Parallel()
	check := func(change func(s *framework.Source), want ...string) {
		s := source(t)
		change(&s)
		_, err := framework.Export(t.Context(), s, fakePython(t, "exit 1"), filepath.Join(t.TempDir(), "model.onnx"), answer{})
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %q", err, part)
			}
		}
	}
	check(func(s *framework.Source) { s.Path = "none.pt" }, `"none.pt": no such file`)
	check(func(s *framework.Source) { s.Path = filepath.Dir(s.Path) }, "it is not a file; name the file itself (.pt, .pth)")
	check(func(s *framework.Source) { s.Inputs = nil }, "give their names, types and shapes")
	check(func(s *framework.Source) {
		s.Outputs = []string{"x"}
		s.Inputs = append(s.Inputs, framework.Input{Name: "text", Type: onnx.String, Shape: []int64{0}}, framework.Input{Name: "text", Type: onnx.Bool})
	}, `input "x": every input and output needs a name of its own`, `input "text": PyTorch has no STRING`, "the size 0 is neither", `input "text": every`)
}

// PyTorch and its child processes end when tuner is killed.
func TestExportEndsWithTuner(t *testing.T) {
	childrentest.CheckKilled(t, func(script string) {
		_, _ = framework.Export(context.Background(), source(t), fakePython(t, script), filepath.Join(t.TempDir(), "model.onnx"), answer{})
	})
}
