package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/profile"
	"tuner/profile/starter"
	"tuner/spec"
)

// initModel runs `tuner init` and returns the exit code, stdout, and the error's text.
func initModel(t *testing.T, args ...string) (code int, out, message string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newInit(console{in: nil, out: &stdout, err: &stderr})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		message = err.Error()
	}
	return exit.CodeOf(err), stdout.String(), message
}

// writeModel writes a model to a file.
func writeModel(t *testing.T, path string, m *onnx.Model) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(path, 0); err != nil {
		t.Fatal(err)
	}
}

func readProfileAt(t *testing.T, path string) spec.Profile {
	t.Helper()
	p, err := spec.ReadProfile(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInitFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "models", "words.onnx")
	writeModel(t, model, build.Identity(onnx.Float))
	work := filepath.Join(dir, "work")

	code, out, message := initModel(t, model, "-o", work)
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, message)
	}
	for _, want := range []string{"INPUT0 FLOAT[batch,length]", "profile.yaml", "analyze.yaml", "config.pbtxt", "next:", "--dry-run"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	p := readProfileAt(t, filepath.Join(work, "profile.yaml"))
	if p.Name != "words" || p.Model.Path != model || p.Model.Config != filepath.Join(work, "config.pbtxt") {
		t.Errorf("name %q, model %+v", p.Name, p.Model)
	}
	if diff := cmp.Diff(map[string][]int64{"INPUT0": {128}}, p.Inputs.Shape); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(p.Model.Config)
	if err != nil {
		t.Fatal(err)
	}
	config, err := modelconfig.Parse(p.Model.Config, text)
	if err != nil {
		t.Fatal(err)
	}
	// Triton's completion gives batches up to 4 and two CPU instances. dims have no batch
	// dimension.
	group := config.GetInstanceGroup()
	if config.GetMaxBatchSize() != 4 || config.GetDynamicBatching() == nil || len(group) != 1 || group[0].GetCount() < 1 {
		t.Errorf("configuration is not complete:\n%s", text)
	}
	if diff := cmp.Diff([]int64{-1}, config.GetInput()[0].GetDims()); diff != "" {
		t.Error(diff)
	}
}

// Without --force nothing is replaced. With it, everything is.
func TestInitKeepsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model, mine := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "analyze.yaml")
	writeModel(t, model, build.Identity(onnx.Float))
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, message := initModel(t, model, "-o", dir)
	if code != exit.Usage || !strings.Contains(message, mine) || !strings.Contains(message, "--force") {
		t.Errorf("exit %d: %s", code, message)
	}
	if _, err := os.Stat(filepath.Join(dir, "profile.yaml")); err == nil {
		t.Error("profile.yaml was written beside a file that may not be replaced")
	}
	if code, _, message := initModel(t, model, "-o", dir, "--force"); code != exit.OK {
		t.Errorf("exit %d: %s", code, message)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) == "mine" {
		t.Errorf("analyze.yaml was not replaced: %q, %v", text, err)
	}
}

// A Triton model folder does not change. Its configuration is the default.
func TestInitFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "repository", "words")
	writeModel(t, filepath.Join(folder, "1", "model.onnx"), build.Identity(onnx.Float))
	config := filepath.Join(folder, "config.pbtxt")
	own := `max_batch_size: 8 # mine
input { name: "INPUT0" data_type: TYPE_FP32 dims: [7] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [-1] }
`
	if err := os.WriteFile(config, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	code, out, message := initModel(t, folder, "-o", work)
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, message)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != own {
		t.Errorf("config.pbtxt changed: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(work, "config.pbtxt")); err == nil || !strings.Contains(out, "stays as it is") {
		t.Errorf("a second config.pbtxt was written\n%s", out)
	}
	p := readProfileAt(t, filepath.Join(work, "profile.yaml"))
	if p.Model.Path != folder || p.Model.Config != "" || p.Name != "words" {
		t.Errorf("name %q, model %+v", p.Name, p.Model)
	}
	// The user's configuration fixes the length.
	if diff := cmp.Diff(map[string][]int64{"INPUT0": {7}}, p.Inputs.Shape); diff != "" {
		t.Error(diff)
	}
}

