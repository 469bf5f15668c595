package result

import (
	"fmt"
	"maps"
	"slices"

	"tuner/measure"
	"tuner/search"
)

// Alone returns what a result of several models has of the one with an index: as if that model were the
// only one, with its own configuration, load and figures. Figures of the server stay. The error names a
// configuration without the model.
func (r Result) Alone(i int) (Result, error) {
	model := r.Models[i].Model
	r.Model, r.Models, r.Mix = model, nil, nil
	var own []search.Constraint
	for _, c := range r.Goal.Constraints {
		name, of := c.Metric.Split()
		if c.Metric = of; name == model || name == "" {
			own = append(own, c)
		}
	}
	r.Goal.Constraints = own
	r.Variants = slices.DeleteFunc(slices.Clone(r.Variants), func(v Variant) bool { return v.Model != model })
	if r.Origin != nil {
		origin := *r.Origin
		origin.Models = slices.DeleteFunc(slices.Clone(origin.Models), func(m Model) bool { return m.Model != model })
		r.Origin = &origin
	}
	r.Configurations = slices.Clone(r.Configurations)
	for k, c := range r.Configurations {
		if i >= len(c.Models) || c.Models[i].Model != model {
			return Result{}, fmt.Errorf("%s has no configuration of the model %q", c.Name, model)
		}
		r.Configurations[k] = c.alone(c.Models[i])
	}
	return r, nil
}

// alone is Result.Alone for a configuration.
func (c Configuration) alone(own Configured) Configuration {
	c.Setup, c.Config, c.Settings, c.Models = own.Setup, own.Config, c.Settings.Of(own.Model), nil
	if c.BestLoad != nil {
		load := c.BestLoad.Of(own.Model)
		c.BestLoad = &load
	}
	c.Points = slices.Clone(c.Points)
	for k := range c.Points {
		p := &c.Points[k]
		p.Load, p.Values = p.Load.Of(own.Model), valuesOf(p.Values, own.Model)
	}
	return c
}

// valuesOf returns the figures of one of several models, without its name, beside those of the server.
func valuesOf(values map[measure.Metric]Estimate, model string) map[measure.Metric]Estimate {
	own := maps.Clone(values)
	for m, e := range values {
		if name, of := m.Split(); name == model {
			own[of] = e
		}
	}
	return own
}
