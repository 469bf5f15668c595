package framework_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/model/framework"
	"tuner/model/onnx/build"
)

// Files are told by their names, and by their content where a name has several meanings.
func TestOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, content)
		return path
	}
	model := filepath.Join(dir, "as.pb")
	if err := build.Simple().Write(model, 0); err != nil {
		t.Fatal(err)
	}
	made("saved/saved_model.pb", "\x08\x01")
	made("triton/config.pbtxt", "")
	for path, want := range map[string]string{
		"net.pt": "PyTorch", "net.PTH": "PyTorch", "net.keras": "TensorFlow", "net.h5": "TensorFlow",
		"net.pkl": "scikit-learn", "net.joblib": "scikit-learn", "net.ubj": "XGBoost",
		"net.onnx": "", "profile.yaml": "", "absent.json": "", "absent.txt": "",
		made("graph.pb", "\n\x10\n\x01x\x12\x0bPlaceholder"): "TensorFlow",
		model:                        "", // an ONNX model with that ending
		filepath.Join(dir, "saved"):  "TensorFlow",
		filepath.Join(dir, "triton"): "",
		made("xgb.json", `{"learner":{"attributes":{}}}`):          "XGBoost",
		made("other.json", `{"data":[]}`):                          "",
		made("lgbm.txt", "tree\nversion=v4\nnum_class=1\n"):        "LightGBM",
		made("notes.txt", "trees are green\n"):                     "",
		filepath.Join(dir, "absent", "of", "everything", "net.pt"): "PyTorch",
	} {
		if got, is := framework.Of(path); got.Name != want || is != (want != "") {
			t.Errorf("%s belongs to %q, want %q", path, got.Name, want)
		}
	}
	for path, want := range map[string]string{"a/net.v2.pt": "net.v2.onnx", filepath.Join(dir, "saved"): "saved.onnx", filepath.Join(dir, "saved") + "/": "saved.onnx"} {
		if got := framework.ExportName(path); got != want {
			t.Errorf("%s is exported to %s, want %s", path, got, want)
		}
	}
}

// The digest of a folder changes with each file, with its name and with its content.
func TestDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seen := map[string]string{}
	look := func(state string) {
		digest, err := framework.Digest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if before, known := seen[digest]; known {
			t.Errorf("%s has the digest of %s", state, before)
		}
		seen[digest] = state
	}
	look("an empty folder")
	writeFile(t, filepath.Join(dir, "saved_model.pb"), "graph")
	look("a graph")
	if err := os.Mkdir(filepath.Join(dir, "variables"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "variables", "data"), "1")
	look("variables")
	writeFile(t, filepath.Join(dir, "variables", "data"), "2")
	look("other variables")
	if err := os.Rename(filepath.Join(dir, "variables", "data"), filepath.Join(dir, "variables", "more")); err != nil {
		t.Fatal(err)
	}
	look("another name")
}

// Nothing is started for a pickle without permission.
func TestPicklesNeedPermission(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"forest.pkl", "forest.joblib", "forest.pickle"} {
		path, ran := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "ran")
		writeFile(t, path, "\x80\x04")
		s := framework.Source{Framework: of(t, path), Path: path}
		python := fakePython(t, `touch '`+ran+`'; exit 1`)
		_, err := framework.Export(t.Context(), s, python, filepath.Join(t.TempDir(), "model.onnx"), answer{})
		if _, started := os.Stat(ran); !errors.Is(err, framework.ErrPermission) || started == nil {
			t.Errorf("%s: %v, Python was started: %t", name, err, started == nil)
		}
		s.AllowPickle = true
		_, err = framework.Export(t.Context(), s, python, filepath.Join(t.TempDir(), "model.onnx"), answer{})
		if _, started := os.Stat(ran); errors.Is(err, framework.ErrPermission) || started != nil {
			t.Errorf("%s with permission: %v", name, err)
		}
	}
}

// Each framework explains its refusals, with the remedy.
func TestFrameworksExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, status, message, want string }{
		{"net.keras", "packages", "No module named 'tf2onnx'", "-m pip install tensorflow tf2onnx"},
		{"net.keras", "packages", "No module named 'tf2onnx'", `-m tf2onnx.convert --keras `},
		{"net.keras", "old", "3.9.0", "the Keras there, 3.9.0, is older than 3.13.2: loading any file with it may run the file's code, so it needs your permission"},
		{"net.h5", "lambda", "", "it has a Lambda layer, or another part that is Python code"},
		{"net.h5", "classes", "Mine", "its classes or functions are not found (Mine)"},
		{"net.keras", "reaching", "ReadFile", "operators that reach files or run Python (ReadFile)"},
		{"net.keras", "signature", "train", "no signature serving_default, but train"},
		{"net.keras", "inputs", "input \"x\" is string", `input "x" is string`},
		{"net.keras", "run", "shapes", "TensorFlow cannot run it: shapes"},
		{"net.keras", "export", "no operator", "TensorFlow cannot export it:\n  no operator\n"},
		{"net.ubj", "packages", "No module named 'xgboost'", "-m pip install xgboost onnxmltools"},
		{"net.ubj", "unreadable", "not UBJSON", "XGBoost cannot read it: not UBJSON"},
		{"net.pkl", "packages", "No module named 'skl2onnx'", "-m pip install scikit-learn skl2onnx onnxmltools"},
		{"net.pkl", "columns", "a ColumnTransformer selects columns by their names", "tuner exports models that take one matrix of numbers"},
		{"net.pkl", "version", "1.2 and 1.9", "another version of scikit-learn has written it"},
		{"net.pkl", "no_module", "builtins.dict", "it holds builtins.dict, which is no model that scikit-learn converts"},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		writeFile(t, path, "")
		python := fakePython(t, `cat > "$2/result.json" <<'END'
{"status": "`+c.status+`", "message": "`+strings.ReplaceAll(c.message, `"`, `\"`)+`"}
END`)
		_, err := framework.Export(t.Context(), framework.Source{Framework: of(t, path), Path: path, AllowPickle: true}, python, filepath.Join(t.TempDir(), "model.onnx"), answer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.file, c.status, err, c.want)
		}
	}
}
