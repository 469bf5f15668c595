package profile

import (
	"fmt"

	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/ort/addon"
)

// setOperators sets the libraries with operators in a configuration, by their absolute paths. A
// configuration that names none gets all of the profile's. One that names some keeps those. It may
// name only libraries of the profile, since their code runs in the server.
func setOperators(config *modelconfig.Config, libraries addon.Libraries) error {
	named := config.GetModelOperations().GetOpLibraryFilename()
	if len(named) == 0 {
		if len(libraries.Operators) > 0 {
			config.ModelOperations = &configpb.ModelOperations{OpLibraryFilename: libraries.Operators}
		}
		return nil
	}
	paths := make([]string, len(named))
	for i, name := range named {
		path, ok := libraries.Operator(name)
		if !ok {
			return fmt.Errorf("model_operations.op_library_filename: %q is not opened, since its code would run in the server; "+
				"name the library with --op-library or in op_libraries of the profile", name)
		}
		paths[i] = path
	}
	config.ModelOperations = &configpb.ModelOperations{OpLibraryFilename: paths}
	return nil
}
