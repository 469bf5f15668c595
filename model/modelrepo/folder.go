package modelrepo

import (
	"fmt"
	"path/filepath"
	"strconv"

	"tuner/internal/durable"
	"tuner/internal/inside"
)

// Models of other backends than ONNX Runtime's have no file that tuner knows. Such a model is its folder:
// the code of a Python model, the weights of a custom backend, or a version alone, as an ensemble has.

// Folder returns a model's folder as a source. The digest covers all its files except config.pbtxt.
func Folder(dir string) (Source, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Source{}, fmt.Errorf("cannot open model folder %q: %w", dir, durable.Cause(err))
	}
	m := Source{Folder: absolute}
	p, err := plan{model: filepath.Base(absolute)}.withFolder(m)
	m.Digest = p.digest
	return m, err
}

// Files lists the files of a model without an ONNX file.
func (m Source) Files() ([]string, error) {
	p, err := plan{}.withFolder(m)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range p.files {
		paths = append(paths, e.from.Path())
	}
	return paths, nil
}

// withFolder adds all files of a model's folder as withFiles does, and the digest.
func (p plan) withFolder(m Source) (plan, error) {
	files, err := listFiles(m.Folder)
	if err != nil {
		return plan{}, fmt.Errorf("cannot read folder %q: %w", m.Folder, durable.Cause(err))
	}
	if p, err = p.withFiles(m.Folder, files); err != nil {
		return plan{}, err
	}
	p.digest, err = digest(m, fmt.Appendf(nil, "%s\n%q", p.config, p.versions), p.files)
	return p, err
}

// withFiles adds files of a model's folder except its configuration and the receipt, and its versions
// without a file.
func (p plan) withFiles(folder string, files []string) (plan, error) {
	for _, file := range files {
		if file == configName || file == receiptName {
			continue
		}
		path := filepath.FromSlash(file)
		found, err := inside.Below(folder, path)
		if err := p.addFile(found, err, filepath.Join(folder, path), path); err != nil {
			return plan{}, err
		}
	}
	var err error
	p.versions, err = emptyVersions(folder)
	return p, err
}

// emptyVersions lists the versions of a model's folder without a file.
func emptyVersions(dir string) ([]string, error) {
	m, err := OpenModel(dir)
	if err != nil {
		return nil, err
	}
	if len(m.Versions) == 0 { // version control keeps no empty folders, and a server asks for one
		return []string{"1"}, nil
	}
	var empty []string
	for _, v := range m.Versions {
		version := strconv.FormatInt(v, 10)
		files, err := listFiles(filepath.Join(dir, version))
		if err != nil {
			return nil, fmt.Errorf("cannot read folder %q: %w", filepath.Join(dir, version), durable.Cause(err))
		}
		if len(files) == 0 {
			empty = append(empty, version)
		}
	}
	return empty, nil
}
