// Package inside decides which files a foreign model, configuration or folder may name: those inside of a folder, whatever
// links say. Package onnx opens external data through it, and package modelrepo everything that it copies or links. It
// knows nothing of what is in the files, and follows the links of the paths that users name themselves.
//
// A hard link is the file itself: no rule tells it apart, so what a user may read can be hard linked into a folder by whoever
// may link it (Linux lets only owners, and those who may write the file).
package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// File is a regular file with all links resolved. It stays inside of its folder even if a part of its path becomes a link.
type File struct {
	Size   int64  // bytes, when it was found
	folder string // real
	name   string // relative to folder
}

// Path returns where the file really is.
func (f File) Path() string { return filepath.Join(f.folder, f.name) }

// OutsideError says that a link leads out of the folder.
type OutsideError struct{ Path, Target, Folder string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%q leads to %q, outside of the folder %q; copy the file there in the place of the link, if you trust it", e.Path, e.Target, e.Folder)
}

// Below finds the file that folder holds under a local name. Links are followed as long as they stay inside of the folder; an
// *OutsideError names one that does not. Other errors are the operating system's, or say that it is no regular file.
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

// Beside finds the file that a model names by a location relative to its own folder. Where the model is itself a link into
// a store, as download caches have it, its data may be links to the files beside it in the store.
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

// Named finds a file that the user names: links of every kind are followed.
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

// find looks at a file of a real folder; path is what it was asked for by.
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

// Open opens the file for reading. Nothing outside of its folder is opened, even if links have changed since it was found.
func (f File) Open() (*os.File, error) {
	root, err := os.OpenRoot(f.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	opened, err := root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else a pipe would wait for its writer
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

// ErrNotRegular says that something is a folder, a pipe or a device.
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
