package repository

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Each step changes the fingerprint, and a look alone does not.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	root, elsewhere := t.TempDir(), t.TempDir()
	in := func(parts ...string) string { return filepath.Join(append([]string{root, "m"}, parts...)...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(in("1"), 0o755))
	for _, version := range []string{"a", "b"} {
		must(os.MkdirAll(filepath.Join(elsewhere, version), 0o755))
		must(os.WriteFile(filepath.Join(elsewhere, version, "model.onnx"), nil, 0o644))
	}
	before := ""
	for _, step := range []struct {
		name string
		act  func() error
	}{
		{"at first", func() error { return nil }},
		{"a file", func() error { return os.WriteFile(in("1", "model.onnx"), []byte("one"), 0o644) }},
		{"its size", func() error { return os.WriteFile(in("1", "model.onnx"), []byte("three"), 0o644) }},
		{"its time", func() error { return os.Chtimes(in("1", "model.onnx"), time.Time{}, time.Unix(1, 0)) }},
		{"a file beside", func() error { return os.WriteFile(in("labels"), nil, 0o644) }},
		{"removed", func() error { return os.Remove(in("labels")) }},
		{"a linked version", func() error { return os.Symlink(filepath.Join(elsewhere, "a"), in("2")) }},
		{"a file behind the link", func() error { return os.WriteFile(filepath.Join(elsewhere, "a", "more"), nil, 0o644) }},
		{"the link turned", func() error {
			must(os.Remove(in("2")))
			return os.Symlink(filepath.Join(elsewhere, "b"), in("2"))
		}},
		{"a link to nothing", func() error { return os.Symlink("/none", in("lock")) }},
		{"a link to itself", func() error { return os.Symlink(in(), in("loop")) }},
		{"a link that is a circle", func() error { return os.Symlink("circle", in("circle")) }},
		{"a link through a file", func() error { return os.Symlink(in("1", "model.onnx", "x"), in("through")) }},
	} {
		must(step.act())
		now, err := Fingerprint(root, "m")
		must(err)
		if again, err := Fingerprint(root, "m"); err != nil || again != now {
			t.Errorf("%s: a second look finds a change (%v)", step.name, err)
		}
		if now == before {
			t.Errorf("%s: no change is found", step.name)
		}
		before = now
	}
	if _, err := Fingerprint(root, "none"); err == nil {
		t.Error("a missing folder has a fingerprint")
	}
}

// Folders that link to each other in a great many ways are looked at once each, and of a tree without
// end only a part is.
func TestFingerprintIsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const folders = 60 // of which each links to all: 60^60 ways
	for i := range folders {
		dir := filepath.Join(root, "m", strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for k := range folders {
			if err := os.Symlink(filepath.Join(root, "m", strconv.Itoa(k)), filepath.Join(dir, strconv.Itoa(k))); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := look{to: io.Discard, seen: map[string]bool{}}
	if err := l.folder(filepath.Join(root, "m")); err != nil {
		t.Fatal(err)
	}
	// the model's folder, each of its folders there and behind a link, and the links in them
	if most := 1 + 2*folders + folders*folders; l.entries > most || len(l.seen) != 1+folders {
		t.Errorf("%d entries of %d folders, want at most %d of %d", l.entries, len(l.seen), most, 1+folders)
	}
	full := look{to: io.Discard, seen: map[string]bool{}, entries: maxEntries - 3}
	if err := full.folder(filepath.Join(root, "m")); err != nil || len(full.seen) > 3 {
		t.Errorf("three entries are left, and %d folders were looked at (%v)", len(full.seen), err)
	}
}
