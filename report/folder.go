package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/profile/journal"
	"tuner/report/result"
)

// InputError means that the user's files are in the way. The program ends with exit code 2. The
// files are unchanged.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// ExitCode implements exit.Coded.
func (e *InputError) ExitCode() int { return exit.Usage }

// checkName refuses a model name that leads out of the repository. The journal may come from an
// untrusted source.
func checkName(model string) error {
	if model == "" || strings.HasPrefix(model, ".") || strings.ContainsAny(model, `/\`) {
		return &InputError{fmt.Errorf("cannot write results: the journal's model name %q cannot be the name of a folder", model)}
	}
	return nil
}

// tops returns the top-level files and folders of the output folder, for all formats.
func (list Formats) tops(r analyze.Result) (files, folders []string) {
	files, folders = []string{locationName}, []string{configDir, RepositoryDir}
	r.Models = nil // the files of one model have all names
	for _, row := range list {
		for _, f := range row.Files(r, Output{}) {
			if folder, _, isBelow := strings.Cut(filepath.ToSlash(f.Path), "/"); isBelow {
				folders = append(folders, folder)
			} else {
				files = append(files, f.Path)
			}
		}
	}
	return files, folders
}

// checkOutput accepts a folder that is absent, has a journal or a result, or holds only results.
// The results may be incomplete.
func (list Formats) checkOutput(dir string, r analyze.Result) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write results into %q: %w", dir, durable.Cause(err))
	}
	files, folders := list.tops(r)
	foreign := ""
	for _, e := range entries {
		if e.Name() == journal.FileName || e.Name() == result.FileName {
			return nil
		}
		if !slices.Contains(files, e.Name()) && !slices.Contains(folders, e.Name()) {
			foreign = e.Name()
		}
	}
	if foreign == "" {
		return nil
	}
	return &InputError{fmt.Errorf("cannot write results into %q: it holds other files, such as %q, and no tuner results; "+
		"choose another output folder", dir, foreign)}
}

// checkShared refuses a folder that has a file with one of tuner's names, unless tuner wrote its
// results there. It replaces Model Analyzer's own folders.
func (list Formats) checkShared(dir string, r analyze.Result) error {
	if _, err := os.Stat(filepath.Join(dir, result.FileName)); err == nil {
		return nil
	}
	files, _ := list.tops(r)
	for _, name := range append(files, configDir, RepositoryDir) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return &InputError{fmt.Errorf("cannot write results into %q: it holds %q, which is not tuner's; "+
				"choose another export_path, or move it away", dir, name)}
		}
	}
	return nil
}
