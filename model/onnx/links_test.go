package onnx_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"tuner/model/onnx"
	"tuner/model/onnx/build"
	"tuner/model/onnx/onnxpb"
)

// linked makes a model whose external data, m.onnx.data, is a link to the target. The target is
// absolute or relative to dir.
func linked(t *testing.T, dir, target string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := save(t, build.MLP(), filepath.Join(dir, "m.onnx"), 1)
	real := target
	if !filepath.IsAbs(target) {
		real = filepath.Join(dir, target)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(real), 0o755), os.Rename(path+".data", real), os.Symlink(target, path+".data")); err != nil {
		t.Fatal(err)
	}
	return path
}

// relocated returns the content of m with another location for all its external data.
func relocated(m *onnx.Model, location string) *onnxpb.ModelProto {
	p := proto.Clone(m.Proto()).(*onnxpb.ModelProto)
	for _, t := range p.GetGraph().GetInitializer() {
		for _, e := range t.GetExternalData() {
			if e.GetKey() == "location" {
				e.Value = proto.String(location)
			}
		}
	}
	return p
}

// External data is never read from outside the model's folder, even through links.
func TestReadRefusesLinksOut(t *testing.T) {
	t.Parallel()
	refuse := func(name, path, target string) {
		_, err := onnx.Read(path)
		var problem *onnx.FileError
		if !errors.As(err, &problem) {
			t.Errorf("%s: error %v is not a *FileError", name, err)
			return
		}
		for _, want := range []string{path + ".data", target, "copy the file"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not say %q", name, err, want)
			}
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	refuse("an absolute link", linked(t, t.TempDir(), secret), secret)
	dir := filepath.Join(t.TempDir(), "model")
	refuse("a relative link", linked(t, dir, "../secret"), filepath.Join(filepath.Dir(dir), "secret"))
	dir = t.TempDir()
	chain := linked(t, dir, secret+"2")
	if err := errors.Join(os.Rename(chain+".data", filepath.Join(dir, "one")), os.Symlink("one", chain+".data")); err != nil {
		t.Fatal(err)
	}
	refuse("a link to a link", chain, secret+"2")

	// The model is a link into a store, as in a download cache. Its data comes from another place.
	dir = t.TempDir()
	store := linked(t, dir, secret+"3")
	blobs := t.TempDir()
	if err := errors.Join(os.Rename(store, filepath.Join(blobs, "a1")), os.Symlink(filepath.Join(blobs, "a1"), store)); err != nil {
		t.Fatal(err)
	}
	refuse("out of a store", store, secret+"3")
}

// A link in the middle of a location can lead outside too.
func TestReadRefusesLinkedFolders(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	m := read(t, save(t, build.MLP(), filepath.Join(outside, "m.onnx"), 1))
	moved := encode(t, relocated(m, "sub/m.onnx.data"))
	if err := os.Symlink(outside, filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	_, err := onnx.Read(writeFile(t, filepath.Join(dir, "m.onnx"), moved))
	if err == nil || !strings.Contains(err.Error(), "copy the file") {
		t.Errorf("error %v", err)
	}
}

// Links within the model's folder are followed. So are links within the store to which the model's
// own link leads.
func TestReadFollowsLinksWithin(t *testing.T) {
	t.Parallel()
	accept := func(name, path string) {
		m, err := onnx.Read(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if _, err := m.Data(m.Initializers()[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := m.Digest(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	accept("a relative link", linked(t, t.TempDir(), "data/weights"))
	dir := t.TempDir()
	accept("an absolute link", linked(t, dir, filepath.Join(dir, "weights")))
	linkToFolder := filepath.Join(t.TempDir(), "current")
	if err := os.Symlink(dir, linkToFolder); err != nil {
		t.Fatal(err)
	}
	accept("through a link to the folder", filepath.Join(linkToFolder, "m.onnx"))

	// The cache of a model hub has links from snapshots/REVISION/onnx/NAME to blobs/HASH.
	cache := t.TempDir()
	snapshot := filepath.Join(cache, "snapshots", "r1", "onnx")
	path := linked(t, snapshot, "../../../blobs/d1")
	if err := errors.Join(os.Rename(path, filepath.Join(cache, "blobs", "m1")), os.Symlink("../../../blobs/m1", path)); err != nil {
		t.Fatal(err)
	}
	accept("a download cache", path)

	dir = t.TempDir() // a hard link cannot be distinguished from the file
	path = save(t, build.MLP(), filepath.Join(dir, "m.onnx"), 1)
	if err := os.Link(path+".data", filepath.Join(t.TempDir(), "other")); err != nil {
		t.Fatal(err)
	}
	accept("a hard link", path)
}

// Opening a pipe would block forever.
func TestReadRefusesPipes(t *testing.T) {
	t.Parallel()
	path := save(t, build.MLP(), filepath.Join(t.TempDir(), "m.onnx"), 1)
	if err := errors.Join(os.Remove(path+".data"), syscall.Mkfifo(path+".data", 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := onnx.Read(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

// A file that becomes a link to the outside after the model was read is not followed.
func TestDataStaysInside(t *testing.T) {
	t.Parallel()
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	m := read(t, save(t, build.MLP(), filepath.Join(dir, "m.onnx"), 1))
	data := m.Path() + ".data"
	if err := errors.Join(os.Rename(data, secret), os.Symlink(secret, data)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Data(m.Initializers()[0]); err == nil || !strings.Contains(err.Error(), secret) {
		t.Errorf("its data: %v", err)
	}
	if _, err := m.Digest(); err == nil || !strings.Contains(err.Error(), secret) {
		t.Errorf("its digest: %v", err)
	}
	if err := m.Write(filepath.Join(t.TempDir(), "copy.onnx"), 0); err == nil || !strings.Contains(err.Error(), secret) {
		t.Errorf("its copy: %v", err)
	}
}
