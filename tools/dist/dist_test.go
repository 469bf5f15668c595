package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
)

// at is the time of a commit.
var at = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

// madeBuild returns a build in a folder of its own, and a tree as stage leaves it.
func madeBuild(t *testing.T) (*build, []file) {
	t.Helper()
	b := &build{root: t.TempDir(), out: t.TempDir(), version: "0.0.0-20261127080000-0123456789ab", time: at}
	prefix := t.TempDir()
	for name, text := range map[string]string{
		"bin/tuner": "program", "share/man/man1/tuner.1": "manual", "share/zsh/site-functions/_tuner": "completion",
		"lib/tuner/runtimes/cpu@1.31.1/onnxruntime/capi/libonnxruntime.so.1.31.1": "library",
	} {
		path := filepath.Join(prefix, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil { // as a strict umask leaves it
			t.Fatal(err)
		}
	}
	files, err := tree(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return b, files
}

var linux, mac = targets()[0], targets()[2]

// A tree has names with slashes in order, and modes that do not depend on the builder's umask.
func TestTree(t *testing.T) {
	t.Parallel()
	_, files := madeBuild(t)
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%s %o", f.name, f.mode))
	}
	want := []string{"bin/tuner 755", "lib/tuner/runtimes/cpu@1.31.1/onnxruntime/capi/libonnxruntime.so.1.31.1 644", "share/man/man1/tuner.1 644", "share/zsh/site-functions/_tuner 644"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// entries lists what a tar file has: "tuner/bin/ 755", "tuner/bin/tuner 755 program".
func entries(t *testing.T, r io.Reader) (list []string) {
	t.Helper()
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(at) {
			t.Errorf("%s is of %v, want the commit's time", h.Name, h.ModTime)
		}
		line := strings.TrimSpace(fmt.Sprintf("%s %o %s", h.Name, h.Mode, text))
		if h.Uid != 0 {
			line += fmt.Sprint(" of ", h.Uid)
		}
		list = append(list, line)
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target target
		name   string
	}{{linux, "linux_amd64"}, {mac, "darwin_arm64"}} {
		b, files := madeBuild(t)
		var digests []string
		for range 2 { // the same bytes again
			if err := b.archive(c.target, files); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(b.name("tuner_%s_%s.tar.gz", b.version, c.name))
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(data)))
			unpacked, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			base := fmt.Sprintf("tuner_%s_%s/", b.version, c.name)
			list := entries(t, unpacked)
			for _, want := range []string{base + " 755", base + "bin/ 755", base + "bin/tuner 755 program", base + "share/man/man1/tuner.1 644 manual"} {
				if !slices.Contains(list, want) {
					t.Errorf("%q has no %q", list, want)
				}
			}
			// 4 files, and 13 folders: base, bin, lib/tuner/runtimes/cpu@1.31.1/onnxruntime/capi, share/man/man1, zsh/site-functions
			if len(list) != 4+13 {
				t.Errorf("%d entries: %q", len(list), list)
			}
		}
		if digests[0] != digests[1] {
			t.Error("the same files give other bytes")
		}
	}
}

// A folder among the files belongs to the user of the image.
func TestFolderOfTheImagesUser(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := writeTar(&text, "", []file{{"work", "", os.ModeDir | 0o755}}, at); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, &text); !slices.Equal(got, []string{"work/ 755 of 65532"}) {
		t.Errorf("got %q", got)
	}
}

func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"0.0.0-20261127080000-0123456789ab": "0.0.0.dev20261127080000", "1.2.3": "1.2.3"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s gives %s, want %s", version, got, want)
		}
	}
}

