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

	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
)

// source is a model as found on disk, or as a load request brought it: its configuration before
// completion, and its versions.
type source struct {
	name     string
	root     string // no file outside it is opened
	dir      string // the model's folder
	config   *modelconfig.Config
	text     string  // text of the configuration, to detect changes
	versions []int64 // ascending; after completion those that the version policy selects
	override bool    // the configuration came with the load request
	temp     *shared // holds dir if that is temporary; nil otherwise
}

// findModel finds a model in the repositories.
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

// readConfig reads config.pbtxt. A missing one counts as empty, unless it is required.
func (s *source) readConfig(required bool) error {
	file := filepath.Join(s.dir, "config.pbtxt")
	text, err := s.readFile(file, modelconfig.MaxText)
	if errors.Is(err, fs.ErrNotExist) && !required {
		s.config = &modelconfig.Config{}
		return nil
	}
	if err != nil {
		return err
	}
	s.text = string(text)
	s.config, err = modelconfig.Parse(file, text)
	return err
}

// readFile reads a file of the repository with at most limit bytes.
func (s *source) readFile(path string, limit int64) ([]byte, error) {
	if err := s.checkFile(path, limit); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// checkFile refuses a file that is not regular, lies outside the repository, or is larger than
// limit bytes.
func (s *source) checkFile(path string, limit int64) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &missingFile{path}
	case err != nil:
		return Errorf(Internal, "failed to open text file for read %s: %v", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return Errorf(InvalidArgument, "failed to open text file for read %s: it is not a regular file", path)
	case info.Size() > limit:
		return Errorf(InvalidArgument, "failed to open text file for read %s: it has more than %d bytes", path, limit)
	}
	return s.contain(path)
}

// missingFile is the error for a missing file, in Triton's wording.
type missingFile struct{ path string }

func (m *missingFile) Error() string {
	return fmt.Sprintf("failed to open text file for read %s: No such file or directory", m.path)
}

func (m *missingFile) Is(target error) bool { return target == fs.ErrNotExist }

// readVersions lists the version folders.
func (s *source) readVersions() error {
	m, err := modelrepo.OpenModel(s.dir)
	s.versions = m.Versions
	return err
}

// hasModelFile reports whether the first version has a model.onnx, which identifies the backend of
// a model without configuration.
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
	if err == nil && info.IsDir() {
		path = filepath.Join(path, modelconfig.DefaultModelFilename)
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return ModelFiles{}, Errorf(Internal, "failed to stat file %s", path)
	case !info.Mode().IsRegular():
		return ModelFiles{}, s.irregular(path, info.Mode())
	}
	if err := errors.Join(s.contain(path), s.checkFolder(versionDir)); err != nil {
		return ModelFiles{}, err
	}
	return ModelFiles{Name: s.name, Version: version, Path: path}, nil
}

// irregular returns the error for a file that is not regular. Opening a pipe would wait for a
// writer.
func (s *source) irregular(path string, mode fs.FileMode) error {
	return Errorf(InvalidArgument, "%s of model '%s' is not a regular file (%s): replace it with one", path, s.name, mode)
}

// checkFolder refuses links in a folder that lead out of the repository, and entries that are
// neither files nor folders. A model may name any file beside it as its external data.
func (s *source) checkFolder(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Errorf(Internal, "failed to stat file %s", dir)
	}
	return filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Type().IsRegular() {
			return err
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil // a link without a target
		case !info.IsDir() && !info.Mode().IsRegular():
			return s.irregular(path, info.Mode())
		}
		return s.contain(path)
	})
}

// checkLabels refuses label files that do not exist, or lie outside the model's folder.
func (s *source) checkLabels(c *modelconfig.Config) error {
	for _, out := range c.GetOutput() {
		file := out.GetLabelFilename()
		switch {
		case file == "":
			continue
		case !filepath.IsLocal(file):
			return Errorf(InvalidArgument, "label_filename '%s' of output '%s' leaves the folder of model '%s'", file, out.GetName(), s.name)
		}
		if err := s.checkFile(filepath.Join(s.dir, file), maxLabelBytes); err != nil {
			return err
		}
	}
	return nil
}

// maxLabelBytes bounds a file of labels.
const maxLabelBytes = 64 << 20

// contain refuses a path that lies outside the repository after all links are resolved.
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

// stamp identifies the content of a version folder by the name, size and time of each file in it.
func (s *source) stamp(version int64) (string, error) {
	var b strings.Builder
	dir := filepath.Join(s.dir, strconv.FormatInt(version, 10))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		switch {
		case err == nil:
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		case errors.Is(err, fs.ErrNotExist): // a link without a target, as some editors use to lock files
			fmt.Fprintf(&b, "%s -\n", path)
		default:
			return err
		}
		return nil
	})
	return b.String(), err
}

// listModels lists the models of the repositories, in order. A model in several of them is listed
// as many times.
func listModels(roots []string) ([]string, error) {
	var all []string
	for _, root := range roots {
		names, err := modelrepo.Names(root)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return all, nil
}

// checkModelName refuses names that are not folders of a repository.
func checkModelName(name string) error {
	if strings.TrimSpace(name) == "" || strings.Contains(name, "..") || strings.ContainsAny(name, `/\`+"\x00") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("model name %q is not the name of a folder in a model repository", name)
	}
	return nil
}
