package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tuner/model/modelconfig"
)

// Override is the part of a load request that replaces data of the repository.
type Override struct {
	Config string // the whole configuration as JSON; "": config.pbtxt
	// by path within the model's folder, such as 1/model.onnx; they replace all files
	Files map[string][]byte
}

// source applies the override to the model in the repositories. With files, it makes the model from
// the override alone.
func (o Override) source(roots []string, u *uploads, name string) (*source, error) {
	if o.Config == "" {
		return nil, errors.New("override model directory requires 'config' parameter")
	}
	config, err := modelconfig.ParseJSON([]byte(o.Config))
	if err != nil {
		return nil, err
	}
	var src *source
	if len(o.Files) > 0 {
		src, err = o.writeFiles(u, name)
	} else {
		src, err = findModel(roots, name)
	}
	if err != nil {
		return nil, err
	}
	src.config, src.text, src.override = config, o.Config, true
	return src, nil
}

// writeFiles writes the files to a new folder, which is removed with the model.
func (o Override) writeFiles(u *uploads, name string) (*source, error) {
	root, err := u.add()
	if err != nil {
		return nil, fmt.Errorf("cannot create a folder for the files of model %q: %w", name, err)
	}
	src := &source{name: name, root: root, dir: filepath.Join(root, name), temp: &shared{free: func() { _ = os.RemoveAll(root) }}}
	src.temp.users.Store(1)
	for path, data := range o.Files {
		if err := src.writeFile(path, data); err != nil {
			src.temp.release()
			return nil, err
		}
	}
	if err := src.readVersions(); err != nil {
		src.temp.release()
		return nil, err
	}
	return src, nil
}

func (s *source) writeFile(path string, data []byte) error {
	if !filepath.IsLocal(path) || strings.Contains(path, `\`) {
		return fmt.Errorf("file path %q leaves the model's folder", path)
	}
	file := filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("cannot store file %q of model %q: %w", path, s.name, err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("cannot store file %q of model %q: %w", path, s.name, err)
	}
	return nil
}
