// Package starter writes the first files for a model: profile.yaml, analyze.yaml and config.pbtxt,
// for `tuner init` and `tuner run`.
//
// It reads a model, chooses sizes for its symbolic dimensions, and uses the texts of package spec.
// It replaces no file of the user unless it is told to.
package starter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/internal/hostinfo"
	"tuner/model/modelconfig"
	"tuner/model/modelconfig/configpb"
	"tuner/model/onnx/inputs"
	"tuner/model/precision/recipe"
	"tuner/ort/addon"
	"tuner/ort/ortlib"
	"tuner/profile"
	"tuner/profile/preparation"
	"tuner/spec"
	"tuner/spec/draft"
)

// configName is Triton's file name of a model's configuration.
const configName = "config.pbtxt"

// File is a file to be written.
type File struct {
	Path string
	Text []byte
	Note string // purpose of the file, for people
}

// Model is a model that was read for a verb.
type Model struct {
	profile.Subject
	path     string // as the user gives it
	isFolder bool   // a Triton model folder
	cores    int    // of this machine, ≥ 1
	// libraries that the user names, as the user gives them
	libraries addon.Libraries
}

// Open reads a model for a verb, with libraries that servers of it open beside ONNX Runtime. The user
// can fix every error about the files.
func Open(ctx context.Context, verb, path string, libraries addon.Libraries) (Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Model{}, exit.Usagef("cannot read the model %q: %v", path, durable.Cause(err))
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Model{}, fmt.Errorf("cannot resolve %q: %w", path, err)
	}
	host := hostinfo.Read(ctx)
	usual := func() (ortlib.Build, error) { return ortlib.Resolve("") }
	source := spec.Profile{
		Path: verb, Name: draft.NewStarter(absolute).Name, // path may be ".", which has no name
		Model: spec.ModelSource{Path: path, Precisions: map[string]string{recipe.Original: path}, Libraries: libraries},
	}
	subject, err := profile.OpenSubject(source, preparation.Place(ctx, host, libraries, usual))
	if err != nil {
		return Model{}, exit.With(exit.Usage, err)
	}
	return Model{Subject: subject, path: path, isFolder: info.IsDir(), cores: max(1, int(host.CPU.Usable())), libraries: libraries}, nil
}

// Starter collects the contents of files in dir about the model and this machine. given are the
// shapes of inputs that the user names, without the batch dimension.
func (m Model) Starter(dir string, given map[string][]int64) (draft.Starter, error) {
	path, err := PathFrom(dir, m.path)
	if err != nil {
		return draft.Starter{}, err
	}
	s := draft.NewStarter(path)
	s.Name, s.Output, s.Cores = m.Name, filepath.Join("out", m.Name), m.cores
	if !m.isFolder {
		s.Config = configName
	}
	for _, library := range m.libraries.Operators {
		if library, err = PathFrom(dir, library); err != nil {
			return draft.Starter{}, err
		}
		s.OpLibraries = append(s.OpLibraries, library)
	}
	if m.libraries.Provider != "" {
		if s.EPLibrary, err = PathFrom(dir, m.libraries.Provider); err != nil {
			return draft.Starter{}, err
		}
	}
	groups := m.Config.GetInstanceGroup()
	s.OnGPU = len(groups) > 0 && groups[0].GetKind() == configpb.ModelInstanceGroup_KIND_GPU
	s.Precisions = recipe.Choose(m.Model, s.OnGPU)
	s.Batching = inputs.Batches(m.Model) && m.Config.GetMaxBatchSize() > 0
	if s.Shapes, err = ExampleShapes(m.Subject, given); err != nil {
		return s, err
	}
	s.Values = fixedValues(m.Model, s.Shapes)
	texts := inputs.Texts(m.Model)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !slices.ContainsFunc(s.Shapes, func(shape draft.StarterShape) bool { return shape.Input == name }) {
			s.Texts = append(s.Texts, draft.StarterShape{Input: name, Reason: texts[name]})
		}
	}
	return s, nil
}

// PathFrom returns a path relative to dir. An absolute path stays absolute.
func PathFrom(dir, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", dir, err)
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %q: %w", path, err)
	}
	return filepath.Rel(from, to)
}

// Files makes the files, and reads them back, so that only valid files are written. formats are the
// report formats for analyze.yaml.
func Files(dir string, s draft.Starter, subject profile.Subject, formats []string) ([]File, error) {
	profileText, err := s.Profile()
	if err != nil {
		return nil, err
	}
	analyzeText, err := s.Analyze()
	if err != nil {
		return nil, err
	}
	files := []File{
		{filepath.Join(dir, draft.ProfileName), profileText, "what to search"},
		{filepath.Join(dir, draft.AnalyzeName), analyzeText, "what to make of the results"},
	}
	_, profileErr := spec.ParseProfile(files[0].Path, profileText)
	_, analyzeErr := spec.ParseAnalyze(files[1].Path, analyzeText, formats)
	if err := errors.Join(profileErr, analyzeErr); err != nil {
		return nil, exit.Usagef("cannot write a valid profile for the model %q: %w", subject.Model.Path(), err)
	}
	if s.Config == "" {
		return files, nil
	}
	config, err := modelconfig.Format(subject.Config)
	if err != nil {
		return nil, err
	}
	header := fmt.Sprintf("# The default configuration of %s: what Triton's auto-completion makes of the model.\n"+
		"# tuner profile measures it first, and compares every other configuration with it.\n", s.Name)
	return append(files, File{filepath.Join(dir, s.Config), slices.Concat([]byte(header), config), "the default configuration"}), nil
}

// WriteNew writes all files or none. It writes none if one exists, unless force is set.
func WriteNew(dir string, files []File, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make folder %q: %w", dir, durable.Cause(err))
	}
	var existing []string
	for _, f := range files {
		if _, err := os.Lstat(f.Path); !errors.Is(err, fs.ErrNotExist) && !force {
			existing = append(existing, f.Path)
		}
	}
	if len(existing) > 0 {
		return exit.Usagef("cannot write %s: already there; use --force to replace, or -o for another folder", strings.Join(existing, ", "))
	}
	return Replace(dir, files)
}

// Replace writes files, which must be in dir. It writes all of them under temporary names before it
// renames the first. So a full disk leaves nothing behind.
func Replace(dir string, files []File) error {
	var staged []*durable.Staged
	defer func() {
		for _, one := range staged {
			_ = one.Drop() // the first error matters
		}
	}()
	for _, f := range files {
		one, err := durable.Stage(f.Path, durable.Bytes(f.Text))
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", f.Path, durable.Cause(err))
		}
		staged = append(staged, one)
	}
	for i, f := range files {
		if err := staged[i].Commit(); err != nil {
			return fmt.Errorf("cannot write %q: %w", f.Path, durable.Cause(err))
		}
	}
	if err := durable.SyncDir(dir); err != nil {
		return fmt.Errorf("cannot flush folder %q: %w", dir, durable.Cause(err))
	}
	return nil
}
