// Package modelrepo reads and writes Triton model repositories: folders of models, each with a
// config.pbtxt and numbered versions that contain a model file.
//
// The tuner reads the user's model through it. It builds one small repository for each measured
// variant (Build), and writes the one to deploy (Write). The engine reads repositories through it,
// under its own rules of containment.
//
// The package never reads the content of a model file, never makes a symbolic link, and never
// changes a folder that it did not write. It uses only files inside the model's folder, even if a
// model or its configuration names others (internal/inside).
package modelrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"tuner/internal/durable"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
)

const configName = "config.pbtxt"

// Model is one model's folder on disk.
type Model struct {
	Name       string // name of the folder
	Dir        string
	ConfigPath string   // path of config.pbtxt; "" without one
	Versions   []int64  // ascending
	Ignored    []string // why folders are no versions, in Triton's words
}

// Names lists the model folders of a repository, in order. Folders whose names begin with a dot are
// no models.
func Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open model repository %q: %w", dir, durable.Cause(err))
	}
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// OpenModel reads the structure of one model's folder, without the content of files.
func OpenModel(dir string) (Model, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Model{}, fmt.Errorf("cannot open model folder %q: %w", dir, durable.Cause(err))
	}
	entries, err := os.ReadDir(absolute)
	if err != nil {
		return Model{}, fmt.Errorf("cannot open model folder %q: %w", dir, durable.Cause(err))
	}
	m := Model{Name: filepath.Base(absolute), Dir: absolute}
	for _, e := range entries {
		path := filepath.Join(absolute, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			continue // a broken link, or removed meanwhile
		}
		if info.IsDir() {
			m.addVersion(e.Name())
		}
		if e.Name() == configName && info.Mode().IsRegular() {
			m.ConfigPath = path
		}
	}
	slices.Sort(m.Versions)
	return m, nil
}

// addVersion adds a version by the name of its folder, if that is one.
func (m *Model) addVersion(name string) {
	version, ok := parseVersion(name)
	_, err := strconv.ParseInt(name, 10, 64)
	switch {
	case ok:
		m.Versions = append(m.Versions, version)
	case slices.Contains([]string{"configs", "initial_state", "warmup"}, name):
	case err != nil:
		m.Ignored = append(m.Ignored, fmt.Sprintf("ignore version directory '%s' which fails to convert to integral number", name))
	case name[0] == '0':
		m.Ignored = append(m.Ignored, fmt.Sprintf("ignore version directory '%s' which contains leading zeros in its directory name", name))
	}
}

// parseVersion reads the name of a version folder: a positive number without leading zeros. Triton
// ignores all others.
func parseVersion(name string) (int64, bool) {
	version, err := strconv.ParseInt(name, 10, 64)
	return version, err == nil && version > 0 && strconv.FormatInt(version, 10) == name
}

// Config reads the model's config.pbtxt. Without one it returns an empty configuration.
func (m Model) Config() (*modelconfig.Config, error) {
	if m.ConfigPath == "" {
		return &modelconfig.Config{}, nil
	}
	text, err := os.ReadFile(m.ConfigPath)
	if err != nil {
		return nil, fmt.Errorf("cannot read configuration %q: %w", m.ConfigPath, durable.Cause(err))
	}
	return modelconfig.Parse(m.ConfigPath, text)
}

// ModelFile returns the path of the ONNX file that a Triton server would serve as the newest
// version. It follows version policy and default_model_filename. If the latter names a folder, it
// is model.onnx in that folder.
func (m Model) ModelFile() (string, error) {
	c, err := m.Config()
	if err != nil {
		return "", err
	}
	served := Served(m.Versions, c.GetVersionPolicy())
	if len(served) == 0 {
		return "", fmt.Errorf("model folder %q has no version to serve; put the model file into a folder named 1 in it", m.Dir)
	}
	name := c.GetDefaultModelFilename()
	if name == "" {
		name = modelconfig.DefaultModelFilename
	}
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: default_model_filename: %q leads out of the version folder", m.ConfigPath, name)
	}
	path := filepath.Join(m.Dir, strconv.FormatInt(served[len(served)-1], 10), name)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, modelconfig.DefaultModelFilename)
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the model file %q: %w", path, durable.Cause(err))
	}
	return path, nil
}

// Served applies a version policy to the available versions, ascending. Without a policy the newest
// version is served. With a policy that chooses nothing, all are.
func Served(versions []int64, p *configpb.ModelVersionPolicy) []int64 {
	switch {
	case p.GetSpecific() != nil:
		listed := p.GetSpecific().GetVersions()
		return slices.DeleteFunc(slices.Clone(versions), func(v int64) bool { return !slices.Contains(listed, v) })
	case p == nil || p.GetLatest() != nil:
		n := 1
		if p != nil {
			n = int(p.GetLatest().GetNumVersions())
		}
		return slices.Clone(versions[max(0, len(versions)-n):])
	default:
		return slices.Clone(versions)
	}
}
