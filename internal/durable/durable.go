// Package durable writes files so that they are there wholly or not at all, also after a crash or on a full disk: to a
// temporary name in the same folder, synced, renamed, and the folder synced. It locks those that several processes write. Every
// package that writes files that matter uses it; it knows nothing of what is in them.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile puts a file in place with what fill writes. A failure leaves an earlier file as it was, or has put the whole new one in its place, and
// nothing beside it.
func WriteFile(path string, fill func(io.Writer) error) error { return WriteFileOn(OS{}, path, fill) }

// WriteFileOn is WriteFile on a disk.
func WriteFileOn(disk Disk, path string, fill func(io.Writer) error) error {
	temp, err := stage(disk, path, fill)
	if err != nil {
		return err
	}
	if err := disk.Rename(temp, path); err != nil {
		return errors.Join(err, disk.Remove(temp))
	}
	return disk.SyncDir(filepath.Dir(path))
}

// Stage writes and syncs a new file beside path, for the caller to rename or remove, and returns its name. A failure leaves
// nothing behind.
func Stage(path string, fill func(io.Writer) error) (string, error) { return stage(OS{}, path, fill) }

func stage(disk Disk, path string, fill func(io.Writer) error) (string, error) {
	f, err := disk.Create(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(f), f.Sync()); err != nil {
		return "", errors.Join(err, f.Close(), disk.Remove(f.Name()))
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, disk.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Sweep removes what a process that was killed while it wrote a file has left beside it. It is for whoever knows that nobody else writes that file.
func Sweep(path string) error {
	left, err := filepath.Glob(filepath.Join(escape(filepath.Dir(path)), "."+escape(filepath.Base(path))+".[0-9]*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// escape makes a pattern of a name that matches it alone.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// CheckFolder finds out whether a folder can be made and written, by making one in it, or in the nearest folder above that exists, and removing
// that again.
func CheckFolder(dir string) error {
	dir, err := filepath.Abs(dir)
	for err == nil {
		if _, err = os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir, err = filepath.Dir(dir), nil
	}
	if err != nil {
		return err
	}
	probe, err := NewScratch(dir, Hidden)
	if err != nil {
		return err
	}
	return probe.Close()
}

// CheckFile finds out whether a file can be written, or made where there is none, and changes nothing.
func CheckFile(path string) error {
	if err := CheckFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Bytes makes a fill function of data.
func Bytes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// SyncDir makes changes of a folder's entries survive a crash.
func SyncDir(dir string) error { return OS{}.SyncDir(dir) }

// Cause leaves path and operation out of a file error: the message around it names the file that the user knows, not a
// temporary one.
func Cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	var linkError *os.LinkError
	if errors.As(err, &linkError) {
		return linkError.Err
	}
	return err
}
