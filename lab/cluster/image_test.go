//go:build cluster && kubelet

package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// file is a file of an image.
type file struct {
	path string // in the image, without a slash before
	from string // on this machine
	mode int64
}

// archive writes an image as a tar file of the OCI's layout, with one layer, and returns the digest of its manifest.
func archive(t *testing.T, path string, config map[string]any, files []file) string {
	t.Helper()
	blobs := []entry{{name: "oci-layout", content: []byte(`{"imageLayoutVersion": "1.0.0"}`)}}
	add := func(kind string, content []byte) map[string]any {
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		blobs = append(blobs, entry{name: "blobs/sha256/" + digest, content: content})
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(content)}
	}
	encoded := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var content []entry
	for _, f := range files {
		content = append(content, entry{f.path, []byte(read(t, f.from)), f.mode})
	}
	layer := add("layer.v1.tar", tarOf(t, content))
	settings := add("config.v1+json", encoded(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": config, "rootfs": map[string]any{"type": "layers", "diff_ids": []any{layer["digest"]}}}))
	manifest := add("manifest.v1+json", encoded(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": settings, "layers": []any{layer}}))
	blobs = append(blobs, entry{name: "index.json", content: encoded(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})})
	write(t, path, string(tarOf(t, blobs)))
	return manifest["digest"].(string)
}

// entry is a file of an archive.
type entry struct {
	name    string
	content []byte
	mode    int64
}

func tarOf(t *testing.T, list []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range list {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// programFiles are those of an image with tuner, ONNX Runtime, and the system's libraries that both load.
func programFiles(t *testing.T, i Image) []file {
	t.Helper()
	files := []file{{"usr/bin/tuner", i.Program, 0o755}, {strings.TrimPrefix(library, "/"), i.Library, 0o755}}
	out, err := exec.Command("ldd", i.Program, i.Library).Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		// "libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)"; the loader has its path alone, and a program a colon
		for _, path := range strings.Fields(line) {
			if strings.HasPrefix(path, "/") && !strings.HasSuffix(path, ":") && !known[path] {
				known[path] = true
				files = append(files, file{path[1:], path, 0o755})
			}
		}
	}
	return files
}
