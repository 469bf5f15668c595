// Package report writes an analyzed campaign into an output folder. It is the last step of the data
// flow.
//
// A form of results is a Format: text, Markdown, JSON, CSV, JUnit, charts, a page. Each has a
// package of its own below this one, and takes its words from package report/figures. Package
// report/formats has the list of them. This package declares what a Format is, decides which
// folders it may write into, and writes the files. It also writes the optimum: the best
// config.pbtxt and the deployable model repository.
//
// Everything is a function of the Result alone, without clock or locale: the same journal gives the
// same bytes. It measures nothing and changes no ranking.
package report

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/parallel"
	"tuner/spec"
)

// Format is one form of results. Its methods do not block, and keep nothing of their arguments.
type Format interface {
	// Name is the word for the format in analyze.yaml. No two formats share one.
	Name() string
	// Files lists the files of a result. The top-level names of their paths do not depend on the
	// result: they tell tuner's own folders from others. A format for the terminal alone has none.
	Files(r analyze.Result, o Output) []File
}

// File is one file of the output folder. Write may be called on any goroutine, at the same time as
// those of other files.
type File struct {
	Path  string // relative to the output folder
	Write func(io.Writer) error
}

// Output is what a format may know about the folder that its files go to.
type Output struct {
	Dir   string
	Names []string // of the formats that are asked for
}

// Has reports whether a format is asked for.
func (o Output) Has(name string) bool { return slices.Contains(o.Names, name) }

// Row is a line of the list of formats.
type Row struct {
	Format
	Always bool // written whatever analyze.yaml asks for
	// Stdout is the word of `tuner analyze --output` that prints the format's first file; "" where
	// nothing does. About says in the help what it prints.
	Stdout, About string
}

// Formats is a list of formats, in the order in which their files are written.
type Formats []Row

// Words lists what `formats` in analyze.yaml may hold: formats that are not always written, and the
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

// StdoutHelp says what each word prints: "text (the table), csv (every measurement) or json (the
// result)".
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

// Print writes what a word of `tuner analyze --output` stands for: the first file of that format.
func (list Formats) Print(w io.Writer, word string, r analyze.Result) error {
	i := slices.IndexFunc(list, func(row Row) bool { return row.Stdout == word && word != "" })
	if i < 0 {
		return fmt.Errorf("cannot print a result as %q: allowed are %s", word, strings.Join(list.StdoutWords(), ", "))
	}
	return list[i].Files(r, Output{})[0].Write(w)
}

// files lists the files of the formats that are asked for.
func (list Formats) files(r analyze.Result, o Output) []File {
	var files []File
	for _, row := range list {
		if row.Always || o.Has(row.Name()) {
			files = append(files, row.Files(r, o)...)
		}
	}
	return files
}

// WriteAll writes the result into an output folder in the formats that names lists, and returns the
// paths of what it wrote, in order. Each file is written whole or not at all.
//
// When no configuration satisfies the constraints there is no optimal configuration and no
// repository. Those of an earlier run are then removed. A folder with content that is not tuner's
// is refused. On an error the paths of what was written nevertheless are returned with it.
func (list Formats) WriteAll(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return list.writeAll(dir, r, names)
}

// WriteShared is WriteAll for a folder that may hold other files too, as Model Analyzer's export
// path does. Its results and plots are replaced. Another file by a name of tuner's own is refused
// unless tuner wrote its results there before.
func (list Formats) WriteShared(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), list.checkShared(dir, r)); err != nil {
		return nil, err
	}
	return list.writeAll(dir, r, names)
}

// checkOwn refuses a model whose name cannot be a folder, and a folder with content that is not tuner's.
func (list Formats) checkOwn(dir string, r analyze.Result) error {
	return errors.Join(checkName(r.Header.Model), list.checkOutput(dir, r))
}

func (list Formats) writeAll(dir string, r analyze.Result, names []string) ([]string, error) {
	written, err := list.writeReports(dir, r, names)
	if err != nil {
		return written, err
	}
	optimum, err := writeOptimum(dir, r, names)
	return append(written, optimum...), err
}

// WriteReports is the part of WriteAll that people and programs read: everything but the optimum.
func (list Formats) WriteReports(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return list.writeReports(dir, r, names)
}

func (list Formats) writeReports(dir string, r analyze.Result, names []string) ([]string, error) {
	return writeFiles(dir, list.files(r, Output{dir, names}))
}

// WriteOptimum is the part of WriteAll that is deployed: the optimal configuration and the
// repository.
func (list Formats) WriteOptimum(dir string, r analyze.Result, names []string) ([]string, error) {
	if err := list.checkOwn(dir, r); err != nil {
		return nil, err
	}
	return writeOptimum(dir, r, names)
}

// writeFiles writes files below a folder, on all cores. The error is that of the first file that
// cannot be written. The others are written all the same.
func writeFiles(dir string, list []File) ([]string, error) {
	paths := make([]string, len(list)) // "" where it was not written
	err := parallel.Try(len(list), func(i int) error {
		path := filepath.Join(dir, list[i].Path)
		if err := WriteFile(path, list[i].Write); err != nil {
			return err
		}
		paths[i] = path
		return nil
	})
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" }), err
}
