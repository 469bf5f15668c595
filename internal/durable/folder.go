package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Hidden is the prefix of the temporary folders beside their targets.
const Hidden = ".tuner-"

// InFolder calls work with a temporary folder in dir. work makes its results there and renames them
// into dir. Their new names are then durable. InFolder removes the temporary folder, and those of
// killed processes. It returns errors of work unchanged.
func InFolder(dir string, work func(temp string) error) error {
	temp, err := NewScratch(dir, Hidden)
	if err != nil {
		return fmt.Errorf("cannot write into folder %q: %w", dir, Cause(err))
	}
	defer temp.Close() // removes what work did not rename; the next call removes what stays
	if err := os.Chmod(temp.Dir, 0o755); err != nil {
		return fmt.Errorf("cannot write into folder %q: %w", dir, Cause(err))
	}
	if err := work(temp.Dir); err != nil {
		return err
	}
	if err := SyncDir(dir); err != nil {
		return fmt.Errorf("cannot sync folder %q: %w", filepath.Clean(dir), Cause(err))
	}
	return nil
}

// WriteFolder makes a folder with the content from fill, completely or not at all. The folder must
// not exist. Missing parent folders are made. fill makes its own files durable. Its errors are
// returned unchanged.
func WriteFolder(dir string, fill func(temp string) error) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %q: %w", parent, Cause(err))
	}
	return InFolder(parent, func(temp string) error {
		fresh := filepath.Join(temp, filepath.Base(dir))
		if err := os.Mkdir(fresh, 0o755); err != nil {
			return fmt.Errorf("cannot make folder %q: %w", dir, Cause(err))
		}
		if err := fill(fresh); err != nil {
			return err
		}
		if err := os.Rename(fresh, dir); err != nil {
			return fmt.Errorf("cannot write folder %q: %w", dir, Cause(err))
		}
		return nil
	})
}

// LetAllRead lets every user read a folder with all in it, whatever the process's umask took away: a container may read it
// as another user. A file that not all can read is replaced by a copy, since it may be a hard link to somebody's own.
func LetAllRead(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 != 0 {
			return err
		}
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		return WriteFile(path, func(to io.Writer) error {
			_, err := io.Copy(to, from)
			return err
		})
	})
}

// Swap moves the folder fresh to target, and the existing one to old. If it fails, target does not
// change. All must be on one file system. No file system renames one folder over another, so target
// is missing for a moment.
func Swap(fresh, target, old string) error {
	moved := false
	if err := os.Rename(target, old); err == nil {
		moved = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot replace folder %q: %w", target, Cause(err))
	}
	err := os.Rename(fresh, target)
	if err == nil {
		return nil
	}
	if moved {
		err = errors.Join(err, os.Rename(old, target))
	}
	return fmt.Errorf("cannot create folder %q: %w", target, Cause(err))
}
