package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteNamed is WriteFile for a path that the user names. A link stays, and the file to which it
// leads is replaced. A device or a pipe is written to and stays too. Files whose names the program
// chooses are for WriteFile: it writes nothing outside of their folder, which may be a stranger's.
func WriteNamed(path string, fill func(io.Writer) error) error {
	if isDevice(path) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	path, err := follow(path)
	if err != nil {
		return err
	}
	return WriteFile(path, fill)
}

// CheckNamed checks whether WriteNamed can write a file. It changes nothing. A device or a pipe is not
// opened, since its reader would notice.
func CheckNamed(path string) error {
	if isDevice(path) {
		return nil
	}
	path, err := follow(path)
	if err != nil {
		return err
	}
	return CheckFile(path)
}

// isDevice reports whether a path leads to a device or a pipe.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// mostLinks is the number of links in a row that Linux follows.
const mostLinks = 40

// follow returns the path of the file to which a link leads, which need not exist. A path that is no
// link stays as it is.
func follow(path string) (string, error) {
	isLink := false
	for range mostLinks {
		to, err := os.Readlink(path)
		switch {
		case err != nil && !isLink:
			return path, nil
		case err != nil:
			dir, name := filepath.Split(path)
			dir, err = filepath.EvalSymlinks(dir)
			return filepath.Join(dir, name), err
		}
		isLink = true
		if !filepath.IsAbs(to) { // it may begin with "..", which a cleaned path takes for the parent of another folder
			dir, _ := filepath.Split(path)
			to = dir + to
		}
		path = to
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}
