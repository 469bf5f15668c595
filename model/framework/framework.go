// Package framework makes ONNX models of the files of PyTorch, TensorFlow, scikit-learn, XGBoost and
// LightGBM, with the user's own Python. The framework's converter exports the model. The package
// compares the result with the framework's outputs before it installs the file.
//
// It stands before the data flow: all later packages see an ONNX file. It does not guess: weights
// without their program are no model. It loads files that may run code only if the user permits it.
// Each framework is a row of one table (table.go), and a program in the folder python.
package framework

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tuner/internal/durable"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

// defaultOpset is supported by all converters, and by every supported ONNX Runtime.
const defaultOpset = 17

// longest is the time after which an export has failed. Exports of models of 2 GiB take minutes.
const longest = 30 * time.Minute

// Source is a model of a framework, with the information that its file lacks.
type Source struct {
	Framework Framework
	Path      string
	Inputs    []Input // in the order of the model's parameters; nil: those that the file describes
	// Outputs: names in order; nil: the names that the model returns, or output, or output_0 …
	Outputs []string
	Opset   int // 0: 17
	// AllowPickle allows a file to run the code that it names while it is loaded (pickles, Lambda
	// layers). It also allows any file with a version of the framework that may run code of any
	// file. The user must trust the file's author.
	AllowPickle bool
}

// Input is an input tensor of the model.
type Input struct {
	Name  string
	Type  onnx.DataType
	Shape []int64 // including the batch dimension; -1 is any size, the same in all inputs at that position
}

// Runner runs ONNX models.
type Runner interface {
	// Run runs the model file once and returns its outputs by name. It blocks until that is done or
	// ctx ends. It does not keep the inputs or the file.
	Run(ctx context.Context, model string, in map[string]inputs.Tensor) (map[string]inputs.Tensor, error)
}

// Report describes the export.
type Report struct {
	Version  string // of the framework
	Kind     string // of the file, for people: TorchScript, SavedModel, Pipeline
	Exporter string // the converter that made the ONNX file, with its version where it has one
	Examples int    // number of random inputs on which both were run; with open dimensions, of two sizes
	// MaxAbs: largest difference of an element between the framework's outputs and the file's; NaN if no
	// output has floats
	MaxAbs float64
}

// request is the input of the program.
type request struct {
	Path        string         `json:"path"`
	Inputs      []requestInput `json:"inputs"`
	Outputs     []string       `json:"outputs"`
	Opset       int            `json:"opset"`
	AllowPickle bool           `json:"allow_pickle"`
}

type requestInput struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"` // NumPy's name
	Shape []int64 `json:"shape"`
}

// result is the output of the program.
type result struct {
	Status   string `json:"status"` // ok, or a status that refusal explains
	Message  string `json:"message"`
	Version  string `json:"version"`
	Kind     string `json:"kind"`
	Exporter string `json:"exporter"`
	Examples int    `json:"examples"`
}

// WriteError means that the file or folder of the ONNX model cannot be written.
type WriteError struct {
	Path string
	Err  error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("cannot write %q: %v", e.Path, durable.Cause(e.Err))
}

func (e *WriteError) Unwrap() error { return e.Err }

// Export writes the ONNX model of a source to out, and makes its folder if needed. python names the
// interpreter; "" is python3 of the PATH. It runs examples with random values through the framework
// and run. If they disagree, out is not written.
func Export(ctx context.Context, s Source, python, out string, run Runner) (Report, error) {
	report, err := export(ctx, s, python, out, run)
	if err != nil {
		return Report{}, fmt.Errorf("cannot make an ONNX model of %q: %w", s.Path, err)
	}
	return report, nil
}

func export(ctx context.Context, s Source, python, out string, run Runner) (Report, error) {
	if s.Framework.runsCode != nil && s.Framework.runsCode(s.Path) && !s.AllowPickle {
		return Report{}, fmt.Errorf("it is a pickle: loading it runs any code that the file names, so %w", ErrPermission)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("%s does not end in %s", s.Framework.Name, longest))
	defer cancel()
	req, err := newRequest(s)
	if err != nil {
		return Report{}, err
	}
	python, err = findPython(python, s, out)
	if err != nil {
		return Report{}, err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return Report{}, &WriteError{filepath.Dir(out), err}
	}
	scratch, err := durable.NewScratch(filepath.Dir(out), "."+filepath.Base(out)+".")
	if err != nil {
		return Report{}, &WriteError{filepath.Dir(out), err}
	}
	defer scratch.Close() // everything that is needed was renamed before
	folder := scratch.Dir
	made, err := runScript(ctx, s.Framework, python, folder, req)
	if err != nil {
		return Report{}, err
	}
	if made.Status != "ok" {
		return Report{}, refusal(made, python, s, out)
	}
	model := filepath.Join(folder, modelFile)
	if err := checkFile(model); err != nil {
		return Report{}, err
	}
	report := Report{Version: made.Version, Kind: made.Kind, Exporter: made.Exporter, Examples: made.Examples, MaxAbs: math.NaN()}
	for n := range made.Examples {
		figures, err := compare(ctx, run, folder, n, s.Framework.differs)
		if err != nil {
			return Report{}, fmt.Errorf("the exported model's outputs are not %s's: %w", s.Framework.Name, err)
		}
		report.MaxAbs = greater(report.MaxAbs, figures)
	}
	if err := os.Rename(model, out); err != nil {
		return Report{}, &WriteError{out, err}
	}
	return report, durable.SyncDir(filepath.Dir(out))
}

