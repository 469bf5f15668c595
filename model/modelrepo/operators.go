package modelrepo

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/inside"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

// OperatorsFolder is the folder in a model's folder that CarryOperators fills. No server opens a file
// there by itself.
const OperatorsFolder = "operators"

// CarryOperators copies the libraries that the configuration of a model's folder names into the folder,
// and names them by their paths below at, the model's folder on a server. It returns their size in
// bytes. Without such libraries it changes nothing. After an error a part may remain, so the folder
// must be one under construction.
func CarryOperators(folder, at string) (int64, error) {
	name := filepath.Join(folder, configName)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("cannot read configuration %q: %w", name, durable.Cause(err))
	}
	config, err := modelconfig.Parse(name, text)
	if err != nil {
		return 0, err
	}
	libraries := config.GetModelOperations().GetOpLibraryFilename()
	if len(libraries) == 0 {
		return 0, nil
	}
	carried := filepath.Join(folder, OperatorsFolder)
	if err := os.Mkdir(carried, 0o755); err != nil {
		return 0, fmt.Errorf("cannot make folder %q: %w", carried, durable.Cause(err))
	}
	var size int64
	var paths []string
	names := OperatorNames(libraries)
	for i, library := range libraries {
		file, err := inside.Named(library)
		if err != nil {
			return 0, unusable(library, err)
		}
		if err := duplicate(file, filepath.Join(carried, names[i])); err != nil {
			return 0, err
		}
		size, paths = size+file.Size, append(paths, path.Join(at, OperatorsFolder, names[i]))
	}
	if err := syncDir(carried); err != nil {
		return 0, err
	}
	return size, reconfigure(folder, config, paths)
}

// OperatorNames returns the names of a configuration's libraries in OperatorsFolder: those of their files.
// Files of several folders may have the same. The later ones get a number: ops.so, ops-2.so.
func OperatorNames(libraries []string) []string {
	var names []string
	for _, library := range libraries {
		base := filepath.Base(library)
		stem, extension := strings.TrimSuffix(base, filepath.Ext(base)), filepath.Ext(base)
		name := base
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d%s", stem, n, extension)
		}
		names = append(names, name)
	}
	return names
}

// reconfigure writes the configuration of a model's folder again, with other paths of libraries.
func reconfigure(folder string, config *modelconfig.Config, libraries []string) error {
	changed := modelconfig.Clone(config)
	changed.ModelOperations = &configpb.ModelOperations{OpLibraryFilename: libraries}
	text, err := modelconfig.Format(changed)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, configName)
	if err := os.Remove(name); err != nil {
		return fmt.Errorf("cannot replace configuration %q: %w", name, durable.Cause(err))
	}
	if err := writeFile(name, text); err != nil {
		return err
	}
	return syncDir(folder)
}

// LinkWith makes dir/<model> with the files of a model's folder and other paths of libraries in its
// configuration. Files are hard links if the file system allows it.
func LinkWith(dir, folder string, libraries []string) error {
	files, err := listFiles(folder)
	if err != nil {
		return fmt.Errorf("cannot read folder %q: %w", folder, durable.Cause(err))
	}
	p, err := folderPlan(folder, files)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, p.model)
	if err := p.write(to, linkOrCopy); err != nil || len(libraries) == 0 {
		return err
	}
	config, err := modelconfig.Parse(filepath.Join(to, configName), p.config)
	if err != nil {
		return err
	}
	return reconfigure(to, config, libraries)
}
