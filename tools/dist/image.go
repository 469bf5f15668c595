package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// userID is the user and group that run the image: "nonroot" of most minimal images.
const userID = 65532

// image writes an OCI image as a tar file, which `docker load`, `podman load`, `skopeo` and `crane` read. It has three layers, so that a new
// version of tuner is a small download: the system's libraries and certificates, ONNX Runtime, and tuner.
func (b *build) image(t target, tree []file) error {
	base, err := b.system(t)
	if err != nil {
		return err
	}
	var runtime, product []file
	for _, f := range tree {
		if strings.HasPrefix(f.name, "lib/") {
			runtime = append(runtime, f)
		} else {
			product = append(product, f)
		}
	}
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, part := range []struct {
		prefix string
		files  []file
	}{{"", base}, {"usr/", runtime}, {"usr/", product}} {
		var text bytes.Buffer
		if err := writeTar(&text, part.prefix, part.files, b.time); err != nil {
			return err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return err
		}
		addition := mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.time}, CreatedBy: "make dist"}}
		if img, err = mutate.Append(img, addition); err != nil {
			return err
		}
	}
	if img, err = b.configure(t, img); err != nil {
		return err
	}
	tag, err := name.NewTag("tuner:" + strings.ReplaceAll(b.version, "+", "-"))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(b.name("tuner_%s_linux_%s.image.tar", b.version, t.arch), tag, img)
}

func (b *build) configure(t target, img v1.Image) (v1.Image, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", t.arch, v1.Time{Time: b.time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", userID, userID), WorkingDir: "/work", Entrypoint: []string{"/usr/bin/tuner"},
		Env:    []string{"PATH=/usr/bin", "HOME=/work", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{"org.opencontainers.image.version": b.version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(img, config)
}

// debian lists the packages from which the image has its libraries and certificates.
func debian() []string { return []string{"libc6", "libgcc-s1", "libstdc++6", "ca-certificates"} }

// libraries lists what tuner and ONNX Runtime load.
func libraries() []string {
	return []string{"libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libnss_dns.so.2", "libnss_files.so.2", "libpthread.so.0",
		"libresolv.so.2", "librt.so.1", "libstdc++.so.6"}
}

// system returns the files below the root of the image: libraries and certificates of Debian, their licences, and the user.
func (b *build) system(t target) ([]file, error) {
	dir := filepath.Join(b.out, "work", t.os+"-"+t.arch, "debian")
	if err := b.download(t, dir); err != nil {
		return nil, fmt.Errorf("cannot get Debian's packages: %w", err)
	}
	var files []file
	add := func(name, path string, mode os.FileMode) { files = append(files, file{name, path, mode}) }
	for _, library := range libraries() {
		path, err := one(filepath.Join(dir, "lib", "*-linux-gnu", library), filepath.Join(dir, "usr", "lib", "*-linux-gnu", library))
		if err != nil {
			return nil, err
		}
		add("usr/lib/"+t.machine+"-linux-gnu/"+library, path, 0o755)
	}
	// where the binary looks for it, by the platform's convention
	loader := map[string]string{"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}[t.arch]
	path, err := one(filepath.Join(dir, "lib", "*-linux-gnu", filepath.Base(loader)), filepath.Join(dir, "usr", "lib", "*-linux-gnu", filepath.Base(loader)))
	if err != nil {
		return nil, err
	}
	add(loader, path, 0o755)
	for _, name := range debian() {
		notice := filepath.Join("usr", "share", "doc", name, "copyright")
		if name == "libstdc++6" { // a link to that of gcc-12-base
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, notice)); err == nil {
			add(filepath.ToSlash(notice), filepath.Join(dir, notice), 0o644)
		}
	}
	made, err := b.made(dir)
	return append(files, made...), err
}

// made writes the files of the image that no package has.
func (b *build) made(dir string) ([]file, error) {
	certificates, err := filepath.Glob(filepath.Join(dir, "usr", "share", "ca-certificates", "mozilla", "*.crt"))
	if err != nil || len(certificates) == 0 {
		return nil, errors.Join(err, errors.New("ca-certificates has no certificates"))
	}
	slices.Sort(certificates)
	var bundle bytes.Buffer
	for _, path := range certificates {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		bundle.Write(text)
	}
	files := []file{{"tmp", "", os.ModeDir | 0o777}, {"work", "", os.ModeDir | 0o755}}
	for name, text := range map[string]string{
		"etc/ssl/certs/ca-certificates.crt": bundle.String(),
		"etc/passwd":                        fmt.Sprintf("root:x:0:0:root:/:/\nnonroot:x:%d:%d:nonroot:/work:/\n", userID, userID),
		"etc/group":                         fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", userID),
	} {
		path := filepath.Join(dir, "made", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return nil, err
		}
		files = append(files, file{name, path, 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// download unpacks Debian's packages below dir. apt has lists of its own there, so that another architecture needs no change to this
// machine.
func (b *build) download(t target, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	state := filepath.Join(filepath.Dir(dir), "apt")
	debs := filepath.Join(state, "debs")
	for _, folder := range []string{dir, debs, filepath.Join(state, "lists", "partial"), filepath.Join(state, "cache", "archives", "partial")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	status := filepath.Join(state, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	apt := []string{"-qq", "-o", "APT::Architecture=" + t.arch, "-o", "APT::Architectures::=" + t.arch, "-o", "Dir::State::lists=" + filepath.Join(state, "lists"),
		"-o", "Dir::State::status=" + status, "-o", "Dir::Cache=" + filepath.Join(state, "cache"), "-o", "APT::Sandbox::User=root",
		"-o", "APT::Get::List-Cleanup=0"}
	for _, verb := range [][]string{{"update"}, append([]string{"download"}, debian()...)} {
		cmd := exec.Command("apt-get", append(slices.Clone(apt), verb...)...)
		cmd.Dir, cmd.Stderr = debs, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", verb[0], err)
		}
	}
	packages, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	for _, path := range packages {
		err = errors.Join(err, b.command(nil, "dpkg-deb", "-x", path, dir))
	}
	return err
}

// one returns the only file that the patterns match.
func one(patterns ...string) (string, error) {
	var found []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, matches...)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("found %q for %s, want one", found, patterns[0])
	}
	return found[0], nil
}
