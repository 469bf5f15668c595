package tuned

import (
	"fmt"
	"math"
	"slices"

	"tuner/measure"
	"tuner/report/result"
	"tuner/search"
	"tuner/spec/goals"
)

// A campaign of several models becomes a server with all of them. Each is read like the model of a campaign
// of its own: with its load at the answer's scale, and its own figures and limits. Memory, cores and launch
// are the server's, and count once.

// modelsOf returns the models of a result, or its only one.
func modelsOf(path string, d result.Result, repository string) ([]Model, error) {
	if len(d.Stages) > 0 {
		m, err := pipelineOf(path, d, repository)
		return []Model{m}, err
	}
	if len(d.Models) == 0 {
		m, err := modelOf(path, d)
		m.Repository = repository
		return []Model{m}, err
	}
	var models []Model
	for i := range d.Models {
		own, err := alone(d, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m, err := modelOf(path, own)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(models, func(other Model) bool { return other.Name == m.Name }) {
			return nil, fmt.Errorf("%s: models: %q appears twice", path, m.Name)
		}
		m.Repository, m.Together = repository, true
		if i > 0 { // the server's
			m.Memory, m.LaunchTime = 0, 0
		}
		models = append(models, m)
	}
	return models, nil
}

// alone returns what a result of several models has of the one with an index: as if that model were the
// only one, with its own configuration, load and figures. Figures of the server stay. The error names a
// configuration without the model.
func alone(d result.Result, i int) (result.Result, error) {
	model := d.Models[i].Model
	d.Models, d.Mix = nil, nil
	var own []search.Constraint
	for _, c := range d.Goal.Constraints {
		name, of := c.Metric.Split()
		if c.Metric = of; name == model || name == "" {
			own = append(own, c)
		}
	}
	d.Goal.Constraints = own
	d, err := folderPart(d, i, model)
	for k := range d.Configurations {
		c := &d.Configurations[k]
		if c.BestLoad != nil {
			load := c.BestLoad.Of(model)
			c.BestLoad = &load
		}
		c.Points = slices.Clone(c.Points)
		for l := range c.Points {
			p := &c.Points[l]
			p.Load, p.Values = p.Load.Of(model), valuesOf(p.Values, model)
		}
	}
	return d, err
}

// folderPart returns a result with the variants, the origin and the configurations of the model with an index among
// several on one server: what belongs to its folder in the repository. Loads and figures stay. The error names a
// configuration without the model.
func folderPart(d result.Result, i int, model string) (result.Result, error) {
	d.Model = model
	d.Variants = slices.DeleteFunc(slices.Clone(d.Variants), func(v result.Variant) bool { return v.Model != model })
	if d.Origin != nil {
		origin := *d.Origin
		origin.Models = slices.DeleteFunc(slices.Clone(origin.Models), func(m result.Model) bool { return m.Model != model })
		d.Origin = &origin
	}
	d.Configurations = slices.Clone(d.Configurations)
	for k, c := range d.Configurations {
		if i >= len(c.Models) || c.Models[i].Model != model {
			return result.Result{}, fmt.Errorf("%s has no configuration of the model %q", c.Name, model)
		}
		own := c.Models[i]
		c.Setup, c.Config, c.Settings, c.Models = own.Setup, own.Config, c.Settings.Of(model), nil
		d.Configurations[k] = c
	}
	return d, nil
}

// valuesOf returns the figures of one of several models, without its name, beside those of the server.
func valuesOf(values map[measure.Metric]result.Estimate, model string) map[measure.Metric]result.Estimate {
	own := map[measure.Metric]result.Estimate{}
	for m, e := range values {
		name, of := m.Split()
		if name == model || name == "" && goals.IsServers(m) {
			own[of] = e
		}
	}
	return own
}

// Groups splits models into those that were measured together, in their order. A model that was measured alone
// is a group of its own.
func Groups(models []Model) [][]Model {
	return Together(models, func(m Model) (string, bool) { return m.Input, m.Together })
}

// Together is Groups for what else stands for a model. company returns what models that were measured together have in
// common, and false for a model that was measured alone.
func Together[M any, C comparable](models []M, company func(M) (common C, isTogether bool)) [][]M {
	var groups [][]M
	var last C
	canGrow := false // the last group is of models that were measured together
	for _, m := range models {
		common, isTogether := company(m)
		if end := len(groups) - 1; isTogether && canGrow && common == last {
			groups[end] = append(groups[end], m)
			continue
		}
		groups, last, canGrow = append(groups, []M{m}), common, isTogether
	}
	return groups
}

// Cores returns the number of cores of a server with all models. It is the sum over those that were measured
// alone, and over those that were measured together.
func Cores(models []Model) int {
	sum := 0
	for _, group := range Groups(models) {
		sum += coresOf(group)
	}
	return sum
}

// coresOf returns the number of cores for models that were measured together: the threads of all their instances and of their stages',
// or the cores that the server used plus one if that is larger. It is at most the number of cores of the measured
// machine. On GPUs, threads hardly compute, so only the use counts.
func coresOf(group []Model) int {
	first, threads := group[0], 0
	for _, m := range group {
		for _, c := range m.Computing() {
			switch {
			case c.GPUs() > 0:
			case c.Threads == 0 && c.KnowsMachine():
				return c.Host.UsableCores()
			default:
				threads += c.Instances * max(1, c.Threads)
			}
		}
	}
	wanted := max(threads, 1+int(math.Ceil(min(first.Values[measure.CPU].Value, mostCount))))
	if threads == 0 || !first.KnowsMachine() {
		return wanted
	}
	return min(first.Host.UsableCores(), wanted)
}

// BusyCores returns the number of cores that a server with all models uses while each has its tuned load. Models that were
// measured together have one. It returns 0 if a use is unknown.
func BusyCores(models []Model) float64 {
	sum := 0.0
	for _, group := range Groups(models) {
		used := group[0].Values[measure.CPU].Value
		if used <= 0 {
			return 0
		}
		sum += used
	}
	return sum
}

// Memory returns the memory of a server's process with all models, in bytes: the sum of the measured peaks.
// Models that were measured together have one. It returns 0 if a peak is unknown.
func Memory(models []Model) float64 {
	bytes := 0.0
	for _, group := range Groups(models) {
		if group[0].Memory == 0 {
			return 0
		}
		bytes += group[0].Memory
	}
	return bytes
}
