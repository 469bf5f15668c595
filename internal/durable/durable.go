// Package durable writes files completely or not at all, also after a crash or on a full disk. It
// writes to a temporary name in the same folder, syncs, renames, and syncs the folder. It also
// locks files that several processes write. Every package uses it for files that matter. It does
// not know their content.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// WriteFile writes a file with the content from fill. After a failure there is the earlier file or
// the complete new one, and no temporary file. It removes temporary files that killed writers of
// the same file left.
func WriteFile(path string, fill func(io.Writer) error) error { return WriteFileOn(OS{}, path, fill) }

// WriteFileOn is WriteFile on a disk.
func WriteFileOn(disk Disk, path string, fill func(io.Writer) error) error {
	s, err := stage(disk, path, fill)
	if err != nil {
		return err
	}
	if err := s.Commit(); err != nil {
		return errors.Join(err, s.Drop())
	}
	return disk.SyncDir(filepath.Dir(path))
}

// Staged is a complete file under a temporary name beside the file that it replaces. It is open,
// and locked, so that no other writer takes it for what a killed one left.
type Staged struct {
	file      File
	path      string
	disk      Disk
	committed bool
}

// Stage writes and syncs a new file beside path. The caller commits or drops it. A failure leaves
// nothing behind.
func Stage(path string, fill func(io.Writer) error) (*Staged, error) { return stage(OS{}, path, fill) }

func stage(disk Disk, path string, fill func(io.Writer) error) (*Staged, error) {
	sweep(path)
	f, err := disk.Create(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	s := &Staged{file: f, path: path, disk: disk}
	if err := errors.Join(fill(f), f.Sync()); err != nil {
		return nil, errors.Join(err, s.Drop())
	}
	return s, nil
}

// Commit renames the file. The caller syncs the folder.
func (s *Staged) Commit() error {
	if err := s.disk.Rename(s.file.Name(), s.path); err != nil {
		return err
	}
	s.committed = true
	return s.file.Close()
}

// Drop removes the file, unless it is committed.
func (s *Staged) Drop() error {
	if s.committed {
		return nil
	}
	return errors.Join(s.file.Close(), s.disk.Remove(s.file.Name()))
}

// sweep removes temporary files beside a file that killed writers left. It recognizes them by their
// random number and their missing lock. On a file system without locks it removes nothing. Files of
// other programs stay, such as a dated backup or a temporary file of rsync, and so do folders, links
// and devices.
func sweep(path string) {
	for _, name := range leftovers(filepath.Dir(path), "."+filepath.Base(path)+".") {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		lock, err := tryLockAt(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
		if err != nil {
			continue // in use, or not ours
		}
		_ = os.Remove(name)
		_ = lock.Close() // nothing was written
	}
}

// leftovers returns the paths in a folder whose names are a text and a random number.
func leftovers(dir, begin string) []string {
	found, _ := filepath.Glob(filepath.Join(escape(dir), escape(begin)+"[0-9]*")) // fails only for a malformed pattern
	return slices.DeleteFunc(found, func(path string) bool {
		return !isRandom(strings.TrimPrefix(filepath.Base(path), begin))
	})
}

// shortestRandom is the least number of digits that leftovers takes for a random number.
// One number of os.CreateTemp in 40,000 has fewer, and a file with it stays. With more digits, more
// short numbers of other programs are safe, such as those of rotated logs, but more leftovers stay.
const shortestRandom = 6

// isRandom reports whether os.CreateTemp may have made this end of a name. It makes a decimal
// number of 32 bits.
func isRandom(end string) bool {
	n, err := strconv.ParseUint(end, 10, 32)
	return err == nil && len(end) >= shortestRandom && strconv.FormatUint(n, 10) == end
}

// escape makes a pattern that matches only this name.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// CheckFolder checks whether a folder can be made and written. It makes and removes a test folder
// in it, or in the nearest existing folder above it.
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

// CheckFile checks whether a file can be written or made. It changes nothing.
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

// Bytes returns a fill function for data.
func Bytes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// SyncDir makes changes of a folder's entries durable.
func SyncDir(dir string) error { return OS{}.SyncDir(dir) }

// Cause removes path and operation from a file error. The message around it names the file that the
// user knows, not a temporary one.
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
