// Package edit sets fields in the text of a profile: those that a command line has in place of the file.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"tuner/measure"
	"tuner/spec/goals"
)

// Fields are set in place of the file's.
type Fields struct {
	P99    string // limit on the 99th percentile of the latency, with a unit; "": the file's
	Budget string // time of the search, with a unit; "": the file's
	Output string // folder of the results; "": the file's
}

// shortP99 is the name of the 99th percentile in reports, which a profile may have.
const shortP99 = "p99"

// Profile returns the text of a profile with these fields. The campaign's journal keeps this
// text, so that an analysis has the same goal. text must be a valid profile. The values are checked
// when the result is read.
func Profile(text []byte, f Fields) ([]byte, error) {
	if f == (Fields{}) {
		return text, nil
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("cannot read the profile: %w", err)
	}
	if len(file.Content) == 0 || file.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("cannot set a field of a profile without fields")
	}
	root := file.Content[0]
	if f.Output != "" {
		set(root, "output", f.Output)
	}
	if f.Budget != "" {
		set(section(root, "search"), "budget", f.Budget)
	}
	if f.P99 != "" {
		limits := section(root, "constraints")
		remove(limits, func(name string) bool {
			return name == string(measure.LatencyP99) || name == shortP99 || goals.TagMetric(name) == measure.LatencyP99
		})
		set(limits, string(measure.LatencyP99), f.P99)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&file), enc.Close()); err != nil {
		return nil, fmt.Errorf("cannot write the profile: %w", err)
	}
	return out.Bytes(), nil
}

// section returns the mapping of a name, which it adds if it is missing.
func section(root *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == name {
			if value := root.Content[i+1]; value.Kind == yaml.MappingNode {
				return value
			}
			*root.Content[i+1] = yaml.Node{Kind: yaml.MappingNode} // null
			return root.Content[i+1]
		}
	}
	value := &yaml.Node{Kind: yaml.MappingNode}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	return value
}

// set gives a field a value in place of its own.
func set(mapping *yaml.Node, name, value string) {
	remove(mapping, func(other string) bool { return other == name })
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &yaml.Node{Kind: yaml.ScalarNode, Value: value})
}

// remove removes fields.
func remove(mapping *yaml.Node, matches func(name string) bool) {
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		if matches(mapping.Content[i].Value) {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
		}
	}
}
