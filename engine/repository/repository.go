// Package repository finds models in model repositories, and stores those that come with a load
// request (Uploads). It reads their configuration and versions, and refuses files outside a model's
// folder. It does not complete configurations, and it loads nothing.
package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tuner/engine/fault"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
)

// Model is a model in a folder: its configuration before completion, and its versions.
type Model struct {
	Name      string
	IsRenamed bool   // the folder has another name; that of the configuration does not count
	root      string // no file outside it is opened
	Dir       string // the model's folder
	Config    *modelconfig.Config
	Text      string   // text of the configuration, to detect changes
	Versions  []int64  // ascending; after completion those that the version policy selects
	Ignored   []string // see modelrepo.Model
}

// Has reports whether a repository has a folder of that name.
func Has(root, name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}

// Find finds a model in the repositories.
func Find(roots []string, name string) (*Model, error) {
	var found []string
	for _, root := range roots {
		if Has(root, name) {
			found = append(found, root)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("failed to poll model '%s': model not found in any model repository: %q", name, roots) // Triton's text
	case 1:
	default:
		return nil, fmt.Errorf("model %q is in several model repositories: %q", name, found)
	}
	src := &Model{Name: name, root: found[0], Dir: filepath.Join(found[0], name)}
	if err := src.contain(src.Dir); err != nil {
		return nil, err
	}
	return src, src.readVersions()
}

// ReadConfig reads configs/NAME.pbtxt if the model has that file, else config.pbtxt. A missing one
// counts as empty, unless it is required. name is without meaning if it is empty.
func (s *Model) ReadConfig(name string, required bool) error {
	file := filepath.Join(s.Dir, "config.pbtxt")
	if name != "" {
		if custom := filepath.Join(s.Dir, "configs", name+".pbtxt"); isThere(custom) {
			file = custom
		}
	}
	text, err := s.ReadFile(file, modelconfig.MaxText)
	if errors.Is(err, fs.ErrNotExist) && !required {
		s.Config = &modelconfig.Config{}
		return nil
	}
	if err != nil {
		return err
	}
	s.Text = string(text)
	s.Config, err = modelconfig.Parse(file, text)
	return err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ReadFile reads a file of the repository with at most limit bytes.
func (s *Model) ReadFile(path string, limit int64) ([]byte, error) {
	if err := s.checkFile(path, limit); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// checkFile refuses a file that is not regular, lies outside the repository, or is larger than
// limit bytes.
func (s *Model) checkFile(path string, limit int64) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &missingFile{path}
	case err != nil:
		return fault.Errorf(fault.Internal, "failed to open text file for read %s: %v", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return fault.Errorf(fault.InvalidArgument, "failed to open text file for read %s: it is not a regular file", path)
	case info.Size() > limit:
		return fault.Errorf(fault.InvalidArgument, "failed to open text file for read %s: it has more than %d bytes", path, limit)
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
func (s *Model) readVersions() error {
	m, err := modelrepo.OpenModel(s.Dir)
	s.Versions, s.Ignored = m.Versions, m.Ignored
	return err
}

// HasModelFile reports whether the first version has a model.onnx, which identifies the backend of
// a model without configuration.
func (s *Model) HasModelFile() bool {
	if len(s.Versions) == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(s.Dir, strconv.FormatInt(s.Versions[0], 10), modelconfig.DefaultModelFilename))
	return err == nil
}

// File locates the model file of a version.
func (s *Model) File(version int64, filename string) (string, error) {
	versionDir := filepath.Join(s.Dir, strconv.FormatInt(version, 10))
	path := filepath.Join(versionDir, filename)
	if !filepath.IsLocal(filename) {
		return "", fault.Errorf(fault.InvalidArgument, "default_model_filename '%s' of model '%s' leaves the version folder", filename, s.Name)
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, modelconfig.DefaultModelFilename)
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return "", fault.Errorf(fault.Internal, "failed to stat file %s", path)
	case !info.Mode().IsRegular():
		return "", s.irregular(path, info.Mode())
	}
	if err := errors.Join(s.contain(path), s.checkFolder(versionDir)); err != nil {
		return "", err
	}
	return path, nil
}

// irregular returns the error for a file that is not regular. Opening a pipe would wait for a
// writer.
func (s *Model) irregular(path string, mode fs.FileMode) error {
	return fault.Errorf(fault.InvalidArgument, "%s of model '%s' is not a regular file (%s): replace it with one", path, s.Name, mode)
}

// checkFolder refuses links in a folder that lead out of the repository, and entries that are
// neither files nor folders. A model may name any file beside it as its external data.
func (s *Model) checkFolder(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fault.Errorf(fault.Internal, "failed to stat file %s", dir)
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

// Labels reads the label files of a model's outputs, one label a line. It refuses files that do not
// exist, or lie outside the model's folder.
func (s *Model) Labels(c *modelconfig.Config) (map[string][]string, error) {
	var labels map[string][]string
	for _, out := range c.GetOutput() {
		file := out.GetLabelFilename()
		switch {
		case file == "":
			continue
		case !filepath.IsLocal(file):
			return nil, fault.Errorf(fault.InvalidArgument, "label_filename '%s' of output '%s' leaves the folder of model '%s'", file, out.GetName(), s.Name)
		}
		path := filepath.Join(s.Dir, file)
		if err := s.checkFile(path, maxLabelBytes); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fault.Errorf(fault.Internal, "cannot read the labels of output '%s' of model '%s': %v", out.GetName(), s.Name, err)
		}
		if labels == nil {
			labels = map[string][]string{}
		}
		labels[out.GetName()] = strings.Split(string(text), "\n")
	}
	return labels, nil
}

// maxLabelBytes bounds a file of labels.
const maxLabelBytes = 64 << 20

// contain refuses a path that lies outside the repository after all links are resolved.
func (s *Model) contain(path string) error {
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		return fault.Errorf(fault.Internal, "failed to stat file %s", s.root)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fault.Errorf(fault.Internal, "failed to stat file %s", path)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return fault.Errorf(fault.InvalidArgument, "%s of model '%s' leads out of the model repository", filepath.Base(path), s.Name)
	}
	return nil
}

// Stamp identifies what a version is made of by the name, size and time of each file: in its folder, and beside
// the folders of all versions, such as labels. As in Triton (ModelTimestamp::IsModelVersionModified), the
// configuration does not count.
func (s *Model) Stamp(version int64) (string, error) {
	var b strings.Builder
	dir := filepath.Join(s.Dir, strconv.FormatInt(version, 10))
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
	if err != nil {
		return "", err
	}
	beside, err := s.beside()
	return b.String() + beside, err
}

// List lists the models of the repositories, in order. A model in several of them is listed
// as many times.
func List(roots []string) ([]string, error) {
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

// CheckName refuses names that are not folders of a repository. Answers and metrics are UTF-8.
func CheckName(name string) error {
	if !utf8.ValidString(name) || strings.TrimSpace(name) == "" || strings.Contains(name, "..") || strings.ContainsAny(name, `/\`+"\x00") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("model name %q is not the name of a folder in a model repository", name)
	}
	return nil
}
