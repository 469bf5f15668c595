// Package report writes an analyzed campaign in the forms that people and programs use: the terminal's table, CSV with Model
// Analyzer's columns, charts, Markdown, JSON, the optimal config.pbtxt and a deployable model repository. It is the last
// step of the data flow. Each writer is a function of the Result alone, without clock or locale: the same journal gives the
// same bytes. It measures nothing and changes no ranking.
package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/journal"
	"tuner/spec"
)

// The output tree.
const (
	resultsDir       = "results"
	plotsDir         = "plots"
	latencyChartName = "throughput_vs_p99.png"
	loadChartName    = "throughput_vs_concurrency.png"
	stagesChartName  = "optim_Results.png" // OLive's name
	markdownName     = "report.md"
	jsonName         = "result.json"
	configDir        = "optimal"
	configName       = "config.pbtxt"
	repositoryDir    = "repository"
)

// file is one file of the output tree.
type file struct {
	format string // spec's word for it; "" is always written
	path   string
	write  func(io.Writer, analyze.Result) error
}

// files lists the output tree in the order in which it is written. The machine-readable result and the summary are always
// written; the optimum only when there is one.
func files(r analyze.Result, formats []string) []file {
	markdown := func(w io.Writer, r analyze.Result) error {
		return WriteMarkdown(w, r, slices.Contains(formats, spec.FormatPNG))
	}
	layout := r.CSV.Or(spec.DefaultCSV())
	list := []file{
		{spec.FormatCSV, filepath.Join(resultsDir, layout.Inference.Name), WriteInferenceCSV},
		{spec.FormatCSV, filepath.Join(resultsDir, layout.GPU.Name), WriteGPUCSV},
		{spec.FormatCSV, filepath.Join(resultsDir, layout.Server.Name), WriteServerCSV},
		{spec.FormatPNG, filepath.Join(plotsDir, latencyChartName), WriteLatencyChart},
		{spec.FormatPNG, filepath.Join(plotsDir, loadChartName), WriteLoadChart},
		{spec.FormatPNG, stagesChartName, WriteStagesChart},
		{"", markdownName, markdown},
		{"", jsonName, WriteJSON},
	}
	if _, ok := r.Winner(); ok {
		list = append(list, file{spec.FormatConfig, filepath.Join(configDir, configName), WriteConfig})
	}
	return list
}

// WriteAll writes the result into an output folder in the formats that spec names, each file whole or not at all, and returns
// the paths of what it wrote, in order; the table is for the terminal, and no file. When no configuration satisfies the
// constraints there is no optimal configuration and no repository, and those of an earlier run are removed. A folder with
// content that is not tuner's is refused. On an error the paths written until then are returned with it.
func WriteAll(dir string, r analyze.Result, formats []string) ([]string, error) {
	if err := checkOutput(dir); err != nil {
		return nil, err
	}
	return writeAll(dir, r, formats)
}

func writeAll(dir string, r analyze.Result, formats []string) ([]string, error) {
	var written []string
	for _, f := range files(r, formats) {
		if f.format != "" && !slices.Contains(formats, f.format) {
			continue
		}
		var b bytes.Buffer
		if err := f.write(&b, r); err != nil {
			return written, err
		}
		path := filepath.Join(dir, f.path)
		if err := writeFile(path, b.Bytes()); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	if _, ok := r.Winner(); !ok {
		return written, removeStale(dir, r.Header.Model)
	}
	if !slices.Contains(formats, spec.FormatRepository) {
		return written, nil
	}
	repository := filepath.Join(dir, repositoryDir)
	if err := WriteRepository(repository, r); err != nil {
		return written, err
	}
	return append(written, filepath.Join(repository, r.Header.Model)), nil
}

// InputError says that the user's files stand in the way: the program ends with exit code 2. Nothing of them was changed.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// checkOutput accepts a folder that is absent, a campaign's, or one with nothing in it but results, also half-written ones.
func checkOutput(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write results into %q: %w", dir, durable.Cause(err))
	}
	ours := []string{resultsDir, plotsDir, stagesChartName, markdownName, jsonName, configDir, repositoryDir}
	foreign := ""
	for _, e := range entries {
		if e.Name() == journal.FileName || e.Name() == jsonName {
			return nil
		}
		if !slices.Contains(ours, e.Name()) {
			foreign = e.Name()
		}
	}
	if foreign == "" {
		return nil
	}
	return &InputError{fmt.Errorf("cannot write results into %q: it holds other files, such as %q, and no tuner results; "+
		"choose another output folder", dir, foreign)}
}
