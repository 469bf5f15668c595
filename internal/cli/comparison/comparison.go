// Package comparison is what `tuner compare` does: it finds and reads the runs that the user names, and
// writes their comparison or the list of a folder. Package compare decides what changed.
package comparison

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"tuner/analyze/imported"
	"tuner/compare"
	"tuner/compare/output"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/terminal"
)

// width is that of the list of a folder, in columns.
const width = 80

// Options are the flags, and where the output goes.
type Options struct {
	Out, Err io.Writer
	Format   string  // text, markdown, json, html or benchstat
	File     string  // to write in place of Out; "": Out, or index.html of a folder
	Spread   float64 // standard deviation of a figure between two runs, in percent
}

// Run compares the runs in the paths. With one path it lists the runs below that folder. Errors carry
// their exit code.
func Run(o Options, paths []string) error {
	write, ok := map[string]func(io.Writer, compare.Comparison) error{
		"text": output.WriteText, "markdown": output.WriteMarkdown, "json": output.WriteJSON, "html": output.WriteHTML, "benchstat": output.WriteBenchstat,
	}[o.Format]
	if !ok {
		return exit.Usagef("--format %q: allowed are text, markdown, json, html and benchstat", o.Format)
	}
	if !(o.Spread >= 0 && o.Spread <= 100) || math.IsNaN(o.Spread) {
		return exit.Usagef("--spread %g: allowed are 0 to 100 percent", o.Spread)
	}
	if len(paths) == 1 {
		return listRuns(o, paths[0])
	}
	var runs []compare.Run
	for _, path := range paths {
		list, err := readRuns(o, path)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		runs = append(runs, list...)
	}
	c := compare.Of(compare.Named(runs), o.Spread/100)
	if o.File == "" {
		return write(o.Out, c)
	}
	if err := durable.WriteNamed(o.File, func(w io.Writer) error { return write(w, c) }); err != nil {
		return exit.OfFiles(err)
	}
	fmt.Fprintf(o.Err, "written to %s\n", o.File)
	return nil
}

// readRuns reads a run. A file that is no result of tuner may be another program's, which may have
// several models.
func readRuns(o Options, path string) ([]compare.Run, error) {
	run, err := compare.Read(path)
	var foreign *compare.NotARunError
	if err == nil || !errors.As(err, &foreign) {
		return []compare.Run{run}, err
	}
	list, notes, importErr := imported.Read(path)
	if importErr != nil {
		return nil, fmt.Errorf("%w; nor of Model Analyzer or perf_analyzer: %w", err, importErr)
	}
	for _, note := range notes {
		fmt.Fprintln(o.Err, "warning: "+note)
	}
	var runs []compare.Run
	for _, recording := range list {
		run, err := compare.Recorded(recording)
		if err != nil {
			return nil, err
		}
		run.Name = filepath.Base(filepath.Clean(path))
		runs = append(runs, run)
	}
	return runs, nil
}

// indexFile is the page that lists a folder's runs.
const indexFile = "index.html"

// listRuns lists the runs below a folder, and writes the index page.
func listRuns(o Options, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return exit.Usagef("%q is no folder: name a folder with runs below it, or two runs to compare", dir)
	}
	if o.Format != "text" {
		return exit.Usagef("--format %s: one folder is listed as text and as a page; name two runs to compare", o.Format)
	}
	file, save := o.File, durable.WriteNamed
	if file == "" {
		file, save = filepath.Join(dir, indexFile), durable.WriteFile
	}
	if old, err := os.ReadFile(file); err == nil && !bytes.Contains(old, []byte(output.IndexMark)) {
		return exit.Usagef("%s is there, and 'tuner compare' did not write it: name another file with -o", file)
	}
	entries, err := entriesBelow(o, dir, filepath.Dir(file))
	if err != nil {
		return exit.OfFiles(err)
	}
	if len(entries) == 0 {
		return exit.Usagef("no run lies below %q: name a folder in which 'tuner run', 'analyze' or 'gate' wrote", dir)
	}
	for _, e := range entries {
		fmt.Fprintln(o.Out, terminal.Fold(terminal.Plain(fmt.Sprintf("%s: %s of %s: %s", e.Name, e.Kind, e.Model, e.Answer)), width))
	}
	if err := save(file, func(w io.Writer) error { return output.WriteIndex(w, nameOf(dir), entries) }); err != nil {
		return exit.OfFiles(err)
	}
	fmt.Fprintf(o.Err, "written to %s\n", file)
	return nil
}

// nameOf returns a folder's own name, also of "." and "..".
func nameOf(dir string) string {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return filepath.Base(dir)
}

// entriesBelow reads the runs below a folder, in the order of their paths. It warns of files that
// are no runs. Links lead from the folder of the index.
func entriesBelow(o Options, dir, index string) (entries []output.Entry, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot list %q: %w", dir, err)
		}
		if entry.IsDir() || entry.Name() != "result.json" && entry.Name() != "gate.json" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", path, durable.Cause(err))
		}
		run, err := compare.Parse(path, text)
		if err != nil {
			fmt.Fprintf(o.Err, "warning: %v\n", err)
			return nil
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("cannot name %q: %w", path, err)
		}
		run.Name = filepath.ToSlash(name)
		entries = append(entries, output.Entry{Run: run, Link: linkTo(filepath.Dir(path), index)})
		return nil
	})
	return entries, err
}

// linkTo returns the path of a run's page from the index, "" if the run has none.
func linkTo(run, index string) string {
	for _, page := range []string{"report.html", "trend.html"} {
		path := filepath.Join(run, page)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if link, err := filepath.Rel(index, path); err == nil {
			return strings.TrimPrefix(filepath.ToSlash(link), "./")
		}
	}
	return ""
}
