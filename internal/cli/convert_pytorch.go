package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tuner/onnx"
	"tuner/onnx/inputs"
	"tuner/precision"
	"tuner/provider"
	"tuner/pytorch"
)

// pytorchOptions are the flags of `tuner convert` that say what a PyTorch file doesn't tell. Four have OLive's names and forms.
type pytorchOptions struct {
	inNames, inShapes, inTypes, outNames string
	opset                                int
	python                               string
	allowPickle                          bool
}

// pytorchFlags are the names of these flags.
var pytorchFlags = []string{"in-names", "in-shapes", "in-types", "out-names", "opset", "python", "allow-pickle"}

func (o *pytorchOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.inNames, "in-names", "", "PyTorch: `names` for the inputs, in the order of the model's parameters, separated by commas")
	f.StringVar(&o.inShapes, "in-shapes", "", "PyTorch: their `shapes`, -1 for any size: [[-1,256],[-1,256]]")
	f.StringVar(&o.inTypes, "in-types", "", "PyTorch: their `types`: int64,int64 (default float32)")
	f.StringVar(&o.outNames, "out-names", "", "PyTorch: `names` for the outputs (default: the model's own, or output, or output_0 …)")
	f.IntVar(&o.opset, "opset", 0, "PyTorch: `version` of ONNX's operators (default 17)")
	f.StringVar(&o.python, "python", "", "PyTorch: `program` of the Python that has it (default python3 of the PATH)")
	f.BoolVar(&o.allowPickle, "allow-pickle", false, "PyTorch: load pickled modules, and any file with a PyTorch before 2.6, which may run code of the file")
}

// isPyTorch tells PyTorch's files by their names.
func isPyTorch(path string) bool {
	return slices.Contains([]string{".pt", ".pth"}, strings.ToLower(filepath.Ext(path)))
}

// checkPyTorchFlags refuses PyTorch's flags with a model of another kind.
func checkPyTorchFlags(path string, given func(flag string) bool) error {
	if isPyTorch(path) {
		return nil
	}
	for _, flag := range pytorchFlags {
		if given(flag) {
			return usageErrorf("--%s is for PyTorch's files (.pt, .pth); %q tells that itself", flag, path)
		}
	}
	return nil
}

// source reads the flags for a PyTorch file.
func (o pytorchOptions) source(path string) (pytorch.Source, error) {
	in, err := pytorch.ParseInputs(o.inNames, o.inShapes, o.inTypes)
	if err != nil {
		return pytorch.Source{}, usageErrorf("%w; a PyTorch file does not tell them: use --in-names, --in-shapes and --in-types", err)
	}
	s := pytorch.Source{Path: path, Inputs: in, Opset: o.opset, AllowPickle: o.allowPickle}
	if o.outNames != "" {
		for name := range strings.SplitSeq(o.outNames, ",") {
			s.Outputs = append(s.Outputs, strings.TrimSpace(name))
		}
	}
	return s, nil
}

// exportPath is the ONNX file that a PyTorch file becomes in a folder.
func exportPath(path, dir string) string {
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+".onnx")
}

// exportTarget returns the ONNX file that a PyTorch file becomes, NAME.onnx in dir. One that is there already is replaced only
// by force.
func exportTarget(path, dir string, force bool) (string, error) {
	out := exportPath(path, dir)
	if _, err := os.Lstat(out); !force && err == nil {
		return "", usageErrorf("cannot export %q to %q, which exists; --force replaces it, and 'tuner convert %s' goes on from it", path, out, out)
	}
	return out, nil
}

// exportPyTorch makes the ONNX file out of a PyTorch file, with the Python that is named ("" is python3 of the PATH), and
// compares it with PyTorch on open's provider cpu.
func exportPyTorch(ctx context.Context, con console, source pytorch.Source, python, out string, open precision.Opener) error {
	fmt.Fprintf(con.err, "%s: exporting with PyTorch\n", source.Path)
	report, err := pytorch.Export(ctx, source, python, out, cpuRunner{open})
	switch {
	case ctx.Err() != nil:
		return interruptedOr(ctx, err)
	case errors.Is(err, pytorch.ErrPermission):
		return usageErrorf("%w\nhere the permission is --allow-pickle", err)
	case errors.As(err, new(*pytorch.WriteError)):
		return usageErrorf("%w\n-o names another folder", err)
	case err != nil:
		return withExit(exitUsage, err)
	}
	fmt.Fprintf(con.err, "%s: %s, exported by the %s of PyTorch %s; %s\n", out, report.Kind, report.Exporter, report.Torch, agreementText(report))
	return nil
}

// agreementText says how far an exported model agrees with PyTorch. Whole numbers do not differ by much or little: they are equal.
func agreementText(r pytorch.Report) string {
	if math.IsNaN(r.MaxAbs) {
		return fmt.Sprintf("outputs equal PyTorch's on %d random inputs", r.Examples)
	}
	return fmt.Sprintf("greatest difference from PyTorch's outputs on %d random inputs: %.2g", r.Examples, r.MaxAbs)
}

// cpuRunner runs ONNX files on the execution provider cpu.
type cpuRunner struct{ open precision.Opener }

// Run implements pytorch.Runner.
func (r cpuRunner) Run(ctx context.Context, model string, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error) {
	m, err := onnx.Read(model)
	if err != nil {
		return nil, err
	}
	session, err := r.open.Open(ctx, m, provider.CPU)
	if err != nil {
		return nil, err
	}
	defer session.Close(ctx)
	return session.Infer(ctx, in)
}
