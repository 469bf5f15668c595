// Package modelanalyzer reads the YAML files of Triton Model Analyzer. It translates each into a
// profile.yaml or analyze.yaml for each of its models, and has package spec read that. It stands
// beside package spec at the beginning of the data flow. No later package knows the foreign format.
//
// It ignores nothing silently. A setting without an effect is a Warning. A setting that would make
// the measurement differ from the file is an error. Both have file, line and path. Reading is pure:
// facts about the machine come in as Machine.
package modelanalyzer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tuner/spec"
	"tuner/spec/document"
)

// Machine has the facts on which the meaning of a file depends, besides its text.
type Machine struct {
	Dir    string // working folder, absolute; folders in Model Analyzer's files are relative to it
	GPUs   int    // GPUs of this machine; without any, models are profiled on the CPU
	Server string // path of the tritonserver in PATH; "" without one
	// Stages lists the models that the ensemble in a folder calls; none for another model. nil knows none
	Stages func(folder string) []string
	// Folders lists the names of the folders in one, relative to the working folder. nil knows none
	Folders func(dir string) []string
}

// Options are command-line values that replace the file's; "" keeps the file's value.
type Options struct {
	CheckpointDirectory string
	ExportPath          string
	Formats             []string // of results, since the foreign files name none
}

// Warning means that a field has no effect, or another effect.
type Warning struct {
	File string
	Line int // from 1
	Path string
	Text string
}

// String returns "file:line: path: text".
func (w Warning) String() string { return fmt.Sprintf("%s:%d: %s: %s", w.File, w.Line, w.Path, w.Text) }

// Campaign is a file's request for one model at one client batch, or for all models at once.
type Campaign struct {
	Profile spec.Profile
	Analyze spec.Analyze // analysis of its results
}

// File is the content of a file.
type File struct {
	Campaigns []Campaign // of a profile, in the file's order
	// Unreported means that no results are written after the campaigns (skip_summary_reports).
	Unreported bool
	Analyses   []spec.Analyze // of an analyze or report file
	Joint      string         // folder of the results of all models together; "" for a single one
	Warnings   []Warning
}

// Is reports whether a text is a file of Model Analyzer: a mapping with a field that only these
// files have.
func Is(text []byte) bool {
	root, err := open(text)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(root.entries(), entry.isTheirs)
}

// isTheirs reports whether only Model Analyzer's files have a field.
func (e entry) isTheirs() bool {
	shared := []string{"constraints", "plots", "inference_output_fields", "gpu_output_fields", "server_output_fields"}
	_, known := find(TopLevel, e.name)
	return known && !slices.Contains(shared, e.name)
}

// ParseProfile reads a profile. path is the file's name for errors and warnings. The error is a
// document.Errors with every mistake of the file.
func ParseProfile(path string, text []byte, m Machine, o Options) (File, error) {
	r := &reader{path: path, machine: m, options: o}
	var f File
	if root, ok := r.read(text); ok {
		if _, has := r.given["profile_models"]; !has {
			r.fail(root, document.Error{Problem: "has no profile_models", Hint: "add profile_models: [NAME], of models in model_repository"})
		}
		models := r.models("profile_models", PerModel)
		r.checkComposing(models)
		if r.isTogether(models) {
			if c, ok := r.together(models); ok {
				f.Campaigns = append(f.Campaigns, c)
			}
		} else {
			r.several = len(models) > 1 || len(models) == 1 && len(r.batches(models[0])) > 1
			for _, m := range models {
				f.Campaigns = append(f.Campaigns, r.campaigns(m)...)
			}
		}
		_, f.Unreported = r.said("skip_summary_reports")
		f.Joint = r.joint()
	}
	f.Warnings = r.warnings
	return f, r.err()
}

// ParseAnalyze reads the analysis of earlier campaigns' results: the models of analysis_models,
// report_model_configs or profile_models. Otherwise it works like ParseProfile.
func ParseAnalyze(path string, text []byte, m Machine, o Options) (File, error) {
	r := &reader{path: path, machine: m, options: o}
	var f File
	if root, ok := r.read(text); ok {
		f.Analyses = r.analyses(root)
		f.Joint = r.joint()
	}
	f.Warnings = r.warnings
	return f, r.err()
}

// reader reads one file. It collects all mistakes and warnings.
type reader struct {
	path     string
	machine  Machine
	options  Options
	given    map[string]value // fields of the file
	several  bool             // it has several campaigns, each with its own folder of results
	errors   document.Errors
	warnings []Warning
}

