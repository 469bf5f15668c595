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
)

// maxLinks bounds how many links to folders follow each other in a model's folder.
const maxLinks = 8

// Fingerprint returns a text that changes when a file below a model's folder is added, removed or
// written. It looks at names, sizes and times, and follows links, so that a link which is turned to
// another folder counts as a change. It reads no file.
func Fingerprint(root, name string) (string, error) {
	h := sha256.New()
	if err := describe(h, filepath.Join(root, name), maxLinks); err != nil {
		return "", fmt.Errorf("cannot look at the files of model %q: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe writes a line for each file below dir.
func describe(to io.Writer, dir string, links int) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "%q\n", real)
	return filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil || path == real {
			return err
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(to, "%q -\n", path)
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			fmt.Fprintf(to, "%q/\n", path)
			if isLink := e.Type()&fs.ModeSymlink != 0; isLink && links > 0 {
				return describe(to, path, links-1)
			}
			return nil
		}
		fmt.Fprintf(to, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
}
