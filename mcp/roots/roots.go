// Package roots decides which files a client of the Model Context Protocol may name: those below the
// folders that the user gives to `tuner mcp`, even through links. It also refuses what a profile may
// not say there: programs to run, libraries to load, and other servers (profile.go).
//
// It opens no file. A path is checked when it is named. So a client that can also write files below
// the folders can replace a checked file by a link meanwhile. It gains that file alone, since the
// process that runs a profile checks it again after it has read it.
package roots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
)

// mostEntries is the largest number of entries of a folder that a client names, with all folders
// below it. An output folder has some hundred. A larger one is a mistake, such as a home folder.
const mostEntries = 20_000

// Roots are folders, absolute and without links. The first one is that of relative paths.
type Roots []string

// Open reads the folders that the user gives. Without any it is the working folder.
func Open(folders []string) (Roots, error) {
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var all Roots
	for _, folder := range folders {
		real, err := realPath(folder)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(real); err == nil && !info.IsDir() {
				err = errors.New("it is no folder")
			}
		}
		if err != nil {
			return nil, exit.Usagef("cannot use the folder %q: %v", folder, durable.Cause(err))
		}
		all = append(all, real)
	}
	return all, nil
}

// String lists the folders for people.
func (r Roots) String() string {
	quoted := make([]string, len(r))
	for i, root := range r {
		quoted[i] = strconv.Quote(root)
	}
	return strings.Join(quoted, ", ")
}

// Find returns the path of a file or folder without links. It need not exist. A relative path is
// below the first folder. A path outside of all folders is an error.
func (r Roots) Find(path string) (string, error) {
	if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) {
		return "", exit.Usagef("%q is no path", path)
	}
	named := path
	if !filepath.IsAbs(path) {
		path = filepath.Join(r[0], path)
	}
	real, err := resolve(filepath.Clean(path))
	switch {
	case err != nil:
		return "", exit.Usagef("cannot find %q: %v", named, durable.Cause(err))
	case !r.contain(real):
		return "", exit.Usagef("%q is outside of the folders that are open here: %s; the user opens another one with 'tuner mcp --root'", named, r)
	}
	return real, nil
}

// Folder is Find for a file, or for a folder whose files will be read or written. It refuses a folder
// with a link that leads outside.
func (r Roots) Folder(path string) (string, error) {
	real, err := r.Find(path)
	if err != nil {
		return "", err
	}
	entries := 0
	err = filepath.WalkDir(real, func(at string, entry fs.DirEntry, err error) error {
		entries++
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it is to be written, or was removed meanwhile
		case err != nil:
			return err
		case entries > mostEntries:
			return fmt.Errorf("it has more than %d entries; name the output folder of one run", mostEntries)
		case entry.Type()&fs.ModeSymlink == 0:
			return nil
		}
		if target, err := realPath(at); err != nil || !r.contain(target) {
			return fmt.Errorf("the link %q in it leads outside of the folders that are open here", at)
		}
		return nil
	})
	if err != nil {
		return "", exit.Usagef("cannot use %q: %v", path, durable.Cause(err))
	}
	return real, nil
}

// contain reports whether a path without links is one of the folders or below one.
func (r Roots) contain(real string) bool {
	for _, root := range r {
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// realPath returns the absolute path without links of a file that exists.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// resolve removes the links of a clean absolute path. Its last parts need not exist. A link that
// leads nowhere is an error: what is written there would be written to its target.
func resolve(path string) (string, error) {
	real, err := realPath(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", errors.New("it is a link that leads nowhere")
	}
	parent, err := resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}
