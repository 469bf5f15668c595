// Command dist makes the packages of tuner in a folder: archives, Python wheels, .deb packages, OCI images, lists of components, and
// checksums. `make dist` runs it. The same commit gives the same bytes: all times are that of the commit, and all lists are sorted.
//
// usage: dist -o FOLDER -python PYTHON
//
// PYTHON is an interpreter with the packages of requirements.txt.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "../../dist", "folder of the packages")
	python := flag.String("python", "python3", "Python with the packages of requirements.txt")
	flag.Parse()
	if err := run(*out, *python); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// target is a platform that packages are made for.
type target struct {
	os, arch string // GOOS and GOARCH
	zig      string // zig's name, with the oldest glibc on which the binary runs; "": a binary without cgo, and so without the engine
	machine  string // as in a wheel's platform tag
}

// platform is the target's name in Go.
func (t target) platform() string { return t.os + "/" + t.arch }

// targets are the platforms. glibc 2.28 is that of the wheels of ONNX Runtime. zig has no headers and frameworks of Apple's, so a binary
// for macOS has no engine.
func targets() []target {
	return []target{
		{"linux", "amd64", "x86_64-linux-gnu.2.28", "x86_64"},
		{"linux", "arm64", "aarch64-linux-gnu.2.28", "aarch64"},
		{"darwin", "arm64", "", "arm64"},
	}
}

// packs are the kinds of packages that a target has.
func (b *build) packs(t target) []func(target, []file) error {
	if t.os != "linux" {
		return []func(target, []file) error{b.archive}
	}
	return []func(target, []file) error{b.archive, b.wheel, b.deb, b.image}
}

// build is the state of one run.
type build struct {
	root    string // the repository
	out     string
	python  string
	version string // such as 0.0.0-20261127013000-0123456789ab
	time    time.Time
}

func run(out, python string) error {
	b, err := newBuild(out, python)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "==> dist: tuner %s\n", b.version)
	for _, t := range targets() {
		prefix, err := b.stage(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.platform(), err)
		}
		files, err := tree(prefix)
		if err != nil {
			return err
		}
		for _, pack := range b.packs(t) {
			if err := pack(t, files); err != nil {
				return fmt.Errorf("%s: %w", t.platform(), err)
			}
		}
	}
	return b.checksums()
}

func newBuild(out, python string) (*build, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	b := &build{root: root, out: out, python: python}
	commit, err := b.git("log", "-1", "--format=%cI %h", "--abbrev=12")
	if err != nil {
		return nil, err
	}
	date, hash, _ := strings.Cut(commit, " ")
	if b.time, err = time.Parse(time.RFC3339, date); err != nil {
		return nil, err
	}
	b.time = b.time.UTC()
	// Go's own form of a version without a tag, which `tuner --version` shows too.
	b.version = "0.0.0-" + b.time.Format("20060102150405") + "-" + hash
	if tag, err := b.git("describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		b.version = strings.TrimPrefix(tag, "v")
	}
	return b, nil
}

func (b *build) git(args ...string) (string, error) {
	output, err := exec.Command("git", append([]string{"-C", b.root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}

// name returns the path of an output file.
func (b *build) name(format string, args ...any) string {
	return filepath.Join(b.out, fmt.Sprintf(format, args...))
}

// checksums writes SHA256SUMS, which `sha256sum --check` reads.
func (b *build) checksums() error {
	entries, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(b.out, entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), entry.Name()))
		fmt.Fprintf(os.Stderr, "%6.1f MB  %s\n", float64(len(data))/1e6, entry.Name())
	}
	slices.Sort(lines)
	return os.WriteFile(b.name("SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
