package modelrepo

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/model/modelconfig"
)

// makeTree writes files into a new folder, by relative path.
func makeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree reads all files below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func config(t *testing.T, text string) *modelconfig.Config {
	t.Helper()
	c, err := modelconfig.Parse("test.pbtxt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenModel(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{
		"a/1/model.onnx":      "",
		"a/10/model.onnx":     "",
		"a/2/model.onnx":      "",
		"a/config.pbtxt":      "",
		"a/01/model.onnx":     "", // leading zero
		"a/0/model.onnx":      "", // not positive
		"a/-1/model.onnx":     "",
		"a/v3/model.onnx":     "",
		"a/4":                 "a file is not a version",
		"b/labels.txt":        "",
		"README.md":           "not a model",
		".tuner-1/model.onnx": "",
	})
	names, err := Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []Model
	for _, name := range names {
		m, err := OpenModel(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	want := []Model{
		{Name: "a", Dir: filepath.Join(dir, "a"), ConfigPath: filepath.Join(dir, "a", "config.pbtxt"), Versions: []int64{1, 2, 10}, Ignored: []string{
			"ignore version directory '0' which contains leading zeros in its directory name",
			"ignore version directory '01' which contains leading zeros in its directory name",
			"ignore version directory 'v3' which fails to convert to integral number",
		}},
		{Name: "b", Dir: filepath.Join(dir, "b")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := Names(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "cannot open model repository") {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestModelFile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  string // path relative to the model's folder, or part of the error
	}{
		{"no configuration", map[string]string{"1/model.onnx": "", "3/model.onnx": ""}, "3/model.onnx"},
		{"another name", map[string]string{"1/net.onnx": "", "config.pbtxt": `default_model_filename: "net.onnx"`}, "1/net.onnx"},
		{"folder", map[string]string{"1/model.onnx/model.onnx": "", "1/model.onnx/w.bin": ""}, "1/model.onnx/model.onnx"},
		{"specific", map[string]string{"1/model.onnx": "", "2/model.onnx": "", "config.pbtxt": `version_policy { specific { versions: [1, 7] } }`}, "1/model.onnx"},
		{"no version", map[string]string{"config.pbtxt": ``}, "has no version to serve"},
		{"not there", map[string]string{"1/other.onnx": ""}, "1/model.onnx\": no such file or directory"},
		{"leads out", map[string]string{"1/model.onnx": "", "config.pbtxt": `default_model_filename: "../../x"`}, `default_model_filename: "../../x" leads out of the version folder`},
		{"bad configuration", map[string]string{"1/model.onnx": "", "config.pbtxt": "\nnam: 1"}, `config.pbtxt:2:1: unknown field "nam"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := makeTree(t, test.files)
			m, err := OpenModel(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.ModelFile()
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %q lacks %q", err, test.want)
				}
			} else if want := filepath.Join(dir, test.want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestServed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy string
		want   []int64
	}{
		{``, []int64{5}},
		{`version_policy { latest { num_versions: 2 } }`, []int64{3, 5}},
		{`version_policy { latest { num_versions: 9 } }`, []int64{1, 3, 5}},
		{`version_policy { latest {} }`, nil}, // none of them, like a real Triton
		{`version_policy {}`, []int64{1, 3, 5}},
		{`version_policy { all {} }`, []int64{1, 3, 5}},
		{`version_policy { specific { versions: [5, 1, 4] } }`, []int64{1, 5}},
	}
	for _, test := range tests {
		got := Served([]int64{1, 3, 5}, config(t, test.policy).GetVersionPolicy())
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.policy, got, test.want)
		}
	}
	if got := Served(nil, nil); len(got) != 0 {
		t.Errorf("no versions: %v", got)
	}
}
