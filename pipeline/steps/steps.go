// Package steps is the record of what `tuner run` has done: the state of each of its seven steps, kept in
// <output>/steps.json, from which a later run goes on and which reports show. It stands beside the journal, which records the
// configuration search alone. It does not know what a step does: Log calls the caller's function, unless an earlier run has done
// the same and what it left is unchanged.
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

// format is the version of the record's format; it grows when a field changes its meaning or goes away.
const format = 1

// Name names a step.
type Name string

// The steps, in the order in which they are made.
const (
	Convert    Name = "convert"
	Precision  Name = "precision"
	Accuracy   Name = "accuracy check"
	Search     Name = "configuration search"
	Optimize   Name = "optimized model"
	Repository Name = "repository"
	Chart      Name = "chart"
)

// chartAndReport was the last step before the chart was one of its own. A record of it tells nothing about the chart, and is passed over.
const chartAndReport Name = "chart and report"

// Names lists the steps in their order.
func Names() []Name {
	return []Name{Convert, Precision, Accuracy, Search, Optimize, Repository, Chart}
}

// Number is the step's place in the order, from 1; 0 for what is no step.
func (n Name) Number() int { return slices.Index(Names(), n) + 1 }

// State says what became of a step.
type State string

// The states.
const (
	OK          State = "ok"
	Skipped     State = "skipped" // there was nothing to do
	Failed      State = "failed"
	Interrupted State = "interrupted" // by the user, or by a crash once it had claimed a file: the next run goes on with it
)

func states() []State { return []State{OK, Skipped, Failed, Interrupted} }

// Step is a step that was made, and what came of it.
type Step struct {
	Name    Name
	State   State
	Text    string        // what was done, or why it was not, for people
	Elapsed time.Duration // wall time
	Key     string        // digest of all that it depends on; "": not known, so that it is made in every run
	Files   []File        // that it left; where it is not OK, those of earlier runs that are still there, or the one that it has claimed
}

// File is a file and its content.
type File struct {
	Path   string `json:"path"`             // relative to the output folder, with forward slashes
	SHA256 string `json:"sha256,omitempty"` // "" of a file that was claimed: it may not be there yet
}

// isDone reports whether nothing is left to do.
func (s Step) isDone() bool { return s.State == OK || s.State == Skipped }

// List is the steps of a run, each at most once, in their order. It is immutable.
type List []Step

// Get returns a step, false when it was not made yet.
func (l List) Get(name Name) (Step, bool) {
	i := slices.IndexFunc(l, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return Step{}, false
	}
	return l[i], true
}

// With returns the list with a step in its place, in that of its earlier state or a new one.
func (l List) With(step Step) List {
	list := slices.DeleteFunc(slices.Clone(l), func(s Step) bool { return s.Name == step.Name })
	list = append(list, step)
	slices.SortFunc(list, func(a, b Step) int { return a.Name.Number() - b.Name.Number() })
	return list
}

// through returns the steps up to one.
func (l List) through(name Name) List {
	return slices.DeleteFunc(slices.Clone(l), func(s Step) bool { return s.Name.Number() > name.Number() })
}

// Reports are the files in which a run shows its steps.
type Reports struct {
	Key   string `json:"key"` // digest of all that they depend on
	Files []File `json:"files"`
}

// document is steps.json.
type document struct {
	Format  int      `json:"format"`
	Steps   []record `json:"steps"`
	Reports Reports  `json:"reports,omitzero"`
}

type record struct {
	Step    Name    `json:"step"`
	State   State   `json:"state"`
	Text    string  `json:"text"`
	Elapsed float64 `json:"elapsed_seconds"`
	Key     string  `json:"key,omitempty"`
	Files   []File  `json:"files,omitempty"`
}

// Read returns the steps that are recorded in an output folder: none without a record. The error of a record that cannot be read
// names the file and the remedy.
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
		return nil, Reports{}, fmt.Errorf("it is no record of steps: %w", err)
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
			return nil, fmt.Errorf("steps[%d].step: %q is no step; allowed: %q", i, r.Step, Names())
		case number <= last:
			return nil, fmt.Errorf("steps[%d].step: %q is out of order; the order is %q", i, r.Step, Names())
		case !slices.Contains(states(), r.State):
			return nil, fmt.Errorf("steps[%d].state: %q is no state; allowed: %q", i, r.State, states())
		case !(r.Elapsed >= 0 && r.Elapsed < maxElapsed):
			return nil, fmt.Errorf("steps[%d].elapsed_seconds: %v is no duration", i, r.Elapsed)
		}
		last = number
		elapsed := time.Duration(r.Elapsed * float64(time.Second))
		files := slices.Concat(r.Files) // nil for none, however it is written
		list = append(list, Step{Name: r.Step, State: r.State, Text: r.Text, Elapsed: elapsed, Key: r.Key, Files: files})
	}
	return list, nil
}

// maxElapsed is the longest time of a step, in seconds, that a time.Duration holds with room to spare.
const maxElapsed = 1e9

// write records the steps and the reports in an output folder, which is made when it does not exist.
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
