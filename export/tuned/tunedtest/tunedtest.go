// Package tunedtest makes folders of analyzed campaigns from package report's golden results, for tests.
package tunedtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/export/tuned"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/report/result"
)

// Package report's golden results of one model, and of two on one server.
const (
	One = "found.json"
	Two = "two.json"
)

// Divided are replacements in Two: the best configuration gives each model a core of its own.
func Divided() []string {
	return []string{`"name": "encoder+ranker_config_3",`, `"name": "encoder+ranker_config_3", "host_policies": ["cores_0-0,cpu-cores=0-0", "cores_1-1,cpu-cores=1-1"],`,
		`name: \"encoder\"\n  kind`, `name: \"encoder\"\n  host_policy: \"cores_0-0\"\n  kind`,
		`name: \"ranker\"\n  kind`, `name: \"ranker\"\n  host_policy: \"cores_1-1\"\n  kind`}
}

// Text returns a golden result with texts replaced. root is the module's folder, relative to the test.
func Text(t testing.TB, root, name string, replace ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "report", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(replace...).Replace(string(text)))
}

// Analyzed makes an output folder of `tuner analyze` from such a result, with a repository of its models. It makes
// none for a broken result.
func Analyzed(t testing.TB, root, name string, replace ...string) string {
	t.Helper()
	dir, text := t.TempDir(), Text(t, root, name, replace...)
	if err := os.WriteFile(filepath.Join(dir, result.FileName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	models, err := tuned.Parse(result.FileName, text, nil)
	if err != nil {
		return dir // the test needs the broken folder
	}
	source := modelrepo.Source{Path: filepath.Join(root, "testdata", "ort", "add_sub.onnx"), Digest: "d"}
	for _, m := range models {
		if err := modelrepo.Write(filepath.Join(dir, "repository"), source, modelconfig.Clone(m.Config)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