// A wheel has a program in its scripts, everything else below data, a tag that is its name's, and a
// RECORD with the digest of each file.
func TestWheel(t *testing.T) {
	t.Parallel()
	b, files := madeBuild(t)
	if err := b.wheel(linux, files); err != nil {
		t.Fatal(err)
	}
	const version = "0.0.0.dev20261127080000"
	r, err := zip.OpenReader(b.name("tuner-%s-py3-none-manylinux_2_28_x86_64.whl", version))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	contents, modes := map[string][]byte{}, map[string]fs.FileMode{}
	for _, f := range r.File {
		entry, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if contents[f.Name], err = io.ReadAll(entry); err != nil {
			t.Fatal(err)
		}
		modes[f.Name] = f.Mode()
	}
	info := "tuner-" + version + ".dist-info/"
	for name, want := range map[string]string{
		"tuner-" + version + ".data/scripts/tuner":               "program",
		"tuner-" + version + ".data/data/share/man/man1/tuner.1": "manual",
	} {
		if got := string(contents[name]); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if mode := modes["tuner-"+version+".data/scripts/tuner"]; mode != 0o755 {
		t.Errorf("the program has the mode %o", mode)
	}
	if text := string(contents[info+"WHEEL"]); !strings.Contains(text, "\nTag: py3-none-manylinux_2_28_x86_64\n") || !strings.Contains(text, "\nRoot-Is-Purelib: false\n") {
		t.Errorf("WHEEL: %s", text)
	}
	if text := string(contents[info+"METADATA"]); !strings.Contains(text, "\nVersion: "+version+"\n") || !strings.Contains(text, "\nRequires-Python: >=3.9\n") {
		t.Errorf("METADATA: %s", text)
	}
	record, err := csv.NewReader(bytes.NewReader(contents[info+"RECORD"])).ReadAll()
	if err != nil || len(record) != len(contents) {
		t.Fatalf("RECORD has %d rows, the wheel %d files; %v", len(record), len(contents), err)
	}
	for _, row := range record {
		digest := sha256.Sum256(contents[row[0]])
		want := "sha256=" + base64.RawURLEncoding.EncodeToString(digest[:])
		if row[0] != info+"RECORD" && (row[1] != want || row[2] != fmt.Sprint(len(contents[row[0]]))) {
			t.Errorf("RECORD has %q, want %s", row, want)
		}
	}
}

// A .deb has its fields, and completion where Debian's packages have it. dpkg-deb reads it.
func TestDeb(t *testing.T) {
	t.Parallel()
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("needs dpkg-deb")
	}
	b, files := madeBuild(t)
	if err := b.deb(linux, files); err != nil {
		t.Fatal(err)
	}
	path := b.name("tuner_%s_amd64.deb", b.version)
	fields, err := exec.CommandContext(t.Context(), dpkg, "--field", path, "Package", "Version", "Architecture", "Depends").Output()
	if err != nil {
		t.Fatal(err)
	}
	// ~ comes before a release without it
	want := "Package: tuner\nVersion: 0.0.0~20261127080000-0123456789ab\nArchitecture: amd64\nDepends: libc6 (>= 2.28), libstdc++6, libgcc-s1\n"
	if string(fields) != want {
		t.Errorf("got %s, want %s", fields, want)
	}
	contents, err := exec.CommandContext(t.Context(), dpkg, "--fsys-tarfile", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	list := entries(t, bytes.NewReader(contents))
	for _, want := range []string{"./usr/bin/tuner 755 program", "./usr/share/zsh/vendor-completions/_tuner 644 completion"} {
		if !slices.Contains(list, want) {
			t.Errorf("%q has no %q", list, want)
		}
	}
}

// The list of components has the modules of a binary, Go, and each ONNX Runtime; a tree without one has none.
func TestComponents(t *testing.T) {
	t.Parallel()
	b, _ := madeBuild(t)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prefix := t.TempDir()
	if err := os.MkdirAll(filepath.Join(prefix, "lib", "tuner", "runtimes", "cpu@1.31.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]bool{prefix: true, t.TempDir(): false} {
		text, err := b.components(linux, own, prefix)
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			Format     string `json:"bomFormat"`
			Components []struct{ PURL string }
			Metadata   struct{ Component struct{ PURL string } }
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		var purls []string
		for _, c := range bom.Components {
			purls = append(purls, c.PURL)
		}
		if bom.Format != "CycloneDX" || bom.Metadata.Component.PURL != "pkg:generic/tuner@"+b.version+"?arch=amd64&os=linux" {
			t.Errorf("a list of %s in the form %s", bom.Metadata.Component.PURL, bom.Format)
		}
		if !slices.Contains(purls, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go")) || !slices.Contains(purls, "pkg:golang/github.com/goreleaser/nfpm/v2@v2.43.0") {
			t.Errorf("components %q", purls)
		}
		if slices.Contains(purls, "pkg:pypi/onnxruntime@1.31.1") != want {
			t.Errorf("ONNX Runtime is there: want %t in %q", want, purls)
		}
	}
}

// An image runs as a user that is not root.
func TestImageConfiguration(t *testing.T) {
	t.Parallel()
	b, _ := madeBuild(t)
	img, err := b.configure(linux, empty.Image)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.OS != "linux" || config.Architecture != "amd64" || !config.Created.Time.Equal(at) || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/tuner"}) {
		t.Errorf("got %+v", config)
	}
}

// A pattern that matches no file, or several, is an error that names what was found.
func TestOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.1", "a.2", "b.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{"b.*": "b.1", "a.*": "", "c.*": ""} {
		got, err := one(filepath.Join(dir, pattern))
		if (err == nil) != (want != "") || want != "" && filepath.Base(got) != want {
			t.Errorf("%s: %q, %v", pattern, got, err)
		}
	}
}

// SHA256SUMS has the digest of each file but itself and folders, in order, as sha256sum reads it.
func TestChecksums(t *testing.T) {
	t.Parallel()
	b, _ := madeBuild(t)
	for name, text := range map[string]string{"b": "", "a": "x", "SHA256SUMS": "old", "work/c": "y"} {
		path := filepath.Join(b.out, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.checksums(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(b.name("SHA256SUMS"))
	// SHA-256 of "x", and of nothing (FIPS 180-4's examples have the latter)
	want := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  a\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// A program that Go makes for macOS without cgo passes, and one for another processor or system does not.
func TestMachO(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small.go"), filepath.Join(dir, "large.go")
	// names of hosts and certificates come from libraries of the system, also without cgo
	text := "package main\n\nimport (\n\t\"crypto/x509\"\n\t\"net\"\n)\n\nfunc main() {\n\t_, _ = net.LookupHost(\"\")\n\t_, _ = x509.SystemCertPool()\n}\n"
	if err := errors.Join(os.WriteFile(small, []byte("package main\n\nfunc main() {}\n"), 0o600), os.WriteFile(large, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for platform, want := range map[string]string{"darwin/arm64": "", "darwin/amd64": "is a Exec for CpuAmd64", "linux/arm64": "is no Mach-O file"} {
		system, arch, _ := strings.Cut(platform, "/")
		binary, source := filepath.Join(dir, system+arch), small
		if want == "" {
			source = large
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
		cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := checkMachO(binary); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", platform, err, want)
		}
	}
}
