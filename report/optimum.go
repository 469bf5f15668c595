package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/internal/terminal"
	"tuner/internal/words"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/report/figures"
	"tuner/spec"
)

// The files of the optimum in the output folder.
const (
	configDir     = "optimal"
	configName    = "config.pbtxt"
	locationName  = "Optimal_ConfigFile_Location.txt" // OLive's name
	RepositoryDir = "repository"
)

// writeOptimum writes the requested forms of the optimum. If there is no optimum, it removes that
// of an earlier run.
func writeOptimum(dir string, r analyze.Result, names []string) ([]string, error) {
	if _, ok := r.Winner(); !ok {
		return nil, removeStale(dir, r)
	}
	var written []string
	if slices.Contains(names, spec.FormatConfig) {
		var err error
		if written, err = writeFiles(dir, optimalConfigs(dir, r)); err != nil {
			return written, err
		}
	}
	if !slices.Contains(names, spec.FormatRepository) {
		return written, nil
	}
	repository := filepath.Join(dir, RepositoryDir)
	if err := WriteRepository(repository, r); err != nil {
		return written, err
	}
	for _, m := range r.OfEach() {
		written = append(written, filepath.Join(repository, m.Header.Model))
	}
	return written, nil
}

// optimalConfigs lists the winner's config.pbtxt with its location. Of several models each has its
// file in a folder of its name, and the location is the folder of all.
func optimalConfigs(dir string, r analyze.Result) []File {
	if len(r.Served()) == 0 {
		config := filepath.Join(configDir, configName)
		return []File{
			{config, func(w io.Writer) error { return WriteConfig(w, r) }},
			{locationName, func(w io.Writer) error { return writeLocation(w, filepath.Join(dir, config)) }},
		}
	}
	var files []File
	for _, m := range r.OfEach() {
		files = append(files, File{filepath.Join(configDir, m.Header.Model, configName), func(w io.Writer) error { return WriteConfig(w, m) }})
	}
	return append(files, File{locationName, func(w io.Writer) error { return writeLocation(w, filepath.Join(dir, configDir)) }})
}

// writeLocation writes only the path of the optimal config.pbtxt, so that a script finds it from
// any folder.
func writeLocation(w io.Writer, path string) error {
	absolute, err := filepath.Abs(path)
	if err == nil {
		_, err = fmt.Fprintln(w, absolute)
	}
	if err != nil {
		return fmt.Errorf("cannot write the location of the optimal configuration: %w", err)
	}
	return nil
}

// WriteConfig writes the winner's config.pbtxt. Comments at its top explain why it is the best. It
// fails if no configuration satisfies the constraints.
func WriteConfig(w io.Writer, r analyze.Result) error {
	best, ok := r.Winner()
	if !ok {
		return errors.New("cannot write the optimal configuration: none satisfies the constraints")
	}
	config, unwarmed, err := deployable(r, best)
	if err != nil {
		return err
	}
	text, err := modelconfig.Format(config)
	if err != nil {
		return fmt.Errorf("cannot write the optimal configuration: %w", err)
	}
	var b strings.Builder
	for _, line := range reasons(r, best, unwarmed) {
		// a line break in a name must not end the comment
		fmt.Fprintf(&b, "# %s\n", terminal.Plain(figures.OneLine(line)))
	}
	fmt.Fprintf(&b, "\n%s", text)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write the optimal configuration: %w", err)
	}
	return nil
}

