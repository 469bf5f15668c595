package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// servedModel is a campaign's model, or one of several, with its default configuration.
type servedModel struct {
	name    string // "" for a single model
	header  journal.Header
	profile spec.Profile
	base    *modelconfig.Config
}

// servedModels lists the models of a campaign.
func servedModels(c Campaign) ([]servedModel, error) {
	list := []servedModel{{header: c.Header, profile: c.Profile}}
	if n := len(c.Header.Parts); n > 0 {
		list = nil
		for i, p := range c.Header.Parts {
			list = append(list, servedModel{name: p.Model, header: c.Header.Part(i), profile: c.Profile.Models[i]})
		}
	}
	for i := range list {
		var err error
		if list[i].base, err = modelconfig.Parse("the journal's base configuration", []byte(list[i].header.BaseConfig)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// part returns a configuration of the model. Of several models that divide the cores it is the one at an index
// of the policies.
func (m servedModel) part(own search.Candidate, policies []isolation.Policy, i int) (ConfigPart, error) {
	deployed, err := campaign.Served(m.base, own, policies, i)
	if err != nil {
		return ConfigPart{}, err
	}
	setup, err := setupOf(m.header, own, deployed)
	if err != nil {
		return ConfigPart{}, err
	}
	text, err := modelconfig.Format(deployed)
	return ConfigPart{Model: m.name, Setup: setup, Deployed: deployed, Text: string(text)}, err
}

// jointSetup returns the setup of several models together: their instances. What differs between
// models has no common value.
func jointSetup(parts []ConfigPart) Setup {
	joint := Setup{IntraOpThreads: -1, Provider: parts[0].Setup.Provider, Runtime: parts[0].Setup.Runtime, Precision: parts[0].Setup.Precision}
	for _, p := range parts {
		joint.Instances += p.Setup.Instances
		if p.Setup.Provider != joint.Provider {
			joint.Provider = ""
		}
		if p.Setup.Precision != joint.Precision {
			joint.Precision = ""
		}
	}
	return joint
}

// jointText returns the files of several models, each below its name.
func jointText(parts []ConfigPart) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "# %s\n%s", p.Model, p.Text)
	}
	return b.String()
}

// shapesOf returns the shapes in the requests to all models. Of several, the inputs have the model's
// name before theirs.
func shapesOf(models []servedModel) []RequestShape {
	var list []RequestShape
	for _, m := range models {
		for _, s := range requestShapes(m.profile, m.base) {
			if m.name != "" {
				s.Input = m.name + "." + s.Input
			}
			list = append(list, s)
		}
	}
	return list
}

// servedOf lists several models; none for one.
func servedOf(c Campaign) []Served {
	var list []Served
	for i := range c.Header.Parts {
		own := c.Profile.Models[i]
		list = append(list, Served{Header: c.Header.Part(i), Shapes: own.Inputs.Shape, Pad: own.Inputs.Pad, Accuracy: comparison(own)})
	}
	return list
}

// OfEach returns the result of each of several models: the same decision, with the configurations
// and the header of that model. It is the result itself for one model.
func (r Result) OfEach() []Result {
	if len(r.Models) == 0 {
		return []Result{r}
	}
	var list []Result
	for i, m := range r.Models {
		one := r
		one.Header, one.Shapes, one.Pad, one.Accuracy, one.Requests = m.Header, m.Shapes, m.Pad, m.Accuracy, nil
		for _, s := range r.Requests {
			if input, isOwn := strings.CutPrefix(s.Input, m.Header.Model+"."); isOwn {
				s.Input = input
				one.Requests = append(one.Requests, s)
			}
		}
		one.Configs = slices.Clone(r.Configs)
		for k := range one.Configs {
			part := one.Configs[k].Parts[i]
			one.Configs[k].Setup, one.Configs[k].Deployed, one.Configs[k].Text = part.Setup, part.Deployed, part.Text
		}
		list = append(list, one)
	}
	return list
}
