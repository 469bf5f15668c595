package modelrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"tuner/internal/inside"
	"tuner/model/modelconfig"
)

// source makes a model with external data beside and below it, and a label file.
func source(t *testing.T) Source {
	t.Helper()
	dir := makeTree(t, map[string]string{"net.onnx": "graph", "w.bin": "weights", "data/more.bin": "more", "labels.txt": "cat\ndog\n"})
	return Source{
		Path:   filepath.Join(dir, "net.onnx"),
		Data:   []string{filepath.Join(dir, "w.bin"), filepath.Join(dir, "data", "more.bin")},
		Digest: "d1",
		Folder: dir,
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	m := source(t)
	root := filepath.Join(t.TempDir(), "variants")
	c := config(t, `name: "m" max_batch_size: 4 output { name: "y" label_filename: "labels.txt" }`)
	v, err := Build(root, m, c)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"m/config.pbtxt":    "name: \"m\"\nmax_batch_size: 4\noutput {\n  name: \"y\"\n  label_filename: \"labels.txt\"\n}\n",
		"m/1/model.onnx":    "graph",
		"m/1/w.bin":         "weights",
		"m/1/data/more.bin": "more",
		"m/labels.txt":      "cat\ndog\n",
	}
	if diff := cmp.Diff(want, tree(t, v.Dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if v.Model != "m" || v.Dir != filepath.Join(root, v.Digest) {
		t.Errorf("variant %+v", v)
	}
	checkSameFile(t, m.Path, filepath.Join(v.Dir, "m/1/model.onnx"))

	again, err := Build(root, m, modelconfig.Clone(c))
	if err != nil || again != v {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	checkOnly(t, root, v.Digest)
}

// Every change of the content gives another variant.
func TestBuildDigest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	seen := make(map[string]string)
	build := func(what string, m Source, c *modelconfig.Config) {
		v, err := Build(root, m, c)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[v.Digest]; ok {
			t.Errorf("%s and %s are the same variant", what, other)
		}
		seen[v.Digest] = what
	}
	m := source(t)
	labelled := config(t, `name: "m" output { label_filename: "labels.txt" }`)
	build("one", m, config(t, `name: "m"`))
	build("another configuration", m, config(t, `name: "m" max_batch_size: 1`))
	build("with labels", m, labelled)
	m.Digest = "d2"
	build("another model", m, config(t, `name: "m"`))
	m.Digest = "d1"
	if err := os.WriteFile(filepath.Join(m.Folder, "labels.txt"), []byte("cow\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build("other labels", m, labelled)
}

// default_model_filename may name the version's folder, in which a server uses model.onnx.
func TestBuildVersionFolder(t *testing.T) {
	t.Parallel()
	v, err := Build(t.TempDir(), source(t), config(t, `name: "m" default_model_filename: "./."`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(filepath.Join(v.Dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.ModelFile(); err != nil || got != filepath.Join(m.Dir, "1", "model.onnx") {
		t.Errorf("the server's model file is %q, %v", got, err)
	}
}

// Several builders race for one variant.
func TestBuildAtOnce(t *testing.T) {
	t.Parallel()
	m, root := source(t), t.TempDir()
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			_, err := Build(root, m, config(t, `name: "m"`))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	v, err := Build(root, m, config(t, `name: "m"`))
	if err != nil {
		t.Fatal(err)
	}
	checkOnly(t, root, v.Digest)
}

// A model behind a symbolic link, as in download caches, is stored as a file.
func TestBuildFromLink(t *testing.T) {
	t.Parallel()
	m := source(t)
	link := filepath.Join(t.TempDir(), "link.onnx")
	if err := os.Symlink(m.Path, link); err != nil {
		t.Fatal(err)
	}
	v, err := Build(t.TempDir(), Source{Path: link, Digest: "d"}, config(t, `name: "m"`))
	if err != nil {
		t.Fatal(err)
	}
	placed := filepath.Join(v.Dir, "m/1/model.onnx")
	if info, err := os.Lstat(placed); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v: not a regular file", info, err)
	}
	checkSameFile(t, m.Path, placed)
}

// A policy that lists versions must find one of them.
func TestBuildVersion(t *testing.T) {
	t.Parallel()
	v, err := Build(t.TempDir(), source(t), config(t, `name: "m" version_policy { specific { versions: [3, 7] } } default_model_filename: "net.onnx"`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(v.Dir, "m/7/net.onnx")); err != nil {
		t.Error(err)
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		change       func(*Source)
		want         string
	}{
		{"no name", ``, nil, "its name must be that of a folder"},
		{"name with a slash", `name: "../m"`, nil, "its name must be that of a folder"},
		{"name that hides", `name: ".m"`, nil, "its name must be that of a folder"},
		{"file name leads out", `name: "m" default_model_filename: "../model.onnx"`, nil, "leads out of the version folder"},
		{"no model", `name: "m"`, func(m *Source) { m.Path += "x" }, "no such file or directory"},
		{"model is a folder", `name: "m"`, func(m *Source) { m.Path = filepath.Dir(m.Path) }, "not a regular file"},
		{"data elsewhere", `name: "m"`, func(m *Source) { m.Data[0] = "/etc/hostname" }, "is not in the folder of"},
		{"data has the model's name", `name: "m" default_model_filename: "w.bin"`, nil, "both the model and a data file"},
		{"data below the model", `name: "m" default_model_filename: "data"`, nil, "not a directory"},
		{"label leads out", `name: "m" output { label_filename: "../l" }`, nil, `output[0].label_filename: "../l" leads out`},
		{"label without folder", `name: "m" output { label_filename: "l" }`, func(m *Source) { m.Folder = "" }, "does not come from a Triton model folder"},
		{"warm-up data missing", `name: "m" model_warmup { inputs { key: "x" value { input_data_file: "raw" } } }`, nil, `model_warmup[0].inputs["x"].input_data_file`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m, root := source(t), t.TempDir()
			if test.change != nil {
				test.change(&m)
			}
			_, err := Build(root, m, config(t, test.config))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v lacks %q", err, test.want)
			}
			checkOnly(t, root)
		})
	}
}

// A changed variant is not used.
func TestBuildDamaged(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"m/config.pbtxt", "m/1/w.bin"} {
		m, root := source(t), t.TempDir()
		v, err := Build(root, m, config(t, `name: "m"`))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(v.Dir, path)); err != nil {
			t.Fatal(err)
		}
		if _, err := Build(root, m, config(t, `name: "m"`)); err == nil || !strings.Contains(err.Error(), "was changed; delete it") {
			t.Errorf("%s removed: %v", path, err)
		}
	}
}

// The test does not apply if permissions have no effect.
func TestBuildReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write into a read-only folder; run as another user")
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(root, source(t), config(t, `name: "m"`)); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// Without hard links, the copy is complete.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	m := source(t)
	to := filepath.Join(t.TempDir(), "copy")
	from, err := inside.Named(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := duplicate(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "graph" {
		t.Errorf("%q, %v", got, err)
	}
	if err := duplicate(from, to); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
}

func checkSameFile(t *testing.T, a, b string) {
	t.Helper()
	if !isSameFile(t, a, b) {
		t.Errorf("%s and %s are not one file", a, b)
	}
}

func isSameFile(t *testing.T, a, b string) bool {
	t.Helper()
	infoA, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	infoB, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(infoA, infoB)
}

// checkOnly fails if dir has anything except names, including hidden files.
func checkOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", dir, diff)
	}
}
