package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/report/formats"
	"tuner/spec"
	"tuner/spec/modelanalyzer"
)

// readAnalyses reads the analyze file, tuner's or Model Analyzer's. With only --input it makes one.
// joint is the folder of the results of all models together; "" for a single model.
func readAnalyses(ctx context.Context, con console, o analyzeOptions) (list []spec.Analyze, joint string, err error) {
	switch {
	case o.file == "" && o.input == "":
		return nil, "", exit.Usagef("nothing to analyze: name a campaign's output folder, or an analyze.yaml")
	case o.file != "" && o.input != "":
		return nil, "", exit.Usagef("-f and --input contradict each other: the file names its own input")
	case o.file == "":
		if err := o.foreign.refuse(); err != nil {
			return nil, "", err
		}
		a, err := spec.AnalyzeOf(o.input, formats.All().Words())
		a.Output = cmp.Or(o.folder, a.Output)
		return []spec.Analyze{a}, "", err
	}
	text, err := readAnalyzeText(o.file)
	if err != nil {
		return nil, "", err
	}
	if !modelanalyzer.Is(text) {
		if err := o.foreign.refuse(); err != nil && o.imported == "" {
			return nil, "", err
		}
		a, err := parseAnalyze(o.file, text)
		a.Output = cmp.Or(o.folder, a.Output)
		return []spec.Analyze{a}, "", err
	}
	if o.folder != "" {
		return nil, "", exit.Usagef("-o is for tuner's own files: use --export-path with Model Analyzer's")
	}
	machine, err := foreignMachine(ctx)
	if err != nil {
		return nil, "", err
	}
	if o.imported != "" { // the folders are those of campaigns
		machine.Folders = nil
	}
	f, err := modelanalyzer.ParseAnalyze(filepath.Clean(o.file), text, machine, o.foreign.options())
	warnAll(con, f.Warnings)
	return f.Analyses, f.Joint, exit.With(exit.Usage, err)
}

func readAnalyzeText(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("cannot read %q: %v", path, durable.Cause(err))
	}
	return text, nil
}

func parseAnalyze(path string, text []byte) (spec.Analyze, error) {
	a, err := spec.ParseAnalyze(filepath.Clean(path), text, formats.All().Words())
	return a, exit.With(exit.Usage, err)
}
