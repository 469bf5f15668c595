package onnxruntime

import (
	"tuner/engine/fault"
	"tuner/model/modelconfig"
)

// opLibraries returns the libraries with operators that a configuration names, as the server names
// them. A library's code runs in this process, and configurations also come over the wire. So a
// configuration only chooses among the libraries of the server.
func (b *Backend) opLibraries(config *modelconfig.Config) ([]string, error) {
	var libraries []string
	for _, name := range config.GetModelOperations().GetOpLibraryFilename() {
		path, ok := b.libraries.Operator(name)
		if !ok {
			return nil, fault.Errorf(fault.InvalidArgument, "model_operations.op_library_filename '%s' of model '%s' is not opened: "+
				"the server's options --allow-op-library do not name it", name, config.GetName())
		}
		libraries = append(libraries, path)
	}
	return libraries, nil
}
