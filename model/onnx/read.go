package onnx

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"tuner/internal/problems"
	"tuner/model/onnx/onnxpb"
)

// FileError means that a file cannot be used as a model. It has the reason and the remedy. It is an
// input error that the user can fix, not a failure of the program.
type FileError struct {
	Path    string
	Problem string // the defect of the file
	Remedy  string // what the user can do; "" if the problem already says it
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("cannot read %q as an ONNX model: %s", e.Path, e.Problem)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// maxFile is the largest size of a protobuf message in bytes. No valid file is larger.
const maxFile = math.MaxInt32

// Read reads a model file that can be served. It finds and checks external data but does not load
// it: the files exist, are large enough, and lie in the model's folder. The error is a *FileError
// if the file's content is the cause, and else the operating system's.
func Read(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the model: %w", err)
	}
	if info.IsDir() {
		return nil, directoryError(path)
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{Path: path, Problem: "it is not a regular file"}
	}
	if info.Size() > maxFile {
		return nil, &FileError{Path: path, Problem: fmt.Sprintf("it has %d bytes, more than the 2 GiB that an ONNX file can have", info.Size()),
			Remedy: "save it with external data (onnx.save_model(…, save_as_external_data=True))"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the model: %w", err)
	}
	return Parse(path, data)
}

// directoryError suggests the file that the user probably meant.
func directoryError(path string) error {
	e := &FileError{Path: path, Problem: "it is a folder", Remedy: "name the .onnx file inside it"}
	for _, pattern := range []string{"*.onnx", "*/*.onnx"} {
		if found, err := filepath.Glob(filepath.Join(path, pattern)); err == nil && len(found) > 0 {
			e.Remedy = fmt.Sprintf("did you mean %q?", found[0])
			return e
		}
	}
	if _, err := os.Stat(filepath.Join(path, "saved_model.pb")); err == nil {
		e.Problem, e.Remedy = "it is a TensorFlow SavedModel", convertTensorFlow
	}
	return e
}

// Parse is Read for content in memory. path is its place, for messages and for external data.
func Parse(path string, data []byte) (*Model, error) {
	if e := foreign(data); e != nil {
		e.Path = path
		return nil, e
	}
	if err := checkGrowth(data); err != nil {
		return nil, &FileError{Path: path, Problem: err.Error()}
	}
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, p); err != nil {
		return nil, &FileError{Path: path, Problem: fmt.Sprintf("it is damaged: %v", err), Remedy: remedyCopy}
	}
	if err := checkModel(p); err != nil {
		return nil, &FileError{Path: path, Problem: err.Error()}
	}
	external, err := locateExternal(p, path)
	if err != nil {
		return nil, &FileError{Path: path, Problem: oneLine(err)}
	}
	m := New(p)
	m.path, m.origin, m.fileDigest, m.external = path, path, hexDigest(data), external
	if err := m.CheckServable(); err != nil {
		return nil, &FileError{Path: path, Problem: oneLine(err), Remedy: remedyTensors}
	}
	return m, nil
}

// oneLine prints joined errors on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// checkModel checks the parts that every model must have.
func checkModel(p *onnxpb.ModelProto) error {
	g := p.GetGraph()
	switch {
	case g == nil:
		return errors.New("it holds no graph")
	case len(g.GetNode()) == 0:
		return errors.New("its graph is empty: it has no nodes")
	case len(g.GetOutput()) == 0:
		return errors.New("its graph has no outputs")
	case len(p.GetOpsetImport()) == 0:
		return errors.New("it names no operator set (opset_import): the file is damaged or was cut off")
	}
	return checkNames(g)
}

// checkNames checks that each name has one meaning, so that the graph view is unambiguous. Requests
// have the names of inputs and outputs, so these must be UTF-8.
func checkNames(g *onnxpb.GraphProto) error {
	origin := map[string]string{}
	define := func(name, what string) error {
		if before, ok := origin[name]; ok {
			return fmt.Errorf("its graph defines the value %q twice: %s and %s", name, before, what)
		}
		origin[name] = what
		return nil
	}
	for _, t := range g.GetInitializer() {
		if err := define(t.GetName(), "an initializer"); err != nil {
			return err
		}
	}
	inputs := map[string]bool{}
	for i, v := range g.GetInput() {
		switch {
		case v.GetName() == "":
			return fmt.Errorf("its input %d has no name", i)
		case inputs[v.GetName()]:
			return fmt.Errorf("its graph has two inputs %q", v.GetName())
		case !utf8.ValidString(v.GetName()):
			return fmt.Errorf("the name of its input %q is not UTF-8, so no request can have it; rename the input, or export the model again", v.GetName())
		}
		inputs[v.GetName()] = true
		if origin[v.GetName()] == "" {
			origin[v.GetName()] = "an input"
		}
	}
	for _, v := range g.GetOutput() {
		if !utf8.ValidString(v.GetName()) {
			return fmt.Errorf("the name of its output %q is not UTF-8, so no answer can have it; rename the output, or export the model again", v.GetName())
		}
	}
	for _, node := range g.GetNode() {
		for _, name := range node.GetOutput() {
			if name == "" {
				continue
			}
			if err := define(name, fmt.Sprintf("an output of the node %q (%s)", node.GetName(), node.GetOpType())); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckServable reports every input and output that a server cannot accept. Requests carry only
// tensors of ServableTypes.
func (m *Model) CheckServable() error {
	var wrong problems.List
	check := func(side string, values []Value) {
		for _, v := range values {
			if v.Kind != kindTensor || !v.Type.IsServable() {
				wrong.Addf("its %s %q is of an unsupported type (%s): only tensors of numbers, booleans and strings can be served",
					side, v.Name, v.typeName())
			}
		}
	}
	check("input", m.inputs)
	check("output", m.outputs)
	return wrong.Err()
}
