package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/precision/recipe"
	"tuner/profile/journal"
	"tuner/spec"
)

// MissingModelError means that the file of the measured model is neither at its path nor in the
// campaign's folder. A campaign of another machine names a path of that machine.
type MissingModelError struct {
	Path, SHA256 string
	Folder       string // of the campaign; "" if it is not known
	Made         bool   // tuner made the file, in a cache that may have been emptied since
}

func (e *MissingModelError) Error() string {
	text := fmt.Sprintf("the measured model %q is not here", e.Path)
	if e.Folder != "" {
		text += fmt.Sprintf("; copy the file with the SHA-256 %s into %q", e.SHA256, e.Folder)
	}
	if e.Made {
		text += "; tuner made this file: run the command of the campaign again to make it"
	}
	return text
}

// ExitCode implements exit.Coded.
func (e *MissingModelError) ExitCode() int { return exit.Usage }

// modelFile returns the file of a measured precision: that at its path, or else one with its digest in
// the campaign's folder, among the models that were kept there, or in the repository that was written there before.
func modelFile(r analyze.Result, file journal.ModelFile) (string, error) {
	if _, err := os.Stat(file.Path); !errors.Is(err, fs.ErrNotExist) {
		return file.Path, nil // a reader tells other errors
	}
	if r.Folder != "" {
		dirs := []string{r.Folder}
		for _, repository := range []string{keptDir(r, file), filepath.Join(r.Folder, RepositoryDir)} {
			deployed := filepath.Join(repository, r.Header.Model)
			versions, _ := os.ReadDir(deployed) // none if there is no repository
			for _, v := range versions {
				dirs = append(dirs, filepath.Join(deployed, v.Name()))
			}
		}
		for _, dir := range dirs {
			if path, ok := withDigest(dir, file.SHA256); ok {
				return path, nil
			}
		}
	}
	return "", &MissingModelError{Path: file.Path, SHA256: file.SHA256, Folder: r.Folder, Made: wasMade(r, file.Precision)}
}

// keptDir is the repository of a measured model that was kept in the campaign's folder.
func keptDir(r analyze.Result, file journal.ModelFile) string {
	return filepath.Join(r.Folder, "measured", file.SHA256)
}

// keepModels is called before a model's repository is replaced or removed. It copies each measured model file that is only
// there, since no later analysis could write a repository with it. That of the precision next stays in the repository.
func keepModels(repository string, r analyze.Result, next string) error {
	if r.Folder == "" || !spec.IsSamePath(repository, filepath.Join(r.Folder, RepositoryDir)) {
		return nil
	}
	config := &modelconfig.Config{Name: r.Header.Model}
	if len(r.Configs) > 0 {
		config = r.Configs[0].Deployed // it names labels
	}
	for _, file := range r.Header.Models {
		path, err := modelFile(r, file)
		isThere := err == nil && strings.HasPrefix(path, filepath.Join(r.Folder, RepositoryDir, r.Header.Model)+string(filepath.Separator))
		if !isThere || file.Precision == next {
			continue
		}
		source, err := measuredModel(r, file.Precision)
		if err == nil {
			err = modelrepo.Write(keptDir(r, file), source, config)
		}
		if err != nil {
			return fmt.Errorf("cannot keep the measured model of the outdated repository: %w", err)
		}
	}
	return nil
}

// withDigest returns the ONNX file of a folder that has a digest.
func withDigest(dir, sha256 string) (path string, ok bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false // it has no such file
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != ".onnx" {
			continue
		}
		model, err := onnx.Read(path)
		if err != nil {
			continue // not the measured one, which could be read
		}
		if digest, err := model.Digest(); err == nil && digest == sha256 {
			return path, true
		}
	}
	return "", false
}

// wasMade reports whether tuner made a precision's file.
func wasMade(r analyze.Result, precision string) bool {
	return precision != recipe.Original && slices.ContainsFunc(r.Header.Variants, func(v journal.Variant) bool {
		return v.Precision == precision && !v.Own
	})
}

// measuredModel finds the model files of a precision, and verifies that they are the measured ones.
func measuredModel(r analyze.Result, precision string) (modelrepo.Source, error) {
	file, ok := r.Header.File(precision)
	if !ok {
		return modelrepo.Source{}, fmt.Errorf("the journal names no model file for precision %q", precision)
	}
	path, err := modelFile(r, file)
	switch {
	case err != nil:
		return modelrepo.Source{}, err
	case isFolder(path):
		return measuredFolder(file)
	}
	model, err := onnx.Read(path)
	if err != nil {
		return modelrepo.Source{}, &InputError{err}
	}
	digest, err := model.Digest()
	if err != nil {
		return modelrepo.Source{}, err
	}
	if digest != file.SHA256 {
		return modelrepo.Source{}, &InputError{fmt.Errorf("the model %q changed since it was measured (its digest was %s, and is now %s); "+
			"put the old file back, or profile the new one into another output folder", path, file.SHA256, digest)}
	}
	source := modelrepo.Source{Path: path, Digest: digest, Folder: modelFolder(path)}
	for _, data := range model.ExternalFiles() {
		source.Data = append(source.Data, data.Path)
	}
	return source, nil
}

// modelFolder returns the Triton model folder of a model file; "" without one. The file is
// <folder>/<version>/model.onnx or one level deeper. The folder has the other files that a
// configuration names.
func modelFolder(path string) string {
	version := filepath.Dir(path)
	for range 2 {
		folder := filepath.Dir(version)
		if _, err := os.Stat(filepath.Join(folder, configName)); err == nil {
			return folder
		}
		version = folder
	}
	return ""
}

// withoutMissing returns the formats without the repository if a model of the optimum is not here,
// with the reason. The figures need no model.
func withoutMissing(r analyze.Result, names []string) ([]string, error) {
	if !slices.Contains(names, spec.FormatRepository) {
		return names, nil
	}
	for _, m := range r.OfEach() {
		best, ok := m.Winner()
		if !ok {
			continue
		}
		file, ok := m.Header.File(best.Setup.Precision)
		if !ok {
			continue // the writer tells it
		}
		if _, err := modelFile(m, file); err != nil {
			return slices.DeleteFunc(slices.Clone(names), func(f string) bool { return f == spec.FormatRepository || f == spec.FormatHelm }), err
		}
	}
	return names, nil
}

// isFolder reports whether a model of the journal is its folder: that of another backend, or of a pipeline.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// measuredFolder returns a model without an ONNX file, and verifies that its files are the measured ones.
func measuredFolder(file journal.ModelFile) (modelrepo.Source, error) {
	source, err := modelrepo.Folder(file.Path)
	if err != nil {
		return modelrepo.Source{}, &InputError{err}
	}
	if source.Digest != file.SHA256 {
		return modelrepo.Source{}, &InputError{fmt.Errorf("files in %q changed since they were measured (their digest was %s, and is now %s); "+
			"put the old ones back, or profile the new ones into another output folder", file.Path, file.SHA256, source.Digest)}
	}
	return source, nil
}
