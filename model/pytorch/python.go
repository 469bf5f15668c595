package pytorch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		return "", fmt.Errorf("it needs Python with PyTorch, and %q was not found; install both, or name your Python:\n%s", python, hint("python3", s, out))
	}
	return path, nil
}

// runScript runs export.py in a folder and returns its report.
func runScript(ctx context.Context, python, folder string, r request) (result, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return result{}, err
	}
	program := filepath.Join(folder, "export.py")
	err = errors.Join(os.WriteFile(program, script, 0o600), os.WriteFile(filepath.Join(folder, "request.json"), text, 0o600))
	if err != nil {
		return result{}, &WriteError{filepath.Dir(folder), err}
	}
	complaints := &children.Tail{}
	cmd := children.Command(ctx, python, program, folder)
	cmd.Stdout, cmd.Stderr = complaints, complaints // both are messages for people: PyTorch's exporters print a lot
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

// parseResult reads what export.py has written. A model that PyTorch unpacks may run code there, and
// write it instead.
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

// refusal explains why export.py made no model, with the remedy.
func refusal(r result, python string, s Source, out string) error {
	byHand := hint(python, s, out)
	switch r.Status {
	case "packages":
		return fmt.Errorf("%s lacks a package (%s); install it, or name another Python:\n%s", python, r.Message, byHand)
	case "weights":
		return fmt.Errorf("it has weights alone (a state_dict), and no module that uses them; load them into your module and save that: "+
			"model.load_state_dict(torch.load(%q)); torch.jit.save(torch.jit.script(model.eval()), \"model.pt\")", s.Path)
	case "pickle":
		return fmt.Errorf("it is a pickled module: loading it runs any code that the file names, so %w, "+
			"or better TorchScript: torch.jit.save(torch.jit.script(model.eval()), \"model.pt\")", ErrPermission)
	case "old":
		return fmt.Errorf("PyTorch %s is older than 2.6: loading any file with it may run the file's code, so %w, or better a newer PyTorch: "+
			"%s -m pip install 'torch>=2.6'", r.Message, ErrPermission, python)
	case "classes":
		return fmt.Errorf("the pickled module's classes are not found (%s); run in the folder that you trained in, or set PYTHONPATH, "+
			"or save TorchScript, which needs no classes: torch.jit.save(torch.jit.script(model.eval()), \"model.pt\")", r.Message)
	case "no_module":
		return fmt.Errorf("it holds %s, and no module; save the module itself: torch.jit.save(torch.jit.script(model.eval()), \"model.pt\")", r.Message)
	case "unreadable":
		return fmt.Errorf("PyTorch cannot read it: %s", r.Message)
	case "outputs":
		return errors.New(r.Message)
	case "run":
		return fmt.Errorf("PyTorch cannot run it with the inputs that are given (%s): %s", describe(s.Inputs), r.Message)
	case "export":
		return fmt.Errorf("PyTorch cannot export it:\n%s\nTry by hand, with changes to the model:\n%s", indent(r.Message), byHand)
	default:
		return fmt.Errorf("export.py answers %q: %s", r.Status, r.Message)
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

// hint returns commands that do the same as Export by hand.
func hint(python string, s Source, out string) string {
	var args, names, axes []string
	for _, in := range s.Inputs {
		var sizes, open []string
		for axis, size := range in.Shape {
			if size < 0 {
				open = append(open, fmt.Sprintf("%d: %q", axis, symbol(axis)))
				size = 2
			}
			sizes = append(sizes, fmt.Sprint(size))
		}
		args = append(args, fmt.Sprintf("torch.zeros((%s), dtype=torch.%s),", strings.Join(append(sizes, ""), ","), torchTypes[in.Type]))
		names = append(names, fmt.Sprintf("%q", in.Name))
		if len(open) > 0 {
			axes = append(axes, fmt.Sprintf("%q: {%s}", in.Name, strings.Join(open, ", ")))
		}
	}
	outputs := s.Outputs
	if len(outputs) == 0 {
		outputs = []string{"output"}
	}
	for _, name := range outputs {
		if !slices.ContainsFunc(s.Inputs, func(in Input) bool { return len(in.Shape) > 0 && in.Shape[0] < 0 }) {
			break // without a batch in the inputs the outputs have none
		}
		axes = append(axes, fmt.Sprintf("%q: {0: %q}", name, symbol(0)))
	}
	return fmt.Sprintf(`  %[1]s -m pip install torch onnx onnxscript numpy
  %[1]s - <<'EOF'
  import torch
  model = torch.jit.load(%[2]q).eval()
  torch.onnx.export(model, (%[3]s), %[4]q, input_names=[%[5]s], output_names=[%[6]s],
                    dynamic_axes={%[7]s}, opset_version=%[8]d, dynamo=False)
  EOF`, python, s.Path, strings.Join(args, " "), out, strings.Join(names, ", "), `"`+strings.Join(outputs, `", "`)+`"`, strings.Join(axes, ", "), opset(s))
}

// symbol names an open dimension like export.py.
func symbol(axis int) string {
	if axis == 0 {
		return "batch"
	}
	return fmt.Sprintf("dim_%d", axis)
}