// ConfigText returns what WriteConfig writes; of several models, the files of all.
func ConfigText(r analyze.Result) (string, error) {
	var b strings.Builder
	for i, m := range r.OfEach() {
		if i > 0 {
			b.WriteString("\n")
		}
		if err := WriteConfig(&b, m); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// WriteRepository writes the deployable repository dir/<model>/ with the winner's configuration and
// the measured model file, for each of several models. It refuses a model file that changed since then, and a folder that it
// did not write itself.
func WriteRepository(dir string, r analyze.Result) error {
	best, ok := r.Winner()
	if !ok {
		return errors.New("cannot write the model repository: no configuration satisfies the constraints")
	}
	if len(r.Served()) == 0 {
		return writeModel(dir, r, best)
	}
	for _, m := range r.OfEach() {
		best, _ := m.Winner()
		if err := writeModel(dir, m, best); err != nil {
			return err
		}
	}
	return nil
}

// WriteConfiguration writes the deployable repository dir/<model>/ with a configuration of the result,
// by its name, as WriteRepository does with the winner's. The result is of one model.
func WriteConfiguration(dir string, r analyze.Result, name string) error {
	c, ok := r.Config(name)
	if !ok {
		return fmt.Errorf("cannot write the model repository: the result has no configuration %q", name)
	}
	return writeModel(dir, r, c)
}

// DeployableConfig returns the configuration of a result with a name, as WriteConfiguration writes it. The
// result is of one model.
func DeployableConfig(r analyze.Result, name string) (*modelconfig.Config, error) {
	c, ok := r.Config(name)
	if !ok {
		return nil, fmt.Errorf("the campaign has no configuration %q", name)
	}
	config, _, err := deployable(r, c)
	return config, err
}

// writeModel writes one model with a configuration into a repository.
func writeModel(dir string, r analyze.Result, best analyze.Config) error {
	source, err := measuredModel(r, best.Setup.Precision)
	if err != nil {
		return fmt.Errorf("cannot write the model repository: %w", err)
	}
	config, _, err := deployable(r, best)
	if err != nil {
		return err
	}
	if err := keepModels(dir, r, best.Setup.Precision); err != nil {
		return err
	}
	return modelrepo.Write(dir, source, config)
}

// deployable adds warm-up requests for the smallest and the largest batch to a configuration. If
// the size of an input is unknown, or if it takes no zeros, it adds none, and unwarmed says why: a
// server does not load a model whose warm-up fails.
func deployable(r analyze.Result, c analyze.Config) (config *modelconfig.Config, unwarmed string, err error) {
	if file, ok := r.Header.File(c.Setup.Precision); ok && isFolder(file.Path) {
		return c.Deployed, "", nil // what another backend takes is not known, and a pipeline has no instances
	}
	var samples []modelrepo.Sample
	values := acceptedValues(r, c)
	batches := c.Deployed.GetMaxBatchSize() > 0
	for _, in := range c.Deployed.GetInput() {
		dims, ok := requestDims(in.GetDims(), r.Shapes[in.GetName()])
		if !ok {
			return c.Deployed, fmt.Sprintf("input %q has a free dimension without a size in load.inputs.shape", in.GetName()), nil
		}
		accepted, isKnown := values[in.GetName()]
		if isKnown && accepted.Distribution == inputs.Uniform && accepted.Range.Lo > 0 {
			return c.Deployed, fmt.Sprintf("input %q takes no zeros (%s)", in.GetName(), accepted.Reason), nil
		}
		if batches {
			dims = append([]int64{-1}, dims...)
		}
		samples = append(samples, modelrepo.Sample{
			Tensor: modelconfig.Tensor{Name: in.GetName(), DataType: in.GetDataType(), Dims: dims},
			Zeros:  isKnown && accepted.Distribution != inputs.Normal,
		})
	}
	config, err = modelrepo.AddWarmup(c.Deployed, samples, 1, int(max(1, c.Deployed.GetMaxBatchSize())))
	if err != nil {
		return nil, "", fmt.Errorf("cannot make warm-up requests: %w", err)
	}
	return config, "", nil
}

// acceptedValues returns the values that the inputs of a configuration's model accept, by name; nil
// if its file is gone or its sizes are unknown.
func acceptedValues(r analyze.Result, c analyze.Config) map[string]inputs.Input {
	file, ok := r.Header.File(c.Setup.Precision)
	if !ok {
		return nil
	}
	path, err := modelFile(r, file)
	if err != nil {
		return nil // where the file is needed, the error is reported
	}
	model, err := onnx.Read(path)
	if err != nil {
		return nil
	}
	list, err := inputs.Derive(model, inputs.Options{Shape: r.Shapes, Default: 1})
	if err != nil {
		return nil
	}
	values := make(map[string]inputs.Input, len(list))
	for _, in := range list {
		values[in.Name] = in
	}
	return values
}

// requestDims gives the free dimensions of an input their measured sizes. Without batching the
// first dimension may be the model's batch dimension. The measured shape leaves it out: its size is
// 1.
func requestDims(dims, measured []int64) ([]int64, bool) {
	if len(measured)+1 == len(dims) && dims[0] == -1 {
		measured = append([]int64{1}, measured...)
	}
	sizes := make([]int64, len(dims))
	for i, d := range dims {
		switch {
		case d > 0:
			sizes[i] = d
		case len(measured) == len(dims) && measured[i] > 0:
			sizes[i] = measured[i]
		default:
			return nil, false
		}
	}
	return sizes, true
}

// configMark begins every optimal config.pbtxt, so that a later run recognizes its own file.
const configMark = "Written by tuner"

// reasons returns the comments above the optimal configuration.
func reasons(r analyze.Result, best analyze.Config, unwarmed string) []string {
	a := figures.AnswerOf(r)
	lines := []string{
		fmt.Sprintf("%s: the best of %s for model %q.", configMark, words.Count(len(r.Configs), "configuration"), r.Header.Model),
		fmt.Sprintf("%s: %s", best.Name, best.Candidate.Describe()),
		fmt.Sprintf("Goal: %s%s.", figures.ObjectiveText(r.Goal.Objective), figures.Within(r.Goal)),
	}
	lines = append(append(lines, a.Headline), a.Texts()...)
	if text := figures.AccuracyReason(r, best); text != "" {
		lines = append(lines, text)
	}
	if note := figures.ServeNote(r); note != "" {
		lines = append(lines, note)
	}
	if unwarmed != "" {
		lines = append(lines, fmt.Sprintf("No model_warmup: %s.", unwarmed))
	}
	h := r.Header
	if r.Recorded != "" {
		return append(lines, fmt.Sprintf("Measured by another program: %s.", r.Recorded))
	}
	return append(lines, fmt.Sprintf("Campaign: %s, seed %d, %s, %s.", h.Spec.Path, h.Seed, figures.ServedBy(r, best),
		h.Created.UTC().Format("2006-01-02 15:04 MST")))
}

// removeStale removes the optimum of an earlier run if there is no new one. A file that tuner did
// not write stays, and causes an error, since readers would take it for the optimum.
func removeStale(dir string, r analyze.Result) error {
	if err := os.Remove(filepath.Join(dir, locationName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the outdated optimum: %w", err)
	}
	if len(r.Served()) == 0 {
		return removeStaleModel(dir, filepath.Join(configDir, configName), r)
	}
	for _, m := range r.OfEach() {
		if err := removeStaleModel(dir, filepath.Join(configDir, m.Header.Model, configName), m); err != nil {
			return err
		}
	}
	return nil
}

// removeStaleModel is removeStale for a model, whose config.pbtxt has a name in the folder.
func removeStaleModel(dir, config string, r analyze.Result) error {
	path := filepath.Join(dir, config)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("cannot remove the outdated optimum: %w", err)
	case !strings.HasPrefix(string(text), "# "+configMark):
		return &InputError{fmt.Errorf("cannot remove the outdated %q: tuner did not write it; move it away", path)}
	default:
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("cannot remove the outdated optimum: %w", err)
		}
	}
	return removeRepository(dir, r)
}

// removeRepository removes a model's repository of an earlier run.
func removeRepository(dir string, r analyze.Result) error {
	repository := filepath.Join(dir, RepositoryDir)
	if err := keepModels(repository, r, ""); err != nil {
		return err
	}
	if err := modelrepo.Remove(repository, r.Header.Model); err != nil {
		return fmt.Errorf("cannot remove the outdated optimum: %w", err)
	}
	return nil
}
