package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"tuner/internal/checksum"
	"tuner/internal/durable"
)

// Outcome is the outcome of a step's function.
type Outcome struct {
	State State  // "" means OK
	Text  string // what was done, or why not, for people
	// Files: files and folders that it made; while they are unchanged, the step need not be
	// repeated
	Files []string
	// Elapsed: time of the step if earlier runs did a part of it; 0: the function's time
	Elapsed time.Duration
	Before  bool // earlier runs had done everything
}

// Skip returns the outcome of a step without work.
func Skip(format string, args ...any) Outcome {
	return Outcome{State: Skipped, Text: fmt.Sprintf(format, args...)}
}

// Observer follows the steps, on the goroutine that makes them.
type Observer interface {
	Begun(name Name)
	// Ended reports the result of a step. before means that earlier runs had done it.
	Ended(step Step, before bool)
}

// Log makes steps and records them. It is not safe for concurrent use.
type Log struct {
	dir      string
	list     List
	reports  Reports
	observer Observer
	now      func() time.Time
}

// Open reads the record of an output folder, which may not exist yet. Nothing is written before the
// first step ends or claims a file.
func Open(dir string, observer Observer, now func() time.Time) (*Log, error) {
	list, reports, err := read(dir)
	if err != nil {
		return nil, err
	}
	return &Log{dir, list, reports, observer, now}, nil
}

// List returns the recorded steps.
func (l *Log) List() List { return l.list }

// Do makes a step. It calls work, unless an earlier run has done the step with the same key and its
// files are unchanged. With the key "" it always calls work.
//
// The result is recorded before Do returns. If it differs from the earlier record, the records of
// later steps are removed, since they belong to another run. An error of work fails the step, or
// interrupts it if ctx has ended, and is returned. The record of a step that is not OK names the
// files of earlier runs that still exist.
func (l *Log) Do(ctx context.Context, name Name, key string, work func() (Outcome, error)) error {
	l.observer.Begun(name)
	before, known := l.list.Get(name)
	known = known && before.isDone() && before.Key == key
	if known && key != "" && (before.State == Skipped || l.isIntact(before.Files)) {
		l.observer.Ended(before, true)
		return nil
	}
	start := l.now()
	outcome, failure := work()
	if failure == nil && outcome.Before && known {
		l.observer.Ended(before, true)
		return nil
	}
	step, err := l.step(name, key, outcome)
	if step.Elapsed == 0 {
		step.Elapsed = l.now().Sub(start)
	}
	if err = errors.Join(failure, err); err != nil {
		step.State, step.Text = Failed, err.Error()
		if ctx.Err() != nil {
			step.State, step.Text = Interrupted, ""
		}
	}
	if step.State != OK {
		step.Files = l.left(name)
	}
	list := l.list.With(step).through(name)
	if known && isSame(before, step) {
		list = l.list.With(before) // keeps its earlier time and the later steps
	}
	if !reflect.DeepEqual(list, l.list) {
		l.list = list
		err = errors.Join(err, write(l.dir, l.list, l.reports))
	}
	l.observer.Ended(step, false)
	return err
}

// Claim records that the current step is about to make a file. After a crash before the step's end,
// the file's owner is still known. The path is as in Outcome.Files. Only the function of Do may
// call it, with Do's name and key.
func (l *Log) Claim(name Name, key, path string) error {
	claimed, err := l.nameOf(path)
	if err != nil {
		return err
	}
	l.list = l.list.With(Step{Name: name, State: Interrupted, Key: key, Files: []File{{Path: claimed}}})
	return write(l.dir, l.list, l.reports)
}

// Owns reports whether a step made or claimed a file, in every later state of the step. The path is
// as in Outcome.Files.
func (l *Log) Owns(name Name, path string) bool {
	wanted, err := l.nameOf(path)
	step, _ := l.list.Get(name)
	return err == nil && slices.ContainsFunc(step.Files, func(f File) bool { return f.Path == wanted })
}

// nameOf returns the recorded name of a path.
func (l *Log) nameOf(path string) (string, error) {
	name, err := relative(l.dir, path)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", path, err)
	}
	return filepath.ToSlash(name), nil
}

// left lists the existing files of a step's record.
func (l *Log) left(name Name) []File {
	step, _ := l.list.Get(name)
	var files []File
	for _, f := range step.Files {
		if _, err := os.Lstat(filepath.Join(l.dir, filepath.FromSlash(f.Path))); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// Report calls work to write the reports, and records them. It skips work if the reports have the
// same key and are unchanged. Reports are no step, since they describe all seven.
func (l *Log) Report(key string, work func() (files []string, err error)) error {
	if l.reports.Key == key && l.isIntact(l.reports.Files) {
		return nil
	}
	paths, err := work()
	if err != nil {
		return err
	}
	reports := Reports{Key: key}
	for _, path := range paths {
		files, err := FilesOf(l.dir, path)
		if err != nil {
			return err
		}
		reports.Files = append(reports.Files, files...)
	}
	l.reports = reports
	return write(l.dir, l.list, l.reports)
}

// step makes the record of an outcome.
func (l *Log) step(name Name, key string, o Outcome) (Step, error) {
	s := Step{Name: name, State: o.State, Text: o.Text, Elapsed: o.Elapsed, Key: key}
	if s.State == "" {
		s.State = OK
	}
	for _, path := range o.Files {
		files, err := FilesOf(l.dir, path)
		if err != nil {
			return s, err
		}
		s.Files = append(s.Files, files...)
	}
	return s, nil
}

// isSame reports whether two records of a step differ in their time only.
func isSame(a, b Step) bool {
	a.Elapsed, b.Elapsed = 0, 0
	return reflect.DeepEqual(a, b)
}

// FilesOf describes a file, or all files of a folder, relative to the folder dir.
func FilesOf(dir, path string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := relative(dir, path)
		if err != nil {
			return err
		}
		sum, err := checksum.File(path)
		files = append(files, File{filepath.ToSlash(name), sum})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot compute the digest of %q: %w", path, durable.Cause(err))
	}
	return files, nil
}

// relative returns a path relative to a folder.
func relative(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// isIntact reports whether a step's files exist unchanged.
func (l *Log) isIntact(files []File) bool {
	for _, f := range files {
		sum, err := checksum.File(filepath.Join(l.dir, filepath.FromSlash(f.Path)))
		if err != nil || sum != f.SHA256 {
			return false
		}
	}
	return true
}
