package onnx

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"tuner/internal/problems"
	"tuner/model/onnx/onnxpb"
)

// FileError says that a file cannot be used as a model, why, and what to do. The user can mend it: it is an input error, not
// a failure of the program.
type FileError struct {
	Path    string
	Problem string // what is wrong with it
	Remedy  string // what the user can do; "" when the problem says it all
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("cannot read %q as an ONNX model: %s", e.Path, e.Problem)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// maxFile is the most bytes of a protobuf message; larger ones are no sound file of any writer.
const maxFile = math.MaxInt32

// Read reads a model file that can be served. External data is found and checked (it exists, is large enough, lies in the
// model's folder) but not loaded. The error is a *FileError when the content of the file is to blame, otherwise the
// operating system's.
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

// directoryError points at the file that the user probably meant.
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

// Parse is Read for content that was read already; path is where it lies, for messages and for external data.
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

// oneLine puts joined errors on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// checkModel checks what every model must have to be worth indexing.
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

// checkNames makes sure that each name has one meaning, so that the graph view has one answer.
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
		}
		inputs[v.GetName()] = true
		if origin[v.GetName()] == "" {
			origin[v.GetName()] = "an input"
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

// CheckServable reports every input and output that a server cannot take: only tensors of ServableTypes travel in requests.
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
