// Package report writes an analyzed campaign in the forms that people and programs use: the terminal's table, CSV with Model
// Analyzer's columns, charts, Markdown, JSON, the optimal config.pbtxt and a deployable model repository. It is the last
// step of the data flow. Each writer is a function of the Result alone, without clock or locale: the same journal gives the
// same bytes. It measures nothing and changes no ranking.
package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/durable"
	"tuner/internal/parallel"
	"tuner/journal"
	"tuner/measure"
	"tuner/spec"
)

// The output tree.
const (
	resultsDir       = "results"
	plotsDir         = "plots"
	latencyChartName = "throughput_vs_p99.png"
	loadChartName    = "throughput_vs_concurrency.png"
	memoryChartName  = "memory_vs_p99.png"
	paretoChartName  = "pareto.png"
	partsChartName   = "latency_breakdown.png"
	stagesChartName  = "optim_Results.png" // OLive's name
	htmlName         = "report.html"
	markdownName     = "report.md"
	jsonName         = "result.json"
	junitName        = "junit.xml"
	configDir        = "optimal"
	configName       = "config.pbtxt"
	locationName     = "Optimal_ConfigFile_Location.txt" // OLive's name
	repositoryDir    = "repository"
)

// file is one file of the output tree.
type file struct {
	format string // spec's word for it; "" is always written
	path   string
	write  func(io.Writer, analyze.Result) error
}

// files lists the output tree in a folder in the order in which it is written. The machine-readable result and the summary are always
// written; the optimum only when there is one.
func files(dir string, r analyze.Result, formats []string) []file {
	markdown := func(w io.Writer, r analyze.Result) error {
		return WriteMarkdown(w, r, slices.Contains(formats, spec.FormatPNG))
	}
	page := func(w io.Writer, r analyze.Result) error {
		return WriteHTML(w, r, slices.Contains(formats, spec.FormatRepository))
	}
	names := r.CSV.Named()
	list := []file{
		{spec.FormatCSV, filepath.Join(resultsDir, names.Inference.Name), WriteInferenceCSV},
		{spec.FormatCSV, filepath.Join(resultsDir, names.GPU.Name), WriteGPUCSV},
		{spec.FormatCSV, filepath.Join(resultsDir, names.Server.Name), WriteServerCSV},
	}
	list = append(list, charts(r)...)
	list = append(list,
		file{spec.FormatHTML, htmlName, page},
		file{spec.FormatJUnit, junitName, WriteJUnit},
		file{"", markdownName, markdown},
		file{"", jsonName, WriteJSON},
	)
	if _, ok := r.Winner(); ok {
		config := filepath.Join(configDir, configName)
		location := func(w io.Writer, _ analyze.Result) error { return writeLocation(w, filepath.Join(dir, config)) }
		list = append(list, file{spec.FormatConfig, config, WriteConfig}, file{spec.FormatConfig, locationName, location})
	}
	return list
}

// isDeployed reports whether the file is of the optimum, and none to be read.
func (f file) isDeployed() bool { return f.format == spec.FormatConfig }

// charts lists the pictures: those of GPUs only where there are some.
func charts(r analyze.Result) []file {
	list := []file{
		{spec.FormatPNG, filepath.Join(plotsDir, latencyChartName), WriteLatencyChart},
		{spec.FormatPNG, filepath.Join(plotsDir, loadChartName), WriteLoadChart},
		{spec.FormatPNG, filepath.Join(plotsDir, memoryChartName), chartOverLatency(measure.Memory)},
	}
	for _, m := range []measure.Metric{measure.GPUMemory, measure.GPUUtilization, measure.GPUPower} {
		if isMeasured(r, m) {
			list = append(list, file{spec.FormatPNG, filepath.Join(plotsDir, string(m)+"_vs_p99.png"), chartOverLatency(m)})
		}
	}
	for _, p := range r.Plots {
		list = append(list, file{spec.FormatPNG, filepath.Join(plotsDir, simpleDir, p.Name+".png"), WritePlot(p)})
	}
	return append(list,
		file{spec.FormatPNG, filepath.Join(plotsDir, paretoChartName), WriteParetoChart},
		file{spec.FormatPNG, filepath.Join(plotsDir, partsChartName), WriteBreakdownChart},
		file{spec.FormatPNG, stagesChartName, WriteStagesChart},
	)
}

