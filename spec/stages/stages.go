// Package stages completes the text of a profile of a pipeline: it adds the models that an ensemble's
// config.pbtxt calls to the section models. Package spec reads the completed text and opens no file, so a
// campaign is resumed from its journal alone.
//
// It stands before package spec in the data flow. It knows ensembles. The models of business logic are in
// code, so their names stay the user's.
package stages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/spec/document"
)

// The fields of a profile that matter here.
const (
	pipelineField = "pipeline"
	modelsField   = "models"
)

// Lines has the file's lines of a completed text's lines; none if the text is the file's.
type Lines map[int]int

// Complete returns the text of a profile with all stages of its ensemble, and the file's lines of that
// text. path is the profile's file, to whose folder the pipeline's is relative. A text without a pipeline,
// and one that names all stages, is returned as it is. So is one with other mistakes, which package spec
// reports.
func Complete(path string, text []byte) ([]byte, Lines, error) {
	var file yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if decoder.Decode(&file) != nil || len(file.Content) == 0 || file.Content[0].Kind != yaml.MappingNode || !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		return text, nil, nil
	}
	root := file.Content[0]
	pipeline := field(root, pipelineField)
	if pipeline == nil || pipeline.Kind != yaml.ScalarNode || pipeline.Value == "" {
		return text, nil, nil
	}
	found, err := Of(document.RelativeTo(path, pipeline.Value))
	if err != nil {
		return nil, nil, fmt.Errorf("%s:%d: %s: %w", path, pipeline.Line, pipelineField, err)
	}
	models := field(root, modelsField)
	switch {
	case models == nil:
		models = &yaml.Node{Kind: yaml.MappingNode, Line: pipeline.Line}
	case models.Kind != yaml.MappingNode:
		return text, nil, nil
	}
	missing := slices.DeleteFunc(found, func(name string) bool { return field(models, name) != nil })
	if len(missing) == 0 {
		return text, nil, nil
	}
	if field(root, modelsField) == nil {
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: modelsField, Line: models.Line}, models)
	}
	for _, name := range missing {
		models.Content = append(models.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name, Line: models.Line},
			&yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Line: models.Line})
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&file), enc.Close()); err != nil {
		return nil, nil, fmt.Errorf("cannot write the profile: %w", err)
	}
	var completed yaml.Node
	if err := yaml.Unmarshal(out.Bytes(), &completed); err != nil {
		return nil, nil, fmt.Errorf("cannot read the completed profile: %w", err)
	}
	lines := Lines{}
	lines.learn(&file, &completed)
	return out.Bytes(), lines, nil
}

// learn takes the lines of a node and of those below it. The encoder puts several lines of braces into
// one, which stands for the first.
func (l Lines) learn(file, completed *yaml.Node) {
	if _, known := l[completed.Line]; !known {
		l[completed.Line] = file.Line
	}
	for i := range min(len(file.Content), len(completed.Content)) {
		l.learn(file.Content[i], completed.Content[i])
	}
}

// InFile returns the mistakes of a completed text at their lines in the file.
func (l Lines) InFile(err error) error {
	var mistakes document.Errors
	if !errors.As(err, &mistakes) {
		return err
	}
	mistakes = slices.Clone(mistakes)
	for i, m := range mistakes {
		if line, known := l[m.Line]; known {
			mistakes[i].Line = line
		}
	}
	return mistakes
}

// field returns the value of a mapping's field; nil without it.
func field(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// Of lists the models that the model in a folder calls as an ensemble, each once, in the order of its
// steps. A model that is no ensemble has none.
func Of(dir string) ([]string, error) {
	m, err := modelrepo.OpenModel(dir)
	if err != nil {
		return nil, err
	}
	c, err := m.Config()
	if err != nil {
		return nil, err
	}
	return Names(c), nil
}

// Names lists the models of an ensemble's steps, each once.
func Names(c *modelconfig.Config) []string {
	var names []string
	for _, step := range c.GetEnsembleScheduling().GetStep() {
		if name := step.GetModelName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