// Unusable input ends with exit code 2 and a message that names it. Nothing is written.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	check := func(name string, prepare func(dir string) string, want ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			work := filepath.Join(dir, "work")
			code, out, message := initModel(t, prepare(dir), "-o", work)
			if code != exit.Usage || out != "" {
				t.Errorf("exit %d, stdout %q", code, out)
			}
			for _, w := range want {
				if !strings.Contains(message, w) {
					t.Errorf("message %q lacks %q", message, w)
				}
			}
			if _, err := os.Stat(work); err == nil {
				t.Error("the output folder was made")
			}
		})
	}
	file := func(content string) func(string) string {
		return func(dir string) string {
			path := filepath.Join(dir, "model.onnx")
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	check("missing", func(dir string) string { return filepath.Join(dir, "nosuch.onnx") }, "nosuch.onnx", "no such file")
	check("text", file("hello\n"), "model.onnx", "not an ONNX file")
	check("empty", file(""), "model.onnx", "empty")
	check("empty folder", func(dir string) string { return dir }, "no version to serve")
	check("truncated", func(dir string) string {
		path := filepath.Join(dir, "model.onnx")
		writeModel(t, path, build.Identity(onnx.Float))
		if err := os.Truncate(path, 60); err != nil {
			t.Fatal(err)
		}
		return path
	}, "model.onnx", "truncated")
	check("sequence input", func(string) string { return "../../testdata/ort/sequence.onnx" }, "unsupported type", "sequence")
}

// Open sides of an image get an image's size. The profile marks which shapes are examples.
func TestInitSaysWhichShapesAreExamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := build.NewGraph("detector")
	image := g.Input("x", onnx.Float, onnx.Symbol("n"), onnx.Fixed(3), onnx.Dim{Size: -1}, onnx.Dim{Size: -1})
	g.OutputAs("y", g.Node("Relu", []string{image}), onnx.Float, onnx.Symbol("n"), onnx.Fixed(3), onnx.Dim{Size: -1}, onnx.Dim{Size: -1})
	path := filepath.Join(dir, "detector.onnx")
	writeModel(t, path, g.Model())
	work := filepath.Join(dir, "work")
	if code, _, message := initModel(t, path, "-o", work); code != exit.OK {
		t.Fatalf("exit %d: %s", code, message)
	}
	p := readProfileAt(t, filepath.Join(work, "profile.yaml"))
	want := spec.Inputs{Shape: map[string][]int64{"x": {3, 224, 224}}, Examples: map[string]string{"x": "sides of 224 pixels, as images of ImageNet"}}
	if diff := cmp.Diff(want, p.Inputs); diff != "" {
		t.Error(diff)
	}
	subject, err := profile.OpenSubject(p, profile.Place{})
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := starter.ExampleShapes(subject, map[string][]int64{"x": {3, 640, 480}})
	if err != nil || len(shapes) != 1 || shapes[0].Reason != "" || !cmp.Equal(shapes[0].Dims, []int64{3, 640, 480}) {
		t.Errorf("given: %+v, %v", shapes, err)
	}
}

// The commands after it can be pasted, for every folder name.
func TestInitNamesWhatComesNext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "words.onnx")
	writeModel(t, model, build.Identity(onnx.Float))
	work := filepath.Join(dir, "it's mine")
	code, out, message := initModel(t, model, "-o", work)
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, message)
	}
	quoted := "'" + dir + `/it'\''s mine/`
	for _, want := range []string{"tuner profile -f " + quoted + "profile.yaml' --dry-run\n", "tuner profile -f " + quoted + "profile.yaml'\n", "tuner analyze -f " + quoted + "analyze.yaml'\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}