// isMeasured reports whether some figure of a metric is known.
func isMeasured(r analyze.Result, m measure.Metric) bool {
	return slices.ContainsFunc(r.Configs, func(c analyze.Config) bool {
		return slices.ContainsFunc(c.Points, func(p analyze.Point) bool { _, ok := p.Values[m]; return ok })
	})
}

// writeLocation writes Optimal_ConfigFile_Location.txt: nothing but where the optimal config.pbtxt is, so that a script finds it from any folder.
func writeLocation(w io.Writer, path string) error {
	absolute, err := filepath.Abs(path)
	if err == nil {
		_, err = fmt.Fprintln(w, absolute)
	}
	if err != nil {
		return fmt.Errorf("cannot write the location of the optimal configuration: %w", err)
	}
	return nil
}

// WriteAll writes the result into an output folder in the formats that spec names, each file whole or not at all, and returns
// the paths of what it wrote, in order; the table is for the terminal, and no file. When no configuration satisfies the
// constraints there is no optimal configuration and no repository, and those of an earlier run are removed. A folder with
// content that is not tuner's is refused. On an error the paths of what was written nevertheless are returned with it.
func WriteAll(dir string, r analyze.Result, formats []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), checkOutput(dir)); err != nil {
		return nil, err
	}
	return writeAll(dir, r, formats)
}

func writeAll(dir string, r analyze.Result, formats []string) ([]string, error) {
	written, err := writeReports(dir, r, formats)
	if err != nil {
		return written, err
	}
	deployed, err := writeOptimum(dir, r, formats)
	return append(written, deployed...), err
}

// WriteReports is the part of WriteAll that is read: everything but the optimum.
func WriteReports(dir string, r analyze.Result, formats []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), checkOutput(dir)); err != nil {
		return nil, err
	}
	return writeReports(dir, r, formats)
}

func writeReports(dir string, r analyze.Result, formats []string) ([]string, error) {
	return writeFiles(r, slices.DeleteFunc(files(dir, r, formats), file.isDeployed), dir, formats)
}

// WriteOptimum is the part of WriteAll that is deployed: the optimal configuration and the repository.
func WriteOptimum(dir string, r analyze.Result, formats []string) ([]string, error) {
	if err := errors.Join(checkName(r.Header.Model), checkOutput(dir)); err != nil {
		return nil, err
	}
	return writeOptimum(dir, r, formats)
}

func writeOptimum(dir string, r analyze.Result, formats []string) ([]string, error) {
	written, err := writeFiles(r, slices.DeleteFunc(files(dir, r, formats), func(f file) bool { return !f.isDeployed() }), dir, formats)
	if err != nil {
		return written, err
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

// writeFiles writes those files of a list into a folder that the formats name, on all cores. The error is of the first that cannot be written;
// the others are written all the same.
func writeFiles(r analyze.Result, list []file, dir string, formats []string) ([]string, error) {
	list = slices.DeleteFunc(list, func(f file) bool { return f.format != "" && !slices.Contains(formats, f.format) })
	paths := make([]string, len(list)) // "" where it was not written
	err := parallel.Try(len(list), func(i int) error {
		path := filepath.Join(dir, list[i].path)
		if err := writeFile(path, func(w io.Writer) error { return list[i].write(w, r) }); err != nil {
			return err
		}
		paths[i] = path
		return nil
	})
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" }), err
}

// InputError says that the user's files stand in the way: the program ends with exit code 2. Nothing of them was changed.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// checkName refuses a model's name that leads out of the repository: a journal may come from anywhere.
func checkName(model string) error {
	if model == "" || strings.HasPrefix(model, ".") || strings.ContainsAny(model, `/\`) {
		return &InputError{fmt.Errorf("cannot write results: the journal's model name %q is not that of a folder", model)}
	}
	return nil
}

// checkOutput accepts a folder that is absent, a campaign's, or one with nothing in it but results, also half-written ones.
func checkOutput(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write results into %q: %w", dir, durable.Cause(err))
	}
	ours := []string{resultsDir, plotsDir, stagesChartName, htmlName, junitName, markdownName, jsonName, configDir, locationName, repositoryDir}
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
