package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/model/pytorch"
)

// pytorchOptions are the flags of `tuner convert` for properties that a PyTorch file lacks. Four
// have OLive's names and forms.
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

// checkPyTorchFlags refuses PyTorch's flags with a model of another kind.
func checkPyTorchFlags(path string, given func(flag string) bool) error {
	if pytorch.IsFile(path) {
		return nil
	}
	for _, flag := range pytorchFlags {
		if given(flag) {
			return exit.Usagef("--%s is for PyTorch's files (.pt, .pth); leave it out for %q", flag, path)
		}
	}
	return nil
}

// source reads the flags for a PyTorch file.
func (o pytorchOptions) source(path string) (pytorch.Source, error) {
	in, err := pytorch.ParseInputs(o.inNames, o.inShapes, o.inTypes)
	if err != nil {
		return pytorch.Source{}, exit.Usagef("%w; a PyTorch file does not have them: use --in-names, --in-shapes and --in-types", err)
	}
	s := pytorch.Source{Path: path, Inputs: in, Opset: o.opset, AllowPickle: o.allowPickle}
	if o.outNames != "" {
		for name := range strings.SplitSeq(o.outNames, ",") {
			s.Outputs = append(s.Outputs, strings.TrimSpace(name))
		}
	}
	return s, nil
}