// read opens the file and checks its fields against the table. ok is false if nothing more can be
// read.
func (r *reader) read(text []byte) (root value, ok bool) {
	root, err := open(text)
	if err != nil {
		r.addError(document.Error{File: r.path, Line: 1, Problem: err.Error()})
		return root, false
	}
	if r.isMixed(root) {
		return root, false
	}
	r.given = r.mapping(root, TopLevel)
	if v, has := r.said("model_type"); has && v.node.Value != "generic" {
		r.fail(v, document.Error{Problem: "generative models, which genai-perf measures, come in a later version", Allowed: "generic"})
	}
	return root, true
}

// isMixed reports fields of tuner's own files.
func (r *reader) isMixed(root value) bool {
	own := []string{"model", "models", "config", "name", "output", "deploy_target", "runner", "search", "space", "load", "objective", "weights",
		"price", "accuracy", "input", "top", "mode", "formats"}
	theirs := slices.IndexFunc(root.entries(), entry.isTheirs)
	isMixed := false
	for _, e := range root.entries() {
		if slices.Contains(own, e.name) && theirs >= 0 {
			r.fail(e.key, document.Error{Problem: fmt.Sprintf("is a field of tuner's own files, and %s is one of Model Analyzer's", root.entries()[theirs].name),
				Hint: "a file is either the one or the other: move the line into a file of its own kind"})
			isMixed = true
		}
	}
	return isMixed
}

// err returns the mistakes by line; nil without any.
func (r *reader) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errors, func(a, b document.Error) int { return cmp.Compare(a.Line, b.Line) })
	return r.errors
}

// said returns a field of the file, and whether it counts as given.
func (r *reader) said(name string) (value, bool) {
	v, has := r.given[name]
	return v, has && v.isSaid()
}

// text returns a field of the file as text. It returns the default if the field is not given or is
// not a text, which it reports.
func (r *reader) text(name, usual string) (value, string) {
	v, has := r.said(name)
	if !has || !r.isText(v) {
		return v, usual
	}
	return v, strings.TrimSpace(v.node.Value)
}

// relativePath converts a name relative to the working folder into one relative to the file's
// folder, as in tuner's own files.
func (r *reader) relativePath(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	folder := filepath.Dir(r.path)
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(r.machine.Dir, folder)
	}
	absolute := filepath.Join(r.machine.Dir, name)
	if relative, err := filepath.Rel(folder, absolute); err == nil {
		return relative
	}
	return absolute
}

// checkpoints returns the folder of the campaigns, relative to the working folder.
func (r *reader) checkpoints() string {
	_, dir := r.text("checkpoint_directory", "checkpoints")
	return cmp.Or(r.options.CheckpointDirectory, dir)
}

// model is one entry of a list of models.
type model struct {
	name  string
	at    value            // place of the name
	given map[string]value // its own fields
}

// models reads a field with models in one of these forms:
//
//   - "a, b",
//   - a list of names,
//   - a mapping from names to their fields,
//   - a list of both.
func (r *reader) models(field string, section Section) []model {
	v, has := r.given[field]
	if !has {
		return nil
	}
	var list []model
	add := func(m model) {
		if slices.ContainsFunc(list, func(other model) bool { return other.name == m.name }) {
			r.fail(m.at, document.Error{Problem: fmt.Sprintf("names the model %q a second time", m.name), Hint: "keep one of the two"})
			return
		}
		list = append(list, m)
	}
	entries := func(v value) {
		for _, e := range v.entries() {
			add(model{e.name, e.key, r.mapping(e.value, section)})
		}
	}
	for _, e := range v.elements() {
		if e.isMapping() {
			entries(e)
			continue
		}
		if e.isSequence() || e.isNull() {
			r.fail(e, document.Error{Problem: "must be the name of a model, or a name with the model's own fields"})
			continue
		}
		for _, name := range e.words() {
			add(model{name.node.Value, name, nil})
		}
	}
	if len(list) == 0 && len(r.errors) == 0 {
		r.fail(v, document.Error{Problem: "names no model"})
	}
	return list
}

// of returns a model's own field, or else the file's. One replaces the other completely.
func (r *reader) of(m model, name string) (value, bool) {
	if v, has := m.given[name]; has && v.isSaid() {
		return v, true
	}
	return r.said(name)
}
