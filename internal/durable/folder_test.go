package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A folder appears with all its content. Otherwise neither the folder nor a temporary one appears.
func TestWriteFolder(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "made")
	dir := filepath.Join(parent, "folder")
	failure := errors.New("no more")
	write := func(failure error) error {
		return WriteFolder(dir, func(temp string) error {
			return errors.Join(os.WriteFile(filepath.Join(temp, "a"), []byte("a"), 0o600), failure)
		})
	}
	if err := write(failure); !errors.Is(err, failure) {
		t.Errorf("error is %v, want %v", err, failure)
	}
	checkNames(t, parent)
	if err := write(nil); err != nil {
		t.Fatal(err)
	}
	checkNames(t, parent, "folder")
	checkNames(t, dir, "a")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder is %v, %v; want it open to all readers", info, err)
	}
	if err := write(nil); err == nil {
		t.Error("a folder that was there is replaced")
	}
	checkNames(t, parent, "folder")
}

// Files that are renamed out of the temporary folder stay. The others are removed.
func TestInFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := InFolder(dir, func(temp string) error {
		made := filepath.Join(temp, "kept")
		return errors.Join(os.WriteFile(filepath.Join(temp, "rest"), nil, 0o600), os.Mkdir(made, 0o755), os.Rename(made, filepath.Join(dir, "kept")))
	})
	if err != nil {
		t.Fatal(err)
	}
	checkNames(t, dir, "kept")
	if err := InFolder(filepath.Join(dir, "none"), func(string) error { return nil }); err == nil {
		t.Error("a temporary folder was made in a folder that is not there")
	}
}

// All can read what a process with a strict umask wrote. A hard link to somebody's own file leaves that as it is.
func TestLetAllRead(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	own, dir := filepath.Join(parent, "own"), filepath.Join(parent, "made")
	err := errors.Join(
		os.WriteFile(own, []byte("model"), 0o600), os.MkdirAll(filepath.Join(dir, "m", "1"), 0o700), os.Link(own, filepath.Join(dir, "m", "1", "model.onnx")),
		os.WriteFile(filepath.Join(dir, "m", "config.pbtxt"), nil, 0o600), LetAllRead(dir))
	if err != nil {
		t.Fatal(err)
	}
	checkNames(t, filepath.Join(dir, "m"), "1", "config.pbtxt")
	for path, want := range map[string]os.FileMode{"": 0o755, "m": 0o755, "m/1": 0o755, "m/1/model.onnx": 0o644, "m/config.pbtxt": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v; want %v", path, info, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "m", "1", "model.onnx")); err != nil || string(text) != "model" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("somebody's own file: %v, %v", info, err)
	}
}

func checkNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%s holds %v, %v; want %v", dir, entries, err, want)
	}
	for i, e := range entries {
		if e.Name() != want[i] {
			t.Errorf("%s holds %s, want %s", dir, e.Name(), want[i])
		}
	}
}

// If the new folder cannot take its place, the old one stays.
func TestSwapRollsBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.MkdirAll(filepath.Join(target, "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Swap(filepath.Join(dir, "missing"), target, filepath.Join(dir, "aside")); err == nil {
		t.Error("no error")
	}
	checkNames(t, dir, "target")
	checkNames(t, target, "old")
}
