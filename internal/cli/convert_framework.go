package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"tuner/internal/exit"
	"tuner/model/framework"
)

// frameworkOptions are the flags for properties that a framework's file lacks. Four have OLive's
// names and forms.
type frameworkOptions struct {
	inNames, inShapes, inTypes, outNames string
	opset                                int
	python                               string
	allowPickle                          bool
}

// inputFlags are the flags that describe inputs, the others those for every framework.
var (
	inputFlags     = []string{"in-names", "in-shapes", "in-types"}
	frameworkFlags = append([]string{"out-names", "opset", "python", "allow-pickle"}, inputFlags...)
)

func (o *frameworkOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.inNames, "in-names", "", "PyTorch: `names` for the inputs, in the order of the model's parameters, separated by commas; TensorFlow: names of inputs whose shape is given")
	f.StringVar(&o.inShapes, "in-shapes", "", "PyTorch, TensorFlow: their `shapes`, -1 for any size: [[-1,256],[-1,256]]")
	f.StringVar(&o.inTypes, "in-types", "", "PyTorch: their `types`: int64,int64 (default float32)")
	f.StringVar(&o.outNames, "out-names", "", "frameworks: `names` for the outputs (default: the model's own, or output, or output_0 …)")
	f.IntVar(&o.opset, "opset", 0, "frameworks: `version` of ONNX's operators (default 17)")
	f.StringVar(&o.python, "python", "", "frameworks: `program` of the Python that has it (default python3 of the PATH)")
	f.BoolVar(&o.allowPickle, "allow-pickle", false, "frameworks: load files that may run their own code: pickles, Lambda layers, and any file with a PyTorch before 2.6 or a Keras before 3.13.2")
}

// checkFrameworkFlags refuses flags that do not belong to the model's framework.
func checkFrameworkFlags(path string, given func(flag string) bool) error {
	of, is := framework.Of(path)
	for _, flag := range frameworkFlags {
		if !is && given(flag) {
			return exit.Usagef("--%s is for models of %s; leave it out for %q", flag, framework.All(), path)
		}
	}
	for _, flag := range inputFlags {
		if of.Inputs == framework.InputsKnown && given(flag) {
			return exit.Usagef("--%s is for models whose file does not describe the inputs; that of %s does, so leave it out for %q", flag, of.Name, path)
		}
	}
	return nil
}

// source reads the flags for a framework's model.
func (o frameworkOptions) source(of framework.Framework, path string) (framework.Source, error) {
	s := framework.Source{Framework: of, Path: path, Opset: o.opset, AllowPickle: o.allowPickle}
	var err error
	if of.Inputs == framework.InputsNeeded || o.inNames+o.inShapes+o.inTypes != "" {
		s.Inputs, err = framework.ParseInputs(o.inNames, o.inShapes, o.inTypes)
	}
	switch {
	case err == nil:
	case of.Inputs == framework.InputsNeeded:
		return s, exit.Usagef("%w; a %s file does not have them: use --in-names, --in-shapes and --in-types", err, of.Name)
	default:
		return s, exit.Usagef("%w; use --in-names and --in-shapes together", err)
	}
	if o.outNames != "" {
		for name := range strings.SplitSeq(o.outNames, ",") {
			s.Outputs = append(s.Outputs, strings.TrimSpace(name))
		}
	}
	return s, nil
}
