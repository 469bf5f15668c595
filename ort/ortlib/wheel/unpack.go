package wheel

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tuner/internal/durable"
)

// Read returns the content of a file in a wheel.
func Read(wheel, name string) ([]byte, error) {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, fmt.Errorf("cannot open the wheel %q: %w", wheel, err)
	}
	defer archive.Close()
	f, err := archive.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the wheel %q has no %q: %w", wheel, name, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Unpack extracts the files whose names match into dir. Names are paths with forward slashes, as in
// the wheel. dir must not exist yet: otherwise the error is fs.ErrExist. It appears at once with
// all files, or not at all. Errors are names that would leave dir, links, and a wheel without a
// match.
func Unpack(wheel, dir string, match func(name string) bool) error {
	if err := unpack(wheel, dir, match); err != nil {
		return fmt.Errorf("cannot unpack %q: %w", wheel, err)
	}
	return nil
}

func unpack(wheel, dir string, match func(name string) bool) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%q: %w", dir, os.ErrExist)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	scratch, err := durable.NewScratch(parent, "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer scratch.Close() // after the rename it no longer exists
	temp := scratch.Dir
	if err := extractAll(&archive.Reader, temp, match); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil { // a scratch folder is private
		return err
	}
	if err := syncTree(temp); err != nil {
		return err
	}
	return moveDurably(temp, dir)
}

// syncTree makes all files and folders below dir durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syncPath(path))
	})
}

func extractAll(archive *zip.Reader, dir string, match func(name string) bool) error {
	count := 0
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, "/") || !match(entry.Name) {
			continue
		}
		if err := extract(entry, dir); err != nil {
			return fmt.Errorf("%q: %w", entry.Name, err)
		}
		count++
	}
	if count == 0 {
		return errors.New("it has none of the wanted files")
	}
	return nil
}

// extract writes one entry and its folders below dir.
func extract(entry *zip.File, dir string) error {
	if !filepath.IsLocal(entry.Name) || strings.Contains(entry.Name, `\`) {
		return errors.New("the name leads out of the wheel")
	}
	if !entry.Mode().IsRegular() {
		return fmt.Errorf("it is not a regular file (%v)", entry.Mode())
	}
	path := filepath.Join(dir, filepath.FromSlash(entry.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
