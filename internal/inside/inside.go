// Package inside decides which files a foreign model, configuration or folder may name: only those
// inside a folder, even through links. Package onnx opens external data through it, and package
// modelrepo all files that it copies or links. It does not know the content of files. It follows
// links in paths that users name themselves.
//
// A hard link cannot be distinguished from the file. So a person who may link a file can hard-link
// it into a folder that the user reads. Linux allows that only to owners, and to those who may
// write the file.
package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// File is a regular file with all links resolved. It stays inside its folder even if a part of its
// path becomes a link.
type File struct {
	Size   int64  // bytes, at the time of the search
	folder string // without links
	name   string // relative to folder
}

// Path returns the real path of the file.
func (f File) Path() string { return filepath.Join(f.folder, f.name) }

// OutsideError means that a link leads out of the folder.
type OutsideError struct{ Path, Target, Folder string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%q leads to %q, outside of the folder %q; copy the file there in the place of the link, if you trust it", e.Path, e.Target, e.Folder)
}

// Below finds the file with a local name in folder. It follows links that stay inside the folder.
// An *OutsideError names one that does not. Other errors are the operating system's, or mean that
// it is not a regular file.
func Below(folder, name string) (File, error) {
	path := filepath.Join(folder, name)
	if !filepath.IsLocal(name) {
		return File{}, &OutsideError{path, filepath.Clean(name), folder}
	}
	realFolder, err := resolve(folder)
	if err != nil {
		return File{}, err
	}
	real, err := resolve(path)
	if err != nil {
		return File{}, err
	}
	rel, err := filepath.Rel(realFolder, real)
	if err != nil || !filepath.IsLocal(rel) {
		return File{}, &OutsideError{path, real, folder}
	}
	return find(realFolder, rel, path)
}

// Beside finds the file that a model names by a location relative to its own folder. The model may
// be a link into a store, as in download caches. Then its data may be links to the files beside it
// in the store.
func Beside(model, location string) (File, error) {
	f, err := Below(filepath.Dir(model), location)
	var outside *OutsideError
	if !errors.As(err, &outside) {
		return f, err
	}
	real, linkErr := resolve(model)
	if linkErr != nil || filepath.Dir(real) != filepath.Dir(outside.Target) {
		return f, err
	}
	return find(filepath.Dir(real), filepath.Base(outside.Target), outside.Path)
}

// Named finds a file that the user names. It follows links of every kind.
func Named(path string) (File, error) {
	real, err := resolve(path)
	if err != nil {
		return File{}, err
	}
	return find(filepath.Dir(real), filepath.Base(real), path)
}

// resolve returns an absolute path without links.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// find inspects a file in a folder without links. path is the requested path, for messages.
func find(folder, name, path string) (File, error) {
	f := File{folder: folder, name: name}
	opened, err := f.Open()
	if err != nil {
		return File{}, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return File{}, err
	}
	f.Size = info.Size()
	return f, nil
}

// Open opens the file for reading. It opens nothing outside its folder, even if links have changed
// since it was found.
func (f File) Open() (*os.File, error) {
	root, err := os.OpenRoot(f.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// otherwise a pipe would block until it has a writer
	opened, err := root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: f.Path(), Err: ErrNotRegular}
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// ErrNotRegular means that a path is a folder, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// Link makes a hard link to the file at to, which must not exist.
func (f File) Link(to string) error {
	opened, err := f.Open()
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := os.Link(f.Path(), to); err != nil {
		return err
	}
	want, wantErr := opened.Stat()
	got, gotErr := os.Lstat(to)
	if wantErr != nil || gotErr != nil || !os.SameFile(want, got) {
		return errors.Join(fmt.Errorf("%q was replaced", f.Path()), os.Remove(to))
	}
	return nil
}
