package framework

import (
	"errors"
	"fmt"
	"path/filepath"
)

// tensorFlow is TensorFlow's row: a SavedModel folder, a Keras file, or a frozen graph.
func tensorFlow() Framework {
	return Framework{
		Name: "TensorFlow", Files: "a SavedModel folder, .keras, .h5, .pb", Inputs: InputsOptional, hasFolders: true, program: "tensorflow.py",
		is: func(f file) bool {
			if f.isFolder {
				return f.holds("saved_model.pb")
			}
			// the first field of a GraphDef is a node, that of an ONNX file is a number
			return f.has(".keras", ".h5", ".hdf5") || f.has(".pb") && (len(f.head) == 0 || f.head[0] == 0x0a)
		},
		explain: explainTensorFlow,
		byHand:  tensorFlowByHand,
	}
}

// explainTensorFlow explains what is special to TensorFlow and Keras; nil for everything else.
func explainTensorFlow(r result, python string, s Source) error {
	switch r.Status {
	case "old":
		return fmt.Errorf("the Keras there, %s, is older than 3.13.2: loading any file with it may run the file's code, so %w, or better a newer Keras: "+
			"%s -m pip install 'keras>=3.13.2'", r.Message, ErrPermission, python)
	case "lambda":
		return fmt.Errorf("it has a Lambda layer, or another part that is Python code: loading it runs that code, so %w, or better without: "+
			"write the layer with Keras' own operations, or export a SavedModel (model.export)", ErrPermission)
	case "reaching":
		return fmt.Errorf("its graph has operators that reach files or run Python (%s): running it may do with your files what you may, so %w", r.Message, ErrPermission)
	case "signature":
		return fmt.Errorf("it has no signature serving_default, but %s; save it with one: tf.saved_model.save(model, folder, signatures=function)", r.Message)
	case "unreadable":
		if filepath.Base(s.Path) == "saved_model.pb" {
			return errors.New("it is the graph of a SavedModel, whose variables are beside it; name the folder itself")
		}
	}
	return nil
}

// tensorFlowByHand returns commands that do the same as Export by hand.
func tensorFlowByHand(python string, s Source, out string) string {
	form := fmt.Sprintf("--keras %q", s.Path)
	switch filepath.Ext(s.Path) {
	case "":
		form = fmt.Sprintf("--saved-model %q", s.Path)
	case ".pb":
		form = fmt.Sprintf("--graphdef %q --inputs NAME:0 --outputs NAME:0", s.Path)
	}
	return fmt.Sprintf("  %[1]s -m pip install tensorflow tf2onnx\n  %[1]s -m tf2onnx.convert %[2]s --output %[3]q --opset %[4]d", python, form, out, opset(s))
}
