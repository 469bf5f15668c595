package onnxruntime

import (
	"path/filepath"
	"slices"
	"strings"

	"tuner/engine/fault"
	"tuner/model/modelconfig"
)

// opLibraries returns the libraries with operators that a configuration names, as the server names
// them. A library's code runs in this process, and configurations also come over the wire. So a
// configuration only chooses among the libraries of the server.
func (b *Backend) opLibraries(config *modelconfig.Config) ([]string, error) {
	var libraries []string
	for _, name := range config.GetModelOperations().GetOpLibraryFilename() {
		i := slices.IndexFunc(b.operators, func(allowed string) bool { return isLibrary(name, allowed) })
		if i < 0 {
			return nil, fault.Errorf(fault.InvalidArgument, "model_operations.op_library_filename '%s' of model '%s' is not opened: "+
				"the server's options --allow-op-library do not name it", name, config.GetName())
		}
		libraries = append(libraries, b.operators[i])
	}
	return libraries, nil
}

// isLibrary reports whether a configuration means a library of the server: by its path, or by its
// file's name alone.
func isLibrary(name, allowed string) bool {
	if strings.ContainsRune(name, filepath.Separator) {
		return filepath.Clean(name) == filepath.Clean(allowed)
	}
	return name == filepath.Base(allowed)
}
