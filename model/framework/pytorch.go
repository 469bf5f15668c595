package framework

import (
	"fmt"
	"slices"
	"strings"
)

// asTorchScript saves a module in the form that needs no permission.
const asTorchScript = `torch.jit.save(torch.jit.script(model.eval()), "model.pt")`

// pyTorch is PyTorch's row: TorchScript (torch.jit.save), or a pickled module (torch.save of a
// module).
func pyTorch() Framework {
	return Framework{
		Name: "PyTorch", Files: ".pt, .pth", Inputs: InputsNeeded, program: "pytorch.py",
		is:      func(f file) bool { return f.has(".pt", ".pth") },
		explain: explainPyTorch,
		byHand:  pyTorchByHand,
		differs: "; tracing loses conditions and loops that depend on values, which torch.jit.script keeps",
	}
}

// explainPyTorch explains what is special to PyTorch; nil for everything else.
func explainPyTorch(r result, python string, s Source) error {
	switch r.Status {
	case "weights":
		return fmt.Errorf("it has weights alone (a state_dict), and no module that uses them; load them into your module and save that: "+
			"model.load_state_dict(torch.load(%q)); %s", s.Path, asTorchScript)
	case "pickle":
		return fmt.Errorf("it is a pickled module: loading it runs any code that the file names, so %w, or better TorchScript: %s", ErrPermission, asTorchScript)
	case "old":
		return fmt.Errorf("PyTorch %s is older than 2.6: loading any file with it may run the file's code, so %w, or better a newer PyTorch: "+
			"%s -m pip install 'torch>=2.6'", r.Message, ErrPermission, python)
	case "classes":
		return fmt.Errorf("the pickled module's classes are not found (%s); run in the folder that you trained in, or set PYTHONPATH, "+
			"or save TorchScript, which needs no classes: %s", r.Message, asTorchScript)
	case "no_module":
		return fmt.Errorf("it holds %s, and no module; save the module itself: %s", r.Message, asTorchScript)
	}
	return nil
}

// pyTorchByHand returns commands that do the same as Export by hand.
func pyTorchByHand(python string, s Source, out string) string {
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
		args = append(args, fmt.Sprintf("torch.zeros((%s), dtype=torch.%s),", strings.Join(append(sizes, ""), ","), types[in.Type]))
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

// symbol names an open dimension like tuner_export.py.
func symbol(axis int) string {
	if axis == 0 {
		return "batch"
	}
	return fmt.Sprintf("dim_%d", axis)
}
