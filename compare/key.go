package compare

import (
	"cmp"
	"slices"

	"tuner/model/modelconfig"
	"tuner/report/result"
	"tuner/search"
	"tuner/spec/knobs"
)

// defaultKey is the key of the default configuration.
const defaultKey = "default"

// keyOf returns the key of a candidate. Its settings are sorted, since their order is that of the profile.
func keyOf(c search.Candidate) string {
	settings := c.Settings()
	if len(settings) == 0 {
		return defaultKey
	}
	slices.SortFunc(settings, func(a, b search.Setting) int { return cmp.Compare(a.Knob, b.Knob) })
	return search.NewCandidate(settings...).Key()
}

// spaceOf returns a space that knows the values of knobs in a campaign's default configuration. It knows none where
// the text cannot be read.
func spaceOf(c result.Configuration) search.Space {
	known := func(text string, setup result.Setup) search.Space {
		config, err := modelconfig.Parse("config.pbtxt", []byte(text))
		if err != nil {
			return search.Space{}
		}
		base := knobs.Base(config)
		base[search.KnobRuntime] = search.Value(setup.Runtime)
		return search.Space{Facts: search.Facts{Base: base}}
	}
	if len(c.Models) == 0 {
		return known(c.Config, c.Setup)
	}
	var space search.Space
	for _, m := range c.Models {
		space.Parts = append(space.Parts, search.Part{Model: m.Model, Space: known(m.Config, m.Setup)})
	}
	return space
}

// keyed returns the runs with keys that are equal for equal configurations. A profile may name a knob that another one
// leaves alone. So a setting that is the default's in all campaigns is no part of a key. A configuration that has no
// other setting keeps them all, since it is a trial of its own beside the default.
func keyed(runs []Run) []Run {
	isAsDefault := func(c search.Candidate, s search.Setting) bool {
		return !slices.ContainsFunc(runs, func(r Run) bool { return r.Kind == Campaign && !r.space.IsAsDefault(c, s) })
	}
	list := slices.Clone(runs)
	for i := range list {
		list[i].Configurations = slices.Clone(list[i].Configurations)
		for j, c := range list[i].Configurations {
			telling := slices.DeleteFunc(c.settings.Settings(), func(s search.Setting) bool { return isAsDefault(c.settings, s) })
			if len(telling) > 0 {
				list[i].Configurations[j].Key = keyOf(search.NewCandidate(telling...))
			}
		}
	}
	return list
}
