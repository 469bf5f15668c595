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
	calls   bool   // it is the pipeline that calls the others
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
	if c.Header.IsPipeline() {
		list = append(list, servedModel{name: c.Header.Model, calls: true, header: ofPipeline(c.Header), profile: c.Profile})
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
	return ConfigPart{Model: m.name, Calls: m.calls, Setup: setup, Deployed: deployed, Text: string(text)}, err
}

// ofPipeline returns the header of a pipeline without its stages.
func ofPipeline(h journal.Header) journal.Header {
	h.Parts, h.Facts = nil, nil
	return h
}

// fitted returns the parts of a configuration with a pipeline that takes no larger requests than its stages
// batch. A server refuses an ensemble that does.
func fitted(parts []ConfigPart) ([]ConfigPart, error) {
	last := len(parts) - 1
	if !parts[last].Calls || parts[last].Deployed.GetMaxBatchSize() == 0 {
		return parts, nil
	}
	config := modelconfig.Clone(parts[last].Deployed)
	for _, stage := range parts[:last] {
		config.MaxBatchSize = min(config.MaxBatchSize, max(stage.Deployed.GetMaxBatchSize(), 1))
	}
	text, err := modelconfig.Format(config)
	parts[last].Deployed, parts[last].Text, parts[last].Setup.MaxBatchSize = config, string(text), int(config.MaxBatchSize)
	return parts, err
}

// jointSetup returns the setup of several models together: their instances. What differs between
// models has no common value.
func jointSetup(parts []ConfigPart) Setup {
	joint := Setup{IntraOpThreads: -1, MaxBatchSize: -1, QueueDelay: -1, Provider: parts[0].Setup.Provider, Runtime: parts[0].Setup.Runtime, Precision: parts[0].Setup.Precision}
	for _, p := range parts {
		if p.Calls {
			continue
		}
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
	isPipeline := slices.ContainsFunc(models, func(m servedModel) bool { return m.calls })
	for _, m := range models {
		if isPipeline && !m.calls { // its requests come from the pipeline
			continue
		}
		for _, s := range requestShapes(m.profile, m.base) {
			if m.name != "" && !m.calls {
				s.Input = m.name + "." + s.Input
			}
			list = append(list, s)
		}
	}
	return list
}

// servedOf lists several models, or the stages of a pipeline with itself behind them; none for one model.
func servedOf(c Campaign) []Served {
	var list []Served
	for i := range c.Header.Parts {
		own := c.Profile.Models[i]
		list = append(list, Served{Header: c.Header.Part(i), Shapes: own.Inputs.Shape, Pad: own.Inputs.Pad, Accuracy: comparison(own)})
	}
	if c.Header.IsPipeline() {
		list = append(list, Served{Header: ofPipeline(c.Header), Calls: true, Shapes: c.Profile.Inputs.Shape})
	}
	return list
}

// IsPipeline reports whether the result is that of a pipeline.
func (r Result) IsPipeline() bool { return len(r.Stages) > 0 }

// Served lists the models that a server has: several, or the stages of a pipeline with itself behind them;
// none for one model.
func (r Result) Served() []Served {
	if r.IsPipeline() {
		return r.Stages
	}
	return r.Models
}

// OfEach returns the result of each of several models, or of a pipeline's: the same decision, with the
// configurations and the header of that model. It is the result itself for one model.
func (r Result) OfEach() []Result {
	served := r.Served()
	if len(served) == 0 {
		return []Result{r}
	}
	var list []Result
	for i, m := range served {
		one := r
		one.Header, one.Shapes, one.Pad, one.Accuracy, one.Requests = m.Header, m.Shapes, m.Pad, m.Accuracy, nil
		if r.IsPipeline() && i == len(served)-1 {
			one.Requests = r.Requests
		}
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

// HostPolicies returns the values of a server's option --host-policy that the configuration needs; none where
// the models share all cores.
func (c Config) HostPolicies() []string { return isolation.Options(c.Policies) }

// ServerFlags returns the flags of a server for the configuration's host policies.
func (c Config) ServerFlags() []string { return isolation.Flags(c.Policies) }
