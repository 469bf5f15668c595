package published_test

import (
	"archive/zip"
	"bytes"
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
