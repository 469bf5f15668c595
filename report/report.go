// Package report writes an analyzed campaign into an output folder. It is the last step of the data
// flow.
//
// A Format writes one form of the results: text, Markdown, JSON, CSV, JUnit, charts, a page. Each
// has a package of its own below this one, and takes its words from package report/figures. Package
// report/formats has the list of them. This package defines Format, decides which folders it may
// write into, and writes the files. It also writes the optimum: the best config.pbtxt and the
// deployable model repository.
//
// The output depends on the Result only, not on a clock or locale: the same journal gives the same
// bytes. The package measures nothing and does not change the ranking.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/parallel"
	"tuner/spec"
)

// Format writes one form of results. Its methods do not block and do not keep their arguments.
type Format interface {
	// Name is the format's name in analyze.yaml. It is unique.
	Name() string
	// Files lists the files of a result. The top-level names of their paths must not depend on the
	// result, since they distinguish tuner's folders from others. A format for the terminal only
	// returns none.
	Files(r analyze.Result, o Output) []File
}

// File is one file of the output folder. Write may run on any goroutine, in parallel with those of
// other files.
type File struct {
	Path string // relative to the output folder
	// Write is nil where the result has no such file. That of an earlier one is removed.
	Write func(io.Writer) error
}

// Output tells a format about the folder of its files.
type Output struct {
	Dir   string
	Names []string // names of the requested formats
}

// Has reports whether a format is requested.
func (o Output) Has(name string) bool { return slices.Contains(o.Names, name) }

// Row is a row of the list of formats.
type Row struct {
	Format
	Always bool // written even if analyze.yaml does not ask for it
	// Stdout is the word of `tuner analyze --output` that prints the format's first file; ""
	// without one. About describes that output in the help.
	Stdout, About string
}

// Formats is a list of formats, in the order in which their files are written.
type Formats []Row

// Words lists the values of `formats` in analyze.yaml: formats that are not always written, and the
// forms of the optimum.
func (list Formats) Words() []string {
	var words []string
	for _, row := range list {
		if !row.Always {
			words = append(words, row.Name())
		}
	}
	return append(words, spec.FormatConfig, spec.FormatRepository, spec.FormatHelm)
}

// StdoutWords lists the words of `tuner analyze --output`.
func (list Formats) StdoutWords() []string {
	var words []string
	for _, row := range list {
		if row.Stdout != "" {
			words = append(words, row.Stdout)
		}
	}
	return words
}

// StdoutHelp describes the output of each word: "text (the table), csv (every measurement) or json
// (the result)".
func (list Formats) StdoutHelp() string {
	var words []string
	for _, row := range list {
		if row.Stdout != "" {
			words = append(words, fmt.Sprintf("%s (%s)", row.Stdout, row.About))
		}
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Print writes the first file of the format with this word of `tuner analyze --output`.
func (list Formats) Print(w io.Writer, word string, r analyze.Result) error {
	i := slices.IndexFunc(list, func(row Row) bool { return row.Stdout == word && word != "" })
	if i < 0 {
		return fmt.Errorf("cannot print a result as %q: allowed are %s", word, strings.Join(list.StdoutWords(), ", "))
	}
	return list[i].Files(r, Output{})[0].Write(w)
}

// files lists the files of the requested formats.
func (list Formats) files(r analyze.Result, o Output) []File {
	var files []File
	for _, row := range list {
		if row.Always || o.Has(row.Name()) {
			files = append(files, row.Files(r, o)...)
		}
	}
	return files
}

// WriteAll writes the result into an output folder, in the formats in names. It returns the paths
// of the written files, in order, also if it fails. Each file is written completely or not at all.
//
// If no configuration satisfies the constraints, there is no optimal configuration and no
// repository. Those of an earlier run are then removed. WriteAll refuses a folder with content that
// is not tuner's.
//
// Without the measured model's file it writes everything but the repository, and returns a
// MissingModelError.
func (list Formats) WriteAll(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return list.writeAll(dir, r, names)
}

// WriteShared is WriteAll for a folder that may hold other files too, like Model Analyzer's export
// path. It replaces Model Analyzer's results and plots. It refuses a folder with other files of
// tuner's names, unless tuner wrote its results there before.
func (list Formats) WriteShared(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), list.checkShared(dir, r)); err != nil {
		return nil, err
	}
	return list.writeAll(dir, r, names)
}

// checkOwn refuses a model name that cannot be a folder name, and a folder with content that is not
// tuner's.
func (list Formats) checkOwn(dir string, r analyze.Result) error {
	return errors.Join(checkName(r.Header.Model), list.checkOutput(dir, r))
}

func (list Formats) writeAll(dir string, r analyze.Result, names []string) ([]string, error) {
	names, missing := withoutMissing(r, names)
	written, err := list.writeReports(dir, r, names)
	if err != nil {
		return written, err
	}
	optimum, err := writeOptimum(dir, r, names)
	if missing != nil && err == nil {
		for _, m := range r.OfEach() {
			err = cmp.Or(err, removeRepository(dir, m))
		}
	}
	return append(written, optimum...), cmp.Or(err, missing)
}

// WriteReports is WriteAll without the optimum: the part for people and programs.
func (list Formats) WriteReports(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return list.writeReports(dir, r, names)
}

func (list Formats) writeReports(dir string, r analyze.Result, names []string) ([]string, error) {
	return writeFiles(dir, list.files(r, Output{dir, names}))
}

// WriteOptimum is the part of WriteAll for deployment: the optimal configuration and the
// repository.
func (list Formats) WriteOptimum(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return writeOptimum(dir, r, names)
}

// writeFiles writes files below a folder, on all cores. It returns the error of the first file that
// cannot be written, and still writes the others.
func writeFiles(dir string, list []File) ([]string, error) {
	paths := make([]string, len(list)) // "" for files that were not written
	err := parallel.Try(len(list), func(i int) error {
		path := filepath.Join(dir, list[i].Path)
		if list[i].Write == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot remove the outdated file: %w", err)
			}
			return nil
		}
		if err := WriteFile(path, list[i].Write); err != nil {
			return err
		}
		paths[i] = path
		return nil
	})
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" }), err
}
