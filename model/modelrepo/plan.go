package modelrepo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tuner/internal/durable"
	"tuner/internal/inside"
	"tuner/model/modelconfig"
)

// plan is the planned content of a model's folder.
type plan struct {
	model  string
	config []byte
	files  []entry
	digest string
	// versions are folders of versions without a file: an ensemble has nothing else
	versions []string
}

// entry is a planned file of a model's folder.
type entry struct {
	from inside.File
	to   string // relative to the model's folder
}

// newPlan makes all checks that are possible before writing.
func newPlan(m Source, c *modelconfig.Config) (plan, error) {
	name := c.GetName()
	if name == "" || name[0] == '.' || filepath.Base(name) != name {
		return plan{}, fmt.Errorf("cannot write model %q: its name must be that of a folder", name)
	}
	text, err := modelconfig.Format(c)
	if err != nil {
		return plan{}, err
	}
	p := plan{model: name, config: text}
	if m.Path == "" {
		return p.withFolder(m)
	}
	if err := p.addModel(m, c); err != nil {
		return plan{}, err
	}
	extra, err := namedFiles(m.Folder, c)
	if err != nil {
		return plan{}, err
	}
	p.files = append(p.files, extra...)
	p.digest, err = digest(m, text, extra)
	return p, err
}

// addModel adds the model file and its external data to the version's folder.
func (p *plan) addModel(m Source, c *modelconfig.Config) error {
	filename := c.GetDefaultModelFilename()
	if filename == "" {
		filename = modelconfig.DefaultModelFilename
	}
	if !filepath.IsLocal(filename) {
		return fmt.Errorf("cannot write model %q: default_model_filename %q leads out of the version folder", p.model, filename)
	}
	to := filepath.Join(versionFor(c), filename)
	if filepath.Clean(filename) == "." { // the version's folder, in which a server uses this file
		to = filepath.Join(to, modelconfig.DefaultModelFilename)
	}
	model, err := inside.Named(m.Path)
	if err := p.addFile(model, err, m.Path, to); err != nil {
		return err
	}
	for _, data := range m.Data {
		rel, err := relative(filepath.Dir(m.Path), data)
		if err != nil || !filepath.IsLocal(rel) {
			return fmt.Errorf("cannot write model %q: its data file %q is not in the folder of %q", p.model, data, m.Path)
		}
		found, err := inside.Beside(m.Path, rel)
		if err := p.addFile(found, err, data, filepath.Join(filepath.Dir(to), rel)); err != nil {
			return err
		}
	}
	return nil
}

// versionFor returns the version that the policy of c serves: 1 unless it lists others.
func versionFor(c *modelconfig.Config) string {
	if listed := c.GetVersionPolicy().GetSpecific().GetVersions(); len(listed) > 0 {
		return strconv.FormatInt(max(1, slices.Max(listed)), 10)
	}
	return "1"
}

// relative returns path relative to dir. Either may be relative to the working folder.
func relative(dir, path string) (string, error) {
	absoluteDir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(absoluteDir, absolute)
}

// addFile adds the file found at path. err is the error of finding it.
func (p *plan) addFile(found inside.File, err error, path, to string) error {
	if err != nil {
		return unusable(path, err)
	}
	if slices.ContainsFunc(p.files, func(other entry) bool { return other.to == to }) {
		return fmt.Errorf("cannot write model %q: both the model and a data file would be %q; choose another default_model_filename", p.model, to)
	}
	p.files = append(p.files, entry{found, to})
	return nil
}

// unusable returns the error for a file that cannot be used.
func unusable(path string, err error) error {
	return fmt.Errorf("cannot use file %q: %w", path, durable.Cause(err))
}

// namedFiles returns the files that a configuration names besides the model: labels, relative to
// the model's folder, and warm-up data, in its folder warmup.
func namedFiles(folder string, c *modelconfig.Config) ([]entry, error) {
	named := make(map[string]string) // path to field
	for i, out := range c.GetOutput() {
		if label := out.GetLabelFilename(); label != "" {
			named[filepath.Clean(label)] = fmt.Sprintf("output[%d].label_filename", i)
		}
	}
	for i, w := range c.GetModelWarmup() {
		for input, data := range w.GetInputs() {
			if file := data.GetInputDataFile(); file != "" {
				named[filepath.Join("warmup", file)] = fmt.Sprintf("model_warmup[%d].inputs[%q].input_data_file", i, input)
			}
		}
	}
	var files []entry
	for path, field := range named {
		if !filepath.IsLocal(path) {
			return nil, fmt.Errorf("cannot write model %q: %s: %q leads out of the model's folder", c.GetName(), field, path)
		}
		if folder == "" {
			return nil, fmt.Errorf("cannot write model %q: %s names the file %q, but the model does not come from a Triton model folder; remove the field", c.GetName(), field, path)
		}
		found, err := inside.Below(folder, path)
		if err != nil {
			return nil, fmt.Errorf("cannot write model %q: %s: %w", c.GetName(), field, unusable(filepath.Join(folder, path), err))
		}
		files = append(files, entry{found, path})
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.to, b.to) })
	return files, nil
}

// write makes the model's folder dir. It writes the configuration last, so that a polling server
// never sees it before the model.
func (p plan) write(dir string, put func(from inside.File, to string) error) error {
	folders := []string{dir}
	for _, version := range p.versions {
		folder := filepath.Join(dir, version)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("cannot create folder %q: %w", folder, durable.Cause(err))
		}
		folders = append(folders, folder)
	}
	for _, e := range p.files {
		to := filepath.Join(dir, e.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("cannot create folder %q: %w", filepath.Dir(to), durable.Cause(err))
		}
		if err := put(e.from, to); err != nil {
			return err
		}
		folders = append(folders, filepath.Dir(to))
	}
	if err := writeFile(filepath.Join(dir, configName), p.config); err != nil {
		return err
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if err := syncDir(folder); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(dir))
}

// check compares the names, sizes and configuration in dir with the plan.
func (p plan) check(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, configName))
	if err == nil && !bytes.Equal(text, p.config) {
		err = fmt.Errorf("%s is not what was written", configName)
	}
	for _, e := range p.files {
		info, statErr := os.Lstat(filepath.Join(dir, e.to))
		switch {
		case err != nil:
		case statErr != nil:
			err = statErr
		case !info.Mode().IsRegular() || info.Size() != e.from.Size:
			err = fmt.Errorf("%s is not what was written", e.to)
		}
	}
	if err != nil {
		return fmt.Errorf("variant folder %q was changed; delete it and try again: %w", dir, err)
	}
	return nil
}
