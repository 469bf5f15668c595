package stages_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tuner/spec"
	"tuner/spec/document"
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
		got, _, err := stages.Complete(path, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		if (string(got) == text) != unchanged || !strings.HasPrefix(string(got), strings.TrimSpace(text[:9])) {
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
	check("{pipeline: repository/search}\n", false, "tokenizer", "encoder")
	check("{pipeline: repository/search,\n models: {encoder: {}}}\n", false, "encoder", "tokenizer")
	check("  pipeline: repository/search\n", false, "tokenizer", "encoder")
	check("pipeline: repository/search\n...\n", false, "tokenizer", "encoder")
	check("model: m.onnx\n", true)
	several := "pipeline: repository/search\n---\na: b\n"
	if got, _, err := stages.Complete(path, []byte(several)); err != nil || string(got) != several { // a mistake that package spec reports
		t.Errorf("%s becomes %s: %v", several, got, err)
	}
}

// Mistakes of a completed text have the lines of the file.
func TestLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(repository(t), "p.yaml")
	check := func(text string, want ...int) {
		t.Helper()
		completed, lines, err := stages.Complete(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.ParseProfile(path, completed)
		var mistakes document.Errors
		if !errors.As(lines.InFile(err), &mistakes) {
			t.Fatalf("%s becomes %s: %v", text, completed, err)
		}
		var got []int
		for _, m := range mistakes {
			got = append(got, m.Line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: mistakes in lines %v, want %v: %v", text, got, want, mistakes)
		}
	}
	check("# why\n\npipeline: repository/search\n\nmodels:\n\n  encoder:\n    speed: 1 # wrong\n\nsearch: {seed: no}\n\n\nspeed: 2\n", 8, 10, 13)
	check("\n\nspeed: 1\n\npipeline: repository/search\n\nsearch:\n\n  seed: no\n", 3, 9)
	check("{pipeline: repository/search,\n speed: 1}\n", 1)
	check("pipeline: repository/search\nmodels: {encoder: {}, tokenizer: {}}\n\nspeed: 1\n", 4)
}

// A folder that cannot be read is a mistake in the field that names it.
func TestCompleteFails(t *testing.T) {
	t.Parallel()
	_, _, err := stages.Complete("p.yaml", []byte("# why\npipeline: nowhere\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:2: pipeline: cannot open model folder") {
		t.Errorf("got %v", err)
	}
}

// The completed text names the stages that the file names, whatever the text is.
func FuzzComplete(f *testing.F) {
	for _, text := range []string{"pipeline: a\nmodels: {b: {}}\n", "pipeline: [a]\n", "pipeline: a\nmodels: [b]\n", "a: b", "- a", "# a", "---", "{pipeline: a}", " pipeline: a\n---\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, _, err := stages.Complete(filepath.Join(t.TempDir(), "p.yaml"), []byte(text))
		if err == nil && string(got) != text { // nothing is found in an empty folder
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
