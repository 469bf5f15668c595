package wheel

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/internal/alloctest"
	"tuner/internal/checksum"
	"tuner/internal/programtest"
)

// tiny returns the bytes of a wheel that pip accepts, with one data file.
func tiny(t *testing.T, entries ...string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	add := func(name, content string) {
		w, err := archive.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range entries {
		add(name, "content of "+name)
	}
	add("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
	add("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	add("tiny-1.0.dist-info/RECORD", "")
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakePython writes a script that replaces python3. It answers --version. body handles a download,
// and finds the target folder in $dest.
func fakePython(t *testing.T, body string) string {
	t.Helper()
	script := "#!/bin/sh\n[ \"$3\" = --version ] && exit 0\nwhile [ \"$1\" != --dest ]; do shift; done\ndest=$2\n" + body + "\n"
	return programtest.Write(t, filepath.Join(t.TempDir(), "python3"), script)
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func TestFetch(t *testing.T) {
	t.Parallel()
	data := tiny(t, "tiny/data.bin")
	source := write(t, filepath.Join(t.TempDir(), "source.whl"), data, 0o600)
	calls := filepath.Join(t.TempDir(), "calls")
	python := fakePython(t, "echo call >> "+calls+"; cp "+source+" $dest/tiny-1.0-py3-none-any.whl")
	spec := Spec{Requirement: "tiny==1.0", SHA256: sha(data)}
	cache := filepath.Join(t.TempDir(), "cache")
	fetchOnce := func() string {
		path, err := fetch(context.Background(), python, spec, cache, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := fetchOnce()
	if got, err := checksum.File(path); err != nil || got != spec.SHA256 {
		t.Errorf("digest %s, %v", got, err)
	}
	fetchOnce()
	if got, _ := os.ReadFile(calls); string(got) != "call\n" {
		t.Errorf("pip was called more than once:\n%s", got)
	}
	// A file that was damaged later, or half-written by another program, is fetched again.
	write(t, path, data[:20], 0o600)
	fetchOnce()
	if got, err := checksum.File(path); err != nil || got != spec.SHA256 {
		t.Errorf("after damage: digest %s, %v", got, err)
	}
	if diff := cmp.Diff([]string{filepath.Base(path)}, listing(t, cache)); diff != "" {
		t.Error(diff)
	}
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	digest := sha([]byte("right"))
	tests := []struct {
		name, body, requirement, digest, want string
	}{
		{"other file", "echo wrong > $dest/tiny.whl", "tiny==1.0", digest, "the package index serves another file than the one pinned"},
		{"no file", ":", "tiny==1.0", digest, "pip left 0 wheels"},
		{"pip fails", "echo 'ERROR: No matching distribution found for tiny==1.0' >&2; exit 1", "tiny==1.0", digest, "No matching distribution found"},
		{"part, then failure", "echo part > $dest/tiny.whl; exit 1", "tiny==1.0", digest, "exit status 1"},
		{"requirement", ":", "tiny", digest, "must have the form name==version"},
		{"option as requirement", ":", "--index-url==x", digest, "must have the form name==version"},
		{"digest", ":", "tiny==1.0", "abc", "not a SHA-256"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			_, err := fetch(context.Background(), fakePython(t, tt.body), Spec{Requirement: tt.requirement, SHA256: tt.digest}, cache, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if left := listing(t, cache); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestFetchWithoutPython(t *testing.T) {
	t.Parallel()
	spec := Spec{Requirement: "tiny==1.0", SHA256: sha(nil)}
	_, err := fetch(context.Background(), filepath.Join(t.TempDir(), "absent"), spec, t.TempDir(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "is not on the PATH; install Python 3 with pip") {
		t.Errorf("error %v", err)
	}
	noPip := programtest.Write(t, filepath.Join(t.TempDir(), "python3"), "#!/bin/sh\necho 'No module named pip' >&2; exit 1\n")
	_, err = fetch(context.Background(), noPip, spec, t.TempDir(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "has no working pip") || !strings.Contains(err.Error(), "No module named pip") {
		t.Errorf("error %v", err)
	}
}

// The end of the context ends pip and its helpers. A helper holds progress open, so Fetch returns
// only once it has ended.
func TestFetchCancelled(t *testing.T) {
	t.Parallel()
	python := fakePython(t, "sleep 600 & echo started; wait")
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	progress := writerFunc(func(text []byte) (int, error) {
		if strings.Contains(string(text), "started") {
			cancel(enough)
		}
		return len(text), nil
	})
	_, err := fetch(ctx, python, Spec{Requirement: "tiny==1.0", SHA256: sha(nil)}, t.TempDir(), progress)
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// The real pip understands the arguments. It takes a wheel from a folder instead of an index.
func TestFetchWithRealPip(t *testing.T) {
	if err := Check(context.Background()); err != nil {
		t.Skipf("needs python3 with pip: %v", err)
	}
	data := tiny(t, "tiny/data.bin")
	index := t.TempDir()
	write(t, filepath.Join(index, "tiny-1.0-py3-none-any.whl"), data, 0o600)
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("PIP_FIND_LINKS", index)
	cache := t.TempDir()
	specs := []Spec{
		{Requirement: "tiny==1.0", SHA256: sha(data)},
		{Requirement: "tiny==1.0", SHA256: sha(data), Platform: "manylinux_2_28_x86_64", PythonVersion: "3.12", ABI: "cp312"},
	}
	for _, spec := range specs {
		path, err := Fetch(context.Background(), spec, cache, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil { // so that the next spec is downloaded too
			t.Fatal(err)
		}
	}
	_, err := Fetch(context.Background(), Spec{Requirement: "absent==1.0", SHA256: sha(data)}, cache, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "absent==1.0") {
		t.Errorf("error %v, want pip's own words", err)
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	wheel := write(t, filepath.Join(t.TempDir(), "tiny.whl"), tiny(t, "tiny/lib/a.so", "tiny/b.py"), 0o600)
	dir := filepath.Join(t.TempDir(), "new", "dir")
	match := func(name string) bool { return strings.HasSuffix(name, ".so") || strings.HasSuffix(name, "METADATA") }
	if err := Unpack(wheel, dir, match); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tiny/lib/a.so", "tiny-1.0.dist-info/METADATA"}, listing(t, dir)); diff != "" {
		// WalkDir sorts by folder: "tiny" comes before "tiny-1.0.dist-info".
		t.Error(diff)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "tiny/lib/a.so")); string(got) != "content of tiny/lib/a.so" {
		t.Errorf("content %q", got)
	}
	if err := Unpack(wheel, dir, match); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second time: error %v, want fs.ErrExist", err)
	}
}

func TestUnpackErrors(t *testing.T) {
	t.Parallel()
	whole := tiny(t, "tiny/a")
	damaged := bytes.Clone(whole)
	// in the content of the first entry, which follows its 30-byte header and its name
	damaged[30+len("tiny/a")] ^= 0xff
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"parent", tiny(t, "../evil"), "leads out"},
		{"absolute", tiny(t, "/evil"), "leads out"},
		{"backslash", tiny(t, `..\evil`), "leads out"},
		{"hidden parent", tiny(t, "a/../../evil"), "leads out"},
		{"duplicate", tiny(t, "a", "a"), "exists"},
		{"link", withLink(t), "not a regular file"},
		{"truncated", whole[:len(whole)-10], "not a valid zip file"},
		{"empty", nil, "not a valid zip file"},
		{"damaged", damaged, "tiny/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			wheel := write(t, filepath.Join(t.TempDir(), "tiny.whl"), tt.data, 0o600)
			err := Unpack(wheel, filepath.Join(parent, "dir"), func(string) bool { return true })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if left := listing(t, parent); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	wheel := write(t, filepath.Join(t.TempDir(), "tiny.whl"), whole, 0o600)
	if err := Unpack(wheel, filepath.Join(t.TempDir(), "dir"), func(string) bool { return false }); err == nil {
		t.Error("nothing matches: no error")
	}
}

// For any wheel, no file appears beside the folder, and a failure leaves no file at all.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "a/b", "../a", "/a", "a/../../b", `..\a`, "a\x00", "."} {
		var buffer bytes.Buffer
		archive := zip.NewWriter(&buffer)
		if _, err := archive.Create(name); err != nil {
			f.Fatal(err)
		}
		if err := archive.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(buffer.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer alloctest.Bound(t, len(data))()
		parent := t.TempDir()
		wheel := write(t, filepath.Join(t.TempDir(), "a.whl"), data, 0o600)
		err := Unpack(wheel, filepath.Join(parent, "dir"), func(string) bool { return true })
		entries, readErr := os.ReadDir(parent)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil && len(entries) > 0 || err == nil && (len(entries) != 1 || entries[0].Name() != "dir") {
			t.Errorf("error %v, beside the wheel: %v", err, entries)
		}
	})
}

// withLink returns a wheel with a symbolic link.
func withLink(t *testing.T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	header := &zip.FileHeader{Name: "link"}
	header.SetMode(fs.ModeSymlink | 0o777)
	w, err := archive.CreateHeader(header)
	if err == nil {
		_, err = w.Write([]byte("/etc"))
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
