package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// maxEntries bounds how many files and folders of one model a look tells apart. Nobody has as many, but a
// link can lead to the root of the file system.
const maxEntries = 20_000

// Fingerprint returns a text that changes when a file below a model's folder is added, removed or
// written. It looks at names, sizes and times, and follows links, so that a link which is turned to
// another folder counts as a change. It reads no file. What one of the model's own links or folders
// does not show is a part of the text, so that no model keeps others from being looked at.
func Fingerprint(root, name string) (string, error) {
	h := sha256.New()
	l := look{to: h, seen: map[string]bool{}}
	if err := l.folder(filepath.Join(root, name)); err != nil {
		return "", fmt.Errorf("cannot look at the files of model %q: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// beside is a Fingerprint without the folders of versions and the configurations.
func (s *Model) beside() (string, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return "", fmt.Errorf("cannot look at the files of model %q: %w", s.Name, err)
	}
	h := sha256.New()
	l := look{to: h, seen: map[string]bool{}}
	for _, e := range entries {
		if name := e.Name(); name == "config.pbtxt" || name == "configs" ||
			slices.ContainsFunc(s.Versions, func(v int64) bool { return strconv.FormatInt(v, 10) == name }) {
			continue
		}
		path := filepath.Join(s.Dir, e.Name())
		if !e.IsDir() {
			err = l.file(path, e)
		} else if err = l.folder(path); err != nil {
			err = l.without(path, err)
		}
		if err != nil {
			return "", fmt.Errorf("cannot look at the files of model %q: %w", s.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// look is one at a model's folder, or at parts of it.
type look struct {
	to      io.Writer
	seen    map[string]bool // folders, without links: each is described once, however many links lead to it
	entries int
}

// folder writes a line for each file below dir.
func (l *look) folder(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.to, "%q\n", real)
	if l.seen[real] {
		return nil
	}
	return filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		if l.entries++; l.entries > maxEntries {
			return fs.SkipAll
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			return l.without(path, err)
		case e.IsDir():
			if l.seen[path] {
				return fs.SkipDir
			}
			l.seen[path] = true
			fmt.Fprintf(l.to, "%q/\n", path)
			return nil
		}
		return l.file(path, e)
	})
}

// file writes the line of a file, and follows a link.
func (l *look) file(path string, e fs.DirEntry) error {
	info, err := os.Stat(path)
	if err != nil {
		return l.without(path, err)
	}
	if !info.IsDir() {
		fmt.Fprintf(l.to, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return nil
	}
	fmt.Fprintf(l.to, "%q/\n", path)
	if e.Type()&fs.ModeSymlink == 0 {
		return nil
	}
	if err := l.folder(path); err != nil {
		return l.without(path, err)
	}
	return nil
}

// without writes the line of a file that cannot be looked at because of itself. All other errors are of the
// file system, which may be away.
func (l *look) without(path string, err error) error {
	for _, own := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ELOOP, syscall.ENOTDIR, syscall.ENAMETOOLONG} {
		if errors.Is(err, own) {
			fmt.Fprintf(l.to, "%q %v\n", path, own)
			return nil
		}
	}
	return err
}
