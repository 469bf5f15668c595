package export

import (
	"path"
	"path/filepath"
	"slices"

	"tuner/export/tuned"
	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/model/modelrepo"
	"tuner/ort/addon"
)

// checkOperators refuses models with operators where the path of the repository on the servers is not
// known: a configuration names the libraries by their paths. Triton's onnxruntime backend passes the
// path to the loader, which does not look in the model's folder. A server that reads an object store
// puts the files into a temporary folder.
func (d Deployment) checkOperators() error {
	for _, m := range d.folders() {
		names := m.Config.GetModelOperations().GetOpLibraryFilename()
		switch {
		case len(names) == 0:
		case d.target.mount == "":
			return exit.Usagef("cannot export %q: it needs the library %q, and %s does not say in which folder its servers have the models; choose another target, "+
				"or put the library into an image of your own and name its path there in config.pbtxt", m.Name, names[0], d.target.name)
		case d.target.name != KServe && d.Storage.Claim == "" && d.target.isCluster():
			return exit.Usagef("cannot export %q to %s: it needs the library %q, and a server puts the files of an object store into a folder of its own; "+
				"name a claim with --storage pvc://CLAIM", m.Name, d.Storage.URI, names[0])
		}
	}
	return nil
}

// carryOperators copies the libraries with a model's operators into its folder of the repository, and
// names them in its configuration by their paths on the servers. It returns their size in bytes. It
// refuses a library that changed since the measurement.
func (d Deployment) carryOperators(repository string, m tuned.Model) (int64, error) {
	for _, f := range m.Operators {
		sum, err := checksum.File(f.Path)
		if err != nil {
			return 0, exit.Usagef("cannot read the library %q of model %q: %w", f.Path, m.Name, durable.Cause(err))
		}
		if sum != f.SHA256 {
			return 0, exit.Usagef("cannot export %q: the library %q changed since it was measured; put the old file back, or run the campaign again", m.Name, f.Path)
		}
	}
	size, err := modelrepo.CarryOperators(filepath.Join(repository, m.Name), path.Join(d.target.mount, m.Name))
	if err != nil {
		return 0, exit.With(exit.Usage, err)
	}
	return size, nil
}

// carried lists the libraries of a model in the export, with paths relative to it.
func (d Deployment) carried(m tuned.Model) []addon.File {
	var files []addon.File
	libraries := m.Config.GetModelOperations().GetOpLibraryFilename()
	names := modelrepo.OperatorNames(libraries)
	for _, f := range m.Operators { // each is one of the configuration's
		files = append(files, addon.File{
			Path:   path.Join(filepath.ToSlash(d.repository()), m.Name, modelrepo.OperatorsFolder, names[slices.Index(libraries, f.Path)]),
			SHA256: f.SHA256,
		})
	}
	return files
}
