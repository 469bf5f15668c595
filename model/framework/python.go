package framework

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tuner/internal/children"
)

// findPython finds the interpreter.
func findPython(python string, s Source, out string) (string, error) {
	if python == "" {
		python = "python3"
	}
	path, err := exec.LookPath(python)
	if err != nil {
		return "", fmt.Errorf("it needs Python with %s, and %q was not found; install both, or name your Python:\n%s", s.Framework.Name, python, s.Framework.byHand("python3", s, out))
	}
	return path, nil
}

// programs has the programs that load and convert models.
//
//go:embed python
var programs embed.FS

// sharedProgram is the part that all programs import.
const sharedProgram = "tuner_export.py"

// writePrograms writes a framework's program as export.py, with its shared part beside it. Under its
// own name it would be the module that it imports.
func writePrograms(f Framework, folder string) (path string, err error) {
	path = filepath.Join(folder, "export.py")
	for name, out := range map[string]string{f.program: path, sharedProgram: filepath.Join(folder, sharedProgram)} {
		text, readErr := programs.ReadFile("python/" + name)
		err = errors.Join(err, readErr, os.WriteFile(out, text, 0o600))
	}
	return path, err
}

// runScript runs a framework's program in a folder and returns its report.
func runScript(ctx context.Context, f Framework, python, folder string, r request) (result, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return result{}, err
	}
	program, err := writePrograms(f, folder)
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "request.json"), text, 0o600))
	if err != nil {
		return result{}, &WriteError{filepath.Dir(folder), err}
	}
	complaints := &children.Tail{}
	cmd := children.Command(ctx, python, program, folder)
	cmd.Stdout, cmd.Stderr = complaints, complaints // both are messages for people: converters print a lot
	runError := children.Run(cmd)
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	var made result
	text, err = os.ReadFile(filepath.Join(folder, "result.json"))
	if err == nil {
		made, err = parseResult(text)
	}
	if runError != nil || err != nil {
		return result{}, fmt.Errorf("%s ended without a result (%w); its last output was:\n%s", python, errors.Join(runError, err), children.LastLines(complaints.String(), 12))
	}
	return made, nil
}

// parseResult reads what the program has written. A model that a framework unpacks may run code
// there, and write it instead.
func parseResult(text []byte) (result, error) {
	var made result
	if err := json.Unmarshal(text, &made); err != nil {
		return result{}, err
	}
	switch {
	case made.Status == "":
		return result{}, errors.New("result.json has no status")
	case made.Status == "ok" && made.Examples < 1:
		return result{}, errors.New("result.json has no examples, so the exported model cannot be compared")
	}
	return made, nil
}

// ErrPermission means that the file needs Source.AllowPickle.
var ErrPermission = errors.New("it needs your permission (for files of people you trust)")

// refusal explains why the program made no model, with the remedy.
func refusal(r result, python string, s Source, out string) error {
	f := s.Framework
	if f.explain != nil {
		if err := f.explain(r, python, s); err != nil {
			return err
		}
	}
	byHand := f.byHand(python, s, out)
	switch r.Status {
	case "packages":
		return fmt.Errorf("%s lacks a package (%s); install it, or name another Python with --python:\n%s", python, r.Message, byHand)
	case "pickle":
		return fmt.Errorf("it is a pickle: loading it runs any code that the file names, so %w", ErrPermission)
	case "classes":
		return fmt.Errorf("its classes or functions are not found (%s); run in the folder that you trained in, or set PYTHONPATH", r.Message)
	case "no_module":
		return fmt.Errorf("it holds %s, which is no model that %s converts", r.Message, f.Name)
	case "unreadable":
		return fmt.Errorf("%s cannot read it: %s", f.Name, r.Message)
	case "outputs", "inputs":
		return errors.New(r.Message)
	case "run":
		text := ""
		if len(s.Inputs) > 0 {
			text = fmt.Sprintf(" with the inputs that are given (%s)", describe(s.Inputs))
		}
		return fmt.Errorf("%s cannot run it%s: %s", f.Name, text, r.Message)
	case "export":
		return fmt.Errorf("%s cannot export it:\n%s\nTry by hand, with changes to the model:\n%s", f.Name, indent(r.Message), byHand)
	default:
		return fmt.Errorf("the export answers %q: %s", r.Status, r.Message)
	}
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// describe returns the inputs in readable form.
func describe(in []Input) string {
	list := make([]string, len(in))
	for i, one := range in {
		list[i] = fmt.Sprintf("%s %s%v", one.Name, one.Type, one.Shape)
	}
	return strings.Join(list, ", ")
}
