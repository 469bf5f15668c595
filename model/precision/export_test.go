package precision

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
)

// A file with the same content stays. One with other content is replaced only if allowed.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cached := filepath.Join(dir, "cached.onnx")
	if err := build.MLP().Write(cached, 0); err != nil {
		t.Fatal(err)
	}
	v := Variant{Path: cached}
	path := filepath.Join(dir, "out", "m.int8.onnx")
	if err := v.Export(path, false); err != nil {
		t.Fatal(err)
	}
	checkSameDigest(t, cached, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Export(path, false); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same again replaced the file (%v)", err)
	}

	if err := build.Simple().Write(path, 0); err != nil {
		t.Fatal(err)
	}
	var exists *ExistsError
	if err := v.Export(path, false); !errors.As(err, &exists) || exists.Path != path {
		t.Errorf("over another file: %v", err)
	}
	if err := v.Export(path, true); err != nil {
		t.Error(err)
	}
	checkSameDigest(t, cached, path)
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the model alone", entries, err)
	}
}

// External data is written too, and does not overwrite another model's data.
func TestExportExternal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cached := filepath.Join(dir, "cached.onnx")
	if err := build.MLP().Write(cached, 1); err != nil { // everything of a kilobyte and more is outside
		t.Fatal(err)
	}
	v := Variant{Path: cached}
	path := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(path+".data", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var exists *ExistsError
	if err := v.Export(path, false); !errors.As(err, &exists) || exists.Path != path+".data" {
		t.Errorf("over a foreign data file: %v", err)
	}
	for range 2 { // the second time it has the same content
		if err := v.Export(path, true); err != nil {
			t.Fatal(err)
		}
	}
	m := read(t, path)
	if files := m.ExternalFiles(); len(files) != 1 || files[0].Path != path+".data" {
		t.Errorf("external files %+v", files)
	}
	original := read(t, cached)
	for i, a := range original.Initializers() {
		x, err := original.Data(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := m.Data(m.Initializers()[i])
		if err != nil || string(x) != string(y) {
			t.Errorf("tensor %q differs (%v)", a.GetName(), err)
		}
	}
}

// If the data cannot be written, the earlier model stays.
func TestExportKeepsPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cached, path := filepath.Join(dir, "cached.onnx"), filepath.Join(dir, "m.onnx")
	if err := errors.Join(build.MLP().Write(cached, 1), build.Simple().Write(path, 0), os.MkdirAll(path+".data/full", 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := (Variant{Path: cached}).Export(path, true); err == nil {
		t.Error("a folder was replaced by the data")
	}
	want, err := build.Simple().Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, path).Digest(); err != nil || got != want {
		t.Errorf("the model became %s (%v)", got, err)
	}
}

func checkSameDigest(t *testing.T, a, b string) {
	t.Helper()
	digest := func(m *onnx.Model) string {
		d, err := m.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest(read(t, a)) != digest(read(t, b)) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// Data that only the replaced model used is removed. Other files stay.
func TestExportRemovesOldData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cached := filepath.Join(dir, "cached.onnx")
	if err := build.Simple().Write(cached, 0); err != nil {
		t.Fatal(err)
	}
	replace := func(name string, maxInline int64) (data string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := build.MLP().Write(path, maxInline); err != nil {
			t.Fatal(err)
		}
		if maxInline == 0 {
			if err := os.WriteFile(path+".data", []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := (Variant{Path: cached}).Export(path, true); err != nil {
			t.Fatal(err)
		}
		checkSameDigest(t, cached, path)
		return path + ".data"
	}
	if data := replace("external.onnx", 1); !isMissing(data) {
		t.Errorf("%s is still there", data)
	}
	if text, err := os.ReadFile(replace("inline.onnx", 0)); err != nil || string(text) != "mine" {
		t.Errorf("the user's file is now %q (%v)", text, err)
	}
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
