package published

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tuner/internal/checksum"
	"tuner/internal/durable"
)

// Package is a pinned package of npm.
type Package struct {
	Requirement string // name@version
	SHA256      string // digest of the tarball, in lower-case hexadecimal
}

// fetch returns the path of the tarball in a folder. If it is not there, npm downloads it. No script
// of the package runs.
func (p Package) fetch(ctx context.Context, cache string, progress io.Writer) (string, error) {
	path := filepath.Join(cache, p.fileName())
	if digest, err := checksum.File(path); err == nil && digest == p.SHA256 {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the download folder: %w", err)
	}
	scratch, err := durable.NewScratch(cache, "download-")
	if err != nil {
		return "", fmt.Errorf("cannot create the download folder: %w", err)
	}
	defer scratch.Close() // what stays is removed by the next download
	fmt.Fprintf(progress, "%s: downloading with npm pack\n", p.Requirement)
	cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", "--ignore-scripts", p.Requirement)
	cmd.Dir = scratch.Dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot download %s with npm: %w:\n%s", p.Requirement, err, text)
	}
	found, err := filepath.Glob(filepath.Join(scratch.Dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", errors.Join(err, fmt.Errorf("npm left %d tarballs of %s, want 1", len(found), p.Requirement))
	}
	if digest, err := checksum.File(found[0]); err != nil || digest != p.SHA256 {
		return "", errors.Join(err, fmt.Errorf("the SHA-256 of %s is %s, want %s", p.Requirement, digest, p.SHA256))
	}
	return path, os.Rename(found[0], path)
}

// fileName returns the tarball's name in the cache.
func (p Package) fileName() string {
	return strings.NewReplacer("@", "_", "/", "_").Replace(p.Requirement) + "-" + p.SHA256[:12] + ".tgz"
}

// readTarball returns the content of a file in a tarball.
func readTarball(path, name string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot open the tarball %q: %w", path, err)
	}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("the tarball %q has no %q: %w", path, name, err)
		}
		if header.Name == name && header.Typeflag == tar.TypeReg {
			return io.ReadAll(archive)
		}
	}
}
