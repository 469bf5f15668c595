package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/modelconfig"
)

// source is a model as found on disk, or as a load request brought it: its configuration before completion, and its
// versions.
type source struct {
	name     string
	root     string // nothing outside of it is opened
	dir      string // the model's folder
	config   *modelconfig.Config
	text     string  // what the configuration was read from, to see whether it changed
	versions []int64 // in ascending order; those that the version policy selects once the configuration is complete
	override bool    // the configuration came with the load request
	temp     *shared // holds dir, if that is temporary; nil otherwise
}

// findModel looks a model up in the repositories and reads its configuration.
func findModel(roots []string, name string) (*source, error) {
	var found []string
	for _, root := range roots {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.IsDir() {
			found = append(found, root)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("cannot find model %q in the model repositories %q", name, roots)
	case 1:
	default:
		return nil, fmt.Errorf("model %q is in several model repositories: %q", name, found)
	}
	src := &source{name: name, root: found[0], dir: filepath.Join(found[0], name)}
	if err := src.contain(src.dir); err != nil {
		return nil, err
	}
	return src, src.readVersions()
}

// readConfig reads config.pbtxt; a missing one counts as empty, unless it is required.
func (s *source) readConfig(required bool) error {
	file := filepath.Join(s.dir, "config.pbtxt")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !required {
		s.config = &modelconfig.Config{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("failed to open text file for read %s: %w", file, err)
	}
	if err := s.contain(file); err != nil {
		return err
	}
	s.text = string(text)
	s.config, err = modelconfig.Parse(file, text)
	return err
}

// readVersions lists the version folders: positive integers without leading zero.
func (s *source) readVersions() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("cannot read model %q: %w", s.name, err)
	}
	s.versions = nil
	for _, e := range entries {
		n, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || n < 1 || strconv.FormatInt(n, 10) != e.Name() {
			continue
		}
		if info, err := os.Stat(filepath.Join(s.dir, e.Name())); err == nil && info.IsDir() {
			s.versions = append(s.versions, n)
		}
	}
	slices.Sort(s.versions)
	return nil
}

// hasModelFile reports whether the first version holds model.onnx, which tells the backend of a model without configuration.
func (s *source) hasModelFile() bool {
	if len(s.versions) == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(s.dir, strconv.FormatInt(s.versions[0], 10), modelconfig.DefaultModelFilename))
	return err == nil
}

// files locates the model file of a version.
func (s *source) files(version int64, filename string) (ModelFiles, error) {
	versionDir := filepath.Join(s.dir, strconv.FormatInt(version, 10))
	path := filepath.Join(versionDir, filename)
	if !filepath.IsLocal(filename) {
		return ModelFiles{}, Errorf(InvalidArgument, "default_model_filename '%s' of model '%s' leaves the version folder", filename, s.name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return ModelFiles{}, Errorf(Internal, "failed to stat file %s", path)
	}
	if info.IsDir() {
		path = filepath.Join(path, modelconfig.DefaultModelFilename)
	}
	if err := s.contain(path); err != nil {
		return ModelFiles{}, err
	}
	return ModelFiles{Name: s.name, Version: version, Path: path}, nil
}

// contain refuses a path that, all links resolved, lies outside of the repository.
func (s *source) contain(path string) error {
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return Errorf(Internal, "failed to stat file %s", s.root)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Errorf(Internal, "failed to stat file %s", path)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return Errorf(InvalidArgument, "%s of model '%s' leads out of the model repository", filepath.Base(path), s.name)
	}
	return nil
}

// stamp identifies the content of a version folder: the name, size and time of each file in it.
func (s *source) stamp(version int64) (string, error) {
	var b strings.Builder
	dir := filepath.Join(s.dir, strconv.FormatInt(version, 10))
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	return b.String(), err
}

// listModels names the folders of the repositories.
func listModels(roots []string) ([]string, error) {
	var names []string
	for _, root := range roots {
		entries, err := os.ReadDir(root)
		if err != nil {
			return nil, fmt.Errorf("cannot read model repository %q: %w", root, err)
		}
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(root, e.Name())); err == nil && info.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkModelName refuses names that are no folder of a repository.
func checkModelName(name string) error {
	if strings.TrimSpace(name) == "" || strings.Contains(name, "..") || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return Errorf(InvalidArgument, "failed to load '%s', model name must be the name of a folder in the model repository", name)
	}
	return nil
}