// modelFile is the model's file name in the program's folder.
const modelFile = "model.onnx"

// checkFile checks that the model is one valid file. Exporters write weights of more than 2 GiB
// into additional files.
func checkFile(path string) error {
	m, err := onnx.Read(path)
	if err != nil {
		return err
	}
	if n := len(m.ExternalFiles()); n > 0 {
		return fmt.Errorf("its weights exceed one file (2 GiB): the exporter wrote %d more, which is not supported; export it by hand", n)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o644), f.Sync(), f.Close())
}

// types are NumPy's names of the types that frameworks and ONNX have.
var types = map[onnx.DataType]string{
	onnx.Float: "float32", onnx.Double: "float64", onnx.Float16: "float16", onnx.Bool: "bool", onnx.Uint8: "uint8",
	onnx.Int8: "int8", onnx.Int16: "int16", onnx.Int32: "int32", onnx.Int64: "int64",
}

// newRequest checks a source.
func newRequest(s Source) (request, error) {
	if err := checkReadable(s); err != nil {
		return request{}, err
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return request{}, err
	}
	r := request{Path: path, Inputs: []requestInput{}, Outputs: s.Outputs, Opset: opset(s), AllowPickle: s.AllowPickle}
	var errs []error
	if len(s.Inputs) == 0 && s.Framework.Inputs == InputsNeeded {
		errs = append(errs, fmt.Errorf("a %s file does not describe the model's inputs; give their names, types and shapes", s.Framework.Name))
	}
	seen := map[string]bool{}
	for _, name := range s.Outputs {
		seen[name] = true
	}
	for _, in := range s.Inputs {
		name, ok := types[in.Type]
		if !ok {
			errs = append(errs, fmt.Errorf("input %q: %s has no %s", in.Name, s.Framework.Name, in.Type))
		}
		if in.Name == "" || seen[in.Name] {
			errs = append(errs, fmt.Errorf("input %q: every input and output needs a name of its own", in.Name))
		}
		if i := slices.IndexFunc(in.Shape, func(d int64) bool { return d == 0 || d < -1 }); i >= 0 {
			errs = append(errs, fmt.Errorf("input %q: the size %d is neither positive nor -1 (any)", in.Name, in.Shape[i]))
		}
		seen[in.Name] = true
		r.Inputs = append(r.Inputs, requestInput{in.Name, name, append([]int64{}, in.Shape...)})
	}
	return r, errors.Join(errs...)
}

// checkReadable checks that a path is a readable file, or a folder if the framework has models in
// folders.
func checkReadable(s Source) error {
	f, err := os.Open(s.Path)
	if err != nil {
		return durable.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode().IsRegular() || info.IsDir() && s.Framework.hasFolders {
		return err
	}
	return fmt.Errorf("it is not a file; name the file itself (%s)", s.Framework.Files)
}

func opset(s Source) int {
	if s.Opset == 0 {
		return defaultOpset
	}
	return s.Opset
}

// compare runs an example through the exported model and compares the outputs with the framework's.
// hint follows the description of a difference.
func compare(ctx context.Context, run Runner, folder string, n int, hint string) (map[string]accuracy.Figures, error) {
	in, err := npy.ReadArchive(filepath.Join(folder, fmt.Sprintf("example%d.in.npz", n)), npy.Options{})
	if err != nil {
		return nil, err
	}
	want, err := npy.ReadArchive(filepath.Join(folder, fmt.Sprintf("example%d.out.npz", n)), npy.Options{})
	if err != nil {
		return nil, err
	}
	got, err := run.Run(ctx, filepath.Join(folder, modelFile), in)
	if err != nil {
		return nil, err
	}
	r, err := accuracy.Compare(accuracy.Outputs{want}, accuracy.Outputs{got}, nil)
	if err != nil {
		return nil, err
	}
	for name, f := range r.Outputs {
		if !f.Agrees() {
			return nil, fmt.Errorf("output %q differs by up to %.3g, relative %.3g (of a random input)%s", name, f.MaxAbs, f.MaxRel, hint)
		}
	}
	return r.Outputs, nil
}

// greater returns the largest difference so far.
func greater(before float64, outputs map[string]accuracy.Figures) float64 {
	for _, f := range outputs {
		if math.IsNaN(before) || f.MaxAbs > before {
			before = f.MaxAbs
		}
	}
	return before
}
