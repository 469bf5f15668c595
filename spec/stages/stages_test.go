package stages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/spec"
	"tuner/spec/stages"
)

// repository makes a folder with an ensemble of three steps, two of which call the same model.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("repository/search/config.pbtxt", `platform: "ensemble" ensemble_scheduling {
  step { model_name: "tokenizer" model_version: -1 }
  step { model_name: "encoder" model_version: -1 }
  step { model_name: "tokenizer" model_version: -1 }
}`)
	put("repository/code/config.pbtxt", `backend: "python"`)
	return dir
}

// Stages that the file lacks are added, and those that it has keep their fields.
func TestComplete(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	path := filepath.Join(dir, "p.yaml")
	check := func(text string, unchanged bool, want ...string) {
		t.Helper()
		got, err := stages.Complete(path, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if (string(got) == text) != unchanged || !strings.HasPrefix(string(got), strings.TrimRight(text[:9], "\n")) {
			t.Errorf("%s becomes %s", text, got)
		}
		p, err := spec.ParseProfile(path, got)
		if err != nil {
			t.Errorf("%s becomes %s: %v", text, got, err)
			return
		}
		if names := strings.Join(p.ModelNames(), " "); names != strings.Join(want, " ") {
			t.Errorf("%s has the stages %s, want %v", text, names, want)
		}
	}
	check("pipeline: repository/search\n", false, "tokenizer", "encoder")
	check("pipeline: repository/search # why\nmodels: {encoder: {space: {instance_count: [1, 2]}}}\n", false, "encoder", "tokenizer")
	check("pipeline: repository/search\nmodels: {encoder: {}, tokenizer: {}}\n", true, "encoder", "tokenizer")
	check("pipeline: repository/code\nmodels: {encoder: {}}\n", true, "encoder")
	check("model: m.onnx\n", true)
}

// A folder that cannot be read is a mistake in the field that names it.
func TestCompleteFails(t *testing.T) {
	t.Parallel()
	_, err := stages.Complete("p.yaml", []byte("# why\npipeline: nowhere\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:2: pipeline: cannot open model folder") {
		t.Errorf("got %v", err)
	}
}

// The completed text names the stages that the file names, whatever the text is.
func FuzzComplete(f *testing.F) {
	for _, text := range []string{"pipeline: a\nmodels: {b: {}}\n", "pipeline: [a]\n", "pipeline: a\nmodels: [b]\n", "a: b", "- a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := stages.Complete(filepath.Join(t.TempDir(), "p.yaml"), []byte(text))
		if err == nil && string(got) != text { // nothing is found in an empty folder
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
