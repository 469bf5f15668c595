package inside_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tuner/internal/inside"
)

// folder makes a folder with the file data/w, and a file outside of it.
func folder(t *testing.T) (dir, secret string) {
	t.Helper()
	dir = t.TempDir()
	secret = filepath.Join(t.TempDir(), "secret")
	err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o755), os.WriteFile(filepath.Join(dir, "data", "w"), []byte("weights"), 0o600),
		os.WriteFile(secret, []byte("secret"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir, secret
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, f inside.File) string {
	t.Helper()
	opened, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	text, err := io.ReadAll(opened)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBelow(t *testing.T) {
	t.Parallel()
	dir, secret := folder(t)
	link(t, "data/w", filepath.Join(dir, "relative"))
	link(t, filepath.Join(dir, "data"), filepath.Join(dir, "absolute"))
	link(t, secret, filepath.Join(dir, "out"))
	link(t, filepath.Dir(secret), filepath.Join(dir, "away"))
	link(t, "loop", filepath.Join(dir, "loop"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data/w", "relative", "absolute/w"} {
		f, err := inside.Below(dir, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := content(t, f); got != "weights" || f.Size != 7 {
			t.Errorf("%s: %q of %d bytes", name, got, f.Size)
		}
	}
	for _, name := range []string{"out", "away/secret", "../secret", secret} {
		_, err := inside.Below(dir, name)
		if !errors.As(err, new(*inside.OutsideError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]error{"pipe": inside.ErrNotRegular, "data": inside.ErrNotRegular, "none": fs.ErrNotExist} {
		if _, err := inside.Below(dir, name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := inside.Below(dir, "loop"); err == nil {
		t.Error("a link to itself was followed")
	}
}

// If a model is a link into a store, the files beside it in the store are its data too. Those below
// are not.
func TestBeside(t *testing.T) {
	t.Parallel()
	store, secret := folder(t)
	if err := errors.Join(os.WriteFile(filepath.Join(store, "m1"), nil, 0o600), os.WriteFile(filepath.Join(store, "d1"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link(t, filepath.Join(store, "m1"), filepath.Join(dir, "model"))
	link(t, filepath.Join(store, "d1"), filepath.Join(dir, "weights"))
	link(t, filepath.Join(store, "data", "w"), filepath.Join(dir, "deeper"))
	link(t, secret, filepath.Join(dir, "secret"))
	if f, err := inside.Beside(filepath.Join(dir, "model"), "weights"); err != nil || filepath.Base(f.Path()) != "d1" {
		t.Errorf("in the store: %v, %v", f.Path(), err)
	}
	for _, name := range []string{"deeper", "secret"} {
		if _, err := inside.Beside(filepath.Join(dir, "model"), name); !errors.As(err, new(*inside.OutsideError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file stays inside, for all links that replace parts of its path later.
func TestSwapped(t *testing.T) {
	t.Parallel()
	dir, secret := folder(t)
	f, err := inside.Below(dir, "data/w")
	if err != nil {
		t.Fatal(err)
	}
	away := filepath.Dir(secret)
	if err := errors.Join(os.Rename(secret, filepath.Join(away, "w")), os.Rename(filepath.Join(dir, "data"), filepath.Join(dir, "old"))); err != nil {
		t.Fatal(err)
	}
	link(t, away, filepath.Join(dir, "data"))
	if opened, err := f.Open(); err == nil {
		_ = opened.Close()
		t.Error("it was opened through a link that leads out")
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := f.Link(to); err == nil {
		t.Error("it was linked through a link that leads out")
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link is left: %v", err)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	dir, secret := folder(t)
	link(t, secret, filepath.Join(dir, "named"))
	f, err := inside.Named(filepath.Join(dir, "named"))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := f.Link(to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
	if err := f.Link(to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
}

// For every name and every link, the found file is inside.
func FuzzBelow(f *testing.F) {
	for _, c := range [][3]string{{"data/w", "data", "link/w"}, {"link", "../secret", "x"}, {"link/../w", "/etc", "data"}, {"chain", "link", "link"}, {"link/passwd", "/etc", ""}} {
		f.Add(c[0], c[1], c[2])
	}
	f.Fuzz(func(t *testing.T, name, target, second string) {
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), os.WriteFile(filepath.Join(dir, "data", "w"), []byte("weights"), 0o600)); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(target, filepath.Join(dir, "link")) // not every text can be a target
		_ = os.Symlink(second, filepath.Join(dir, "data", "chain"))
		found, err := inside.Below(dir, name)
		if err != nil {
			return
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		if rel, err := filepath.Rel(real, found.Path()); err != nil || !filepath.IsLocal(rel) {
			t.Errorf("%q was found at %q, outside of %q", name, found.Path(), real)
		}
		if content(t, found) != "weights" {
			t.Errorf("%q is another file: %q", name, found.Path())
		}
	})
}
