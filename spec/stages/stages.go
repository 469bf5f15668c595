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

// Complete returns the text of a profile with all stages of its ensemble. path is the profile's file, to
// whose folder the pipeline's is relative. A text without a pipeline, and one that names all stages, is
// returned as it is. So is one with other mistakes, which package spec reports.
func Complete(path string, text []byte) ([]byte, error) {
	var file yaml.Node
	if yaml.Unmarshal(text, &file) != nil || len(file.Content) == 0 || file.Content[0].Kind != yaml.MappingNode {
		return text, nil
	}
	root := file.Content[0]
	pipeline := field(root, pipelineField)
	if pipeline == nil || pipeline.Kind != yaml.ScalarNode || pipeline.Value == "" {
		return text, nil
	}
	found, err := Of(document.RelativeTo(path, pipeline.Value))
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %s: %w", path, pipeline.Line, pipelineField, err)
	}
	models := field(root, modelsField)
	switch {
	case models == nil && len(found) == 0:
		return text, nil
	case models == nil: // at the end, so that the lines of the file stay as they are
		return append(bytes.TrimRight(text, "\n"), section(found)...), nil
	case models.Kind != yaml.MappingNode:
		return text, nil
	}
	missing := slices.DeleteFunc(found, func(name string) bool { return field(models, name) != nil })
	if len(missing) == 0 {
		return text, nil
	}
	for _, name := range missing {
		models.Content = append(models.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle})
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&file), enc.Close()); err != nil {
		return nil, fmt.Errorf("cannot write the profile: %w", err)
	}
	return out.Bytes(), nil
}

// section returns the section models with stages that have no fields.
func section(names []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%s:\n", modelsField)
	for _, name := range names {
		fmt.Fprintf(&b, "  %s: {}\n", name)
	}
	return b.Bytes()
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
