package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tuner/ort/addon"
	"tuner/spec"
	"tuner/spec/paths"
)

// Folders and files of a pod.
const (
	PlanDir = "/etc/tuner" // the plan, read-only
	WorkDir = "/work"      // everything that the campaign writes
	OutDir  = WorkDir + "/out"
)

// podProfile is the path of a campaign's profile in a pod. Files that it names are relative to its
// folder.
const podProfile = WorkDir + "/profile.yaml"

// inPod returns the text of a model's profile for a type of machine: the user's text with the file of
// the model, the budget, the price and the folder of the pod. Fields that the fleet shares are added
// unless the profile has them. A space takes the place of the profile's. The error names the profile's file.
func (f Fleet) inPod(m Model, on Machine, space Space, text []byte) (string, error) {
	if _, err := spec.ParseProfile(m.Profile, text); err != nil {
		return "", err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s: %w", m.Profile, err)
	}
	root := document.Content[0]
	set(root, "model", scalar(m.In()))
	set(root, "output", scalar(OutDir))
	if find(root, "name") == nil {
		set(root, "name", scalar(m.Name))
	}
	if on.Price > 0 {
		set(root, "price", mapping("per_hour", scalar(strconv.FormatFloat(on.Hourly(), 'g', -1, 64))))
	}
	if search := find(root, "search"); search == nil {
		set(root, "search", mapping("budget", scalar(f.Budget.String())))
	} else if search.Kind == yaml.MappingNode {
		set(search, "budget", scalar(f.Budget.String()))
	}
	for _, name := range []string{"constraints", "objective"} {
		shared, has := f.Shared[name]
		if !has || find(root, name) != nil || name == "objective" && find(root, "weights") != nil {
			continue
		}
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(shared), &value); err != nil {
			return "", fmt.Errorf("%s: %s: %w", f.Path, name, err)
		}
		set(root, name, value.Content[0])
	}
	if space != nil {
		knobs, err := space.node()
		if err != nil {
			return "", fmt.Errorf("%s: cannot measure the best configurations of %s again: %w", f.Path, m.Name, err)
		}
		set(root, "space", knobs)
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return "", fmt.Errorf("%s: cannot be written for a pod: %w", m.Profile, err)
	}
	return b.String(), m.checkInPod(b.Bytes())
}

// node returns the space as YAML. Values are in the canonical text of knobs: 2, true, 100us, [4,8].
func (s Space) node() (*yaml.Node, error) {
	if len(s) == 0 {
		return scalar("none"), nil
	}
	knobs := &yaml.Node{Kind: yaml.MappingNode}
	for _, knob := range slices.Sorted(maps.Keys(s)) {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, value := range s[knob] {
			var v yaml.Node
			if err := yaml.Unmarshal([]byte(value), &v); err != nil || len(v.Content) != 1 {
				return nil, fmt.Errorf("%s: the value %q cannot be written as YAML", knob, value)
			}
			list.Content = append(list.Content, v.Content[0])
		}
		set(knobs, knob, list)
	}
	return knobs, nil
}

// checkInPod checks the text of a profile as a pod would.
func (m Model) checkInPod(text []byte) error {
	p, err := spec.ParseProfile(podProfile, text)
	if err != nil {
		return fmt.Errorf("with the fields of the fleet, the profile %s is not valid: %w", m.Profile, err)
	}
	var errs []error
	if !p.Runner.IsBundled() || p.Finals != nil && !p.Finals.IsBundled() {
		errs = append(errs, fmt.Errorf("%s: runner: a fleet measures the bundled engine; remove the runner", m.Profile))
	}
	if len(p.Search.Earlier) > 0 {
		errs = append(errs, fmt.Errorf("%s: search.earlier: a pod has no earlier campaigns; remove it", m.Profile))
	}
	named := paths.Of(p)
	for _, library := range p.Model.Libraries.Operators {
		named = append(named, paths.Path{Field: addon.FileField, File: library})
	}
	if library := p.Model.Libraries.Provider; library != "" {
		named = append(named, paths.Path{Field: addon.ProviderField, File: library})
	}
	for _, x := range named {
		if x.File != m.In() && !strings.HasPrefix(x.File, ModelsDir+"/"+m.Name+"/") {
			errs = append(errs, fmt.Errorf("%s: %s: a pod has only the files beside the model; put it there, and write %s/%s/… for its place", m.Profile, x.Field, ModelsDir, m.Name))
		}
	}
	return errors.Join(errs...)
}

// find returns the value of a key of a mapping, nil without it.
func find(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// set replaces the value of a key of a mapping, or adds it.
func set(m *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	m.Content = append(m.Content, scalar(key), value)
}

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(key), value}}
}
