package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"tuner/analyze"
	"tuner/analyze/imported"
	"tuner/internal/exit"
	"tuner/report/formats"
	"tuner/spec"
)

// runImport ranks another program's measurements of each model. Without a folder (-o, --export-path) it
// writes only the table.
func runImport(ctx context.Context, con console, o analyzeOptions) error {
	switch {
	case o.input != "":
		return exit.Usagef("--import and --input contradict each other: --import reads another program's measurements, and --input a campaign of tuner")
	case o.explain:
		return exit.Usagef("--import and --explain contradict each other: another program's figures do not show what limits a configuration")
	case o.folder != "" && o.foreign.export != "":
		return exit.Usagef("-o and --export-path both name the folder of the results: keep one of the two")
	}
	var asked []spec.Analyze
	if o.file != "" {
		var err error
		if asked, _, err = readAnalyses(ctx, con, o); err != nil {
			return err
		}
	}
	list, notes, err := imported.Read(o.imported)
	if errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("%v", err)
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	for _, note := range notes {
		fmt.Fprintln(con.err, "warning: "+note)
	}
	var models exit.Several
	isAsked := false
	for _, recording := range list {
		a, ok := imported.GoalOf(asked, recording.Model, formats.All().Words())
		if !ok {
			continue // the file asks for other models
		}
		isAsked = true
		if err := models.Add(importOne(con, o, a, recording, len(list) > 1)); err != nil {
			return err
		}
	}
	if !isAsked {
		return imported.OtherModels(o.file, o.imported, asked, list)
	}
	return models.Unmet()
}

// importOne ranks the measurements of one model, and delivers the result.
func importOne(con console, o analyzeOptions, a spec.Analyze, recording analyze.Recording, isOneOfSeveral bool) error {
	a, err := a.With(o.overrides)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	result, a, err := imported.Rank(a, recording)
	if err != nil {
		return err
	}
	folder := cmp.Or(o.folder, o.foreign.export)
	if folder == "" {
		if err := printResult(con.out, o, a.Formats, result); err != nil {
			return err
		}
		fmt.Fprintln(con.err, "nothing is written: --export-path FOLDER names a folder for the results")
		return result.Unmet()
	}
	a.Output, a.Shared = folder, true
	if isOneOfSeveral {
		a.Output = filepath.Join(a.Output, recording.Model)
	}
	return deliver(con, o, a, result)
}
