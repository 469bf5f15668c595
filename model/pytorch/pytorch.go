// Package pytorch converts PyTorch's files to ONNX models with the user's own Python. PyTorch
// exports the model. The package compares the result with PyTorch's outputs before it installs the
// file.
//
// It stands before the data flow: all later packages see an ONNX file. It does not guess: weights
// without their program are no model. It loads files that may run code only if the user permits it.
package pytorch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"tuner/internal/durable"
	"tuner/model/dataset/npy"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/accuracy"
)

//go:embed export.py
var script []byte

// defaultOpset is supported by both exporters, and by every supported ONNX Runtime.
const defaultOpset = 17

// Source is a PyTorch model, with the information that its file lacks.
type Source struct {
	// Path: TorchScript (torch.jit.save), or a pickled module (torch.save of a module)
	Path   string
	Inputs []Input // in the order of the parameters of the model's forward
	// Outputs: names in order; nil: the names that the model returns, or output, or output_0 …
	Outputs []string
	Opset   int // 0: 17
	// AllowPickle allows a pickled module to run the code that it names. It also allows any file
	// with a PyTorch before 2.6, which may run code of any file. The user must trust the file's
	// author.
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
	Torch    string // PyTorch version
	Kind     string // "TorchScript" or "pickled module"
	Exporter string // the PyTorch exporter that made the file
	Examples int    // number of random inputs on which both were run; with open dimensions, of two sizes
	// MaxAbs: largest difference of an element between PyTorch's outputs and the file's; NaN if no
	// output has floats
	MaxAbs float64
}

// request is the input of export.py.
type request struct {
	Path        string         `json:"path"`
	Inputs      []requestInput `json:"inputs"`
	Outputs     []string       `json:"outputs"`
	Opset       int            `json:"opset"`
	AllowPickle bool           `json:"allow_pickle"`
}

type requestInput struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"` // PyTorch's name
	Shape []int64 `json:"shape"`
}

// result is the output of export.py.
type result struct {
	Status   string `json:"status"` // ok, or a status that refusal explains
	Message  string `json:"message"`
	Torch    string `json:"torch"`
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
// interpreter; "" is python3 of the PATH. It runs examples with random values through PyTorch and
// run. If they disagree, out is not written.
func Export(ctx context.Context, s Source, python, out string, run Runner) (Report, error) {
	report, err := export(ctx, s, python, out, run)
	if err != nil {
		return Report{}, fmt.Errorf("cannot make an ONNX model of %q: %w", s.Path, err)
	}
	return report, nil
}

func export(ctx context.Context, s Source, python, out string, run Runner) (Report, error) {
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
	made, err := runScript(ctx, python, folder, req)
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
	report := Report{Torch: made.Torch, Kind: made.Kind, Exporter: made.Exporter, Examples: made.Examples, MaxAbs: math.NaN()}
	for n := range made.Examples {
		figures, err := compare(ctx, run, folder, n)
		if err != nil {
			return Report{}, fmt.Errorf("the exported model's outputs are not PyTorch's: %w", err)
		}
		report.MaxAbs = greater(report.MaxAbs, figures)
	}
	if err := os.Rename(model, out); err != nil {
		return Report{}, &WriteError{out, err}
	}
	return report, durable.SyncDir(filepath.Dir(out))
}

// modelFile is the model's file name in export.py's folder.
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

// torchTypes are PyTorch's names of the types that both PyTorch and ONNX have.
var torchTypes = map[onnx.DataType]string{
	onnx.Float: "float32", onnx.Double: "float64", onnx.Float16: "float16", onnx.Bool: "bool", onnx.Uint8: "uint8",
	onnx.Int8: "int8", onnx.Int16: "int16", onnx.Int32: "int32", onnx.Int64: "int64",
}

// newRequest checks a source.
func newRequest(s Source) (request, error) {
	if err := checkReadable(s.Path); err != nil {
		return request{}, err
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return request{}, err
	}
	r := request{Path: path, Outputs: s.Outputs, Opset: opset(s), AllowPickle: s.AllowPickle}
	var errs []error
	if len(s.Inputs) == 0 {
		errs = append(errs, errors.New("a PyTorch file does not describe the model's inputs; give their names, types and shapes"))
	}
	seen := map[string]bool{}
	for _, name := range s.Outputs {
		seen[name] = true
	}
	for _, in := range s.Inputs {
		name, ok := torchTypes[in.Type]
		if !ok {
			errs = append(errs, fmt.Errorf("input %q: PyTorch has no %s", in.Name, in.Type))
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

// checkReadable checks that a path is a readable file.
func checkReadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return durable.Cause(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		return err
	}
	return errors.New("it is not a file; name the .pt file itself")
}

func opset(s Source) int {
	if s.Opset == 0 {
		return defaultOpset
	}
	return s.Opset
}

// compare runs an example through the exported model and compares the outputs with PyTorch's.
func compare(ctx context.Context, run Runner, folder string, n int) (map[string]accuracy.Figures, error) {
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
			return nil, fmt.Errorf("output %q differs by up to %.3g, relative %.3g (of a random input); tracing loses conditions and loops "+
				"that depend on values, which torch.jit.script keeps", name, f.MaxAbs, f.MaxRel)
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
