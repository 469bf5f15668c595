// Package steps is the record of a `tuner run`: the state of each of its seven steps, in
// <output>/steps.json. A later run resumes from it, and reports show it. It stands beside the
// journal, which records only the configuration search.
//
// The package does not know what a step does. Log calls the caller's function, unless an earlier
// run has done the same and its files are unchanged.
package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tuner/internal/durable"
)

// FileName is the record's name in the output folder.
const FileName = "steps.json"

// format is the version of the record's format. It increases when a field changes its meaning or
// disappears.
const format = 1

// Name names a step.
type Name string

// The steps in their order.
const (
	Convert    Name = "convert"
	Precision  Name = "precision"
	Accuracy   Name = "accuracy check"
	Search     Name = "configuration search"
	Optimize   Name = "optimized model"
	Repository Name = "repository"
	Chart      Name = "chart"
)

// chartAndReport was the last step before the chart had its own. A record of it has no information
// about the chart and is ignored.
const chartAndReport = "chart and report"

// Names lists the steps in their order.
func Names() []Name {
	return []Name{Convert, Precision, Accuracy, Search, Optimize, Repository, Chart}
}

// Number returns the step's number in the order, from 1, and 0 for an unknown step.
func (n Name) Number() int { return slices.Index(Names(), n) + 1 }

// State is the result of a step.
type State string

// The states.
const (
	OK      State = "ok"
	Skipped State = "skipped" // there was nothing to do
	Failed  State = "failed"
	// Interrupted: by the user, or by a crash after it had claimed a file: the next run resumes it
	Interrupted State = "interrupted"
)

func states() []State { return []State{OK, Skipped, Failed, Interrupted} }

// Step is a finished step with its result.
type Step struct {
	Name    Name
	State   State
	Text    string        // what was done, or why not, for people
	Elapsed time.Duration // wall time
	Key     string        // digest of everything that it depends on; "": unknown, so every run makes it
	// Files: files that it made; if it is not OK, existing files of earlier runs, or the claimed
	// file
	Files []File
}

// File is a file and its content.
type File struct {
	Path string `json:"path"` // path relative to the output folder, with forward slashes
	// SHA-256 of the content; absent for a file that the step was about to write, which may not exist
	// yet
	SHA256 string `json:"sha256,omitempty"`
}

// isDone reports whether nothing is left to do.
func (s Step) isDone() bool { return s.State == OK || s.State == Skipped }

// List has the steps of a run, each at most once, in their order. It is immutable.
type List []Step

// Get returns a step, and false if it was not made yet.
func (l List) Get(name Name) (Step, bool) {
	i := slices.IndexFunc(l, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return Step{}, false
	}
	return l[i], true
}

// With returns the list with a step added, or replaced in its place.
func (l List) With(step Step) List {
	list := slices.DeleteFunc(slices.Clone(l), func(s Step) bool { return s.Name == step.Name })
	list = append(list, step)
	slices.SortFunc(list, func(a, b Step) int { return a.Name.Number() - b.Name.Number() })
	return list
}

// through returns the steps up to and including one.
func (l List) through(name Name) List {
	return slices.DeleteFunc(slices.Clone(l), func(s Step) bool { return s.Name.Number() > name.Number() })
}

// Reports are the files in which a run shows its steps.
type Reports struct {
	Key   string `json:"key"`   // digest of everything that the reports depend on
	Files []File `json:"files"` // the reports
}

// document is steps.json.
type document struct {
	Format  int      `json:"format"`           // version of this format: 1
	Steps   []record `json:"steps"`            // steps that are finished, in the order of the run
	Reports Reports  `json:"reports,omitzero"` // files in which the run shows its steps; absent if none was written
}

// record is a finished step with its result.
type record struct {
	Step  Name   `json:"step"`  // name of the step
	State State  `json:"state"` // result of the step
	Text  string `json:"text"`  // what was done, or why it was not, for people
	// wall time in seconds; of the search that of the whole campaign. The time of the accuracy check
	// is in that of the precisions, since each variant is made and compared in turn
	Elapsed float64 `json:"elapsed_seconds"`
	// digest of everything that the step depends on; absent where the step itself finds out what was
	// done before
	Key string `json:"key,omitempty"`
	// files that the step made; if it is not ok, files of earlier runs that still exist
	Files []File `json:"files,omitempty"`
}

// Read returns the recorded steps of an output folder; none without a record. If the record cannot
// be read, the error names the file and the remedy.
func Read(dir string) (List, error) {
	list, _, err := read(dir)
	return list, err
}

func read(dir string) (List, Reports, error) {
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Reports{}, nil
	}
	if err != nil {
		return nil, Reports{}, fmt.Errorf("cannot read %q: %w", path, durable.Cause(err))
	}
	list, reports, err := parse(text)
	if err != nil {
		return nil, Reports{}, fmt.Errorf("cannot read %q: %w; remove the file to make all steps again: the journal keeps what was measured", path, err)
	}
	return list, reports, nil
}

// parse reads a record.
func parse(text []byte) (List, Reports, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, Reports{}, fmt.Errorf("it is not a record of steps: %w", err)
	}
	if d.Format != format {
		return nil, Reports{}, fmt.Errorf("it has format %d; this version of tuner reads format %d", d.Format, format)
	}
	list, err := listOf(d.Steps)
	return list, d.Reports, err
}

// listOf checks the records of steps.
func listOf(records []record) (List, error) {
	var list List
	last := 0
	for i, r := range records {
		if r.Step == chartAndReport {
			continue
		}
		number := r.Step.Number()
		switch {
		case number == 0:
			return nil, fmt.Errorf("steps[%d].step: %q is not a step; allowed: %q", i, r.Step, Names())
		case number <= last:
			return nil, fmt.Errorf("steps[%d].step: %q is out of order; the order is %q", i, r.Step, Names())
		case !slices.Contains(states(), r.State):
			return nil, fmt.Errorf("steps[%d].state: %q is not a state; allowed: %q", i, r.State, states())
		case !(r.Elapsed >= 0 && r.Elapsed < maxElapsed):
			return nil, fmt.Errorf("steps[%d].elapsed_seconds: %v is not a duration", i, r.Elapsed)
		}
		last = number
		elapsed := time.Duration(r.Elapsed * float64(time.Second))
		files := slices.Concat(r.Files) // nil if empty, for every form in the file
		list = append(list, Step{Name: r.Step, State: r.State, Text: r.Text, Elapsed: elapsed, Key: r.Key, Files: files})
	}
	return list, nil
}

// maxElapsed is the longest time of a step in seconds. It fits easily into a time.Duration.
const maxElapsed = 1e9

// write records the steps and the reports in an output folder. It makes the folder if needed.
func write(dir string, list List, reports Reports) error {
	d := document{Format: format, Steps: []record{}, Reports: reports}
	for _, s := range list {
		d.Steps = append(d.Steps, record{s.Name, s.State, s.Text, s.Elapsed.Round(time.Millisecond).Seconds(), s.Key, s.Files})
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, FileName), durable.Bytes(append(text, '\n')))
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", filepath.Join(dir, FileName), durable.Cause(err))
	}
	return nil
}
